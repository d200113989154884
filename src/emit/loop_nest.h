// SPDX-License-Identifier: Apache-2.0
// A short way to write the loop nests of instructions.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "isa/instruction.h"

namespace reef::emit {

struct Dim {
  std::int64_t stride = 0;
  std::int64_t count = 1;
  bool used = true;  // the hardware's mask of dimensions that carry an address
  friend bool operator==(const Dim&, const Dim&) = default;
};
constexpr Dim step(std::int64_t stride, std::int64_t count) { return {stride, count, true}; }
// The same addresses again.
constexpr Dim repeat(std::int64_t count) { return {0, count, false}; }

// Loop counts as few dimensions: neighbours are joined while the product is at most `most` steps. There is one at
// least.
inline std::vector<std::int64_t> few_counts(std::initializer_list<std::int64_t> counts, std::int64_t most) {
  std::vector<std::int64_t> joined;
  for (const std::int64_t count : counts) {
    if (!joined.empty() && joined.back() * count <= most) {
      joined.back() *= count;
    } else {
      joined.push_back(count);
    }
  }
  return joined;
}
// Steps that one dimension of the loops or of the parameters of a tensor operation can have.
inline constexpr std::int64_t kMostParameterSteps = std::int64_t{1} << 14;

class LoopNest {
 public:
  LoopNest(std::int64_t base, std::vector<Dim> dims) : base_(base), dims_(std::move(dims)) {}

  // Double buffer: every pass of `level` inner dimensions, addresses change to the other half.
  LoopNest& swap(int level, std::int64_t stride) {
    swap_level_ = level;
    swap_stride_ = stride;
    return *this;
  }
  // While dimension `dim` is at its last index, dimension 0 makes `steps` steps. No effect if it makes as many anyway.
  LoopNest& clip(int dim, std::int64_t steps) {
    if (steps == dims_.front().count) return *this;
    clip_dim_ = dim;
    clip_steps_ = steps;
    return *this;
  }
  const std::vector<Dim>& dims() const { return dims_; }
  // False where a dimension or address is more than any field holds.
  bool to_isa(isa::Nest& nest) const;

 private:
  std::int64_t base_ = 0;
  std::vector<Dim> dims_;
  int swap_level_ = 0;
  std::int64_t swap_stride_ = 0;
  int clip_dim_ = 0;
  std::int64_t clip_steps_ = 1;
};

}  // namespace reef::emit
