// SPDX-License-Identifier: Apache-2.0
#include "formats/darwinn/parameters/channel_lines.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "formats/darwinn/parameters/layer_parameters.h"
#include "formats/darwinn/parameters/little_endian.h"
#include "ir/describe.h"
#include "ir/op.h"
#include "numeric/chip_requantize.h"

namespace reef::darwinn {
namespace {

constexpr std::size_t kWordsPerRow = 4;

struct ConstantOperands {
  const ir::Tensor* variable = nullptr;
  const ir::Tensor* constant = nullptr;
  const ir::Tensor* output = nullptr;
  Bytes values;
  bool constant_is_second = true;
};

bool has_one_positive_scale(const ir::Tensor& tensor) {
  const std::vector<float>& scale = tensor.quantization.scale;
  return scale.size() == 1 && std::isfinite(scale[0]) && scale[0] > 0 && tensor.quantization.zero_point.size() <= 1;
}

Result<ConstantOperands> constant_operands_of(const ir::Model& model, const ir::Subgraph& graph,
                                              const ir::Operator& op) {
  const bool known = op.type == Op::MUL || op.type == Op::PRELU || op.type == Op::ADD || op.type == Op::SUB;
  if (!known || op.is_custom()) return unsupported("{} has no constants per channel", op.type);
  REEF_REQUIRE(op.inputs.size() >= 2 && op.inputs[0] >= 0 && op.inputs[1] >= 0 && !op.outputs.empty(),
               "{} lacks operands", op.type);
  ConstantOperands found;
  found.variable = &graph.tensors[at(op.inputs[0])];
  found.constant = &graph.tensors[at(op.inputs[1])];
  found.output = &graph.tensors[at(op.outputs[0])];
  found.values = ir::constant_data(model, *found.constant);
  if (found.values.empty() && (op.type == Op::MUL || op.type == Op::ADD)) {
    std::swap(found.variable, found.constant);
    found.values = ir::constant_data(model, *found.constant);
  }
  if (found.values.empty()) return unsupported("{} has no constant operand", op.type);
  for (const ir::Tensor* tensor : {found.variable, found.constant, found.output}) {
    if (!ir::is_integer_8(tensor->type) || !has_one_positive_scale(*tensor)) {
      return unsupported("'{}' is not an 8-bit tensor with one scale", ir::describe_name(tensor->name));
    }
  }
  const ir::Shape& shape = found.constant->shape;
  const bool along_channels = shape.rank() > 0 && shape.last() == shape.elements() &&
                              found.variable->shape.rank() > 0 && found.variable->shape.last() == shape.last();
  if (!along_channels) {
    return unsupported("the constant '{}' {} does not hold one value per channel of {}",
                       ir::describe_name(found.constant->name), shape.to_string(), found.variable->shape.to_string());
  }
  return found;
}

}  // namespace

std::vector<std::uint8_t> pack_channel_lines(std::span<const std::uint32_t> words) {
  const std::size_t rows = (words.size() + kWordsPerRow - 1) / kWordsPerRow;
  std::vector<std::uint8_t> chunk(rows * kChunkAlignment);
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::size_t offset = i / kWordsPerRow * kChunkAlignment + i % kWordsPerRow * 4;
    store_u32(chunk, static_cast<std::int64_t>(offset), words[i]);
  }
  return chunk;
}

Result<std::vector<std::uint32_t>> unpack_channel_lines(std::span<const std::uint8_t> chunk, std::size_t channels) {
  const std::size_t rows = channels / kWordsPerRow + (channels % kWordsPerRow != 0 ? 1 : 0);
  REEF_REQUIRE(chunk.size() % kChunkAlignment == 0 && chunk.size() / kChunkAlignment == rows,
               "the chunk has {} bytes, but {} channels take {} rows of {}", chunk.size(), channels, rows,
               kChunkAlignment);
  std::vector<std::uint32_t> words(channels);
  for (std::size_t i = 0; i < channels; ++i) {
    const std::size_t offset = i / kWordsPerRow * kChunkAlignment + i % kWordsPerRow * 4;
    words[i] = load_u32(chunk, static_cast<std::int64_t>(offset));
  }
  const std::vector<std::uint8_t> again = pack_channel_lines(words);
  const auto where = std::mismatch(chunk.begin(), chunk.end(), again.begin()).first;
  REEF_REQUIRE(where == chunk.end(), "byte {} of the chunk is padding and should be 0, but is 0x{:02x}",
               where - chunk.begin(), *where);
  return words;
}

Result<std::vector<std::uint32_t>> channel_words_of(const ir::Model& model, const ir::Subgraph& graph,
                                                    const ir::Operator& op) {
  REEF_ASSIGN_OR_RETURN(const ConstantOperands operands, constant_operands_of(model, graph, op));
  const ir::Quantization& q = operands.constant->quantization;
  const std::int64_t zero_point = q.zero_point.empty() ? 0 : q.zero_point[0];
  REEF_REQUIRE(zero_point >= -128 && zero_point <= 255, "the constant '{}' has zero point {}",
               ir::describe_name(operands.constant->name), zero_point);
  const float input_scale = operands.variable->quantization.scale[0];
  const float output_scale = operands.output->quantization.scale[0];
  const bool is_product = op.type == Op::MUL || op.type == Op::PRELU;
  std::vector<std::uint32_t> words;
  for (const std::uint8_t byte : operands.values.span()) {
    const std::int32_t stored = operands.constant->type == ir::DataType::kInt8 ? static_cast<std::int8_t>(byte) : byte;
    const auto value = static_cast<std::int32_t>(stored - zero_point);
    if (is_product) {
      words.push_back(std::bit_cast<std::uint32_t>(
          numeric::chip_constant_product_multiplier(input_scale, q.scale[0], value, output_scale)));
      continue;
    }
    const std::optional<std::int32_t> bias = numeric::chip_constant_bias(value, q.scale[0], input_scale);
    REEF_REQUIRE(bias && *bias != INT32_MIN, "the constant '{}' does not fit 32 bits in units of the input's scale",
                 ir::describe_name(operands.constant->name));
    words.push_back(static_cast<std::uint32_t>(op.type == Op::SUB ? -*bias : *bias));
  }
  return words;
}

}  // namespace reef::darwinn
