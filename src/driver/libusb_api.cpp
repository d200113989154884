// SPDX-License-Identifier: Apache-2.0
#include "driver/libusb_api.h"

#include <dlfcn.h>

#include <array>
#include <mutex>
#include <string>

#include <fmt/format.h>

namespace reef::driver {
namespace {

constexpr std::array kNames = {"libusb-1.0.so.0", "libusb-1.0.so"};

// False: the library lacks a function.
template <typename Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

bool fill(void* library, LibusbApi& api) {
  return find(library, "libusb_init", api.init) && find(library, "libusb_exit", api.exit) &&
         find(library, "libusb_get_device_list", api.get_device_list) &&
         find(library, "libusb_free_device_list", api.free_device_list) &&
         find(library, "libusb_get_device_descriptor", api.get_device_descriptor) &&
         find(library, "libusb_get_bus_number", api.get_bus_number) &&
         find(library, "libusb_get_device_address", api.get_device_address) &&
         find(library, "libusb_get_port_numbers", api.get_port_numbers) &&
         find(library, "libusb_get_device_speed", api.get_device_speed) && find(library, "libusb_open", api.open) &&
         find(library, "libusb_close", api.close) && find(library, "libusb_claim_interface", api.claim_interface) &&
         find(library, "libusb_release_interface", api.release_interface) &&
         find(library, "libusb_reset_device", api.reset_device) &&
         find(library, "libusb_control_transfer", api.control_transfer) &&
         find(library, "libusb_alloc_transfer", api.alloc_transfer) &&
         find(library, "libusb_free_transfer", api.free_transfer) &&
         find(library, "libusb_submit_transfer", api.submit_transfer) &&
         find(library, "libusb_cancel_transfer", api.cancel_transfer) &&
         find(library, "libusb_handle_events_timeout_completed", api.handle_events_timeout_completed);
}

std::mutex mutex;
void* loaded_library = nullptr;  // the library

}  // namespace

Result<const LibusbApi*> load_libusb() {
  static LibusbApi api;
  const std::lock_guard lock(mutex);
  if (loaded_library != nullptr) return &api;
  for (const char* name : kNames) {
    void* const library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) continue;
    if (!fill(library, api)) {
      dlclose(library);
      return unsupported("{} is too old for Edge TPUs on USB: install libusb 1.0.16 or newer", name);
    }
    loaded_library = library;  // and stays: threads of the library may outlive any user of it
    return &api;
  }
  return make_error(StatusCode::kNotFound,
                    "Edge TPUs on USB need libusb 1.0, which is not installed: install the package libusb-1.0-0");
}

std::string libusb_version() {
  struct Version {
    std::uint16_t major, minor, micro, nano;
  };
  const std::lock_guard lock(mutex);
  const Version* (*get)() = nullptr;
  if (loaded_library == nullptr || !find(loaded_library, "libusb_get_version", get)) return "";
  const Version version = *get();
  return fmt::format("{}.{}.{}.{}", version.major, version.minor, version.micro, version.nano);
}

}  // namespace reef::driver
