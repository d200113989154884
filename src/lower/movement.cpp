// SPDX-License-Identifier: Apache-2.0
#include "lower/movement.h"

#include "lower/reduce.h"

#include <cstring>

#include "ir/describe.h"

namespace reef::lower {
namespace {

// A halo of so many pixels at most is worth more than copies over the ring.
constexpr std::int64_t kNear = 8;

}  // namespace

Result<std::vector<std::int32_t>> constant_ints(const Builder& builder, std::int32_t op, std::size_t operand,
                                                std::string_view what) {
  REEF_ASSIGN_OR_RETURN(const std::int32_t index, builder.operand(op, operand));
  const ir::Tensor& tensor = builder.source(index);
  const Bytes& data = ir::constant_data(builder.model(), tensor);
  const std::int64_t elements = tensor.shape.checked_elements().value_or(-1);
  if (tensor.type != ir::DataType::kInt32 || elements < 1 ||
      static_cast<std::int64_t>(data.size()) != elements * std::int64_t{sizeof(std::int32_t)}) {
    return unsupported("{} ('{}') must be a constant of int32", what, ir::describe_name(tensor.name));
  }
  std::vector<std::int32_t> values(static_cast<std::size_t>(elements));
  std::memcpy(values.data(), data.data(), data.size());
  return values;
}

Result<int> dimension(std::int64_t axis, int rank) {
  const std::int64_t from_front = axis < 0 ? axis + rank : axis;
  REEF_REQUIRE(from_front >= 0 && from_front < rank, "there is no dimension {} among {}", axis, rank);
  return static_cast<int>(from_front);
}

Result<std::int32_t> quantized_as(Builder& builder, std::int32_t op, std::int32_t from, std::int32_t like) {
  REEF_ASSIGN_OR_RETURN(const std::int32_t tensor, builder.any_layout(from));
  REEF_ASSIGN_OR_RETURN(const bool same, same_quantization(builder.source(from), builder.source(like)));
  if (same) return tensor;
  REEF_ASSIGN_OR_RETURN(const std::int32_t zero_point, chip_zero_point(builder.source(like)));
  tiled::TiledTensor changed = builder.tensor(tensor);
  changed.zero_point = zero_point;
  changed.scale = builder.source(like).quantization.scale[0];
  changed.pitch = changed.pixel_words() * chip::kNarrowWordBytes;
  changed.offset = 0;
  Rearrangement what;
  what.operands = {Read{tensor}};
  what.output = builder.add_tensor(std::move(changed));
  what.source_of = in_order();
  what.requantizes = true;
  return add_rearrangement(builder, op, std::move(what));
}

// A tensor of many dimensions, which no operator computes with, is rows of its last one.
Result<std::int32_t> new_grid_of_any_rank(Builder& builder, std::int32_t to) {
  const ir::Shape& shape = builder.source(to).shape;
  if (shape.rank() < 4 || (shape.rank() == 4 && shape[0] == 1)) return builder.new_grid(to);
  REEF_REQUIRE(shape.is_usable() && shape.elements() > 0, "{} has no elements", shape.to_string());
  return builder.new_grid(to, square_image(shape.elements() / shape.last(), shape.last()));
}

Status move_elements(Builder& builder, std::int32_t op, std::int32_t from, std::int32_t to, ElementMap map,
                     const std::optional<Windows>& windows) {
  REEF_ASSIGN_OR_RETURN(const bool same, same_quantization(builder.source(from), builder.source(to)));
  if (!same) return unsupported("input and output are quantized differently");
  REEF_ASSIGN_OR_RETURN(const std::int32_t operand, builder.any_layout(from));
  Rearrangement what;
  what.operands = {Read{operand}};
  // Windows are those of the tensor's own shape.
  const tiled::TiledTensor& tensor = builder.tensor(operand);
  const auto image = image_of(builder.source(from));
  if (tensor.spread == tiled::Spread::kGrid && image.ok() &&
      *image == Image{tensor.height, tensor.width, tensor.channels}) {
    what.operands[0].windows = windows;
  }
  REEF_ASSIGN_OR_RETURN(what.output, new_grid_of_any_rank(builder, to));
  what.source_of = std::move(map);
  builder.set_value(to, {what.output, {}});
  add_rearrangement(builder, op, std::move(what));
  return ok_status();
}

Status take_ranges(Builder& builder, std::int32_t op, std::int32_t from, std::int32_t to,
                   const std::vector<Range>& ranges) {
  return take_ranges(builder, op, from, to, ranges, builder.source(to).shape);
}

Status take_ranges(Builder& builder, std::int32_t op, std::int32_t from, std::int32_t to,
                   const std::vector<Range>& ranges, const ir::Shape& part) {
  const ir::Shape& shape = builder.source(from).shape;
  REEF_REQUIRE(part.rank() == shape.rank() && ranges.size() == static_cast<std::size_t>(shape.rank()),
               "input {} and output {} have different numbers of dimensions", shape.to_string(), part.to_string());
  REEF_RETURN_IF_ERROR(image_of(builder.source(to)).status());
  const std::vector<std::int64_t> strides = element_strides(shape);
  AxisOffsets axes;
  bool is_near = shape.rank() == 4 && part == builder.source(to).shape;
  for (int d = 0; d < shape.rank(); ++d) {
    const Range& range = ranges[at(d)];
    const std::int64_t last = range.begin + (part[d] - 1) * range.stride;
    REEF_REQUIRE(range.begin >= 0 && range.begin < shape[d] && last >= 0 && last < shape[d],
                 "elements {} to {} of dimension {} are taken, which has {}", range.begin, last, d, shape[d]);
    std::vector<std::int64_t> offsets;
    for (std::int64_t i = 0; i < part[d]; ++i) {
      offsets.push_back((range.begin + i * range.stride) * strides[at(d)]);
    }
    axes.offsets.push_back(std::move(offsets));
    // Of rows and columns, most must be where they were.
    if (d == 1 || d == 2) is_near = is_near && range.stride == 1 && range.begin <= kNear && shape[d] - part[d] <= kNear;
  }
  std::optional<Windows> windows;
  if (is_near && (part[1] != shape[1] || part[2] != shape[2])) {
    windows = Windows{{.outputs = part[1], .pad_before = -static_cast<std::int32_t>(ranges[1].begin)},
                      {.outputs = part[2], .pad_before = -static_cast<std::int32_t>(ranges[2].begin)}};
  }
  return move_elements(builder, op, from, to, by_axes(std::move(axes)), windows);
}

}  // namespace reef::lower
