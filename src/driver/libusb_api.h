// SPDX-License-Identifier: Apache-2.0
// The part of libusb 1.0 that is used, as a table of its functions. The library is loaded when it is first needed: a
// machine without it runs everything but sticks, and tests put another table in its place. The declarations follow the
// library's documented interface, which has not changed since 2008; its headers are not needed.
#pragma once

#include <sys/time.h>
#include <sys/types.h>

#include <cstdint>
#include <string>

#include "base/status.h"
#include "driver/libusb_abi.h"

namespace reef::driver {

struct LibusbApi {
  int (*init)(libusb_context**);
  void (*exit)(libusb_context*);
  ssize_t (*get_device_list)(libusb_context*, libusb_device***);
  void (*free_device_list)(libusb_device**, int);
  int (*get_device_descriptor)(libusb_device*, LibusbDeviceDescriptor*);
  std::uint8_t (*get_bus_number)(libusb_device*);
  std::uint8_t (*get_device_address)(libusb_device*);
  int (*get_port_numbers)(libusb_device*, std::uint8_t*, int);
  int (*get_device_speed)(libusb_device*);
  int (*open)(libusb_device*, libusb_device_handle**);
  void (*close)(libusb_device_handle*);
  int (*claim_interface)(libusb_device_handle*, int);
  int (*release_interface)(libusb_device_handle*, int);
  int (*reset_device)(libusb_device_handle*);
  int (*control_transfer)(libusb_device_handle*, std::uint8_t, std::uint8_t, std::uint16_t, std::uint16_t,
                          unsigned char*, std::uint16_t, unsigned int);
  LibusbTransfer* (*alloc_transfer)(int);
  void (*free_transfer)(LibusbTransfer*);
  int (*submit_transfer)(LibusbTransfer*);
  int (*cancel_transfer)(LibusbTransfer*);
  int (*handle_events_timeout_completed)(libusb_context*, timeval*, int*);
};

// The system's library. An error says how to install it. The table stays valid for the life of the process.
Result<const LibusbApi*> load_libusb();
// Version of the library that was loaded ("1.0.26.11724"); empty if none was.
std::string libusb_version();

}  // namespace reef::driver
