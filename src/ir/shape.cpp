// SPDX-License-Identifier: Apache-2.0
#include "ir/shape.h"

#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace reef::ir {
namespace {
constexpr std::int64_t kLimit = std::int64_t{1} << 62;
}  // namespace

std::optional<std::int64_t> Shape::checked_elements() const {
  std::int64_t result = 1;
  bool is_zero = false;
  for (const std::int32_t dim : dims_) {
    if (dim < 0) return std::nullopt;
    if (dim == 0) {
      is_zero = true;
      continue;
    }
    if (result > kLimit / dim) return std::nullopt;
    result *= dim;
  }
  return is_zero ? 0 : result;
}

bool Shape::is_usable() const {
  std::int64_t product = 1;
  for (const std::int32_t dim : dims_) {
    if (dim < 0) return false;
    product *= dim > 0 ? dim : 1;
    if (product > std::numeric_limits<std::int32_t>::max()) return false;
  }
  return true;
}

std::string Shape::to_string() const { return fmt::format("[{}]", fmt::join(dims_, ", ")); }

std::optional<std::int64_t> byte_size(const Shape& shape, DataType type) {
  const int bits = bits_per_element(type);
  const std::optional<std::int64_t> elements = shape.checked_elements();
  if (bits == 0 || !elements || *elements > kLimit / bits) return std::nullopt;
  return (*elements * bits + 7) / 8;
}

}  // namespace reef::ir
