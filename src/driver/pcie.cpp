// SPDX-License-Identifier: Apache-2.0
#include "driver/pcie.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace reef::driver {

// Memory of the process, for devices whose kernel driver maps any.
std::span<std::uint8_t> PcieDevice::allocate(std::size_t bytes) {
  const std::size_t room = std::max(in_pages(bytes), kPageBytes);
  auto* const start = static_cast<std::uint8_t*>(std::aligned_alloc(kPageBytes, room));
  if (start == nullptr) return {};
  std::memset(start, 0, room);
  return {start, room};
}

void PcieDevice::release(std::span<std::uint8_t> memory) { std::free(memory.data()); }

}  // namespace reef::driver
