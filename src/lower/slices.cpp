// SPDX-License-Identifier: Apache-2.0
// SLICE, STRIDED_SLICE, SPLIT, SPLIT_V and UNPACK: parts of a tensor.
#include <algorithm>

#include "lower/lowerings.h"
#include "lower/movement.h"

namespace reef::lower {
namespace {

// Consecutive parts of one dimension, one for each output.
Status take_parts(Builder& builder, std::int32_t op, std::int32_t from, std::int64_t axis) {
  const ir::Shape& shape = builder.source(from).shape;
  REEF_ASSIGN_OR_RETURN(const int d, dimension(axis, shape.rank()));
  std::int64_t begin = 0;
  for (const std::int32_t to : builder.op(op).outputs) {
    std::vector<Range> ranges(static_cast<std::size_t>(shape.rank()));
    ranges[reef::at(d)].begin = begin;
    REEF_REQUIRE(builder.source(to).shape.rank() == shape.rank(), "a part of {} cannot be {}", shape.to_string(),
                 builder.source(to).shape.to_string());
    begin += builder.source(to).shape[d];
    REEF_RETURN_IF_ERROR(take_ranges(builder, op, from, to, ranges));
  }
  return ok_status();
}

}  // namespace

Status lower_slice(Builder& builder, std::int32_t op) {
  REEF_ASSIGN_OR_RETURN(const std::int32_t from, builder.operand(op, 0));
  REEF_ASSIGN_OR_RETURN(const std::vector<std::int32_t> begin, constant_ints(builder, op, 1, "begin"));
  std::vector<Range> ranges;
  for (const std::int32_t b : begin) ranges.push_back({b, 1});
  return take_ranges(builder, op, from, builder.op(op).outputs[0], ranges);
}

Status lower_strided_slice(Builder& builder, std::int32_t op) {
  REEF_ASSIGN_OR_RETURN(const std::int32_t from, builder.operand(op, 0));
  const std::int32_t to = builder.op(op).outputs[0];
  REEF_ASSIGN_OR_RETURN(const std::vector<std::int32_t> begin, constant_ints(builder, op, 1, "begin"));
  REEF_ASSIGN_OR_RETURN(const std::vector<std::int32_t> strides, constant_ints(builder, op, 3, "strides"));
  const ir::Attributes& a = builder.op(op).attributes;
  for (const std::string_view mask : {"ellipsis_mask", "new_axis_mask"}) {
    if (a.get_int(mask) != 0) return unsupported("{} is {}; slices with it are not generated", mask, a.get_int(mask));
  }
  const ir::Shape& shape = builder.source(from).shape;
  REEF_REQUIRE(begin.size() == static_cast<std::size_t>(shape.rank()) && strides.size() == begin.size(),
               "begin and strides must have an element for each of {} dimensions", shape.rank());
  std::vector<Range> ranges;
  ir::Shape part;  // dimensions that are dropped have one element of it
  int kept = 0;
  for (int d = 0; d < shape.rank(); ++d) {
    if ((a.get_int("shrink_axis_mask") >> d & 1) != 0) {
      part.push_back(1);
    } else {
      REEF_REQUIRE(kept < builder.source(to).shape.rank(), "the result has too few dimensions");
      part.push_back(builder.source(to).shape[kept++]);
    }
    const std::int64_t size = shape[d], stride = strides[reef::at(d)];
    std::int64_t first = begin[reef::at(d)];
    if (first < 0) first += size;
    if ((a.get_int("begin_mask") >> d & 1) != 0) first = stride < 0 ? size - 1 : 0;
    REEF_REQUIRE(stride != 0 && size > 0, "stride {} of dimension {}, of size {}", stride, d, size);
    ranges.push_back({std::clamp<std::int64_t>(first, 0, size - 1), stride});
  }
  REEF_REQUIRE(kept == builder.source(to).shape.rank(), "the result has too many dimensions");
  return take_ranges(builder, op, from, to, ranges, part);
}

Status lower_split(Builder& builder, std::int32_t op) {
  REEF_ASSIGN_OR_RETURN(const std::vector<std::int32_t> axis, constant_ints(builder, op, 0, "axis"));
  REEF_ASSIGN_OR_RETURN(const std::int32_t from, builder.operand(op, 1));
  return take_parts(builder, op, from, axis[0]);
}

Status lower_split_v(Builder& builder, std::int32_t op) {
  REEF_ASSIGN_OR_RETURN(const std::int32_t from, builder.operand(op, 0));
  REEF_ASSIGN_OR_RETURN(const std::vector<std::int32_t> axis, constant_ints(builder, op, 2, "axis"));
  return take_parts(builder, op, from, axis[0]);
}

Status lower_unpack(Builder& builder, std::int32_t op) {
  REEF_ASSIGN_OR_RETURN(const std::int32_t from, builder.operand(op, 0));
  const ir::Shape& shape = builder.source(from).shape;
  REEF_ASSIGN_OR_RETURN(const int d, dimension(builder.op(op).attributes.get_int("axis"), shape.rank()));
  const std::int64_t inner = shape.product(d + 1, shape.rank());
  for (std::size_t i = 0; i < builder.op(op).outputs.size(); ++i) {
    const std::int32_t to = builder.op(op).outputs[i];
    ir::Shape expected;
    for (int k = 0; k < shape.rank(); ++k) {
      if (k != d) expected.push_back(shape[k]);
    }
    REEF_REQUIRE(builder.source(to).shape == expected && i < static_cast<std::size_t>(shape[d]),
                 "part {} of {} cannot be {}", i, shape.to_string(), builder.source(to).shape.to_string());
    const std::int64_t size = shape[d], at = static_cast<std::int64_t>(i);
    const auto map = [=](std::int64_t element) {
      return ElementSource{0, (element / inner * size + at) * inner + element % inner, inner - element % inner};
    };
    REEF_RETURN_IF_ERROR(move_elements(builder, op, from, to, map));
  }
  return ok_status();
}

}  // namespace reef::lower
