// SPDX-License-Identifier: Apache-2.0
// What the release of TFLite Micro in Coral's SDK (July 2022, with kernels of CMSIS-NN) does not take or computes
// otherwise although the current one does not.
#include <algorithm>

#include <fmt/format.h>

#include "micro/rule.h"

namespace reef::micro {
namespace {

using ir::DataType;
using ir::Tensor;

Particulars coral_depthwise_bias(const OpView& view) {
  if (view.op().type != "DEPTHWISE_CONV_2D" || has_input(view, 2)) return std::nullopt;
  return "it has no bias";
}

constexpr int kMostBroadcast = 4;

Particulars coral_broadcast(const OpView& view) {
  const Tensor* a = view.input(0);
  const Tensor* b = view.input(1);
  if (view.op().inputs.size() != 2 || a == nullptr || b == nullptr || a->shape == b->shape) return std::nullopt;
  // A list and no trait of the operators: it is about kernels of another runtime's old release.
  static constexpr std::string_view kBroadcasting[] = {
      "ADD",  "SUB",        "MUL",     "MAXIMUM",       "MINIMUM",   "EQUAL",    "NOT_EQUAL",
      "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL", "FLOOR_DIV", "FLOOR_MOD"};
  if (std::find(std::begin(kBroadcasting), std::end(kBroadcasting), view.op().type) == std::end(kBroadcasting)) {
    return std::nullopt;
  }
  if (std::max(a->shape.rank(), b->shape.rank()) <= kMostBroadcast) return std::nullopt;
  return fmt::format("operands of different shapes with more than {} dimensions", kMostBroadcast);
}

Particulars coral_dense(const OpView& view) {
  if (view.op().type != "FULLY_CONNECTED" || !is_integer(view.type()) || view.input(1) == nullptr) return std::nullopt;
  if (view.input(1)->quantization.is_per_axis()) return "weights have one scale for each channel";
  if (zero_point(*view.input(1)) != 0) return fmt::format("weights have zero point {}", zero_point(*view.input(1)));
  const Tensor* bias = view.input(2);
  if (view.type() == DataType::kInt16 && (bias == nullptr || bias->type != DataType::kInt64)) {
    return "int16 activations without an int64 bias";
  }
  return std::nullopt;
}

Particulars coral_conv(const OpView& view) {
  if (view.op().type != "CONV_2D" || view.input(0) == nullptr || view.input(1) == nullptr) return std::nullopt;
  const Tensor* bias = view.input(2);
  if (view.type() == DataType::kInt16 && bias != nullptr && bias->type == DataType::kInt32) {
    return "int16 activations with an int32 bias";
  }
  if (!is_integer(view.type()) || view.input(0)->shape.rank() != 4 || view.input(1)->shape.rank() != 4)
    return std::nullopt;
  if (view.input(0)->shape.last() == view.input(1)->shape.last()) return std::nullopt;
  return "its channels are in groups";
}

constexpr std::string_view kCoralsDiffers = "The TFLite Micro in Coral's SDK computes something else than TFLite";
constexpr Rule kCoralRules[] = {
    {"coral-depthwise-bias", "The TFLite Micro in Coral's SDK ends with a fault here",
     "Give the layer a bias of zeros.", coral_depthwise_bias},
    {"coral-broadcast", "The TFLite Micro in Coral's SDK stops itself here", kNear, coral_broadcast},
    {"coral-dense-weights", kCoralsDiffers, "Quantize dense layers with one scale (`reef quantize` does).",
     coral_dense},
    {"coral-convolution", kCoralsDiffers, kNear, coral_conv},
};

}  // namespace

std::span<const Rule> coral_rules() { return kCoralRules; }

}  // namespace reef::micro
