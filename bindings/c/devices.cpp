// SPDX-License-Identifier: Apache-2.0
// reef.h: Edge TPUs.
#include <algorithm>
#include <mutex>
#include <set>

#include "base/fork.h"
#include "guard.h"
#include "handles.h"
#include "runtime/devices.h"

namespace reef::c_api {
namespace {

// Text that lives as long as the process, once for each content: callers keep pointers to names of devices.
const char* lasting(const std::string& text) {
  static auto* const mutex = new ForkSafeMutex;
  static auto* const all = new std::set<std::string>;
  const std::lock_guard lock(*mutex);
  return all->insert(text).first->c_str();
}

}  // namespace

void describe(const runtime::EdgeTpu& device, reef_device& result) {
  const runtime::EdgeTpu::Use use = device.use();
  result = {};
  result.selector = lasting(device.selector());
  result.path = lasting(device.path());
  result.is_usb = device.connection() == runtime::Connection::kUsb ? 1 : 0;
  result.is_real = device.is_virtual() ? 0 : 1;
  result.runs = use.runs;
  result.parameter_loads = use.parameter_loads;
  if (const auto* const real = dynamic_cast<const runtime::RealDevice*>(&device); real != nullptr) {
    const driver::DeviceCondition condition = real->condition();
    result.state = lasting(std::string(driver::name_of(condition.state)));
    result.detail = lasting(condition.detail);
  }
}

}  // namespace reef::c_api

using namespace reef;
using namespace reef::c_api;

size_t reef_device_count(void) {
  std::size_t count = 0;
  guarded([&]() -> Status {
    REEF_ASSIGN_OR_RETURN(const runtime::DeviceList devices, runtime::devices());
    count = devices.size();
    return ok_status();
  });
  return count;
}

reef_status reef_device_get(size_t i, reef_device* device) {
  return guarded({{device, "device"}}, [&]() -> Status {
    REEF_ASSIGN_OR_RETURN(const runtime::DeviceList devices, runtime::devices());
    if (i >= devices.size()) {
      return make_error(StatusCode::kNotFound, "there is no device {}; there are {}", i, devices.size());
    }
    describe(*devices[i], *device);
    return ok_status();
  });
}

reef_status reef_device_find(const char* selector, size_t* i) {
  return guarded({{i, "i"}}, [&]() -> Status {
    REEF_ASSIGN_OR_RETURN(const runtime::DeviceList devices, runtime::devices());
    REEF_ASSIGN_OR_RETURN(const auto device, runtime::find_device(devices, selector != nullptr ? selector : ""));
    *i = static_cast<std::size_t>(std::find(devices.begin(), devices.end(), device) - devices.begin());
    return ok_status();
  });
}

reef_status reef_devices_set(const char* kinds) {
  return guarded({{kinds, "kinds"}}, [&]() -> Status { return runtime::set_devices(kinds); });
}
