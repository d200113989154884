// SPDX-License-Identifier: Apache-2.0
#include "import/onnx/op_table.h"

#include <algorithm>
#include <map>
#include <string>

#include "formats/tflite/operator_codes.h"
#include "formats/tflite/option_schema.h"

namespace reef::import {
namespace {

// Option tables whose name is not that of the operator in other letters (CONV_2D: Conv2DOptions).
const std::map<std::string_view, std::string_view>& odd_options() {
  static const std::map<std::string_view, std::string_view> table = {
      {"AVERAGE_POOL_2D", "Pool2DOptions"},
      {"MAX_POOL_2D", "Pool2DOptions"},
      {"L2_POOL_2D", "Pool2DOptions"},
      {"MEAN", "ReducerOptions"},
      {"SUM", "ReducerOptions"},
      {"REDUCE_MAX", "ReducerOptions"},
      {"REDUCE_MIN", "ReducerOptions"},
      {"REDUCE_PROD", "ReducerOptions"},
      {"REDUCE_ANY", "ReducerOptions"},
      {"REDUCE_ALL", "ReducerOptions"},
      {"MAXIMUM", "MaximumMinimumOptions"},
      {"MINIMUM", "MaximumMinimumOptions"},
      {"LOCAL_RESPONSE_NORMALIZATION", "LocalResponseNormalizationOptions"},
      {"L2_NORMALIZATION", "L2NormOptions"},
      {"TOPK_V2", "TopKV2Options"},
      {"PADV2", "PadV2Options"},
      {"SPLIT_V", "SplitVOptions"},
      {"REVERSE_V2", "ReverseV2Options"},
      {"SELECT_V2", "SelectV2Options"},
      {"ATAN2", "ATan2Options"},
      {"BATCH_MATMUL", "BatchMatMulOptions"},
      {"BITWISE_XOR", "BitwiseXorOptions"},
      {"RIGHT_SHIFT", "RightShiftOptions"},
      {"GATHER_ND", "GatherNdOptions"},
      {"SCATTER_ND", "ScatterNdOptions"},
      {"ARG_MAX", "ArgMaxOptions"},
      {"ARG_MIN", "ArgMinOptions"},
      {"EXPAND_DIMS", "ExpandDimsOptions"},
      {"UNIDIRECTIONAL_SEQUENCE_LSTM", "UnidirectionalSequenceLSTMOptions"},
  };
  return table;
}

// "EXPAND_DIMS" -> "ExpandDimsOptions", if the schema has such a table.
std::string options_name(std::string_view op) {
  if (const auto odd = odd_options().find(op); odd != odd_options().end()) return std::string(odd->second);
  std::string name;
  bool is_start = true;
  for (const char c : op) {
    if (c == '_') {
      is_start = true;
    } else {
      name += is_start || (c >= '0' && c <= '9') ? c : static_cast<char>(c - 'A' + 'a');
      is_start = c >= '0' && c <= '9';
    }
  }
  name += "Options";
  return tflite::find_option_table(name) != nullptr ? name : std::string();
}

bool is_one_of(std::string_view op, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), op) != names.end();
}

// Versions as TFLite's register.cc and op_version.cc number them, where they depend on more than the operator and an
// int8 type. Kernels do not look at them; runtimes refuse numbers above the ones they know.
std::int32_t version_of(std::string_view op, ir::DataType type, const ir::Attributes& attributes) {
  const bool is_int8 = type == ir::DataType::kInt8, is_int64 = type == ir::DataType::kInt64;
  if (op == "FULLY_CONNECTED") return attributes.get_bool("keep_num_dims") ? 5 : (is_int8 ? 4 : 1);
  if (op == "BATCH_MATMUL") return is_int8 ? 2 : 1;
  if (op == "TRANSPOSE_CONV") return 3;
  if (op == "RESIZE_BILINEAR" || op == "RESIZE_NEAREST_NEIGHBOR") {
    return attributes.get_bool("half_pixel_centers") ? 3 : (is_int8 ? 2 : 1);
  }
  if (op == "DEPTHWISE_CONV_2D") {
    const bool is_dilated =
        attributes.get_int("dilation_h_factor", 1) > 1 || attributes.get_int("dilation_w_factor", 1) > 1;
    return is_int8 ? 3 : (is_dilated ? 2 : 1);
  }
  if (op == "BROADCAST_TO") return 2;
  if (op == "GELU") return is_int8 ? 2 : 1;
  if (is_int8 && (op == "GATHER" || op == "LEAKY_RELU")) return 2;
  if (is_int64 && is_one_of(op, {"SUB", "DIV"})) return 2;
  return tflite::operator_version(op, type);
}

// Attributes that runtimes expect to be there, with the values that mean "nothing special".
void add_defaults(std::string_view op, ir::Attributes& attributes) {
  if (is_one_of(op, {"ADD", "SUB", "MUL", "DIV", "CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "CONCATENATION",
                     "AVERAGE_POOL_2D", "MAX_POOL_2D", "TRANSPOSE_CONV"}) &&
      attributes.find("fused_activation_function") == nullptr) {
    attributes.set("fused_activation_function", ir::EnumName{"NONE"});
  }
  if (is_one_of(op, {"CONV_2D", "DEPTHWISE_CONV_2D"})) {
    for (const char* factor : {"dilation_w_factor", "dilation_h_factor"}) {
      if (attributes.find(factor) == nullptr) attributes.set(factor, std::int64_t{1});
    }
  }
  if (is_one_of(op, {"ADD", "SUB"})) attributes.set("pot_scale_int16", true);
}

}  // namespace

ir::Operator new_operator(std::string_view op, ir::DataType type, ir::Attributes attributes) {
  ir::Operator result;
  result.type = op;
  const std::int32_t code = tflite::builtin_code(op);
  result.builtin_code = code < 0 ? ir::kCustomBuiltinCode : code;
  add_defaults(op, attributes);
  result.version = version_of(op, type, attributes);
  if (!result.is_custom()) result.options_type = options_name(op);
  result.attributes = std::move(attributes);
  return result;
}

}  // namespace reef::import
