// SPDX-License-Identifier: Apache-2.0
// FULLY_CONNECTED, and convolutions of a single pixel, which are the same.
//
// The whole input is brought to every tile that computes, as it lies: pixels whose channels are no whole words have
// bytes behind them, for which weights that multiply as zero are put between the others. Each tile keeps the weights of
// its own outputs.
#include "lower/fully_connected.h"

#include "ir/describe.h"
#include "lower/lowerings.h"

namespace reef::lower {
namespace {

using tiled::FullyConnected;
using tiled::TiledTensor;

constexpr std::int32_t kWord = chip::kNarrowWordBytes;
// A line of fewer words than 16 would not fill a unit of 64 bytes of the host's parameter transfers.
constexpr std::int32_t kMinLineWords = 16;
constexpr std::int32_t kMostLoops = 1 << 14;  // steps of a loop of a tensor operation
// Of a tile: more would leave no room for scratch.
constexpr std::int32_t kMostPartLines = chip::kWideLines - 64;

// Weights for the input as it lies in memory: `channels` of each pixel, then padding up to `pitch`.
void pad_weights(darwinn::LayerParameters& layer, const TiledTensor& input) {
  const auto channels = static_cast<std::size_t>(input.channels), pitch = static_cast<std::size_t>(input.pitch);
  const std::size_t pixels = layer.weights.size() / channels;
  std::vector<std::uint8_t> padded(pixels * pitch, layer.weight_zero_point.value_or(0));
  for (std::size_t pixel = 0; pixel < pixels; ++pixel) {
    std::copy_n(layer.weights.begin() + static_cast<std::ptrdiff_t>(pixel * channels), channels,
                padded.begin() + static_cast<std::ptrdiff_t>(pixel * pitch));
  }
  layer.weights = std::move(padded);
  layer.shape.input_channels = static_cast<std::int32_t>(std::int64_t{input.height} * input.width * input.pitch);
}

// The operator's parameters as a matrix [outputs][inputs].
Result<darwinn::LayerParameters> matrix_of(const Builder& builder, std::int32_t op) {
  REEF_ASSIGN_OR_RETURN(darwinn::LayerParameters layer,
                        darwinn::layer_parameters_of(builder.model(), builder.graph(), builder.op(op)));
  layer.shape.input_channels *= layer.shape.kernel_height * layer.shape.kernel_width;
  layer.shape.kernel_height = layer.shape.kernel_width = 1;
  layer.shape.kind = darwinn::LayerKind::kFullyConnected;
  return layer;
}

Status finish_fully_connected(Builder& builder, tiled::Step& step) {
  auto work = std::get<FullyConnected>(step.work);
  const TiledTensor& input = builder.tensor(work.input);
  const TiledTensor& output = builder.tensor(work.output);
  REEF_ASSIGN_OR_RETURN(darwinn::LayerParameters layer, matrix_of(builder, step.op));
  if (input.height * input.width > 1 && input.pitch != input.channels) pad_weights(layer, input);
  tiled::ParameterChunk chunk;
  chunk.line_words = std::max(kMinLineWords, darwinn::cells_per_line(layer.shape));
  layer.shape.cells = chunk.line_words == chip::kCells ? 0 : chunk.line_words;
  REEF_ASSIGN_OR_RETURN(std::vector<std::uint8_t> bytes, darwinn::pack(layer));
  chunk.bytes = Bytes(std::move(bytes));
  const std::int32_t groups_of_tile = output.run / chip::kCells;
  const std::int32_t groups = (output.channels + chip::kCells - 1) / chip::kCells;
  chunk.lines = groups * work.group_lines();
  chunk.part_lines = groups_of_tile * work.group_lines();
  chunk.part_header_lines = groups_of_tile == 1 ? work.header.arrays() : 0;
  work.parameters = builder.new_parameters(std::move(chunk));
  step.parameters_used = {work.parameters};
  step.work = std::move(work);
  return ok_status();
}

}  // namespace

Status lower_dense(Builder& builder, std::int32_t op) {
  REEF_ASSIGN_OR_RETURN(const std::int32_t from, builder.operand(op, 0));
  const std::int32_t to = builder.op(op).outputs[0];
  REEF_ASSIGN_OR_RETURN(const darwinn::LayerParameters layer, matrix_of(builder, op));
  const std::int64_t inputs = layer.shape.input_channels, outputs = layer.shape.output_channels;
  REEF_REQUIRE(builder.source(from).shape.elements() == inputs && builder.source(to).shape.elements() == outputs,
               "weights for {} inputs and {} outputs do not fit '{}' and '{}'", inputs, outputs,
               ir::describe_name(builder.source(from).name), ir::describe_name(builder.source(to).name));
  FullyConnected work;
  work.header = layer.presence();
  REEF_ASSIGN_OR_RETURN(
      work.constants, darwinn::layer_requantization_of(builder.model(), builder.graph(), builder.op(op), work.header));
  REEF_ASSIGN_OR_RETURN(work.output, builder.new_vector(to, tiled::vector_run(layer.shape.output_channels)));
  REEF_ASSIGN_OR_RETURN(work.input, builder.copies(from, builder.tensor(work.output).owners()));
  const TiledTensor& input = builder.tensor(work.input);
  REEF_REQUIRE(std::int64_t{input.height} * input.width * input.channels == inputs, "the input has another size");
  work.input_words = static_cast<std::int32_t>(std::int64_t{input.height} * input.width * input.pitch / kWord);
  const std::int64_t part_lines = std::int64_t{builder.tensor(work.output).run / chip::kCells} * work.group_lines();
  if (work.input_words > kMostLoops || part_lines > kMostPartLines) {
    return unsupported("{} inputs are more than a tile's memory holds weights for", inputs);
  }
  builder.set_value(to, {work.output, {}});
  const std::int32_t input_tensor = work.input, output_tensor = work.output;
  builder.add_step(op, std::move(work), {Read{input_tensor}}, {output_tensor}, finish_fully_connected);
  return ok_status();
}

Status lower_fully_connected(Builder& builder, std::int32_t op) {
  REEF_ASSIGN_OR_RETURN(const std::int32_t weights, builder.operand(op, 1));
  REEF_ASSIGN_OR_RETURN(const std::int32_t from, builder.operand(op, 0));
  const ir::Shape& shape = builder.source(weights).shape;
  if (shape.rank() != 2 || builder.source(from).shape.elements() != shape[1]) {
    return unsupported("several rows at once ({} by {}) are not generated yet", builder.source(from).shape.to_string(),
                       shape.to_string());
  }
  return lower_dense(builder, op);
}

}  // namespace reef::lower
