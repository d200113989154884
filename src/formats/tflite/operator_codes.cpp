// SPDX-License-Identifier: Apache-2.0
#include "formats/tflite/operator_codes.h"

#include <array>
#include <map>
#include <utility>

#include "formats/tflite/schema_generated.h"

namespace reef::tflite {

namespace fb = tflite_schema;

std::int32_t builtin_code(std::string_view type) {
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

std::int32_t operator_version(std::string_view type, ir::DataType operands) {
  // As TFLite's converter numbers them: a type's version rose when it learned int8.
  static constexpr std::array<std::pair<std::string_view, int>, 30> kInt8 = {{{"ADD", 2},
                                                                              {"AVERAGE_POOL_2D", 2},
                                                                              {"CONCATENATION", 2},
                                                                              {"CONV_2D", 3},
                                                                              {"DEPTHWISE_CONV_2D", 3},
                                                                              {"DEQUANTIZE", 2},
                                                                              {"FULLY_CONNECTED", 4},
                                                                              {"LOGISTIC", 2},
                                                                              {"MAXIMUM", 2},
                                                                              {"MAX_POOL_2D", 2},
                                                                              {"MEAN", 2},
                                                                              {"MINIMUM", 2},
                                                                              {"MUL", 2},
                                                                              {"PACK", 2},
                                                                              {"PAD", 2},
                                                                              {"REDUCE_MAX", 2},
                                                                              {"REDUCE_MIN", 2},
                                                                              {"RELU", 2},
                                                                              {"RELU6", 2},
                                                                              {"RESIZE_BILINEAR", 2},
                                                                              {"RESIZE_NEAREST_NEIGHBOR", 2},
                                                                              {"SLICE", 2},
                                                                              {"SOFTMAX", 2},
                                                                              {"SPACE_TO_DEPTH", 2},
                                                                              {"SPLIT", 2},
                                                                              {"STRIDED_SLICE", 2},
                                                                              {"SUB", 2},
                                                                              {"SUM", 2},
                                                                              {"TANH", 2},
                                                                              {"TRANSPOSE", 2}}};
  // Its first version never had a kernel; TFLite's runtimes refuse it.
  if (type == "BROADCAST_TO") return operands == ir::DataType::kInt8 ? 3 : 2;
  if (type == "TRANSPOSE_CONV") return operands == ir::DataType::kInt8 ? 2 : 1;
  if (operands != ir::DataType::kInt8) return 1;
  for (const auto& [name, version] : kInt8) {
    if (name == type) return version;
  }
  return 1;
}

ir::Operator builtin_operator(std::string_view type, std::string_view options_type, ir::Attributes attributes,
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
