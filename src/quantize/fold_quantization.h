// SPDX-License-Identifier: Apache-2.0
// Models that carry their quantization -> a float model and the scales.
//
// Quantization-aware training leaves FAKE_QUANT operators, ONNX's QDQ form and QLinear operators leave QUANTIZE and
// DEQUANTIZE around float operators, weight-only quantization leaves integer or float16 constants, int16x8 leaves
// 16-bit activations. All are taken off; what they say about 8-bit scales is kept, by tensor, so that the integer model
// can be made with exactly those.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/status.h"
#include "ir/model.h"
#include "quantize/op_rules.h"
#include "quantize/options.h"
#include "quantize/to_integer.h"

namespace reef::quantize {

struct WeightScales {
  std::vector<float> scale;  // one, or one per index of `dimension`
  std::int32_t dimension = 0;
};

struct CarriedScales {
  std::map<std::int32_t, Affine> tensors;        // activations, and constants with one scale; as int8
  std::map<std::int32_t, WeightScales> weights;  // constants, symmetric
};

struct Folded {
  ir::Model model;  // verified
  CarriedScales carried;
  std::vector<std::string> notes;
  // The model says how its activations are to be quantized; calibration is not needed.
  bool has_activation_scales() const { return activation_scales > 0; }
  int activation_scales = 0;
};

// Whether activations are 16-bit numbers (int16x8), and none of 8 bits: such a model is a float one to start from.
bool computes_in_16_bits(const ir::Model& model);

// `model` must be verified. `takes_16_bits`: operators of 16-bit activations become float ones; else they stay.
Result<Folded> fold_quantization(const ir::Model& model, bool takes_16_bits);

// A plan with exactly the scales that are carried: operators become integer where all their operands have one, directly
// or through operators that keep scales; the others stay float, saying so.
Plan plan_from_carried(const Folded& folded, const QuantizeOptions& options);

}  // namespace reef::quantize
