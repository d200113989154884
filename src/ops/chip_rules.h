// SPDX-License-Identifier: Apache-2.0
// Predicates and rules that several ops' tables share (see chip_support.h), and the words they are made of.
//
// Predicates may be handed anything a file can say: they look at attributes and constants with care and let pass what
// they cannot read, since some other check refuses it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ops/chip_support.h"
#include "ops/op_context.h"

namespace reef::ops::chip {

// ---- Words

std::string shape_text(const Shape& shape);     // "1x40x40x64"; "a scalar"
std::string number_text(std::int64_t number);   // "102,400"
std::string tensor_text(const Tensor& tensor);  // "1x40x40x64, 102,400 elements"

// ---- Reading operands

// Values of a constant integer input; nullopt: absent, computed, or not integers.
std::optional<std::vector<std::int64_t>> constant_integers(const OpContext& ctx, int input);
// Which dimensions of input 0 the axes in input 1 name; nullopt: not known, or some are out of range.
std::optional<std::vector<bool>> named_axes(const OpContext& ctx);

// The dilation of a convolution's filter, which is input 1; 0 along a dimension in which the filter is one pixel long:
// there is nothing to spread.
struct Dilation {
  std::int64_t y = 1, x = 1;
};
Dilation dilation(const OpContext& ctx);

// ---- Predicates; see ChipRule::broken

std::string fuses_activation(const OpContext& ctx);
std::string dilates_unevenly(const OpContext& ctx);
std::string reduces_batch(const OpContext& ctx);
std::string pads_batch(const OpContext& ctx);
std::string enlarges_one_pixel(const OpContext& ctx);
std::string uses_half_pixels(const OpContext& ctx);

// ---- Evidence said in many places

inline constexpr std::string_view kStamped12 =
    "Coral's table says 13, but the compilers it means, 2.0.291256449 to 15.0, write 12 into their files; QUANTIZE and "
    "UNIDIRECTIONAL_SEQUENCE_LSTM are seen mapped in such files.";

// ---- Rules

inline constexpr ChipRule kNoFusedActivation = {
    .id = "fused-activation",
    .says = "No activation function is fused into it.",
    .suggestion = "Put the activation behind it as an op of its own (RELU, RELU6).",
    .broken = fuses_activation,
    .evidence = "Table 1",
    .rewrite = "fused-activation",
};
inline constexpr ChipRule kEvenDilation = {
    .id = "even-dilation",
    .says = "The dilation is the same in y and x, unless the filter is one pixel high or wide.",
    .suggestion = "Use the same dilation in both dimensions.",
    .broken = dilates_unevenly,
    .evidence = "Table 1; a 3x1 filter with a dilation of 4 in y and 1 in x is seen mapped.",
};
inline constexpr ChipRule kNoReductionOfBatch = {
    .id = "reduce-batch",
    .says = "The outermost dimension is not reduced.",
    .suggestion = "Reduce over height, width or channels only, or move the dimension inwards first.",
    .broken = reduces_batch,
    .evidence = "Table 1",
};
inline constexpr ChipRule kNoPaddingOfBatch = {
    .id = "pad-batch",
    .says = "The outermost dimension is not padded.",
    .suggestion = "Pad height, width or channels only.",
    .broken = pads_batch,
    .evidence = "Table 1",
};
inline constexpr ChipRule kNoHalfPixels = {
    .id = "resize-half-pixel",
    .says = "Pixels are taken at their corners: half_pixel_centers is not set.",
    .suggestion = "Compile for runtime 14, or convert with half_pixel_centers off (tf.compat.v1.image.resize_*).",
    .broken = uses_half_pixels,
    .status = GoogleStatus::kVersionNotSupported,
    .source = RuleSource::kReported,
    .evidence =
        "Compilers up to 15.0 refuse version 3 of the op, which half pixels need: edgetpu#187, #206, #396, #420.",
    .runtimes = kUpTo12,
    .rewrite = "resize",
};

}  // namespace reef::ops::chip
