// SPDX-License-Identifier: Apache-2.0
// A function of 16-bit numbers by a table of all its 65,536 results.
//
// The fixed-point curves of integer LSTM cells take some 20 nanoseconds a number, more than everything else in a small
// cell. A table takes one or two, but costs as much to make as 65,536 numbers: it is made, once per process, when so
// many have been asked for. Results are the function's own either way.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

namespace reef::kernels {

// result[i] = function(values[i]); both may be the same. One table per type of function, which must have no state.
template <typename Function>
void map_by_table(const std::int16_t* values, std::int64_t count, std::int16_t* result, Function function) {
  constexpr std::int64_t kAll = 1 << 16;
  static std::atomic<std::int64_t> asked{0};
  if (asked.load(std::memory_order_relaxed) < kAll) {
    asked.fetch_add(count, std::memory_order_relaxed);
    for (std::int64_t i = 0; i < count; ++i) result[i] = function(values[i]);
    return;
  }
  static const std::unique_ptr<const std::int16_t[]> table = [&] {
    auto all = std::make_unique<std::int16_t[]>(kAll);
    for (std::int64_t i = 0; i < kAll; ++i) all[static_cast<std::size_t>(i)] = function(static_cast<std::int16_t>(i));
    return all;
  }();
  const std::int16_t* const results = table.get();
  for (std::int64_t i = 0; i < count; ++i) result[i] = results[static_cast<std::uint16_t>(values[i])];
}

}  // namespace reef::kernels
