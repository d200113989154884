// SPDX-License-Identifier: Apache-2.0
// AVERAGE_POOL_2D over the whole image and MEAN of height and width: pixels are brought together channel by channel,
// then averaged. The result is a vector, cut by channels.
#include "lower/global_pool.h"

#include <cstring>

#include "ir/describe.h"
#include "lower/lowerings.h"

namespace reef::lower {
namespace {

using tiled::ChannelRuns;
using tiled::TiledTensor;

// More pixels than this are more lines of wide memory than there are, whatever the image.
constexpr std::int64_t kMostPixels = std::int64_t{chip::kLanesPerCell} * chip::kWideLines;

std::int64_t group_lines(const TiledTensor& image) {
  return (image.width + chip::kLanesPerCell - 1) / chip::kLanesPerCell * std::int64_t{image.height};
}

Status finish_relayout(Builder& builder, tiled::Step& step) {
  auto& work = std::get<tiled::Relayout>(step.work);
  const TiledTensor& image = builder.tensor(work.input);
  auto& objects = builder.program().narrow;
  objects[static_cast<std::size_t>(work.gathered)].bytes = tiled::gathered_bytes(image, work.runs);
  tiled::NarrowObject& strip = objects[static_cast<std::size_t>(work.strip)];
  strip.bytes =
      std::int64_t{image.height} * image.columns.max_own() * work.runs.words_of_row(0) * chip::kNarrowWordBytes;
  if (builder.level() == tiled::Level::kAsGoogle) {
    work.identity = builder.identity(step);
    if (work.identity.words != tiled::kNowhere) {
      builder.program().narrow[static_cast<std::size_t>(work.identity.words)].fills_gaps = true;
    }
  }
  return ok_status();
}

// The names of the fused activations that there is code for.
Result<numeric::ChipActivation> fused_activation(const ir::Operator& op) {
  const std::string_view name = op.attributes.get_enum("fused_activation_function", "NONE");
  if (name == "NONE") return numeric::ChipActivation::kNone;
  if (name == "RELU") return numeric::ChipActivation::kRelu;
  if (name == "RELU6") return numeric::ChipActivation::kRelu6;
  if (name == "RELU_N1_TO_1") return numeric::ChipActivation::kReluN1To1;
  return unsupported("activation {} fused into it is not generated", name);
}

// Which dimensions a reduction takes away.
Result<std::vector<bool>> reduced_dimensions(const Builder& builder, std::int32_t op) {
  REEF_ASSIGN_OR_RETURN(const std::int32_t from, builder.operand(op, 0));
  REEF_ASSIGN_OR_RETURN(const std::int32_t which, builder.operand(op, 1));
  const ir::Tensor& axes = builder.source(which);
  const Bytes& data = ir::constant_data(builder.model(), axes);
  if (axes.type != ir::DataType::kInt32 || data.size() % sizeof(std::int32_t) != 0 || data.size() == 0) {
    return unsupported("axes '{}' must be int32 constants", ir::describe_name(axes.name));
  }
  const int rank = builder.source(from).shape.rank();
  std::vector<bool> reduced(static_cast<std::size_t>(rank));
  for (std::size_t i = 0; i < data.size(); i += sizeof(std::int32_t)) {
    std::int32_t axis = 0;
    std::memcpy(&axis, data.data() + i, sizeof(axis));
    REEF_REQUIRE(axis >= -rank && axis < rank, "there is no dimension {}", axis);
    reduced[static_cast<std::size_t>(axis < 0 ? axis + rank : axis)] = true;
  }
  return reduced;
}

}  // namespace

Status add_global_pool(Builder& builder, std::int32_t op, std::int32_t stride, numeric::ChipActivation activation) {
  REEF_ASSIGN_OR_RETURN(const std::int32_t from, builder.operand(op, 0));
  REEF_ASSIGN_OR_RETURN(const std::int32_t input, builder.grid(from));
  const std::int32_t to = builder.op(op).outputs[0];
  const TiledTensor image = builder.tensor(input);
  const std::int64_t pixels = std::int64_t{image.height} * image.width;
  if (pixels > kMostPixels) return unsupported("averages of {} pixels are not generated yet", pixels);
  const ChannelRuns runs = ChannelRuns::of(image.channels);
  const std::int32_t run = runs.run_words * chip::kNarrowWordBytes;
  REEF_ASSIGN_OR_RETURN(const std::int32_t output, builder.new_vector(to, run));
  const TiledTensor& result = builder.tensor(output);
  REEF_REQUIRE(result.channels == image.channels, "the result has {} channels, the image {}", result.channels,
               image.channels);

  tiled::Relayout relayout;
  relayout.input = input;
  relayout.runs = runs;
  tiled::GlobalPool pool;
  pool.input = input;
  pool.output = output;
  pool.runs = runs;
  pool.stride = stride;
  pool.clamp = numeric::chip_clamp(result.scale, result.zero_point, activation);
  pool.multiplier = numeric::chip_pool_multiplier(image.scale, result.scale, static_cast<std::int32_t>(pixels),
                                                  numeric::ChipPoolOrder::kOutputLast);
  relayout.gathered = pool.gathered = builder.new_narrow(0);
  relayout.strip = builder.new_narrow(0);
  builder.program().narrow.back().fills_gaps = true;
  relayout.words = pool.words = builder.new_narrow(std::int64_t{tiled::kPoolWords} * chip::kNarrowWordBytes);
  builder.program().narrow.back().fills_gaps = true;
  pool.lines = builder.new_wide(group_lines(image) * (run / chip::kCells));
  relayout.two_lines = builder.new_wide(2);
  builder.add_step(op, relayout, {Read{input}}, {}, finish_relayout);
  builder.program().steps.back().narrow_used = {relayout.gathered, relayout.strip, relayout.words};
  builder.program().steps.back().wide_used = {pool.lines, relayout.two_lines};
  builder.add_step(op, pool, {}, {output});
  builder.program().steps.back().narrow_used = {pool.gathered, pool.words};
  builder.program().steps.back().wide_used = {pool.lines};
  builder.set_value(to, {output, {}});
  return ok_status();
}

Status lower_average_pool(Builder& builder, std::int32_t op) {
  REEF_ASSIGN_OR_RETURN(const std::int32_t from, builder.operand(op, 0));
  const ir::Operator& pool = builder.op(op);
  const ir::Shape &in = builder.source(from).shape, &out = builder.source(pool.outputs[0]).shape;
  const std::int64_t height = pool.attributes.get_int("filter_height"), width = pool.attributes.get_int("filter_width");
  const bool whole_image = in.rank() == 4 && out.rank() == 4 && in[0] == 1 && height == in[1] && width == in[2] &&
                           out[1] == 1 && out[2] == 1;
  if (!whole_image) return lower_pool(builder, op);
  REEF_ASSIGN_OR_RETURN(const numeric::ChipActivation activation, fused_activation(pool));
  const std::int64_t stride = pool.attributes.get_int("stride_w", 1);
  // It has no effect, only Google's instructions have it; what no field holds is left out.
  const bool fits = stride >= 1 && stride <= width && stride <= height;
  return add_global_pool(builder, op, fits ? static_cast<std::int32_t>(stride) : 1, activation);
}

Status lower_mean(Builder& builder, std::int32_t op) {
  REEF_ASSIGN_OR_RETURN(const std::vector<bool> reduced, reduced_dimensions(builder, op));
  const ir::Shape& in = builder.source(builder.op(op).inputs[0]).shape;
  const bool whole_image = reduced.size() == 4 && in[0] == 1 && reduced[1] && reduced[2] && !reduced[3];
  if (!whole_image) return unsupported("means of other dimensions than height and width are not generated yet");
  return add_global_pool(builder, op, 1, numeric::ChipActivation::kNone);
}

}  // namespace reef::lower
