// SPDX-License-Identifier: Apache-2.0
#include "formats/tflite/operator_codes.h"

#include <array>
#include <map>
#include <utility>

#include "formats/tflite/schema_generated.h"

namespace reef::tflite {

namespace fb = tflite_schema;

std::int32_t builtin_code(OpName type) {
  static const auto codes = [] {
    std::map<std::string_view, std::int32_t> table;
    for (const fb::BuiltinOperator code : fb::EnumValuesBuiltinOperator()) {
      table.emplace(fb::EnumNameBuiltinOperator(code), static_cast<std::int32_t>(code));
    }
    return table;
  }();
  const auto found = codes.find(type);
  return found == codes.end() ? -1 : found->second;
}

std::int32_t operator_version(OpName type, ir::DataType operands) {
  // As TFLite's converter numbers them: a type's version rose when it learned int8.
  static constexpr std::array<std::pair<Op, int>, 30> kInt8 = {{{Op::ADD, 2},
                                                                {Op::AVERAGE_POOL_2D, 2},
                                                                {Op::CONCATENATION, 2},
                                                                {Op::CONV_2D, 3},
                                                                {Op::DEPTHWISE_CONV_2D, 3},
                                                                {Op::DEQUANTIZE, 2},
                                                                {Op::FULLY_CONNECTED, 4},
                                                                {Op::LOGISTIC, 2},
                                                                {Op::MAXIMUM, 2},
                                                                {Op::MAX_POOL_2D, 2},
                                                                {Op::MEAN, 2},
                                                                {Op::MINIMUM, 2},
                                                                {Op::MUL, 2},
                                                                {Op::PACK, 2},
                                                                {Op::PAD, 2},
                                                                {Op::REDUCE_MAX, 2},
                                                                {Op::REDUCE_MIN, 2},
                                                                {Op::RELU, 2},
                                                                {Op::RELU6, 2},
                                                                {Op::RESIZE_BILINEAR, 2},
                                                                {Op::RESIZE_NEAREST_NEIGHBOR, 2},
                                                                {Op::SLICE, 2},
                                                                {Op::SOFTMAX, 2},
                                                                {Op::SPACE_TO_DEPTH, 2},
                                                                {Op::SPLIT, 2},
                                                                {Op::STRIDED_SLICE, 2},
                                                                {Op::SUB, 2},
                                                                {Op::SUM, 2},
                                                                {Op::TANH, 2},
                                                                {Op::TRANSPOSE, 2}}};
  // Its first version never had a kernel; TFLite's runtimes refuse it.
  if (type == Op::BROADCAST_TO) return operands == ir::DataType::kInt8 ? 3 : 2;
  if (type == Op::TRANSPOSE_CONV) return operands == ir::DataType::kInt8 ? 2 : 1;
  if (operands != ir::DataType::kInt8) return 1;
  for (const auto& [name, version] : kInt8) {
    if (type == name) return version;
  }
  return 1;
}

ir::Operator builtin_operator(OpName type, std::string_view options_type, ir::Attributes attributes,
                              std::vector<std::int32_t> inputs, std::vector<std::int32_t> outputs,
                              ir::DataType operands) {
  ir::Operator op;
  op.type = type;
  op.builtin_code = builtin_code(type);
  op.version = operator_version(type, operands);
  op.options_type = options_type;
  op.attributes = std::move(attributes);
  op.inputs = std::move(inputs);
  op.outputs = std::move(outputs);
  return op;
}

}  // namespace reef::tflite
