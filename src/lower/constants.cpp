// SPDX-License-Identifier: Apache-2.0
// A constant sum is a bias in units of the input's scale, a constant product a multiplier: element-wise work if it is
// one number, a depthwise convolution of one pixel with weights of 1 if there is one per channel.
//
// How it is known: biases and multipliers are those of Google's compiler (formats/darwinn/parameters/channel_lines.h).
// It sends them from the host with every inference; ours stay on the chip like other parameters. SUB from a constant is
// made in the same way with a negative multiplier; no example of it is known.
#include "lower/constants.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "formats/darwinn/parameters/channel_lines.h"
#include "formats/darwinn/parameters/layer_parameters.h"
#include "ir/describe.h"
#include "ir/op.h"
#include "lower/elementwise.h"
#include "lower/shared_steps.h"

namespace reef::lower {
namespace {

using tiled::Convolution;
using tiled::Elementwise;

constexpr std::int32_t kLanes = chip::kLanesPerCell;

bool all_equal(const auto& values) {
  return std::all_of(values.begin(), values.end(), [&](auto v) { return v == values.front(); });
}

void add_one_number(Builder& builder, std::int32_t op, std::int32_t input, std::int32_t output,
                    const ChannelScaling& scaling) {
  Elementwise work;
  work.input = input;
  work.output = output;
  work.input_zero = builder.tensor(input).zero_point;
  work.output_zero = builder.tensor(output).zero_point;
  work.bias = scaling.biases.front();
  work.multiplier = scaling.multipliers.front();
  work.clamp = scaling.clamp;
  builder.add_step(op, work, {Read{input}}, {output}, finish_elementwise);
}

template <typename T>
std::vector<T> for_each_channel(const std::vector<T>& values, std::int32_t channels) {
  if (values.size() > 1) return values;
  return std::vector<T>(static_cast<std::size_t>(channels), values.front());
}

Result<tiled::ParameterChunk> depthwise_chunk(const ChannelScaling& scaling, std::int32_t channels,
                                              darwinn::Presence header) {
  darwinn::LayerParameters parameters;
  parameters.shape.kind = darwinn::LayerKind::kDepthwise;
  parameters.shape.input_channels = parameters.shape.output_channels = channels;
  parameters.weights.assign(static_cast<std::size_t>(channels), 1);
  parameters.weight_zero_point = 0;
  if (header.multipliers) parameters.multipliers = for_each_channel(scaling.multipliers, channels);
  if (header.biases) parameters.biases = for_each_channel(scaling.biases, channels);
  REEF_ASSIGN_OR_RETURN(std::vector<std::uint8_t> bytes, darwinn::pack(parameters));
  tiled::ParameterChunk chunk;
  chunk.lines = static_cast<std::int32_t>((bytes.size() + chip::kWideLineBytes - 1) / chip::kWideLineBytes);
  chunk.in_one_piece = true;
  chunk.bytes = Bytes(std::move(bytes));
  return chunk;
}

void add_depthwise(Builder& builder, std::int32_t op, std::int32_t input, std::int32_t output,
                   const ChannelScaling& scaling) {
  const TiledTensor& image = builder.tensor(input);
  Convolution layer;
  layer.depthwise = layer.packed = true;
  layer.input = input;
  layer.output = output;
  layer.y.outputs = image.height;
  layer.x.outputs = image.width;
  layer.cells = layer.last_cells = kLanes;
  layer.groups = (image.channels + kLanes - 1) / kLanes;
  layer.header.multipliers = !all_equal(scaling.multipliers);
  // One array of the two there must be.
  layer.header.biases = !all_equal(scaling.biases) || scaling.biases.front() != 0 || !layer.header.multipliers;
  layer.constants.multiplier = layer.header.multipliers ? 1.0f : scaling.multipliers.front();
  layer.constants.clamp = scaling.clamp;
  layer.constants.input_zero_point = image.zero_point;
  layer.constants.output_zero_point = builder.tensor(output).zero_point;
  const auto finish = [scaling](Builder& to, tiled::Step& step) -> Status {
    auto& work = std::get<Convolution>(step.work);
    const std::int32_t channels = to.tensor(work.input).channels;
    REEF_ASSIGN_OR_RETURN(tiled::ParameterChunk chunk, depthwise_chunk(scaling, channels, work.header));
    work.parameters = to.new_parameters(std::move(chunk));
    step.parameters_used = {work.parameters};
    work.header_lines = to.new_wide(std::int64_t{work.header.arrays()} * work.buffers);
    work.weights = to.new_wide(work.buffers);
    step.wide_used = {work.header_lines, work.weights};
    return ok_status();
  };
  builder.add_step(op, layer, {Read{input}}, {output}, finish);
}

// Rows of 64 bytes with the constants of four channels each, of `channels` channels from `first` on.
void append_rows(const ChannelScaling& scaling, const Elementwise& work, std::int32_t first, std::int32_t channels,
                 std::vector<std::uint8_t>& bytes) {
  const auto add_row = [&](const auto& values, std::int32_t from) {
    std::array<std::uint32_t, kLanes> words{};
    for (std::int32_t k = 0; k < kLanes && from + k < first + channels; ++k) {
      words[at(k)] = std::bit_cast<std::uint32_t>(values[values.size() == 1 ? 0 : static_cast<std::size_t>(from + k)]);
    }
    const std::vector<std::uint8_t> row = darwinn::pack_channel_lines(words);
    bytes.insert(bytes.end(), row.begin(), row.end());
  };
  for (std::int32_t c = first; c < first + channels; c += kLanes) {
    if (work.has_multipliers) add_row(scaling.multipliers, c);
    if (work.has_biases) add_row(scaling.biases, c);
  }
}

// A part for each tile, of the channels that it has of the tensor.
tiled::ParameterChunk constants_by_tile(const ChannelScaling& scaling, const Elementwise& work,
                                        const TiledTensor& tensor) {
  const bool is_vector = tensor.spread == tiled::Spread::kVector;
  int tiles = 0;
  for (int t = 0; t < chip::kTiles; ++t) {
    if ((tensor.owners() & tiled::mask_of(t)) != 0) tiles = t + 1;
  }
  std::vector<std::uint8_t> bytes;
  for (int t = 0; t < tiles; ++t) {
    append_rows(scaling, work, is_vector ? t * tensor.run : 0, is_vector ? tensor.run_of(t) : tensor.channels, bytes);
  }
  const std::int32_t words = (is_vector ? std::min(tensor.run, tensor.channels) : tensor.channels) + kLanes - 1;
  tiled::ParameterChunk chunk;
  chunk.line_words = static_cast<std::int32_t>(darwinn::kChunkAlignment) / chip::kNarrowWordBytes;
  chunk.lines = static_cast<std::int32_t>(bytes.size() / darwinn::kChunkAlignment);
  chunk.part_lines = words / kLanes * work.constant_lines();
  chunk.bytes = Bytes(std::move(bytes));
  return chunk;
}

// For vectors and copies: every tile keeps the constants of its channels.
void add_with_own_constants(Builder& builder, std::int32_t op, std::int32_t input, std::int32_t output,
                            const ChannelScaling& scaling) {
  Elementwise work;
  work.input = input;
  work.output = output;
  work.input_zero = builder.tensor(input).zero_point;
  work.output_zero = builder.tensor(output).zero_point;
  work.has_multipliers = !all_equal(scaling.multipliers);
  work.has_biases = !all_equal(scaling.biases);
  work.bias = work.has_biases ? 0 : scaling.biases.front();
  work.multiplier = work.has_multipliers ? 1.0f : scaling.multipliers.front();
  work.clamp = scaling.clamp;
  const auto finish = [scaling](Builder& to, tiled::Step& step) -> Status {
    auto& finished = std::get<Elementwise>(step.work);
    const TiledTensor tensor = to.tensor(finished.output);
    finished.constants = to.new_parameters(constants_by_tile(scaling, finished, tensor));
    step.parameters_used.push_back(finished.constants);
    finished.identity = to.identity(step);
    to.take_place(finished.output, finished.input);
    return ok_status();
  };
  builder.add_step(op, work, {Read{input}}, {output}, finish);
}

// The operator's result as bias and multiplier of its computed operand.
Result<ChannelScaling> scaling_of(const ir::Operator& op, const TiledTensor& input, const TiledTensor& output,
                                  const ConstantOperand& constant, bool constant_first) {
  ChannelScaling scaling;
  REEF_ASSIGN_OR_RETURN(const numeric::ChipActivation activation, fused_activation(op));
  scaling.clamp = numeric::chip_clamp(output.scale, output.zero_point, activation);
  if (op.type == Op::MUL) {
    scaling.biases = {0};
    for (const std::int32_t value : constant.values) {
      scaling.multipliers.push_back(
          numeric::chip_constant_product_multiplier(input.scale, constant.scale, value, output.scale));
    }
    return scaling;
  }
  const bool minus = op.type == Op::SUB;
  const float multiplier = numeric::chip_rescale_multiplier(input.scale, output.scale);
  scaling.multipliers = {minus && constant_first ? -multiplier : multiplier};
  for (const std::int32_t value : constant.values) {
    const auto bias = numeric::chip_constant_bias(minus ? -value : value, constant.scale, input.scale);
    if (!bias) return unsupported("a constant does not fit 32 bits in units of the input's scale {}", input.scale);
    scaling.biases.push_back(*bias);
  }
  return scaling;
}

}  // namespace

Result<std::optional<ConstantOperand>> constant_operand(const Builder& builder, std::int32_t op, std::size_t k) {
  REEF_ASSIGN_OR_RETURN(const std::int32_t index, builder.operand(op, k));
  const ir::Tensor& tensor = builder.source(index);
  const Bytes& data = ir::constant_data(builder.model(), tensor);
  if (data.empty()) return std::optional<ConstantOperand>();
  REEF_ASSIGN_OR_RETURN(const std::int32_t zero, chip_zero_point(tensor));
  ConstantOperand constant;
  constant.scale = tensor.quantization.scale[0];
  const ir::Shape& shape = tensor.shape;
  const ir::Shape& result = builder.source(builder.op(op).outputs[0]).shape;
  const std::int64_t elements = shape.elements();
  const bool along_channels =
      shape.rank() > 0 && result.rank() > 0 && elements == shape.last() && elements == result.last();
  if (!(constant.scale > 0) || !std::isfinite(constant.scale) || (elements != 1 && !along_channels) ||
      static_cast<std::int64_t>(data.size()) != elements) {
    return unsupported("the constant '{}' {} is neither one number nor one per channel of {}",
                       ir::describe_name(tensor.name), shape.to_string(), result.to_string());
  }
  const int flip = tensor.type == ir::DataType::kInt8 ? 128 : 0;  // the chip's values are 128 higher
  for (const std::uint8_t byte : data.span()) constant.values.push_back((byte ^ flip) - zero);
  return std::optional<ConstantOperand>(std::move(constant));
}

void add_clean_copy(Builder& builder, std::int32_t op, std::int32_t input, std::int32_t output) {
  const TiledTensor& tensor = builder.tensor(output);
  add_depthwise(builder, op, input, output,
                {{1.0f}, {0}, numeric::chip_clamp(tensor.scale, tensor.zero_point, numeric::ChipActivation::kNone)});
}

Status add_channel_scaling(Builder& builder, std::int32_t op, std::int32_t input, std::int32_t output,
                           const ChannelScaling& scaling) {
  if (all_equal(scaling.multipliers) && all_equal(scaling.biases)) {
    add_one_number(builder, op, input, output, scaling);
    return ok_status();
  }
  if (builder.tensor(input).spread == tiled::Spread::kGrid) {
    add_depthwise(builder, op, input, output, scaling);
  } else {
    add_with_own_constants(builder, op, input, output, scaling);
  }
  return ok_status();
}

Result<std::int32_t> with_channels(Builder& builder, std::int32_t source, std::size_t numbers) {
  REEF_ASSIGN_OR_RETURN(const std::int32_t as_it_is, elements_of(builder, source));
  const auto fits = [&](std::int32_t tensor) {
    return numbers == 1 || static_cast<std::size_t>(builder.tensor(tensor).channels) == numbers;
  };
  if (fits(as_it_is)) return as_it_is;
  const ir::Shape& shape = builder.source(source).shape;
  const bool is_vector = shape.elements() == shape.last();
  REEF_ASSIGN_OR_RETURN(const std::int32_t laid_out, is_vector ? builder.vector(source) : builder.grid(source));
  if (!fits(laid_out)) {
    return unsupported("there are {} constants for {} channels", numbers, builder.tensor(laid_out).channels);
  }
  return laid_out;
}

Result<std::optional<OneConstant>> one_constant(const Builder& builder, std::int32_t op) {
  const ir::Shape& result = builder.source(builder.op(op).outputs[0]).shape;
  for (std::size_t k = 0; k < 2; ++k) {
    REEF_ASSIGN_OR_RETURN(const std::int32_t index, builder.operand(op, k));
    REEF_ASSIGN_OR_RETURN(const std::int32_t other, builder.operand(op, 1 - k));
    const ir::Shape& shape = builder.source(index).shape;
    const bool along_channels =
        shape.rank() > 0 && result.rank() > 0 && shape.elements() == shape.last() && shape.last() == result.last();
    if (!is_constant(builder, index) || is_constant(builder, other) || (shape.elements() != 1 && !along_channels) ||
        builder.source(other).shape != result) {
      continue;
    }
    REEF_ASSIGN_OR_RETURN(std::optional<ConstantOperand> constant, constant_operand(builder, op, k));
    if (constant) return std::optional<OneConstant>({std::move(*constant), other, k == 0});
  }
  return std::optional<OneConstant>();
}

Result<bool> lower_with_constant(Builder& builder, std::int32_t op) {
  REEF_ASSIGN_OR_RETURN(const std::optional<OneConstant> found, one_constant(builder, op));
  if (!found) return false;
  const ConstantOperand* constant = &found->constant;
  const std::int32_t from = found->computed;
  REEF_ASSIGN_OR_RETURN(const std::int32_t input, with_channels(builder, from, constant->values.size()));
  const std::int32_t to = builder.op(op).outputs[0];
  REEF_ASSIGN_OR_RETURN(const std::int32_t output, builder.new_like(to, input));
  REEF_ASSIGN_OR_RETURN(const ChannelScaling scaling, scaling_of(builder.op(op), builder.tensor(input),
                                                                 builder.tensor(output), *constant, found->is_first));
  REEF_RETURN_IF_ERROR(add_channel_scaling(builder, op, input, output, scaling));
  builder.set_value(to, {output, {}});
  return true;
}

}  // namespace reef::lower
