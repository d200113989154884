// SPDX-License-Identifier: Apache-2.0
#include "runtime/edge_tpu.h"

#include <fmt/format.h>

namespace reef::runtime {

std::string_view connection_name(Connection connection) { return connection == Connection::kUsb ? "usb" : "pci"; }

std::string describe(const EdgeTpu& device) {
  if (device.is_virtual()) return fmt::format("virtual Edge TPU {}", device.selector());
  return fmt::format("Edge TPU {} ({})", device.selector(), device.path());
}

}  // namespace reef::runtime
