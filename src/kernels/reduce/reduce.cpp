// SPDX-License-Identifier: Apache-2.0
#include "kernels/reduce/reduce.h"

#include <algorithm>

namespace reef::kernels {
namespace {

// Merges neighbours that are treated alike and drops dimensions of one element, which change nothing.
std::vector<ReducePlan::Dimension> merge(std::span<const std::int32_t> sizes, const std::vector<bool>& reduced) {
  std::vector<ReducePlan::Dimension> merged;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 1) continue;
    if (!merged.empty() && merged.back().reduced == reduced[i]) {
      merged.back().size *= sizes[i];
    } else {
      merged.push_back({.size = sizes[i], .reduced = reduced[i]});
    }
  }
  // A scalar, or all sizes 1: one kept element.
  if (merged.empty()) merged.push_back({.size = 1, .reduced = false});
  return merged;
}

}  // namespace

ReducePlan plan_reduce(std::span<const std::int32_t> sizes, const std::vector<bool>& reduced) {
  ReducePlan plan;
  plan.dimensions = merge(sizes, reduced);
  std::int64_t input_stride = 1, output_stride = 1;
  for (std::size_t i = plan.dimensions.size(); i-- > 0;) {
    ReducePlan::Dimension& dimension = plan.dimensions[i];
    dimension.input_stride = input_stride;
    input_stride *= dimension.size;
    if (dimension.size == 0) plan.input_is_empty = true;
    if (dimension.reduced) {
      plan.reduced_elements *= dimension.size;
    } else {
      dimension.output_stride = output_stride;
      plan.split_dimension = static_cast<int>(i);
      plan.split_size = dimension.size;
      plan.outputs_per_split = output_stride;
      output_stride *= dimension.size;
    }
  }
  plan.outputs = output_stride;
  plan.all_dimensions_reduced = std::all_of(reduced.begin(), reduced.end(), [](bool gone) { return gone; });
  return plan;
}

std::int64_t reduce_grain(const ReducePlan& plan) {
  constexpr std::int64_t kElementsPerChunk = 1 << 16;
  constexpr std::int64_t kNarrowestSlice = 64;  // keeps innermost loops long when the split is the innermost dimension
  const std::int64_t per_split = std::max<std::int64_t>(plan.outputs_per_split * plan.reduced_elements, 1);
  const bool innermost = plan.split_dimension + 1 == static_cast<int>(plan.dimensions.size());
  return std::max<std::int64_t>(kElementsPerChunk / per_split,
                                innermost && plan.dimensions.size() > 1 ? kNarrowestSlice : 1);
}

}  // namespace reef::kernels
