// SPDX-License-Identifier: Apache-2.0
// Rules for operators that the release of TFLite Micro in Coral's SDK (July 2022, with kernels of CMSIS-NN) refuses or
// computes differently from the current one.
#include <algorithm>

#include <fmt/format.h>

#include "micro/rule.h"
#include "ops/registry.h"

namespace reef::micro {
namespace {

using ir::DataType;
using ir::Tensor;

Particulars coral_bias(const OpView& view) {
  const std::string& type = view.op().type;
  if ((type != Op::DEPTHWISE_CONV_2D && type != Op::CONV_2D) || has_input(view, 2)) return std::nullopt;
  return "it has no bias";
}

constexpr int kMostBroadcast = 4, kMostBroadcastExtremes = 5;
// Its RuntimeShape holds no more. Kernels that copy one stop with six dimensions, others do not: none is trusted but
// RESHAPE, which makes none.
constexpr int kMostDimensions = 5;

Particulars coral_dimensions(const OpView& view) {
  if (view.op().type == Op::RESHAPE) return std::nullopt;
  for (std::size_t i = 0; i < view.op().inputs.size(); ++i) {
    const Tensor* tensor = view.input(i);
    if (tensor == nullptr || tensor->shape.rank() <= kMostDimensions) continue;
    return fmt::format("input {} has {} dimensions; {} are the most", i, tensor->shape.rank(), kMostDimensions);
  }
  return std::nullopt;
}

// Element by element from two operands. Operators that compare do not promise OpDef::elementwise, which is about
// sharing memory; they give bool.
bool joins_elements(const OpView& view) {
  if (view.op().inputs.size() != 2 || !has_input(view, 0) || !has_input(view, 1) || view.output(0) == nullptr) {
    return false;
  }
  const ops::OpDef* def = ops::find_op(view.op());
  constexpr ops::InputSet kBoth = ops::input_set({0, 1});
  const bool follows_both = def != nullptr && (def->elementwise & kBoth) == kBoth;
  const bool compares = view.output(0)->type == DataType::kBool && view.input(0)->type == view.input(1)->type;
  return follows_both || compares;
}

Particulars coral_broadcast(const OpView& view) {
  if (!joins_elements(view) || view.input(0)->shape == view.input(1)->shape) return std::nullopt;
  const std::string& type = view.op().type;
  const int most = type == Op::MAXIMUM || type == Op::MINIMUM ? kMostBroadcastExtremes : kMostBroadcast;
  if (std::max(view.input(0)->shape.rank(), view.input(1)->shape.rank()) <= most) return std::nullopt;
  return fmt::format("operands of different shapes with more than {} dimensions", most);
}

Particulars coral_pool_batch(const OpView& view) {
  const std::string& type = view.op().type;
  if ((type != Op::MAX_POOL_2D && type != Op::AVERAGE_POOL_2D) || view.type() != DataType::kInt8) return std::nullopt;
  if (view.input(0) == nullptr || view.input(0)->shape.rank() != 4 || view.input(0)->shape[0] == 1) return std::nullopt;
  return fmt::format("it pools the first of {} int8 pictures only", view.input(0)->shape[0]);
}

Particulars coral_depthwise_batch(const OpView& view) {
  if (view.op().type != Op::DEPTHWISE_CONV_2D || view.type() != DataType::kInt8 || view.input(0) == nullptr) {
    return std::nullopt;
  }
  if (view.input(0)->shape.rank() != 4 || view.input(0)->shape[0] == 1) return std::nullopt;
  return fmt::format("a batch of {} int8 pictures", view.input(0)->shape[0]);
}

Particulars coral_pixel_centers(const OpView& view) {
  if (view.op().type != Op::RESIZE_NEAREST_NEIGHBOR || !view.attributes().get_bool("half_pixel_centers")) {
    return std::nullopt;
  }
  return "it takes no notice of half_pixel_centers";
}

Particulars coral_dense(const OpView& view) {
  if (view.op().type != Op::FULLY_CONNECTED || !is_integer(view.type()) || view.input(1) == nullptr)
    return std::nullopt;
  if (view.input(1)->quantization.is_per_axis()) return "weights have one scale for each channel";
  if (zero_point(*view.input(1)) != 0) return fmt::format("weights have zero point {}", zero_point(*view.input(1)));
  const Tensor* bias = view.input(2);
  if (view.type() == DataType::kInt16 && bias != nullptr && bias->type != DataType::kInt64) {
    return fmt::format("int16 activations with a bias of {}", ir::type_name(bias->type));
  }
  return std::nullopt;
}

Particulars coral_conv(const OpView& view) {
  if (view.op().type != Op::CONV_2D || view.input(0) == nullptr || view.input(1) == nullptr) return std::nullopt;
  const Tensor* bias = view.input(2);
  if (view.type() == DataType::kInt16 && bias != nullptr && bias->type == DataType::kInt32) {
    return "int16 activations with an int32 bias";
  }
  if (!is_integer(view.type()) || view.input(0)->shape.rank() != 4 || view.input(1)->shape.rank() != 4)
    return std::nullopt;
  if (view.input(0)->shape.last() == view.input(1)->shape.last()) return std::nullopt;
  return "its channels are in groups";
}

Particulars coral_activation(const OpView& view) {
  if (view.op().type != Op::TRANSPOSE_CONV) return std::nullopt;
  const std::string_view activation = view.attributes().get_enum("fused_activation_function", "NONE");
  if (activation == "NONE") return std::nullopt;
  return fmt::format("it leaves out the {} behind it", activation);
}

constexpr int kMostAveraged = 4;

Particulars coral_mean(const OpView& view) {
  if (view.op().type != Op::MEAN || !is_integer(view.type()) || view.input(0)->shape.rank() <= kMostAveraged) {
    return std::nullopt;
  }
  return fmt::format("it averages integers of at most {} dimensions, and these have {}", kMostAveraged,
                     view.input(0)->shape.rank());
}

Particulars coral_softmax(const OpView& view) {
  if (view.op().type != Op::SOFTMAX || view.type() != DataType::kInt16 || view.input(0) == nullptr) return std::nullopt;
  if (view.input(0)->shape.rank() == 0 || view.input(0)->shape.last() > 1) return std::nullopt;
  return "int16 with a single class";
}

// CMSIS-NN's kernel for it moves the state of the wrong steps.
Particulars coral_state(const OpView& view) {
  if (view.op().type != Op::SVDF || view.type() != DataType::kInt8 || view.input(4) == nullptr) return std::nullopt;
  if (view.input(4)->type != DataType::kInt8) return std::nullopt;
  return "its state is int8";
}

constexpr std::string_view kCoralsDiffers = "The TFLite Micro in Coral's SDK computes something else than TFLite";
constexpr Rule kCoralRules[] = {
    {"coral-bias", "The TFLite Micro in Coral's SDK ends with a fault here", "Give the layer a bias of zeros.",
     coral_bias},
    {"coral-dimensions", "The TFLite Micro in Coral's SDK stops itself here", kNear, coral_dimensions},
    {"coral-broadcast", "The TFLite Micro in Coral's SDK stops itself here", kNear, coral_broadcast},
    {"coral-dense-weights", kCoralsDiffers, "Quantize dense layers with one scale (`reef quantize` does).",
     coral_dense},
    {"coral-convolution", kCoralsDiffers, kNear, coral_conv},
    {"coral-activation", kCoralsDiffers, "Make the activation a layer of its own.", coral_activation},
    {"coral-mean", kCoralsDiffers, kNear, coral_mean},
    {"coral-state", kCoralsDiffers, "Convert the layer with an int16 state, as TensorFlow's converter does.",
     coral_state},
    {"coral-softmax", kCoralsDiffers, kNear, coral_softmax},
    {"coral-pool-batch", kCoralsDiffers, "Export the model with batch 1.", coral_pool_batch},
    {"coral-depthwise-batch", "The TFLite Micro in Coral's SDK stops itself here", "Export the model with batch 1.",
     coral_depthwise_batch},
    {"coral-pixel-centers", kCoralsDiffers, "Convert the layer with half_pixel_centers off.", coral_pixel_centers},
};

}  // namespace

std::span<const Rule> coral_rules() { return kCoralRules; }

}  // namespace reef::micro
