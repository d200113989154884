// SPDX-License-Identifier: Apache-2.0
// Outputs that join parts of very different ranges, such as boxes in pixels and scores: at one scale the narrow parts
// round to a few numbers or to one. Given out apart, each part has its own scale.
//
// Which outputs are split is decided by measurement: the float model runs on a few samples, and an output is split if a
// part of it would have fewer than kFewestSteps steps of the common scale. Neighbouring parts of like ranges stay
// together (x, y, width and height as boxes).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "data/sample_source.h"
#include "ir/model.h"
#include "quantize/measure.h"
#include "quantize/options.h"

namespace reef::quantize {

inline constexpr double kFewestSteps = 32;  // of 255: 5 bits

// Where an output of the given model stands among the outputs of the result: `count` of them from `first` on, which are
// its parts along `axis` where there are several.
struct GivenOut {
  std::size_t first = 0, count = 1;
  int axis = 0;
};

struct SplitResult {
  ir::Model model;              // with outputs split, or as it was
  std::vector<GivenOut> given;  // by output of the model before
  // What the outputs of the model consist of, in their order: whole outputs, and the parts of those that were left
  // joined though their ranges differ.
  std::vector<OutputPart> parts;
  std::vector<std::string> notes, warnings;
};

// options.split_outputs: kAutomatic by measurement, kOn all that are joints, kOff none. `model` must be verified.
// A split output's parts stand in its place, in their order; joined along their axis they are what it was. In
// signatures they are called "NAME_0", "NAME_1" ...
Result<SplitResult> split_outputs(const ir::Model& model, const data::SampleSource* source,
                                  const QuantizeOptions& options);

}  // namespace reef::quantize
