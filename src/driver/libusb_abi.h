// SPDX-License-Identifier: Apache-2.0
// The structures and numbers of libusb 1.0's binary interface, after its documentation: they have not changed since
// 2008. For the driver, which calls the library, and for bindings/virtual_usb, which is one. Depends on nothing.
#pragma once

#include <cstdint>

namespace reef::driver {

struct libusb_context;
struct libusb_device;
struct libusb_device_handle;

struct LibusbDeviceDescriptor {
  std::uint8_t length, type;
  std::uint16_t usb_version;
  std::uint8_t device_class, subclass, protocol, max_packet;
  std::uint16_t vendor, product, device_version;
  std::uint8_t manufacturer_text, product_text, serial_text, configurations;
};
static_assert(sizeof(LibusbDeviceDescriptor) == 18);

struct LibusbTransfer {
  libusb_device_handle* device;
  std::uint8_t flags;
  unsigned char endpoint, type;
  unsigned int timeout;  // milliseconds; 0: none
  int status;
  int length, actual_length;
  void (*callback)(LibusbTransfer*);
  void* user_data;
  unsigned char* buffer;
  int iso_packets;
};

// Numbers of the library's enums.
namespace libusb_number {
// Errors
inline constexpr int kSuccess = 0, kIo = -1, kInvalidParameter = -2, kAccess = -3, kNoDevice = -4, kNotFound = -5,
                     kBusy = -6, kTimeout = -7, kOverflow = -8, kPipe = -9, kInterrupted = -10, kNoMemory = -11,
                     kNotSupported = -12, kOther = -99;
// Status of a transfer
inline constexpr int kCompleted = 0, kError = 1, kTimedOut = 2, kCancelled = 3, kStall = 4, kGone = 5, kTooMuch = 6;
// Types of transfers
inline constexpr unsigned char kControl = 0, kIsochronous = 1, kBulk = 2, kInterrupt = 3;
inline constexpr int kHighSpeed = 3, kSuperSpeed = 4;  // speeds; more are faster
}  // namespace libusb_number

}  // namespace reef::driver
