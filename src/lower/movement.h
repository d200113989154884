// SPDX-License-Identifier: Apache-2.0
// What lowerings of operators that move elements share.
#pragma once

#include <optional>

#include "lower/element_maps.h"
#include "lower/rearrange.h"

namespace reef::lower {

// Values of a constant int32 operand. `what`: for the message where it is none.
Result<std::vector<std::int32_t>> constant_ints(const Builder& builder, std::int32_t op, std::size_t operand,
                                                std::string_view what);
// A dimension counted from the front. Fails where there is none.
Result<int> dimension(std::int64_t axis, int rank);

// The tensor `from` of the model, in any layout, in the quantization of `like`; steps are added where they differ.
Result<std::int32_t> quantized_as(Builder& builder, std::int32_t op, std::int32_t from, std::int32_t like);

// Makes the model's tensor `to` of the elements of `from` (the model's too), which is quantized in the same way.
// `windows`: with which the elements would be read, where they come from near.
Status move_elements(Builder& builder, std::int32_t op, std::int32_t from, std::int32_t to, ElementMap map,
                     const std::optional<Windows>& windows = std::nullopt);

// An image for a result of any number of dimensions.
Result<std::int32_t> new_grid_of_any_rank(Builder& builder, std::int32_t to);

// A part of every dimension: from `begin` on, every `stride`-th element, as many as the result has.
struct Range {
  std::int64_t begin = 0, stride = 1;
};
Status take_ranges(Builder& builder, std::int32_t op, std::int32_t from, std::int32_t to,
                   const std::vector<Range>& ranges);
// `part`: the result's shape, with dimensions of one element that it may lack.
Status take_ranges(Builder& builder, std::int32_t op, std::int32_t from, std::int32_t to,
                   const std::vector<Range>& ranges, const ir::Shape& part);

}  // namespace reef::lower
