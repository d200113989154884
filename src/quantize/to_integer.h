// SPDX-License-Identifier: Apache-2.0
// A float model, decisions and ranges -> the integer model, as TFLite takes it.
//
// Integer operators keep their place, options and names; QUANTIZE and DEQUANTIZE stand where integers meet floats and
// where a scale must change. Inputs, outputs, signatures and metadata keep names and order. Names of tensors that exist
// in two forms: what the graph gives out keeps its name, the other gets a suffix.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/status.h"
#include "ir/model.h"
#include "quantize/clearing_steps.h"
#include "quantize/op_rules.h"
#include "quantize/options.h"
#include "quantize/range_choice.h"
#include "quantize/scale_groups.h"

namespace reef::quantize {

// Everything that decides how a float model becomes an integer one.
struct Plan {
  std::vector<Decision> decisions;                                   // per operator
  std::vector<Range> ranges;                                         // per tensor
  std::vector<std::pair<std::int32_t, int>> apart;                   // see assign_scales
  std::set<std::int32_t> float_border;                               // inputs and outputs that stay float32
  bool clip_weights = false;                                         // see WeightRequest::clip
  std::map<std::int32_t, std::vector<std::int8_t>> rounded_weights;  // by operator: instead of rounding to nearest
  ClearedLstms cleared_lstms;                                        // that must clear their state themselves
  // Scales that are given, not chosen (models that carry them).
  std::optional<Scales> scales;                                    // instead of what follows from ranges
  std::map<std::int32_t, std::vector<float>> given_weight_scales;  // by weights; one, or one per channel
  std::map<std::int32_t, Affine> border;                           // of the graph's outputs
  std::set<std::int32_t> rounded;  // tensors that also float operators must read rounded to their scale
};

struct IntegerModel {
  ir::Model model;
  int integer_ops = 0, float_ops = 0, quantize_ops = 0;  // of the first subgraph; quantize_ops: all conversions
  // Tensor of the float model -> the one that holds its values here (integer or float); -1: none.
  std::vector<std::int32_t> tensor_of;
};

// `model` must be verified. The result is.
Result<IntegerModel> to_integer(const ir::Model& model, const Plan& plan, const QuantizeOptions& options);

}  // namespace reef::quantize
