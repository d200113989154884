// SPDX-License-Identifier: Apache-2.0
// From a TFLite operator to the chip's parameters and constants, and back.
//
// CONV_2D, DEPTHWISE_CONV_2D and FULLY_CONNECTED with constant 8-bit weights. What such an operator becomes on the
// chip:
// - int8 tensors turn unsigned: values and zero points are 128 higher (weights: top bit flipped);
// - a bias of all zeros is dropped (by compilers after the first generation);
// - weight scales per channel that are not all equal become an array of multipliers in the chunk; otherwise the program
//   holds the one multiplier;
// - weight scales per channel, equal or not, put the weight zero point into the chunk, once per channel;
// - a depthwise convolution of one input channel is stored as an ordinary convolution.
// Each was seen in packages compiled by Google; tests/zoo_parameters_test.cpp repeats the comparison.
//
// Models must be verified (ir/verify.h). Anything else about an operator is checked here, and what the chip's layout
// cannot hold, or no package has shown, is refused with a sentence.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "formats/darwinn/parameters/layer_parameters.h"
#include "ir/model.h"
#include "numeric/chip_requantize.h"

namespace reef::darwinn {

// CONV_2D, DEPTHWISE_CONV_2D or FULLY_CONNECTED.
bool has_layer_parameters(const ir::Operator& op);

struct LayerOptions {
  LoopOrder order;
  // Compilers of the first generation keep a bias of all zeros.
  bool keep_zero_biases = false;
  // Arrays to write, instead of the compiler's choice: for filling an existing package, whose program expects them.
  // An array that is not needed is filled with what has no effect; one that is needed cannot be left out (an error).
  std::optional<Presence> presence;
};

// The operator's parameters in chip form.
Result<LayerParameters> layer_parameters_of(const ir::Model& model, const ir::Subgraph& graph, const ir::Operator& op,
                                            const LayerOptions& options = {});

// The constants of the layer in the execution program.
struct LayerRequantization {
  float multiplier = 1;  // 1 when the chunk holds the multipliers
  numeric::ChipClamp clamp;
  std::int32_t input_zero_point = 0;  // these are the chip's, 0..255
  std::int32_t output_zero_point = 0;
  std::int32_t weight_zero_point = 0;  // 0 when the chunk holds the zero points
  friend bool operator==(const LayerRequantization&, const LayerRequantization&) = default;
};
// `presence` as in the layer's chunk.
Result<LayerRequantization> layer_requantization_of(const ir::Model& model, const ir::Subgraph& graph,
                                                    const ir::Operator& op, Presence presence);

// A layer's tensors as a TFLite file holds them. Scales are not among them: a chunk holds only combined multipliers.
struct SourceWeights {
  ir::Shape shape;
  std::vector<std::uint8_t> weights;  // of the type asked for
  std::vector<std::int32_t> biases;   // empty: the layer has none
};
// `op_type`: one of the three above; DEPTHWISE_CONV_2D of one input channel comes back from a convolution.
// `type`: kInt8 or kUInt8.
Result<SourceWeights> source_weights_of(const LayerParameters& layer, std::string_view op_type, ir::DataType type);

}  // namespace reef::darwinn
