// SPDX-License-Identifier: Apache-2.0
#include "import/onnx/op_table.h"

#include <string>
#include <utility>

#include "formats/tflite/operator_codes.h"
#include "formats/tflite/option_schema.h"
#include "ops/registry.h"

namespace reef::import {
namespace {

// Option tables whose name is not that of the operator in other letters (CONV_2D: Conv2DOptions).
constexpr std::pair<Op, std::string_view> kOddOptions[] = {
    {Op::AVERAGE_POOL_2D, "Pool2DOptions"},
    {Op::MAX_POOL_2D, "Pool2DOptions"},
    {Op::L2_POOL_2D, "Pool2DOptions"},
    {Op::MEAN, "ReducerOptions"},
    {Op::SUM, "ReducerOptions"},
    {Op::REDUCE_MAX, "ReducerOptions"},
    {Op::REDUCE_MIN, "ReducerOptions"},
    {Op::REDUCE_PROD, "ReducerOptions"},
    {Op::REDUCE_ANY, "ReducerOptions"},
    {Op::REDUCE_ALL, "ReducerOptions"},
    {Op::MAXIMUM, "MaximumMinimumOptions"},
    {Op::MINIMUM, "MaximumMinimumOptions"},
    {Op::LOCAL_RESPONSE_NORMALIZATION, "LocalResponseNormalizationOptions"},
    {Op::L2_NORMALIZATION, "L2NormOptions"},
    {Op::TOPK_V2, "TopKV2Options"},
    {Op::PADV2, "PadV2Options"},
    {Op::SPLIT_V, "SplitVOptions"},
    {Op::REVERSE_V2, "ReverseV2Options"},
    {Op::SELECT_V2, "SelectV2Options"},
    {Op::ATAN2, "ATan2Options"},
    {Op::BATCH_MATMUL, "BatchMatMulOptions"},
    {Op::BITWISE_XOR, "BitwiseXorOptions"},
    {Op::RIGHT_SHIFT, "RightShiftOptions"},
    {Op::GATHER_ND, "GatherNdOptions"},
    {Op::SCATTER_ND, "ScatterNdOptions"},
    {Op::ARG_MAX, "ArgMaxOptions"},
    {Op::ARG_MIN, "ArgMinOptions"},
    {Op::EXPAND_DIMS, "ExpandDimsOptions"},
    {Op::UNIDIRECTIONAL_SEQUENCE_LSTM, "UnidirectionalSequenceLSTMOptions"},
};

// "EXPAND_DIMS" -> "ExpandDimsOptions", if the schema has such a table.
std::string options_name(OpName op) {
  for (const auto& [odd, options] : kOddOptions) {
    if (op == odd) return std::string(options);
  }
  std::string name;
  bool is_start = true;
  for (const char c : std::string_view(op)) {
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

// Versions as TFLite's register.cc and op_version.cc number them, where they depend on more than the operator and an
// int8 type. Kernels do not look at them; runtimes refuse numbers above the ones they know.
std::int32_t version_of(OpName op, ir::DataType type, const ir::Attributes& attributes) {
  const bool is_int8 = type == ir::DataType::kInt8, is_int64 = type == ir::DataType::kInt64;
  if (op == Op::FULLY_CONNECTED) return attributes.get_bool("keep_num_dims") ? 5 : (is_int8 ? 4 : 1);
  if (op == Op::BATCH_MATMUL) return is_int8 ? 2 : 1;
  if (op == Op::TRANSPOSE_CONV) return 3;
  if (op == Op::RESIZE_BILINEAR || op == Op::RESIZE_NEAREST_NEIGHBOR) {
    return attributes.get_bool("half_pixel_centers") ? 3 : (is_int8 ? 2 : 1);
  }
  if (op == Op::DEPTHWISE_CONV_2D) {
    const bool is_dilated =
        attributes.get_int("dilation_h_factor", 1) > 1 || attributes.get_int("dilation_w_factor", 1) > 1;
    return is_int8 ? 3 : (is_dilated ? 2 : 1);
  }
  if (op == Op::BROADCAST_TO) return 2;
  if (op == Op::GELU) return is_int8 ? 2 : 1;
  if (is_int8 && (op == Op::GATHER || op == Op::LEAKY_RELU)) return 2;
  if (is_int64 && is_one_of(op, {Op::SUB, Op::DIV})) return 2;
  return tflite::operator_version(op, type);
}

// Attributes that runtimes expect to be there, with the values that mean "nothing special".
void add_defaults(OpName op, ir::Attributes& attributes) {
  const bool has_activation =
      ops::has_trait(op, ops::Trait::kTakesActivation) || is_one_of(op, {Op::CONCATENATION, Op::TRANSPOSE_CONV});
  if (has_activation && attributes.find("fused_activation_function") == nullptr) {
    attributes.set("fused_activation_function", ir::EnumName{"NONE"});
  }
  if (is_one_of(op, {Op::CONV_2D, Op::DEPTHWISE_CONV_2D})) {
    for (const char* factor : {"dilation_w_factor", "dilation_h_factor"}) {
      if (attributes.find(factor) == nullptr) attributes.set(factor, std::int64_t{1});
    }
  }
  if (is_one_of(op, {Op::ADD, Op::SUB})) attributes.set("pot_scale_int16", true);
}

}  // namespace

ir::Operator new_operator(OpName op, ir::DataType type, ir::Attributes attributes) {
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
