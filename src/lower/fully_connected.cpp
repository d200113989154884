// SPDX-License-Identifier: Apache-2.0
// FULLY_CONNECTED, and convolutions of a single pixel, which are the same.
//
// The whole input is brought to every tile that computes, as it lies: pixels whose channels are no whole words have
// bytes behind them, for which weights that multiply as zero are put between the others. Each tile keeps the weights of
// its own outputs. Layers with more weights than that are computed by one tile; those of several rows, as images are.
#include <algorithm>

#include "ir/describe.h"
#include "lower/convolution.h"
#include "lower/lowerings.h"
#include "lower/shared_steps.h"

namespace reef::lower {
namespace {

using tiled::FullyConnected;

// A line of fewer words than 16 would not fill a unit of 64 bytes of the host's parameter transfers.
constexpr std::int32_t kMinDenseLineWords = 16;
constexpr std::int32_t kMostLoops = 1 << 14;  // steps of a loop of a tensor operation
// Of a tile: more would leave no room for scratch.
constexpr std::int32_t kMostPartLines = chip::kWideLines - 64;
// Weights that pass by come in blocks of so many lines, two of which are there at a time.
constexpr std::int32_t kMostBlockWords = 256;
// Inputs whose pixels have padding are used as they lie if it takes no more than so many words, or twice as many as
// there need be; otherwise their elements are put together first.
constexpr std::int32_t kFewWords = 256;

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

Status finish_with(Builder& builder, tiled::Step& step, darwinn::LayerParameters layer) {
  auto work = std::get<FullyConnected>(step.work);
  const TiledTensor& input = builder.tensor(work.input);
  const TiledTensor& output = builder.tensor(work.output);
  if (input.height * input.width > 1 && input.pitch != input.channels) pad_weights(layer, input);
  tiled::ParameterChunk chunk;
  chunk.line_words = std::max(kMinDenseLineWords, darwinn::cells_per_line(layer.shape));
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

Status finish_fully_connected(Builder& builder, tiled::Step& step) {
  REEF_ASSIGN_OR_RETURN(darwinn::LayerParameters layer, matrix_of(builder, step.op));
  return finish_with(builder, step, std::move(layer));
}

std::int32_t words_of(const TiledTensor& tensor) {
  return static_cast<std::int32_t>(std::int64_t{tensor.height} * tensor.width * tensor.pixel_words());
}

bool fits_tiles(const FullyConnected& layer, std::int32_t run) {
  return layer.input_words <= kMostLoops && std::int64_t{run / chip::kCells} * layer.group_lines() <= kMostPartLines;
}

// More weights than the tiles can keep each for itself: one tile computes everything, as a convolution of one pixel,
// and weights pass by it, from wherever they are kept.
Status lower_by_stream(Builder& builder, std::int32_t op, std::int32_t from) {
  const std::int32_t to = builder.op(op).outputs[0];
  const auto inputs = static_cast<std::int32_t>(builder.source(from).shape.elements());
  const auto outputs = static_cast<std::int32_t>(builder.source(to).shape.elements());
  const std::int32_t words = (inputs + kWord - 1) / kWord;
  ConvolutionOf what;
  what.windows.y.outputs = what.windows.x.outputs = 1;
  for (what.block_words = std::min(words, kMostBlockWords); words % what.block_words != 0;) --what.block_words;
  if (words / what.block_words > kMostLoops) {
    return unsupported("{} inputs cannot be cut into blocks of equal size", inputs);
  }
  REEF_ASSIGN_OR_RETURN(what.input, builder.grid(from, {1, 1, inputs}));
  REEF_ASSIGN_OR_RETURN(what.output, builder.new_grid(to, {1, 1, outputs}));
  builder.set_value(to, {what.output, {}});
  add_convolution(builder, op, what);
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
  const std::int32_t run = tiled::vector_run(layer.shape.output_channels);
  work.input_words = static_cast<std::int32_t>((inputs + kWord - 1) / kWord);
  if (!fits_tiles(work, run)) return lower_by_stream(builder, op, from);
  REEF_ASSIGN_OR_RETURN(work.output, builder.new_vector(to, run));
  const tiled::TileMask tiles = builder.tensor(work.output).owners();
  REEF_ASSIGN_OR_RETURN(const std::int32_t layout, builder.any_layout(from));
  FullyConnected as_it_lies = work;
  as_it_lies.input_words = words_of(builder.tensor(layout));
  const bool pack = as_it_lies.input_words > std::max(2 * work.input_words, kFewWords) || !fits_tiles(as_it_lies, run);
  REEF_ASSIGN_OR_RETURN(work.input, pack ? builder.packed_copies(from, tiles) : builder.copies(from, tiles));
  work.input_words = words_of(builder.tensor(work.input));
  builder.set_value(to, {work.output, {}});
  const std::int32_t input = work.input, output = work.output;
  builder.add_step(op, std::move(work), {Read{input}}, {output}, finish_fully_connected);
  return ok_status();
}

void add_selection(Builder& builder, std::int32_t op, std::int32_t input, std::int32_t output,
                   const darwinn::LayerParameters& layer) {
  FullyConnected work;
  work.output = output;
  work.input = builder.copies_of(input, builder.tensor(output).owners());
  work.input_words = words_of(builder.tensor(work.input));
  work.header = layer.presence();
  const TiledTensor& values = builder.tensor(output);
  work.constants.multiplier = 1.0f;
  work.constants.input_zero_point = work.constants.output_zero_point = values.zero_point;
  work.constants.weight_zero_point = layer.weight_zero_point.value_or(0);
  work.constants.clamp = numeric::chip_clamp(values.scale, values.zero_point, numeric::ChipActivation::kNone);
  const std::int32_t copies = work.input;
  builder.add_step(op, std::move(work), {Read{copies}}, {output},
                   [layer](Builder& b, tiled::Step& step) -> Status { return finish_with(b, step, layer); });
}

// Every row of a matrix by itself: a convolution without neighbours.
Status lower_rows(Builder& builder, std::int32_t op, std::int32_t from, const ir::Shape& weights) {
  const std::int32_t to = builder.op(op).outputs[0];
  REEF_ASSIGN_OR_RETURN(const Image image, image_of(builder.source(to)));
  const std::int64_t pixels = std::int64_t{image.height} * image.width;
  REEF_REQUIRE(image.channels == weights[0] && pixels * weights[1] == builder.source(from).shape.elements(),
               "weights {} do not fit '{}' and '{}'", weights.to_string(), ir::describe_name(builder.source(from).name),
               ir::describe_name(builder.source(to).name));
  ConvolutionOf what;
  what.windows.y.outputs = image.height;
  what.windows.x.outputs = image.width;
  REEF_ASSIGN_OR_RETURN(what.input, builder.grid(from, {image.height, image.width, weights[1]}));
  REEF_ASSIGN_OR_RETURN(what.output, builder.new_grid(to, image));
  builder.set_value(to, {what.output, {}});
  add_convolution(builder, op, what);
  return ok_status();
}

Status lower_fully_connected(Builder& builder, std::int32_t op) {
  REEF_ASSIGN_OR_RETURN(const std::int32_t weights, builder.operand(op, 1));
  REEF_ASSIGN_OR_RETURN(const std::int32_t from, builder.operand(op, 0));
  const ir::Shape& shape = builder.source(weights).shape;
  REEF_REQUIRE(shape.rank() == 2 && shape.elements() > 0, "weights {} are no matrix", shape.to_string());
  if (builder.source(from).shape.elements() == shape[1]) return lower_dense(builder, op);
  return lower_rows(builder, op, from, shape);
}

}  // namespace reef::lower
