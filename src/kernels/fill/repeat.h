// SPDX-License-Identifier: Apache-2.0
// Repeating a run of bytes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace reef::kernels {

// Writes `count` copies of the `bytes` bytes at `pattern` to `to`, doubling what is there already.
inline void repeat_bytes(const std::byte* pattern, std::size_t bytes, std::size_t count, std::byte* to) {
  if (bytes == 0 || count == 0) return;
  std::memcpy(to, pattern, bytes);
  const std::size_t total = bytes * count;
  for (std::size_t done = bytes; done < total; done += std::min(done, total - done)) {
    std::memcpy(to + done, to, std::min(done, total - done));
  }
}

}  // namespace reef::kernels
