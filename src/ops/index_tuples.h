// SPDX-License-Identifier: Apache-2.0
// Index tuples, as GATHER_ND, SCATTER_ND and SPARSE_TO_DENSE use them: each row of the index tensor is a place in the
// first `depth` dimensions of a tensor, and names the slice of the remaining dimensions there.
#pragma once

#include <cstdint>
#include <vector>

#include "ops/movement.h"

namespace reef::ops {

class IndexTuples {
 public:
  // `target` is the shape indexed into; depth <= target.rank().
  IndexTuples(const Tensor& indices, std::int64_t count, int depth, const Shape& target)
      : indices_(indices), count_(count), depth_(depth), target_(target), strides_(dense_strides(target, 1)) {}

  std::int64_t count() const { return count_; }

  // An error if any tuple lies outside of the target.
  Status check() const {
    for (std::int64_t i = 0; i < count_ * depth_; ++i) {
      const int d = static_cast<int>(i % depth_);
      REEF_REQUIRE(indices_[i] >= 0 && indices_[i] < target_[d], "index {} is {}, outside of dimension {} of {}", i,
                   indices_[i], d, target_.to_string());
    }
    return ok_status();
  }

  // Place of tuple i's slice, in elements. Only after check().
  std::int64_t offset(std::int64_t i) const {
    std::int64_t result = 0;
    for (int d = 0; d < depth_; ++d) result += indices_[i * depth_ + d] * strides_[at(d)];
    return result;
  }

 private:
  Indices indices_;
  std::int64_t count_;
  int depth_;
  Shape target_;
  std::vector<std::int64_t> strides_;
};

}  // namespace reef::ops
