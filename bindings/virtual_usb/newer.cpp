// SPDX-License-Identifier: Apache-2.0
// Functions that libusb got after release 1.0.26, so that programs that were linked with a newer one load and run. Most
// of them are about things that sticks do not have.
#include <cstdlib>

#include "client.h"

using namespace reef::driver;

namespace {

struct InterfaceAssociations {
  const void* list;
  int length;
};

}  // namespace

// Release 1.0.27.
REEF_LIBUSB int libusb_get_interface_association_descriptors(libusb_device* /*device*/, std::uint8_t index,
                                                             InterfaceAssociations** found) {
  if (found == nullptr) return number::kInvalidParameter;
  if (index != 0) return number::kNotFound;
  *found = static_cast<InterfaceAssociations*>(std::calloc(1, sizeof(InterfaceAssociations)));
  return *found != nullptr ? number::kSuccess : number::kNoMemory;
}
REEF_LIBUSB int libusb_get_active_interface_association_descriptors(libusb_device* device,
                                                                    InterfaceAssociations** found) {
  return libusb_get_interface_association_descriptors(device, 0, found);
}
REEF_LIBUSB void libusb_free_interface_association_descriptors(InterfaceAssociations* found) { std::free(found); }
REEF_LIBUSB int libusb_get_platform_descriptor(libusb_context*, void*, void** found) { return none(found); }
REEF_LIBUSB void libusb_free_platform_descriptor(void*) {}

// Releases 1.0.28 to 1.0.30.
REEF_LIBUSB int libusb_get_ssplus_usb_device_capability_descriptor(libusb_context*, void*, void** found) {
  return none(found);
}
REEF_LIBUSB void libusb_free_ssplus_usb_device_capability_descriptor(void*) {}
// Bus and address, as on Linux.
REEF_LIBUSB unsigned long libusb_get_session_data(libusb_device* device) {
  return static_cast<unsigned long>(serve::kBusNumber) << 8 | device->record.address;
}
REEF_LIBUSB int libusb_get_device_string(libusb_device*, int, char*, int) { return number::kNotSupported; }
REEF_LIBUSB int libusb_get_config_string(libusb_device*, std::uint8_t, char*, int) { return number::kNotSupported; }
REEF_LIBUSB int libusb_get_interface_string(libusb_device*, std::uint8_t, std::uint8_t, std::uint8_t, char*, int) {
  return number::kNotSupported;
}
REEF_LIBUSB int libusb_endpoint_supports_raw_io(libusb_device_handle*, std::uint8_t) { return 0; }
REEF_LIBUSB int libusb_endpoint_set_raw_io(libusb_device_handle*, std::uint8_t, int) { return number::kNotSupported; }
REEF_LIBUSB int libusb_get_max_raw_io_transfer_size(libusb_device_handle*, std::uint8_t) {
  return number::kNotSupported;
}
