/* SPDX-License-Identifier: Apache-2.0
 *
 * What libusb's documentation and its Linux back end promise in corners that a first driver does not touch: wrong
 * calls, threads, contexts, forks, transfers that are given up. Built with libusb's own header, run under `reef
 * virtual-usb` (virtual_usb_test.cpp) with a stick that has firmware (--ready). Each command ends with exit code 0 if
 * all is right.
 */
#include <libusb-1.0/libusb.h>

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { kVendor = 0x18d1, kProduct = 0x9302, kLimit = 1000, kTileConfig = 0x8788 };

static libusb_context* context;

static libusb_device_handle* open_stick(libusb_context* where) {
  libusb_device_handle* handle = libusb_open_device_with_vid_pid(where, kVendor, kProduct);
  CHECK(handle != NULL);
  return handle;
}

/* A register by a vendor request: works without a claim. */
static void check_register(libusb_device_handle* handle) {
  unsigned char value[8];
  CHECK(libusb_control_transfer(handle, 0xc0, 1, 0xa30c, 1, value, 4, kLimit) == 4);
}

static void calls_in_any_order(void) {
  libusb_device_handle* handle = open_stick(context);
  libusb_device_handle* other = open_stick(context);
  int configuration = -7;
  CHECK(libusb_get_configuration(handle, &configuration) == 0 && configuration == 1);
  CHECK(libusb_release_interface(handle, 0) == LIBUSB_ERROR_NOT_FOUND);
  CHECK(libusb_set_interface_alt_setting(handle, 0, 0) == LIBUSB_ERROR_NOT_FOUND);
  CHECK(libusb_set_configuration(handle, 1) == 0);
  CHECK(libusb_set_configuration(handle, 2) == LIBUSB_ERROR_NOT_FOUND);
  CHECK(libusb_set_configuration(handle, 256) == LIBUSB_ERROR_INVALID_PARAM);
  CHECK(libusb_set_configuration(handle, -2) == LIBUSB_ERROR_INVALID_PARAM);
  CHECK(libusb_set_configuration(handle, -1) == 0);
  CHECK(libusb_get_configuration(handle, &configuration) == 0 && configuration == 0);
  CHECK(libusb_claim_interface(handle, 0) == LIBUSB_ERROR_NOT_FOUND);
  CHECK(libusb_set_configuration(handle, 1) == 0);
  CHECK(libusb_claim_interface(handle, 0) == 0);
  CHECK(libusb_claim_interface(handle, 0) == 0); /* again: nothing happens */
  CHECK(libusb_claim_interface(handle, -1) == LIBUSB_ERROR_INVALID_PARAM);
  CHECK(libusb_claim_interface(handle, 32) == LIBUSB_ERROR_INVALID_PARAM);
  CHECK(libusb_claim_interface(other, 0) == LIBUSB_ERROR_BUSY);
  CHECK(libusb_set_configuration(handle, 1) == LIBUSB_ERROR_BUSY); /* while somebody has claimed it */
  CHECK(libusb_set_configuration(other, 1) == LIBUSB_ERROR_BUSY);
  CHECK(libusb_set_interface_alt_setting(handle, 0, 0) == 0);
  CHECK(libusb_set_interface_alt_setting(handle, 0, 1) == LIBUSB_ERROR_NOT_FOUND);
  CHECK(libusb_set_interface_alt_setting(handle, 0, -1) == LIBUSB_ERROR_INVALID_PARAM);
  CHECK(libusb_clear_halt(handle, 0x81) == 0);
  CHECK(libusb_clear_halt(handle, 0x01) == 0);
  CHECK(libusb_clear_halt(handle, 0x84) == LIBUSB_ERROR_NOT_FOUND);
  CHECK(libusb_kernel_driver_active(handle, 0) == 0);
  CHECK(libusb_kernel_driver_active(handle, 77) == LIBUSB_ERROR_INVALID_PARAM);
  CHECK(libusb_detach_kernel_driver(handle, 0) == LIBUSB_ERROR_NOT_FOUND);
  check_register(other); /* of the device, not of an interface */
  CHECK(libusb_control_transfer(other, 0x01, 11, 0, 0, NULL, 0, kLimit) == LIBUSB_ERROR_IO); /* of the interface */

  /* A reset that leaves the device what it was leaves it claimed. */
  CHECK(libusb_reset_device(handle) == 0);
  CHECK(libusb_claim_interface(other, 0) == LIBUSB_ERROR_BUSY);
  unsigned char bytes[64];
  int moved = -1;
  CHECK(libusb_bulk_transfer(handle, 0x82, bytes, 16, &moved, 30) == LIBUSB_ERROR_TIMEOUT && moved == 0);
  CHECK(libusb_bulk_transfer(other, 0x82, bytes, 16, &moved, 30) == LIBUSB_ERROR_IO);
  CHECK(libusb_release_interface(handle, 0) == 0);
  CHECK(libusb_bulk_transfer(other, 0x82, bytes, 16, &moved, 30) == LIBUSB_ERROR_TIMEOUT); /* claims it on the way */
  CHECK(libusb_claim_interface(handle, 0) == LIBUSB_ERROR_BUSY);
  libusb_close(other); /* gives up what it had */
  CHECK(libusb_claim_interface(handle, 0) == 0);
  CHECK(libusb_get_device(handle) != NULL);
  CHECK(libusb_get_string_descriptor_ascii(handle, 0, bytes, sizeof bytes) == LIBUSB_ERROR_INVALID_PARAM);
  CHECK(libusb_get_string_descriptor_ascii(handle, 1, bytes, sizeof bytes) == LIBUSB_ERROR_PIPE);
  uint8_t port = 0;
  CHECK(libusb_get_port_numbers(libusb_get_device(handle), &port, 0) == LIBUSB_ERROR_INVALID_PARAM);
  CHECK(libusb_get_port_numbers(libusb_get_device(handle), &port, 1) == 1 && port == 1);
  libusb_close(handle);
}

static void note_end(struct libusb_transfer* transfer) { ++*(int*)transfer->user_data; }

static void malformed(void) {
  libusb_device_handle* handle = open_stick(context);
  CHECK(libusb_claim_interface(handle, 0) == 0);
  int ended = 0, moved = -1;
  unsigned char buffer[LIBUSB_CONTROL_SETUP_SIZE + 8192];
  struct libusb_transfer* transfer = libusb_alloc_transfer(0);
  const struct timeval now = {0, 0};

  /* More bytes announced than there is room for. */
  libusb_fill_control_setup(buffer, 0xc0, 0, 0x8788, 4, 64);
  libusb_fill_control_transfer(transfer, handle, buffer, note_end, &ended, kLimit);
  transfer->length = LIBUSB_CONTROL_SETUP_SIZE + 8;
  CHECK(libusb_submit_transfer(transfer) == LIBUSB_ERROR_IO);
  transfer->length = 7;
  CHECK(libusb_submit_transfer(transfer) < 0);
  transfer->length = LIBUSB_CONTROL_SETUP_SIZE + 4097;
  CHECK(libusb_submit_transfer(transfer) == LIBUSB_ERROR_INVALID_PARAM);
  /* Room for more than is announced. */
  libusb_fill_control_setup(buffer, 0xc0, 1, 0xa30c, 1, 4);
  libusb_fill_control_transfer(transfer, handle, buffer, note_end, &ended, kLimit);
  transfer->length = LIBUSB_CONTROL_SETUP_SIZE + 512;
  CHECK(libusb_submit_transfer(transfer) == 0);
  while (ended == 0) CHECK(libusb_handle_events_completed(context, &ended) == 0);
  CHECK(transfer->status == LIBUSB_TRANSFER_COMPLETED && transfer->actual_length == 4);
  /* Requests that no device knows. */
  for (int type = 0; type < 256; type += 0x20) {
    const int error = libusb_control_transfer(handle, (uint8_t)type, 0xee, 0x1234, 0, buffer, 16, kLimit);
    CHECK(error == LIBUSB_ERROR_PIPE || error == LIBUSB_ERROR_IO);
  }
  /* Endpoints that are not there, and the wrong kind of transfer. */
  libusb_fill_bulk_transfer(transfer, handle, 0x85, buffer, 64, note_end, &ended, kLimit);
  CHECK(libusb_submit_transfer(transfer) == LIBUSB_ERROR_IO);
  CHECK(libusb_bulk_transfer(handle, 0x07, buffer, 64, &moved, kLimit) == LIBUSB_ERROR_IO);
  CHECK(libusb_interrupt_transfer(handle, 0x81, buffer, 64, &moved, kLimit) == LIBUSB_ERROR_IO);
  CHECK(libusb_bulk_transfer(handle, 0x83, buffer, 4, &moved, 30) == LIBUSB_ERROR_TIMEOUT); /* taken for what it is */
  CHECK(libusb_cancel_transfer(transfer) == LIBUSB_ERROR_NOT_FOUND);                        /* it is not under way */

  /* Nothing at all: moves at once, with and without the flag for an empty packet. */
  CHECK(libusb_bulk_transfer(handle, 0x01, NULL, 0, &moved, kLimit) == 0 && moved == 0);
  ended = 0;
  libusb_fill_bulk_transfer(transfer, handle, 0x01, buffer, 0, note_end, &ended, 0);
  transfer->flags = LIBUSB_TRANSFER_ADD_ZERO_PACKET;
  CHECK(libusb_submit_transfer(transfer) == 0);
  while (ended == 0) CHECK(libusb_handle_events_completed(context, &ended) == 0);
  CHECK(transfer->status == LIBUSB_TRANSFER_COMPLETED);

  struct timeval wrong = {0, 1000000};
  CHECK(libusb_handle_events_timeout(context, &wrong) == LIBUSB_ERROR_INVALID_PARAM);
  wrong.tv_sec = -1;
  CHECK(libusb_handle_events_timeout_completed(context, &wrong, NULL) == LIBUSB_ERROR_INVALID_PARAM);
  struct timeval none = now;
  CHECK(libusb_handle_events_timeout(context, &none) == 0);
  libusb_free_transfer(transfer);
  libusb_free_transfer(NULL);
  libusb_close(handle);
  libusb_close(NULL);
}

/* Reads that many threads post and give up while another one handles events. */
static volatile int stop = 0;
static void* handle_events(void* unused) {
  (void)unused;
  while (!stop) {
    struct timeval limit = {0, 100000};
    CHECK(libusb_handle_events_timeout(context, &limit) == 0);
  }
  return NULL;
}

struct Waited {
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  int is_over;
};
static void tell(struct libusb_transfer* transfer) {
  struct Waited* waited = transfer->user_data;
  pthread_mutex_lock(&waited->mutex);
  waited->is_over = 1;
  pthread_cond_signal(&waited->changed);
  pthread_mutex_unlock(&waited->mutex);
}

static void* post_and_cancel(void* argument) {
  libusb_device_handle* handle = argument;
  for (int i = 0; i < 200; ++i) {
    struct Waited waited = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0};
    unsigned char buffer[1024];
    struct libusb_transfer* transfer = libusb_alloc_transfer(0);
    libusb_fill_bulk_transfer(transfer, handle, 0x81, buffer, sizeof buffer, tell, &waited, i % 3 == 0 ? 1 : 0);
    CHECK(libusb_submit_transfer(transfer) == 0);
    const int error = libusb_cancel_transfer(transfer);
    CHECK(error == 0 || error == LIBUSB_ERROR_NOT_FOUND);
    pthread_mutex_lock(&waited.mutex);
    while (!waited.is_over) pthread_cond_wait(&waited.changed, &waited.mutex);
    pthread_mutex_unlock(&waited.mutex);
    CHECK(transfer->status == LIBUSB_TRANSFER_CANCELLED || transfer->status == LIBUSB_TRANSFER_TIMED_OUT);
    libusb_free_transfer(transfer);
    check_register(handle); /* waits in this thread while the other handles events */
  }
  return NULL;
}

static void threads(void) {
  libusb_device_handle* handle = open_stick(context);
  CHECK(libusb_claim_interface(handle, 0) == 0);
  pthread_t events, workers[4];
  CHECK(pthread_create(&events, NULL, handle_events, NULL) == 0);
  for (int i = 0; i < 4; ++i) CHECK(pthread_create(&workers[i], NULL, post_and_cancel, handle) == 0);
  for (int i = 0; i < 4; ++i) pthread_join(workers[i], NULL);
  libusb_close(handle); /* while the other thread waits for events */
  stop = 1;
  libusb_interrupt_event_handler(context);
  pthread_join(events, NULL);
}

/* Contexts know nothing of each other; null is the default one, or the first where there is none. */
static void contexts(void) {
  libusb_context* second = NULL;
  CHECK(libusb_init(&second) == 0 && second != context);
  libusb_device** list = NULL;
  CHECK(libusb_get_device_list(NULL, &list) == 1);
  libusb_device_handle* implied = NULL;
  CHECK(libusb_open(list[0], &implied) == 0);
  libusb_free_device_list(list, 1); /* the handle keeps its device */
  check_register(implied);
  libusb_close(implied);
  CHECK(libusb_init(NULL) == 0 && libusb_init(NULL) == 0);
  libusb_device_handle* handles[3] = {open_stick(context), open_stick(second), open_stick(NULL)};
  for (int i = 0; i < 3; ++i) check_register(handles[i]);
  int ended = 0;
  unsigned char buffer[16];
  CHECK(libusb_claim_interface(handles[1], 0) == 0);
  struct libusb_transfer* transfer = libusb_alloc_transfer(0);
  libusb_fill_bulk_transfer(transfer, handles[1], 0x82, buffer, sizeof buffer, note_end, &ended, 1);
  CHECK(libusb_submit_transfer(transfer) == 0);
  usleep(20000);
  struct timeval none = {0, 0};
  CHECK(libusb_handle_events_timeout(context, &none) == 0 && ended == 0); /* not of this context */
  while (ended == 0) CHECK(libusb_handle_events_completed(second, &ended) == 0);
  CHECK(transfer->status == LIBUSB_TRANSFER_TIMED_OUT);
  libusb_free_transfer(transfer);
  for (int i = 0; i < 3; ++i) libusb_close(handles[i]);
  libusb_exit(second);
  libusb_exit(NULL);
  CHECK(libusb_get_device_list(NULL, &list) == 1); /* one user of the default context is left */
  libusb_free_device_list(list, 1);
  libusb_exit(NULL);
  CHECK(libusb_set_option(context, LIBUSB_OPTION_LOG_LEVEL, 3) == 0);
  CHECK(libusb_set_option(context, LIBUSB_OPTION_LOG_LEVEL, 9) == LIBUSB_ERROR_INVALID_PARAM);
  CHECK(libusb_set_option(NULL, (enum libusb_option)99) == LIBUSB_ERROR_INVALID_PARAM);
  CHECK(libusb_set_option(NULL, LIBUSB_OPTION_WEAK_AUTHORITY) == 0); /* contexts made from now on discover nothing */
  CHECK(libusb_init(&second) == 0 && libusb_get_device_list(second, &list) == 0);
  libusb_free_device_list(list, 1);
  libusb_exit(second);
  CHECK(libusb_get_device_list(context, &list) == 1);
  libusb_free_device_list(list, 1);
}

static libusb_hotplug_callback_handle callbacks[2];
static int calls[2];
static int take_back_the_other(libusb_context* where, libusb_device* device, libusb_hotplug_event event, void* user) {
  (void)device;
  (void)event;
  const int own = (int)(intptr_t)user;
  ++calls[own];
  libusb_hotplug_deregister_callback(where, callbacks[1 - own]);
  return 1; /* and this one is not called again either */
}

static void hotplug(void) {
  const int both = LIBUSB_HOTPLUG_EVENT_DEVICE_ARRIVED | LIBUSB_HOTPLUG_EVENT_DEVICE_LEFT,
            any = LIBUSB_HOTPLUG_MATCH_ANY;
  CHECK(libusb_hotplug_register_callback(context, 0, 0, any, any, any, take_back_the_other, NULL, NULL) ==
        LIBUSB_ERROR_INVALID_PARAM);
  CHECK(libusb_hotplug_register_callback(context, both, 2, any, any, any, take_back_the_other, NULL, NULL) ==
        LIBUSB_ERROR_INVALID_PARAM);
  CHECK(libusb_hotplug_register_callback(context, both, 0, 0x12345, any, any, take_back_the_other, NULL, NULL) ==
        LIBUSB_ERROR_INVALID_PARAM);
  for (int i = 0; i < 2; ++i) {
    CHECK(libusb_hotplug_register_callback(context, both, 0, kVendor, any, any, take_back_the_other, (void*)(intptr_t)i,
                                           &callbacks[i]) == 0);
    CHECK(libusb_hotplug_get_user_data(context, callbacks[i]) == (void*)(intptr_t)i);
  }
  libusb_device_handle* handle = open_stick(context);
  CHECK(libusb_control_transfer(handle, 0x21, 0, 100, 0, NULL, 0, kLimit) == 0); /* DFU: detach */
  CHECK(libusb_reset_device(handle) == LIBUSB_ERROR_NOT_FOUND);                  /* it leaves */
  for (int i = 0; i < 20 && calls[0] + calls[1] == 0; ++i) {
    struct timeval limit = {0, 100000};
    CHECK(libusb_handle_events_timeout(context, &limit) == 0);
  }
  CHECK(calls[0] + calls[1] == 1);
  usleep(500000);
  struct timeval none = {0, 0};
  for (int i = 0; i < 3; ++i) CHECK(libusb_handle_events_timeout(context, &none) == 0);
  CHECK(calls[0] + calls[1] == 1);
  /* Its handle is of no use. */
  unsigned char byte;
  int configuration;
  CHECK(libusb_control_transfer(handle, 0x80, 8, 0, 0, &byte, 1, kLimit) == LIBUSB_ERROR_NO_DEVICE);
  CHECK(libusb_get_configuration(handle, &configuration) == LIBUSB_ERROR_NO_DEVICE);
  CHECK(libusb_claim_interface(handle, 0) == LIBUSB_ERROR_NO_DEVICE);
  CHECK(libusb_reset_device(handle) == LIBUSB_ERROR_NO_DEVICE);
  libusb_close(handle);
}

/* A child has its own way to the stick; the parent's goes on. */
static void forked(void) {
  libusb_device_handle* handle = open_stick(context);
  CHECK(libusb_claim_interface(handle, 0) == 0);
  const pid_t child = fork();
  if (child == 0) {
    libusb_context* own = NULL;
    CHECK(libusb_init(&own) == 0);
    libusb_device_handle* second = open_stick(own);
    check_register(second);
    CHECK(libusb_claim_interface(second, 0) == LIBUSB_ERROR_BUSY);
    libusb_close(second);
    libusb_exit(own);
    libusb_close(handle); /* its copy: the parent's stays open */
    _exit(0);
  }
  for (int i = 0; i < 50; ++i) check_register(handle);
  int state = -1;
  CHECK(waitpid(child, &state, 0) == child && WIFEXITED(state) && WEXITSTATUS(state) == 0);
  check_register(handle);
  CHECK(libusb_release_interface(handle, 0) == 0);
  libusb_close(handle);
}

/* Files to poll, as event loops do: told of by callbacks, and with the time until something runs out. */
static int added, removed;
static void file_added(int file, short events, void* user) {
  (void)user;
  CHECK(file >= 0 && events != 0);
  ++added;
}
static void file_removed(int file, void* user) {
  (void)user;
  CHECK(file >= 0);
  ++removed;
}
static void polled(void) {
  libusb_set_pollfd_notifiers(context, file_added, file_removed, NULL);
  libusb_device_handle* handle = open_stick(context);
  CHECK(added == 1);
  CHECK(libusb_claim_interface(handle, 0) == 0);
  int ended = 0;
  unsigned char buffer[16];
  struct timeval left = {0, 0};
  CHECK(libusb_get_next_timeout(context, &left) == 0);
  struct libusb_transfer* transfer = libusb_alloc_transfer(0);
  libusb_fill_bulk_transfer(transfer, handle, 0x82, buffer, sizeof buffer, note_end, &ended, 200);
  CHECK(libusb_submit_transfer(transfer) == 0);
  CHECK(libusb_pollfds_handle_timeouts(context) == 1 || libusb_get_next_timeout(context, &left) == 1);
  for (int i = 0; i < 1000 && ended == 0; ++i) {
    int milliseconds = 1000;
    if (libusb_get_next_timeout(context, &left) == 1)
      milliseconds = (int)(left.tv_sec * 1000 + left.tv_usec / 1000 + 1);
    const struct libusb_pollfd** files = libusb_get_pollfds(context);
    struct pollfd wait[8];
    nfds_t waiting = 0;
    for (; files[waiting] != NULL && waiting < 8; ++waiting) {
      wait[waiting].fd = files[waiting]->fd;
      wait[waiting].events = files[waiting]->events;
    }
    CHECK(poll(wait, waiting, milliseconds) >= 0);
    libusb_free_pollfds(files);
    struct timeval none = {0, 0};
    CHECK(libusb_handle_events_timeout_completed(context, &none, NULL) == 0);
  }
  CHECK(ended == 1 && transfer->status == LIBUSB_TRANSFER_TIMED_OUT);
  /* By hand: the events' lock, as in libusb's own example. */
  ended = 0;
  CHECK(libusb_submit_transfer(transfer) == 0);
  while (ended == 0) {
    CHECK(libusb_try_lock_events(context) == 0);
    CHECK(libusb_event_handling_ok(context) == 1);
    struct timeval limit = {1, 0};
    CHECK(libusb_handle_events_locked(context, &limit) == 0);
    libusb_unlock_events(context);
  }
  CHECK(libusb_event_handler_active(context) == 0);
  libusb_close(handle);
  CHECK(removed == 1);
  libusb_free_transfer(transfer);
}

/* A callback may start the next transfer, use calls that wait (they say that they cannot), and close the device. */
static int rounds;
static void again(struct libusb_transfer* transfer) {
  unsigned char byte;
  CHECK(libusb_control_transfer(transfer->dev_handle, 0x80, 8, 0, 0, &byte, 1, kLimit) == LIBUSB_ERROR_BUSY);
  CHECK(libusb_handle_events(context) == LIBUSB_ERROR_BUSY);
  if (++rounds < 5) {
    CHECK(libusb_submit_transfer(transfer) == 0);
    return;
  }
  libusb_close(transfer->dev_handle);
}
static void callbacks_that_do_things(void) {
  libusb_device_handle* handle = open_stick(context);
  CHECK(libusb_claim_interface(handle, 0) == 0);
  unsigned char* buffer = malloc(16);
  struct libusb_transfer* transfer = libusb_alloc_transfer(0);
  libusb_fill_bulk_transfer(transfer, handle, 0x82, buffer, 16, again, NULL, 10);
  transfer->flags = LIBUSB_TRANSFER_FREE_BUFFER;
  CHECK(libusb_submit_transfer(transfer) == 0);
  while (rounds < 5) CHECK(libusb_handle_events(context) == 0);
  CHECK(libusb_cancel_transfer(transfer) == LIBUSB_ERROR_NOT_FOUND);
  libusb_free_transfer(transfer);
  /* Closed with transfers under way: nobody hears of them any more. */
  handle = open_stick(context);
  CHECK(libusb_claim_interface(handle, 0) == 0);
  int ended = 0;
  unsigned char room[16];
  transfer = libusb_alloc_transfer(0);
  libusb_fill_bulk_transfer(transfer, handle, 0x82, room, sizeof room, note_end, &ended, 0);
  CHECK(libusb_submit_transfer(transfer) == 0);
  libusb_close(handle);
  CHECK(libusb_cancel_transfer(transfer) == LIBUSB_ERROR_NOT_FOUND);
  struct timeval limit = {0, 50000};
  CHECK(libusb_handle_events_timeout(context, &limit) == 0 && ended == 0);
  libusb_free_transfer(transfer);
}

int main(int argc, char** argv) {
  CHECK(argc == 2 && libusb_init(&context) == 0);
  const struct {
    const char* name;
    void (*function)(void);
  } commands[] = {{"order", calls_in_any_order},
                  {"malformed", malformed},
                  {"threads", threads},
                  {"contexts", contexts},
                  {"hotplug", hotplug},
                  {"fork", forked},
                  {"poll", polled},
                  {"callbacks", callbacks_that_do_things}};
  for (size_t i = 0; i < sizeof commands / sizeof *commands; ++i) {
    if (strcmp(argv[1], commands[i].name) == 0) commands[i].function();
  }
  libusb_exit(context);
  printf("done\n");
  return 0;
}
