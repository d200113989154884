// SPDX-License-Identifier: Apache-2.0
// Custom options in the form of a FlexBuffers map from names to numbers and lists of integers.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"

namespace reef::ops {

class FlexOptions {
 public:
  // Refuses anything that is not a well-formed map. Values of other kinds are passed over.
  static Result<FlexOptions> parse(const Bytes& bytes);

  // The number under `name`, or `fallback` where there is none; an error for one that the type asked for cannot hold.
  Result<std::int32_t> get_int(std::string_view name, std::int32_t fallback = 0) const;
  // Negative numbers, as builders without unsigned types store large ones, wrap around.
  Result<std::uint32_t> get_uint32(std::string_view name, std::uint32_t fallback = 0) const;
  Result<float> get_float(std::string_view name, float fallback = 0) const;
  bool get_bool(std::string_view name, bool fallback = false) const;
  // Elements of a vector of integers, -1 for those that are none; empty where there is no vector.
  std::vector<std::int64_t> get_ints(std::string_view name) const;

 private:
  // Integers beyond 2^53 are rounded, which is of no consequence: none of the types asked for can hold them.
  std::map<std::string, double, std::less<>> numbers_;
  std::map<std::string, std::vector<std::int64_t>, std::less<>> lists_;
};

}  // namespace reef::ops
