// SPDX-License-Identifier: Apache-2.0
// PAD: the zero point around a tensor.
//
// Rows and columns around an image are no work of their own: steps that read it through windows read that much further
// out, into halos that hold the zero point. For other readers, and for other dimensions, the padded tensor is made.
#include <algorithm>
#include <cstring>

#include "ir/describe.h"
#include "lower/element_maps.h"
#include "lower/lowerings.h"
#include "lower/rearrange.h"
#include "lower/shared_steps.h"
#include "lower/windows.h"

namespace reef::lower {
namespace {

constexpr std::int32_t kMostPadding = 1 << 20;
// Where so few pixels are added at a border, they come to be next to those of a neighbouring tile, whose halo has them.
constexpr std::int32_t kNearPadding = 8;

struct Amount {
  std::int32_t before = 0, after = 0;
};

Result<std::vector<Amount>> amounts_of(const Builder& builder, const ir::Tensor& tensor, int rank) {
  const Bytes& data = ir::constant_data(builder.model(), tensor);
  const auto count = static_cast<std::size_t>(2 * rank);
  if (tensor.type != ir::DataType::kInt32 || data.size() != count * sizeof(std::int32_t)) {
    return unsupported("only constant paddings of 32 bits, two for each dimension, are generated");
  }
  std::vector<std::int32_t> numbers(count);
  std::memcpy(numbers.data(), data.data(), data.size());
  if (std::any_of(numbers.begin(), numbers.end(), [](std::int32_t p) { return p < 0 || p > kMostPadding; })) {
    return unsupported("paddings must be between 0 and {}", kMostPadding);
  }
  std::vector<Amount> amounts;
  for (std::size_t d = 0; d < count; d += 2) amounts.push_back({numbers[d], numbers[d + 1]});
  return amounts;
}

Status check_shapes(const ir::Shape& from, const ir::Shape& to, const std::vector<Amount>& amounts) {
  for (int d = 0; d < from.rank(); ++d) {
    const Amount& amount = amounts[at(d)];
    REEF_REQUIRE(to[d] == std::int64_t{from[d]} + amount.before + amount.after, "dimension {} should have {} elements",
                 d, std::int64_t{from[d]} + amount.before + amount.after);
  }
  return ok_status();
}

AxisOffsets padded_axes(const std::vector<std::int32_t>& sizes, const std::vector<Amount>& amounts) {
  AxisOffsets axes;
  std::int64_t stride = 1;
  for (std::size_t d = sizes.size(); d-- > 0;) {
    std::vector<std::int64_t> offsets;
    for (std::int32_t i = -amounts[d].before; i < sizes[d] + amounts[d].after; ++i) {
      offsets.push_back(i < 0 || i >= sizes[d] ? kPadding : i * stride);
    }
    axes.offsets.insert(axes.offsets.begin(), std::move(offsets));
    stride *= sizes[d];
  }
  return axes;
}

bool is_near(const Padding& p) { return std::max({p.top, p.bottom, p.left, p.right}) <= kNearPadding; }

}  // namespace

Result<std::int32_t> pad_image(Builder& builder, std::int32_t op, std::int32_t source, std::int32_t image,
                               const Padding& p) {
  const tiled::TiledTensor from = builder.tensor(image);
  const Image padded{from.height + p.top + p.bottom, from.width + p.left + p.right, from.channels};
  Rearrangement what;
  REEF_ASSIGN_OR_RETURN(what.output, builder.new_grid(source, padded));
  what.operands = {Read{image}};
  const Windows windows{{.outputs = padded.height, .pad_before = p.top},
                        {.outputs = padded.width, .pad_before = p.left}};
  // Tiles behind the last one with data have no halo.
  const bool is_reachable = !reads_beyond_owners(tiled::AxisPartition::of(from.height, {&windows.y, 1})) &&
                            !reads_beyond_owners(tiled::AxisPartition::of(from.width, {&windows.x, 1}));
  if (is_near(p) && is_reachable) what.operands[0].windows = windows;
  what.source_of =
      by_axes(padded_axes({from.height, from.width, from.channels}, {{p.top, p.bottom}, {p.left, p.right}, {0, 0}}));
  return add_rearrangement(builder, op, std::move(what));
}

Result<std::int32_t> make_padding_real(Builder& builder, std::int32_t source, const Value& value) {
  REEF_RETURN_IF_ERROR(image_of(builder.source(source)).status());  // no larger than a chip
  return pad_image(builder, -1, source, value.tensor, value.padding);
}

Status lower_pad(Builder& builder, std::int32_t op) {
  REEF_ASSIGN_OR_RETURN(const std::int32_t from, builder.operand(op, 0));
  REEF_ASSIGN_OR_RETURN(const std::int32_t amounts_tensor, builder.operand(op, 1));
  const std::int32_t to = builder.op(op).outputs[0];
  const ir::Shape &shape = builder.source(from).shape, &padded = builder.source(to).shape;
  REEF_REQUIRE(shape.rank() == padded.rank(), "input and output have different numbers of dimensions");
  REEF_ASSIGN_OR_RETURN(const std::vector<Amount> amounts,
                        amounts_of(builder, builder.source(amounts_tensor), shape.rank()));
  REEF_RETURN_IF_ERROR(check_shapes(shape, padded, amounts));
  REEF_ASSIGN_OR_RETURN(const bool same, same_quantization(builder.source(from), builder.source(to)));
  if (!same) return unsupported("input and output are quantized differently");
  const bool only_image =
      shape.rank() == 4 && amounts[0].before + amounts[0].after == 0 && amounts[3].before + amounts[3].after == 0;
  if (only_image) {
    REEF_ASSIGN_OR_RETURN(Value value, builder.image(from));
    Padding& p = value.padding;
    p = {p.top + amounts[1].before, p.bottom + amounts[1].after, p.left + amounts[2].before,
         p.right + amounts[2].after};
    if (builder.must_make(to)) {
      REEF_ASSIGN_OR_RETURN(value.tensor, pad_image(builder, op, to, value.tensor, p));
      p = {};
    }
    builder.set_value(to, value);
    return ok_status();
  }
  Rearrangement what;
  REEF_ASSIGN_OR_RETURN(const std::int32_t operand, builder.any_layout(from));
  what.operands = {Read{operand}};
  REEF_ASSIGN_OR_RETURN(what.output, builder.new_grid(to));
  what.source_of = by_axes(padded_axes(shape.dims(), amounts));
  builder.set_value(to, {what.output, {}});
  add_rearrangement(builder, op, std::move(what));
  return ok_status();
}

}  // namespace reef::lower
