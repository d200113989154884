// SPDX-License-Identifier: Apache-2.0
// SOFTMAX of a single row: brought to one tile, computed there.
#include <cmath>

#include "ir/describe.h"
#include "lower/lowerings.h"

namespace reef::lower {
namespace {

using tiled::Spread;
using tiled::TiledTensor;

constexpr std::int32_t kMostElements = 16384;  // steps of a maximum that a loop can count
constexpr float kOutputScale = 1.0f / 256;     // the only one that the constants are known for
constexpr int kTile = 0;

// The row in one tile, as a tensor that has all of it there.
Result<std::int32_t> in_one_tile(Builder& builder, std::int32_t source) {
  REEF_ASSIGN_OR_RETURN(const Value value, builder.value(source));
  const TiledTensor tensor = builder.tensor(value.tensor);
  if (tensor.height != 1 || tensor.width != 1 || value.padding != Padding{}) {
    return unsupported("'{}' has {} rows; only one row is generated yet",
                       ir::describe_name(builder.source(source).name), std::int64_t{tensor.height} * tensor.width);
  }
  if (tensor.spread != Spread::kVector || tensor.vector_tiles() == 1) return value.tensor;
  return unsupported("rows over several tiles are not generated yet");
}

Status finish_softmax(Builder& builder, tiled::Step& step) {
  std::get<tiled::Softmax>(step.work).identity = builder.identity(step);
  return ok_status();
}

}  // namespace

Status lower_softmax(Builder& builder, std::int32_t op) {
  REEF_ASSIGN_OR_RETURN(const std::int32_t from, builder.operand(op, 0));
  const std::int32_t to = builder.op(op).outputs[0];
  const ir::Tensor &input = builder.source(from), &output = builder.source(to);
  REEF_RETURN_IF_ERROR(chip_zero_point(input).status());
  REEF_ASSIGN_OR_RETURN(const std::int32_t output_zero, chip_zero_point(output));
  if (output_zero != 0 || output.quantization.scale[0] != kOutputScale) {
    return unsupported("the output has scale {} and zero point {}; only 1/256 and the lowest number are generated",
                       output.quantization.scale[0], output_zero);
  }
  if (input.shape.rank() == 0 || input.shape != output.shape) return unsupported("input and output have other shapes");
  const float scale = input.quantization.scale[0] * static_cast<float>(builder.op(op).attributes.get_float("beta", 1));
  if (!std::isfinite(scale) || scale <= 0) return unsupported("beta times the input's scale is {}", scale);
  if (input.shape.last() > kMostElements) {
    return unsupported("a row has {} elements; at most {} are generated", input.shape.last(), kMostElements);
  }
  tiled::Softmax softmax;
  softmax.scale = scale;
  REEF_ASSIGN_OR_RETURN(softmax.input, in_one_tile(builder, from));
  const TiledTensor row = builder.tensor(softmax.input);
  softmax.tile = kTile;
  if (row.spread == Spread::kCopies) {
    while ((row.tiles & tiled::mask_of(softmax.tile)) == 0) ++softmax.tile;
  }
  REEF_REQUIRE(row.channels == input.shape.last(), "'{}' has {} elements, not {}", ir::describe_name(input.name),
               row.channels, input.shape.last());
  REEF_ASSIGN_OR_RETURN(softmax.output, builder.new_like(to, softmax.input));
  builder.program().tensor(softmax.output).tiles = tiled::mask_of(softmax.tile);
  const auto layout = tiled::NumeratorLines::of(row.channels);
  tiled::NarrowObject& place =
      builder.program().narrow[static_cast<std::size_t>(builder.tensor(softmax.output).object)];
  place.bytes = std::max(place.bytes, layout.result_bytes());
  softmax.words = builder.new_narrow(tiled::kSoftmaxWords * chip::kNarrowWordBytes);
  softmax.numerators = builder.new_narrow(layout.numerator_bytes());
  softmax.lines = builder.new_wide(tiled::kSoftmaxLines + layout.lines);
  builder.add_step(op, softmax, {Read{softmax.input}}, {softmax.output}, finish_softmax);
  builder.program().steps.back().narrow_used = {softmax.words, softmax.numerators};
  builder.program().steps.back().wide_used = {softmax.lines};
  builder.set_value(to, {softmax.output, {}});
  return ok_status();
}

}  // namespace reef::lower
