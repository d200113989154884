// SPDX-License-Identifier: Apache-2.0
// Constants come onto the chip as weights, and only convolutions and fully connected layers read weights. So a constant
// tensor is the result of a layer: its elements are the weights of one input that is 1.
//
// How it is known: our own; how Google's compiler does it is not known (constants that are one number, or one per
// channel, become biases and multipliers instead: constants.cpp).
#include <algorithm>
#include <cmath>

#include "formats/darwinn/parameters/layer_parameters.h"
#include "ir/describe.h"
#include "lower/rearrange.h"
#include "lower/shared_steps.h"

namespace reef::lower {
namespace {

using tiled::FullyConnected;

// A line of fewer words than 16 would not fill a unit of 64 bytes of the host's parameter transfers.
constexpr std::int32_t kMinConstantLineWords = 16;

// A word of ones on some tiles: what is filled in gets the zero point.
std::int32_t add_ones(Builder& builder, std::int32_t op, std::int32_t source, tiled::TileMask tiles) {
  TiledTensor ones;
  ones.source = source;
  ones.spread = tiled::Spread::kCopies;
  ones.channels = ones.pitch = kWord;
  ones.tiles = tiles;
  ones.zero_point = 1;
  Rearrangement what;
  what.output = builder.add_tensor(std::move(ones));
  what.source_of = [](std::int64_t) { return ElementSource{}; };
  return add_rearrangement(builder, op, std::move(what));
}

// Output k is weight 0 of k; the other three inputs do not count.
Status finish_layer(Builder& builder, tiled::Step& step, const std::vector<std::uint8_t>& codes) {
  auto work = std::get<FullyConnected>(step.work);
  const TiledTensor output = builder.tensor(work.output);
  darwinn::LayerParameters layer;
  layer.shape.kind = darwinn::LayerKind::kFullyConnected;
  layer.shape.input_channels = kWord;
  layer.shape.output_channels = output.channels;
  layer.weight_zero_point = 0;
  layer.weights.assign(codes.size() * static_cast<std::size_t>(kWord), 0);
  for (std::size_t k = 0; k < codes.size(); ++k) layer.weights[k * static_cast<std::size_t>(kWord)] = codes[k];
  tiled::ParameterChunk chunk;
  chunk.line_words = std::max(kMinConstantLineWords, darwinn::cells_per_line(layer.shape));
  layer.shape.cells = chunk.line_words == chip::kCells ? 0 : chunk.line_words;
  REEF_ASSIGN_OR_RETURN(std::vector<std::uint8_t> bytes, darwinn::pack(layer));
  chunk.bytes = Bytes(std::move(bytes));
  chunk.lines = (output.channels + chip::kCells - 1) / chip::kCells;
  chunk.part_lines = output.run / chip::kCells;
  work.parameters = builder.new_parameters(std::move(chunk));
  step.parameters_used = {work.parameters};
  step.work = std::move(work);
  return ok_status();
}

}  // namespace

bool is_constant(const Builder& builder, std::int32_t source) {
  return !ir::constant_data(builder.model(), builder.source(source)).empty();
}

Result<std::int32_t> constant_vector(Builder& builder, std::int32_t op, std::int32_t source) {
  const ir::Tensor& tensor = builder.source(source);
  const Bytes& data = ir::constant_data(builder.model(), tensor);
  TiledTensor vector;
  vector.source = source;
  vector.spread = tiled::Spread::kVector;
  REEF_ASSIGN_OR_RETURN(vector.zero_point, chip_zero_point(tensor));
  vector.scale = tensor.quantization.scale[0];
  if (!(vector.scale > 0) || !std::isfinite(vector.scale)) {
    return unsupported("the constant '{}' has the scale {}, which is not a positive number",
                       ir::describe_name(tensor.name), vector.scale);
  }
  constexpr std::int64_t kMostElements = std::int64_t{chip::kTiles} * (chip::kNarrowBytes / 2);
  const std::int64_t elements = tensor.shape.checked_elements().value_or(0);
  if (elements < 1 || elements > kMostElements || static_cast<std::int64_t>(data.size()) != elements) {
    return unsupported("the constant '{}' {} cannot be a tensor on the chip", ir::describe_name(tensor.name),
                       tensor.shape.to_string());
  }
  vector.channels = static_cast<std::int32_t>(elements);
  vector.run = tiled::vector_run(vector.channels);
  vector.pitch = vector.pixel_words() * kWord;
  const int flip = tensor.type == ir::DataType::kInt8 ? 128 : 0;  // the chip's values are 128 higher
  std::vector<std::uint8_t> codes;
  for (const std::uint8_t byte : data.span()) codes.push_back(static_cast<std::uint8_t>(byte ^ flip));
  FullyConnected work;
  work.output = builder.add_tensor(std::move(vector));
  work.input = add_ones(builder, op, source, builder.tensor(work.output).owners());
  work.input_words = 1;
  work.constants.clamp = numeric::kNoChipClamp;
  work.constants.multiplier = 1.0f;
  const std::int32_t input = work.input, output = work.output;
  builder.add_step(op, std::move(work), {Read{input}}, {output},
                   [codes = std::move(codes)](Builder& finishing, tiled::Step& step) {
                     return finish_layer(finishing, step, codes);
                   });
  return output;
}

}  // namespace reef::lower
