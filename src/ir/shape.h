// SPDX-License-Identifier: Apache-2.0
// Shape: the sizes of a tensor's dimensions, outermost first. A scalar has rank 0 and one element.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "base/at.h"
#include "ir/type.h"

namespace reef::ir {

class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<std::int32_t> dims) : dims_(dims) {}
  explicit Shape(std::vector<std::int32_t> dims) : dims_(std::move(dims)) {}

  int rank() const { return static_cast<int>(dims_.size()); }
  std::int32_t operator[](int i) const { return dims_[at(i)]; }
  std::int32_t& operator[](int i) { return dims_[at(i)]; }
  // Counted from the innermost: last(0) is the fastest varying dimension.
  std::int32_t last(int i = 0) const { return dims_[dims_.size() - 1 - static_cast<std::size_t>(i)]; }
  const std::vector<std::int32_t>& dims() const { return dims_; }
  auto begin() const { return dims_.begin(); }
  auto end() const { return dims_.end(); }
  void push_back(std::int32_t dim) { dims_.push_back(dim); }

  // Product of the sizes; nullopt if a size is negative (unknown) or the product exceeds 2^62.
  std::optional<std::int64_t> checked_elements() const;
  // No negative size, and at most 2^31 - 1 elements even if empty dimensions had one: loops over some of the dimensions
  // stay bounded. Tensors of any other shape are refused.
  bool is_usable() const;
  // Product of the sizes, for shapes known to be valid, which those of tensors a kernel sees are.
  std::int64_t elements() const { return product(0, rank()); }
  // Product of dimensions [from, to).
  std::int64_t product(int from, int to) const {
    std::int64_t result = 1;
    for (int i = from; i < to; ++i) result *= (*this)[i];
    return result;
  }

  std::string to_string() const;  // "[1, 224, 224, 3]"
  friend bool operator==(const Shape&, const Shape&) = default;

 private:
  std::vector<std::int32_t> dims_;
};

// Bytes that `shape` elements of `type` take (packed types rounded up to whole bytes). nullopt: no fixed element size,
// an unknown dimension, or more than 2^62 bits.
std::optional<std::int64_t> byte_size(const Shape& shape, DataType type);

}  // namespace reef::ir
