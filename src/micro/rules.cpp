// SPDX-License-Identifier: Apache-2.0
#include "micro/rules.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ir/describe.h"
#include "micro/rule.h"
#include "ops/registry.h"

namespace reef::micro {
namespace {

using ir::DataType;
using ir::Tensor;

bool quantized_alike(const Tensor* a, const Tensor* b) {
  if (a == nullptr || b == nullptr) return true;
  return a->quantization.scale == b->quantization.scale && a->quantization.zero_point == b->quantization.zero_point;
}

// ---- Operands that must be known ----

struct ConstantOperand {
  Op op;
  std::size_t input;
  std::string_view what;
};
constexpr ConstantOperand kConstantOperands[] = {
    {Op::BROADCAST_TO, 1, "the new shape"},
    {Op::EXPAND_DIMS, 1, "the axis"},
    {Op::FILL, 0, "the sizes"},
    {Op::PAD, 1, "the paddings"},
    {Op::PADV2, 1, "the paddings"},
    {Op::RESIZE_BILINEAR, 1, "the size"},
    {Op::RESIZE_NEAREST_NEIGHBOR, 1, "the size"},
    {Op::SPLIT, 0, "the axis"},
    {Op::SPLIT_V, 2, "the axis"},
    {Op::SPLIT_V, 1, "the sizes"},
    {Op::STRIDED_SLICE, 1, "the begin"},
    {Op::STRIDED_SLICE, 2, "the end"},
    {Op::STRIDED_SLICE, 3, "the strides"},
    {Op::TRANSPOSE, 1, "the permutation"},
};

Particulars computed_operand(const OpView& view) {
  for (const ConstantOperand& operand : kConstantOperands) {
    if (operand.op != view.op().type || view.input(operand.input) == nullptr) continue;
    if (!view.has_constant_input(operand.input) ||
        ir::constant_data(view.model(), *view.input(operand.input)).empty()) {
      return fmt::format("{} (input {}) is computed or empty", operand.what, operand.input);
    }
  }
  return std::nullopt;
}

// ---- Shapes ----

struct RankLimit {
  Op op;
  int most;
};
constexpr RankLimit kRankLimits[] = {
    {Op::BATCH_MATMUL, 5},      {Op::BATCH_TO_SPACE_ND, 4}, {Op::BROADCAST_TO, 5},
    {Op::CONCATENATION, 6},     {Op::L2_NORMALIZATION, 4},  {Op::SLICE, 5},
    {Op::SPACE_TO_BATCH_ND, 4}, {Op::STRIDED_SLICE, 4},     {Op::TRANSPOSE, 5},
};
constexpr int kRulesMostDimensions = 6;  // of any tensor: RuntimeShape holds no more

Particulars too_many_dimensions(const OpView& view) {
  if (view.op().type == Op::RESHAPE) return std::nullopt;
  int most = kRulesMostDimensions;
  for (const RankLimit& limit : kRankLimits) {
    if (limit.op == view.op().type) most = limit.most;
  }
  if (view.op().type == Op::PRELU && view.type() == DataType::kFloat32) most = 4;
  const auto check = [&](const Tensor* tensor, std::string_view what) -> Particulars {
    if (tensor == nullptr || tensor->shape.rank() <= most) return std::nullopt;
    return fmt::format("{} has {} dimensions; {} are the most", what, tensor->shape.rank(), most);
  };
  for (std::size_t i = 0; i < view.op().inputs.size(); ++i) {
    if (Particulars found = check(view.input(i), fmt::format("input {}", i))) return found;
  }
  for (std::size_t i = 0; i < view.op().outputs.size(); ++i) {
    if (Particulars found = check(view.output(i), fmt::format("output {}", i))) return found;
  }
  return std::nullopt;
}

Particulars without_elements(const OpView& view) {
  const auto is_empty = [](const Tensor* tensor) {
    return tensor != nullptr && tensor->shape.rank() > 0 && tensor->shape.checked_elements() == 0;
  };
  for (std::size_t i = 0; i < view.op().outputs.size(); ++i) {
    if (is_empty(view.output(i))) return fmt::format("output {} has no elements", i);
  }
  const std::string& type = view.op().type;
  const bool needs_operand = type == Op::FULLY_CONNECTED || type == Op::MEAN;
  if (needs_operand && (is_empty(view.input(0)) || is_empty(view.input(1)))) return "an operand has no elements";
  return std::nullopt;
}

constexpr std::size_t kMostJoined = 10;

Particulars too_many_inputs(const OpView& view) {
  if (view.op().type != Op::CONCATENATION || view.op().inputs.size() <= kMostJoined) return std::nullopt;
  return fmt::format("it joins {} tensors; {} are the most", view.op().inputs.size(), kMostJoined);
}

Particulars slice_form(const OpView& view) {
  if (view.op().type != Op::STRIDED_SLICE || view.input(0) == nullptr || view.input(1) == nullptr) return std::nullopt;
  if (view.attributes().get_int("ellipsis_mask") != 0) return "it has an ellipsis";
  if (view.attributes().get_int("new_axis_mask") != 0) return "it makes new axes";
  if (view.attributes().get_bool("offset")) return "its end counts from its begin";
  const int given = static_cast<int>(elements_of(*view.input(1)));
  if (given == view.input(0)->shape.rank()) return std::nullopt;
  return fmt::format("it names {} of {} dimensions", given, view.input(0)->shape.rank());
}

Particulars negative_permutation(const OpView& view) {
  if (view.op().type != Op::TRANSPOSE || !view.has_constant_input(1) || view.input(1)->type != DataType::kInt32) {
    return std::nullopt;
  }
  const Bytes& data = ir::constant_data(view.model(), *view.input(1));
  for (std::size_t at = 0; at + sizeof(std::int32_t) <= data.size(); at += sizeof(std::int32_t)) {
    std::int32_t axis = 0;
    std::memcpy(&axis, data.data() + at, sizeof axis);
    if (axis < 0) return fmt::format("axis {} counts from the end", axis);
  }
  return std::nullopt;
}

// ---- Quantization ----

Particulars rescaling_join(const OpView& view) {
  if (view.op().type != Op::CONCATENATION || view.type() != DataType::kInt8) return std::nullopt;
  for (std::size_t i = 0; i < view.op().inputs.size(); ++i) {
    if (!quantized_alike(view.input(i), view.output(0)))
      return fmt::format("input {} has another scale than the result", i);
  }
  return std::nullopt;
}

Particulars fused_join(const OpView& view) {
  if (view.op().type != Op::CONCATENATION) return std::nullopt;
  const std::string_view activation = view.attributes().get_enum("fused_activation_function", "NONE");
  if (activation == "NONE") return std::nullopt;
  return fmt::format("it is followed by {}", activation);
}

Particulars scales_along_axis(const OpView& view) {
  const std::string& type = view.op().type;
  const Tensor* tensor = type == Op::QUANTIZE ? view.output(0) : type == Op::DEQUANTIZE ? view.input(0) : nullptr;
  if (type == Op::EMBEDDING_LOOKUP) tensor = view.input(1);
  if (tensor == nullptr || !tensor->quantization.is_per_axis()) return std::nullopt;
  return fmt::format("{} scales along dimension {}", tensor->quantization.scale.size(), tensor->quantization.dimension);
}

Particulars unquantized(const OpView& view) {
  if (view.type() != DataType::kInt16 || view.output(0) == nullptr || view.output(0)->quantization.is_quantized()) {
    return std::nullopt;
  }
  static constexpr Op kNeedScales[] = {Op::ADD, Op::SUB, Op::MUL};
  if (std::find(std::begin(kNeedScales), std::end(kNeedScales), view.op().type) == std::end(kNeedScales)) {
    return std::nullopt;
  }
  return "int16 tensors without scales";
}

Particulars small_weights(const OpView& view) {
  if (view.op().type != Op::FULLY_CONNECTED || view.input(1) == nullptr || view.input(1)->type != DataType::kInt4) {
    return std::nullopt;
  }
  if (!view.input(1)->quantization.is_per_axis()) return std::nullopt;
  return "int4 weights have one scale for each channel";
}

// ---- LSTM, SVDF, PRELU ----

Particulars lstm_form(const OpView& view) {
  if (view.op().type != Op::UNIDIRECTIONAL_SEQUENCE_LSTM) return std::nullopt;
  if (!has_input(view, 1)) return "its input gate is coupled (CIFG)";
  for (const std::size_t i : {9, 10, 11}) {
    if (has_input(view, i)) return "it has peephole connections";
  }
  if (has_input(view, 16) || has_input(view, 17)) return "it has a projection";
  for (const std::size_t i : {20, 21, 22, 23}) {
    if (has_input(view, i)) return "it normalizes its layers";
  }
  for (const std::int32_t index : view.op().intermediates) {
    if (index < 0) continue;
    const Tensor& scales = view.graph().tensors[reef::at(index)];
    if (elements_of(scales) == 0) continue;
    return fmt::format("'{}', which only carries scales, has shape {}; it must be empty",
                       ir::describe_name(scales.name), scales.shape.to_string());
  }
  return std::nullopt;
}

// An operand that is listed and left out (-1) counts as there, and the runtime looks at it.
Particulars absent_bias(const OpView& view) {
  if (view.op().type != Op::DEPTHWISE_CONV_2D || view.op().inputs.size() <= 2 || has_input(view, 2))
    return std::nullopt;
  return "its bias is listed as absent";
}

Particulars svdf_bias(const OpView& view) {
  if (view.op().type != Op::SVDF || has_input(view, 3)) return std::nullopt;
  return "it has no bias";
}

// ---- Where it computes something else ----

Particulars ignored_activation(const OpView& view) {
  if (view.op().type != Op::ADD || view.type() != DataType::kInt32) return std::nullopt;
  const std::string_view activation = view.attributes().get_enum("fused_activation_function", "NONE");
  if (activation == "NONE") return std::nullopt;
  return fmt::format("it leaves out the {} behind a sum of int32", activation);
}

Particulars clipped_otherwise(const OpView& view) {
  if (view.op().type != Op::RELU6 || !is_integer(view.type())) return std::nullopt;
  if (quantized_alike(view.input(0), view.output(0))) return std::nullopt;
  return "operand and result have different scales, and it does not convert";
}

Particulars rescaled_magnitude(const OpView& view) {
  if (view.op().type != Op::ABS || !is_integer(view.type())) return std::nullopt;
  if (quantized_alike(view.input(0), view.output(0))) return std::nullopt;
  return "operand and result have different scales, between which it rounds otherwise";
}

Particulars padded_blocks(const OpView& view) {
  if (view.op().type != Op::SPACE_TO_BATCH_ND || view.type() != DataType::kInt8) return std::nullopt;
  if (!view.has_constant_input(2)) return "its paddings are computed";
  const Bytes& data = ir::constant_data(view.model(), *view.input(2));
  const bool pads = std::any_of(data.data(), data.data() + data.size(), [](std::uint8_t byte) { return byte != 0; });
  if (!pads) return std::nullopt;
  return "it pads int8 values, with a value that is not set";
}

Particulars tanh_scale(const OpView& view) {
  if (view.op().type != Op::TANH || view.type() != DataType::kInt8 || view.output(0) == nullptr) return std::nullopt;
  const ir::Quantization& out = view.output(0)->quantization;
  if (out.scale.size() == 1 && out.scale[0] == 1.0F / 128 && zero_point(*view.output(0)) == 0) return std::nullopt;
  return "its result has another scale than 1/128";
}

Particulars int16_kernels(const OpView& view) {
  const std::string& type = view.op().type;
  if (type == Op::RSQRT && view.type() == DataType::kInt16) return "int16";
  if (type == Op::GREATER && view.type() == DataType::kInt16) return "int16, whose scales it takes for zero";
  const auto is_power_of_two = [](const Tensor* tensor) {
    int exponent = 0;
    return tensor != nullptr && tensor->quantization.scale.size() == 1 &&
           std::frexp(tensor->quantization.scale[0], &exponent) == 0.5F;
  };
  if (type == Op::SUB && view.type() == DataType::kInt16 && is_power_of_two(view.input(0)) &&
      is_power_of_two(view.input(1)) && is_power_of_two(view.output(0))) {
    return "int16 with scales that are powers of two";
  }
  if (type == Op::TRANSPOSE_CONV && view.input(2) != nullptr && view.input(2)->type == DataType::kInt16) {
    const Tensor* bias = view.input(3);
    const bool sums_32_bits = bias != nullptr ? bias->type == DataType::kInt32
                                              : view.attributes().get_enum("quantized_bias_type", "") == "INT32";
    if (sums_32_bits) return "int16 activations that TFLite sums in 32 bits, as their bias says";
  }
  if (type == Op::MUL && view.type() == DataType::kInt16 && view.output(0) != nullptr &&
      view.output(0)->type == DataType::kUInt8) {
    return "int16 operands and a uint8 result";
  }
  return std::nullopt;
}

// A scale that its fixed-point multipliers cannot hold: the runtime ends itself there.
Particulars scale_range(const OpView& view) {
  const std::string& type = view.op().type;
  if (view.type() != DataType::kInt8) return std::nullopt;
  const auto scale = [](const Tensor* tensor) {
    return tensor == nullptr || tensor->quantization.scale.empty() ? 0.0
                                                                   : static_cast<double>(tensor->quantization.scale[0]);
  };
  const bool compares = ops::form_of(view.op()) == ops::Form::kBinary && view.output(0) != nullptr &&
                        view.output(0)->type == DataType::kBool;
  if (compares) {
    if (std::max(scale(view.input(0)), scale(view.input(1))) >= 1) return "a scale of 1 or more";
    return std::nullopt;
  }
  if (type != Op::SUB && type != Op::ADD) return std::nullopt;
  const double largest = 2 * std::max(scale(view.input(0)), scale(view.input(1)));
  const double unit = scale(view.output(0)) * std::exp2(20);
  if (unit > 0 && largest / unit < 1) return std::nullopt;
  return "the result's scale is too small for those of the operands";
}

Particulars scalar_join(const OpView& view) {
  if (view.op().type != Op::CONCATENATION || view.input(0) == nullptr || view.input(0)->shape.rank() > 0)
    return std::nullopt;
  return "it joins scalars";
}

// ---- All of them ----

constexpr std::string_view kFold = "Export the model with fixed sizes, so that the converter computes this operand.";
constexpr std::string_view kRequantize = "Quantize again with `reef quantize`, which gives such tensors equal scales.";

constexpr Rule kRules[] = {
    {"no-elements", "TFLite Micro takes tensors without elements for ones of unknown size", kNear, without_elements},
    {"dimensions", "TFLite Micro's kernels take few dimensions", kNear, too_many_dimensions},
    {"constant-operand", "TFLite Micro must know this operand before the model runs", kFold, computed_operand},
    {"joined-tensors", "TFLite Micro joins few tensors at once", "Join in two steps.", too_many_inputs},
    {"joined-scalars", "TFLite Micro does not join scalars as TFLite does", kNear, scalar_join},
    {"joined-scales", "TFLite Micro joins int8 tensors only where all have one scale", kRequantize, rescaling_join},
    {"joined-activation", "TFLite Micro has no activation behind CONCATENATION", kNear, fused_join},
    {"slice-form", "TFLite Micro slices only by begin, end and stride of every dimension", kNear, slice_form},
    {"permutation", "TFLite Micro takes no negative axes", kNear, negative_permutation},
    {"scales-along-axis", "TFLite Micro knows one scale here", kRequantize, scales_along_axis},
    {"int16-scales", "TFLite Micro needs scales here", kNear, unquantized},
    {"int4-weights", "TFLite Micro has no such kernel", kNear, small_weights},
    {"lstm-form", "TFLite Micro has only the plain LSTM", kNear, lstm_form},
    {"absent-bias", "TFLite Micro ends with a fault here", "Give the layer a bias of zeros.", absent_bias},
    {"svdf-bias", "TFLite Micro ends with a fault here", "Give the layer a bias of zeros.", svdf_bias},
    {"scale-range", "TFLite Micro stops itself here", kNear, scale_range},
    {"int32-activation", "TFLite Micro computes something else than TFLite", "Make the activation a layer of its own.",
     ignored_activation},
    {"relu6-scales", "TFLite Micro computes something else than TFLite", kRequantize, clipped_otherwise},
    {"abs-scales", "TFLite Micro computes something else than TFLite", kRequantize, rescaled_magnitude},
    {"padded-blocks", "TFLite Micro computes something else than TFLite", "Use PAD before SPACE_TO_BATCH_ND.",
     padded_blocks},
    {"tanh-scale", "TFLite Micro computes something else than TFLite", kRequantize, tanh_scale},
    {"int16-kernels", "TFLite Micro computes something else than TFLite", kNear, int16_kernels},
};

}  // namespace

std::vector<Finding> check_parameters(const OpView& view, Releases releases) {
  std::vector<Finding> findings;
  const auto check = [&](const Rule& rule) {
    if (const Particulars particulars = rule.broken(view)) {
      findings.push_back({rule.name, fmt::format("{}: {}.", rule.says, *particulars), std::string(rule.remedy)});
    }
  };
  for (const Rule& rule : kRules) check(rule);
  if ((releases & kCoral) != 0) {
    for (const Rule& rule : coral_rules()) check(rule);
  }
  return findings;
}

}  // namespace reef::micro
