/* SPDX-License-Identifier: Apache-2.0
 *
 * A plain libusb program, built with libusb's own header, as somebody would write a first driver for a stick. It runs
 * under `reef virtual-usb` (virtual_usb_test.cpp), and with a real stick: nothing in it knows of Reef. Each command
 * does one thing and ends with exit code 0 if all went as it should.
 */
#include <libusb-1.0/libusb.h>

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "check.h"

enum { kDfuVendor = 0x1a6e, kDfuProduct = 0x089a, kVendor = 0x18d1, kProduct = 0x9302, kLimit = 1000 };

static libusb_context* context;

static double seconds(void) {
  struct timeval now;
  gettimeofday(&now, NULL);
  return (double)now.tv_sec + (double)now.tv_usec * 1e-6;
}

static int count(int vendor) {
  libusb_device** list;
  const ssize_t all = libusb_get_device_list(context, &list);
  CHECK(all >= 0);
  int found = 0;
  for (ssize_t i = 0; i < all; ++i) {
    struct libusb_device_descriptor about;
    CHECK(libusb_get_device_descriptor(list[i], &about) == 0);
    found += about.idVendor == vendor;
  }
  CHECK(list[all] == NULL);
  libusb_free_device_list(list, 1);
  return found;
}

static libusb_device_handle* open_when_there(int vendor, int product) {
  for (int i = 0; i < 100; ++i) {
    libusb_device_handle* handle = libusb_open_device_with_vid_pid(context, (uint16_t)vendor, (uint16_t)product);
    if (handle != NULL) return handle;
    usleep(20000);
  }
  CHECK(!"a stick");
  return NULL;
}

/* Firmware of any bytes: a stick in software does not execute it. */
static libusb_device_handle* start(void) {
  libusb_device_handle* handle = open_when_there(kDfuVendor, kDfuProduct);
  CHECK(libusb_kernel_driver_active(handle, 0) == 0);
  CHECK(libusb_claim_interface(handle, 0) == 0);
  unsigned char block[256], status[6];
  for (uint16_t i = 0; i < 5; ++i) {
    memset(block, i, sizeof block);
    const uint16_t bytes = i < 4 ? sizeof block : 0;
    CHECK(libusb_control_transfer(handle, 0x21, 1, i, 0, block, bytes, kLimit) == bytes);
    CHECK(libusb_control_transfer(handle, 0xa1, 3, 0, 0, status, 6, kLimit) == 6);
    CHECK(status[4] == (i < 4 ? 5 : 2));
  }
  CHECK(libusb_control_transfer(handle, 0xa1, 2, 3, 0, block, sizeof block, kLimit) == 256 && block[7] == 3);
  CHECK(libusb_reset_device(handle) == LIBUSB_ERROR_NOT_FOUND); /* it comes back as another device */
  CHECK(libusb_control_transfer(handle, 0xa1, 3, 0, 0, status, 6, kLimit) == LIBUSB_ERROR_NO_DEVICE);
  libusb_close(handle);
  handle = open_when_there(kVendor, kProduct);
  CHECK(libusb_claim_interface(handle, 0) == 0);
  return handle;
}

static void list_devices(int expected) {
  libusb_device** list;
  CHECK(libusb_get_device_list(context, &list) == expected);
  for (int i = 0; i < expected; ++i) {
    struct libusb_device_descriptor about;
    struct libusb_config_descriptor* config;
    uint8_t ports[7];
    CHECK(libusb_get_device_descriptor(list[i], &about) == 0);
    CHECK(about.bLength == 18 && about.bDescriptorType == LIBUSB_DT_DEVICE && about.bNumConfigurations == 1);
    CHECK(about.idVendor == kDfuVendor && about.idProduct == kDfuProduct);
    CHECK(libusb_get_port_numbers(list[i], ports, sizeof ports) == 1 && ports[0] == i + 1);
    CHECK(libusb_get_port_number(list[i]) == i + 1);
    CHECK(libusb_get_config_descriptor(list[i], 0, &config) == 0);
    CHECK(config->bNumInterfaces == 1 && config->interface[0].num_altsetting == 1);
    const struct libusb_interface_descriptor* interface = &config->interface[0].altsetting[0];
    CHECK(interface->bInterfaceClass == 0xfe && interface->bInterfaceSubClass == 1 && interface->bNumEndpoints == 0);
    CHECK(interface->extra_length == 9 && interface->extra[1] == 0x21); /* DFU's functional descriptor */
    libusb_free_config_descriptor(config);
    printf("%d-%d %04x:%04x speed %d\n", libusb_get_bus_number(list[i]), ports[0], about.idVendor, about.idProduct,
           libusb_get_device_speed(list[i]));
  }
  libusb_free_device_list(list, 1);
}

static void application_descriptors(void) {
  libusb_device_handle* handle = start();
  struct libusb_config_descriptor* config;
  struct libusb_ss_endpoint_companion_descriptor* companion;
  int configuration = 0;
  CHECK(libusb_get_active_config_descriptor(libusb_get_device(handle), &config) == 0);
  CHECK(config->wTotalLength == 96 && config->interface[0].altsetting[0].bNumEndpoints == 6);
  CHECK(libusb_get_ss_endpoint_companion_descriptor(context, &config->interface[0].altsetting[0].endpoint[3],
                                                    &companion) == 0);
  CHECK(companion->bDescriptorType == LIBUSB_DT_SS_ENDPOINT_COMPANION && companion->bLength == 6);
  libusb_free_ss_endpoint_companion_descriptor(companion);
  libusb_free_config_descriptor(config);
  CHECK(libusb_get_max_packet_size(libusb_get_device(handle), 0x81) == 1024);
  CHECK(libusb_get_configuration(handle, &configuration) == 0 && configuration == 1);
  CHECK(libusb_set_configuration(handle, 1) == LIBUSB_ERROR_BUSY); /* its interface is claimed */
  unsigned char text[32];
  CHECK(libusb_get_string_descriptor_ascii(handle, 1, text, sizeof text) < 0);
  CHECK(libusb_get_descriptor(handle, LIBUSB_DT_DEVICE, 0, text, 18) == 18 && text[8] == 0xd1);
  CHECK(libusb_clear_halt(handle, 0x81) == 0);
  libusb_close(handle);
}

static void registers(void) {
  libusb_device_handle* handle = start();
  unsigned char value[8] = {0};
  CHECK(libusb_control_transfer(handle, 0xc0, 1, 0xa30c, 1, value, 4, kLimit) == 4 && value[0] == 0x59);
  const unsigned char all_tiles[8] = {0x7f};
  CHECK(libusb_control_transfer(handle, 0x40, 0, 0x8788, 4, (unsigned char*)all_tiles, 8, kLimit) == 8);
  CHECK(libusb_control_transfer(handle, 0xc0, 0, 0x8788, 4, value, 8, kLimit) == 8);
  CHECK(memcmp(value, all_tiles, 8) == 0);
  CHECK(libusb_control_transfer(handle, 0xc0, 9, 0, 0, value, 8, kLimit) == LIBUSB_ERROR_PIPE);
  libusb_close(handle);
}

static void note_end(struct libusb_transfer* transfer) { *(int*)transfer->user_data = 1; }

/* Reads that nobody answers: one runs out of time, one is cancelled, one is ended by a loop that polls itself. */
static void asynchronous(void) {
  libusb_device_handle* handle = start();
  unsigned char buffer[3][1024];
  int is_over[3] = {0, 0, 0}, moved = -1;
  struct libusb_transfer* transfer[3];
  for (int i = 0; i < 3; ++i) {
    transfer[i] = libusb_alloc_transfer(0);
    libusb_fill_bulk_transfer(transfer[i], handle, i == 1 ? 0x82 : 0x81, buffer[i], sizeof buffer[i], note_end,
                              &is_over[i], i == 0 ? 150 : 0);
    CHECK(libusb_submit_transfer(transfer[i]) == 0);
    CHECK(libusb_submit_transfer(transfer[i]) == LIBUSB_ERROR_BUSY);
  }
  const double before = seconds();
  while (!is_over[0]) CHECK(libusb_handle_events_completed(context, &is_over[0]) == 0);
  CHECK(transfer[0]->status == LIBUSB_TRANSFER_TIMED_OUT && seconds() - before > 0.1 && seconds() - before < 5);
  CHECK(!is_over[1] && !is_over[2]);
  CHECK(libusb_cancel_transfer(transfer[1]) == 0);
  CHECK(libusb_cancel_transfer(transfer[1]) == LIBUSB_ERROR_NOT_FOUND);
  while (!is_over[1]) {
    struct timeval limit = {1, 0};
    CHECK(libusb_handle_events_timeout_completed(context, &limit, &is_over[1]) == 0);
  }
  CHECK(transfer[1]->status == LIBUSB_TRANSFER_CANCELLED && transfer[1]->actual_length == 0);
  CHECK(libusb_cancel_transfer(transfer[2]) == 0);
  const struct libusb_pollfd** files = libusb_get_pollfds(context);
  CHECK(files != NULL && files[0] != NULL && files[1] != NULL);
  for (int i = 0; i < 100 && !is_over[2]; ++i) {
    struct pollfd wait[8];
    nfds_t waiting = 0;
    for (; files[waiting] != NULL && waiting < 8; ++waiting) {
      wait[waiting].fd = files[waiting]->fd;
      wait[waiting].events = files[waiting]->events;
    }
    struct timeval none = {0, 0};
    CHECK(poll(wait, waiting, 1000) >= 0);
    CHECK(libusb_handle_events_timeout(context, &none) == 0);
  }
  libusb_free_pollfds(files);
  CHECK(is_over[2]);
  for (int i = 0; i < 3; ++i) libusb_free_transfer(transfer[i]);
  CHECK(libusb_bulk_transfer(handle, 0x81, buffer[0], 1024, &moved, 50) == LIBUSB_ERROR_TIMEOUT && moved == 0);
  CHECK(libusb_interrupt_transfer(handle, 0x83, buffer[0], 4, &moved, 50) == LIBUSB_ERROR_TIMEOUT);
  libusb_close(handle);
}

static int came = 0, went = 0;
static int plugged(libusb_context* where, libusb_device* device, libusb_hotplug_event event, void* user) {
  (void)where;
  (void)device;
  (void)user;
  *(event == LIBUSB_HOTPLUG_EVENT_DEVICE_ARRIVED ? &came : &went) += 1;
  return 0;
}

static void hotplug(void) {
  CHECK(libusb_has_capability(LIBUSB_CAP_HAS_HOTPLUG));
  libusb_hotplug_callback_handle id;
  CHECK(libusb_hotplug_register_callback(
            context, LIBUSB_HOTPLUG_EVENT_DEVICE_ARRIVED | LIBUSB_HOTPLUG_EVENT_DEVICE_LEFT, LIBUSB_HOTPLUG_ENUMERATE,
            LIBUSB_HOTPLUG_MATCH_ANY, LIBUSB_HOTPLUG_MATCH_ANY, LIBUSB_HOTPLUG_MATCH_ANY, plugged, NULL, &id) == 0);
  CHECK(came == 1 && went == 0);
  libusb_device_handle* handle = start(); /* leaves as one device and comes back as another */
  for (int i = 0; i < 40 && came < 2; ++i) {
    struct timeval limit = {0, 100000};
    CHECK(libusb_handle_events_timeout(context, &limit) == 0);
  }
  CHECK(came == 2 && went == 1);
  libusb_hotplug_deregister_callback(context, id);
  libusb_close(handle);
}

/* Too many bytes of parameters, which nobody wants: a stick takes 49,152 and stops, its registers too. */
static void jam(void) {
  libusb_device_handle* handle = start();
  static unsigned char bytes[60008];
  const unsigned length = sizeof bytes - 8;
  for (int i = 0; i < 4; ++i) bytes[i] = (unsigned char)(length >> (8 * i));
  bytes[4] = 2;
  int moved = 0;
  unsigned char value[8];
  CHECK(libusb_bulk_transfer(handle, 1, bytes, sizeof bytes, &moved, 300) == LIBUSB_ERROR_TIMEOUT);
  CHECK(moved == 8 + 49152);
  const double before = seconds();
  CHECK(libusb_control_transfer(handle, 0xc0, 1, 0xa30c, 1, value, 4, 200) == LIBUSB_ERROR_TIMEOUT);
  CHECK(seconds() - before > 0.15);
  CHECK(libusb_reset_device(handle) == 0);
  CHECK(libusb_control_transfer(handle, 0xc0, 1, 0xa30c, 1, value, 4, 200) == 4);
  libusb_close(handle);
}

/* Two owners: only one may claim it. */
static void claim_twice(void) {
  libusb_device_handle* first = open_when_there(kDfuVendor, kDfuProduct);
  libusb_device_handle* second = open_when_there(kDfuVendor, kDfuProduct);
  CHECK(libusb_claim_interface(first, 0) == 0);
  CHECK(libusb_claim_interface(second, 0) == LIBUSB_ERROR_BUSY);
  CHECK(libusb_claim_interface(first, 1) == LIBUSB_ERROR_NOT_FOUND);
  CHECK(libusb_release_interface(first, 0) == 0);
  CHECK(libusb_claim_interface(second, 0) == 0);
  libusb_close(first);
  libusb_close(second);
}

/* With a fault that pulls the stick out: whatever is under way ends, and it comes back. */
static void unplug(void) {
  libusb_device_handle* handle = open_when_there(kDfuVendor, kDfuProduct);
  unsigned char status[6];
  int error = 6;
  for (int i = 0; i < 10 && error == 6; ++i) {
    error = libusb_control_transfer(handle, 0xa1, 3, 0, 0, status, 6, kLimit);
  }
  CHECK(error == LIBUSB_ERROR_NO_DEVICE);
  CHECK(count(kDfuVendor) == 0);
  libusb_close(handle);
  libusb_close(open_when_there(kDfuVendor, kDfuProduct));
}

/* Until somebody ends the program. */
static void hold(void) {
  libusb_device_handle* handle = open_when_there(kDfuVendor, kDfuProduct);
  CHECK(libusb_claim_interface(handle, 0) == 0);
  for (;;) pause();
}

int main(int argc, char** argv) {
  CHECK(argc >= 2);
  const char* what = argv[1];
  const struct libusb_version* version = libusb_get_version();
  CHECK(version->major == 1 && version->minor == 0);
  CHECK(strcmp(libusb_error_name(LIBUSB_ERROR_PIPE), "LIBUSB_ERROR_PIPE") == 0);
  CHECK(strlen(libusb_strerror(LIBUSB_ERROR_TIMEOUT)) > 3);
  const int use_default = strcmp(what, "claim") == 0; /* the default context, too, is tried somewhere */
  CHECK(libusb_init(use_default ? NULL : &context) == 0);
  if (strcmp(what, "list") == 0) list_devices(atoi(argv[2]));
  if (strcmp(what, "count") == 0) CHECK(count(atoi(argv[2])) == atoi(argv[3]));
  if (strcmp(what, "descriptors") == 0) application_descriptors();
  if (strcmp(what, "registers") == 0) registers();
  if (strcmp(what, "asynchronous") == 0) asynchronous();
  if (strcmp(what, "hotplug") == 0) hotplug();
  if (strcmp(what, "jam") == 0) jam();
  if (strcmp(what, "claim") == 0) claim_twice();
  if (strcmp(what, "unplug") == 0) unplug();
  if (strcmp(what, "hold") == 0) hold();
  libusb_exit(context);
  printf("done\n");
  return 0;
}
