// SPDX-License-Identifier: Apache-2.0
// What a user can ask of the quantizer.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/budget.h"

namespace reef::quantize {

enum class Mode : std::uint8_t {
  kInt8,     // int8 activations and weights: what the Edge TPU runs
  kInt16x8,  // int16 activations, int8 weights; CPU only
  kDynamic,  // int8 weights, float activations; needs no data
  kFloat16,  // float16 weights; needs no data
};

// Type of the model's own inputs and outputs where they are float32 in the float model.
enum class IoType : std::uint8_t { kInt8, kUInt8, kFloat32 };

// How the range of an activation is taken from what was observed.
enum class RangeMethod : std::uint8_t {
  kMinMax,         // everything ever seen
  kMovingAverage,  // exponential average of each sample's minimum and maximum
  kPercentile,     // all but a small share of the values
  kEntropy,        // smallest Kullback-Leibler divergence between values and their quantized version
  kMse,            // smallest mean square error
};
std::string_view name_of(RangeMethod method);

enum class Choice : std::uint8_t { kAutomatic, kOn, kOff };

struct QuantizeOptions {
  Mode mode = Mode::kInt8;
  IoType input_type = IoType::kInt8, output_type = IoType::kInt8;
  bool automatic_ranges = true;  // measured on samples held back; else `method` for all tensors
  RangeMethod method = RangeMethod::kMinMax;
  double percentile = 99.99;                 // of kPercentile: share of values inside the range
  bool per_channel_fully_connected = false;  // TFLite 2.17 and later; not Google's Edge TPU compiler
  bool full_integer = false;                 // an operator that would stay float is an error
  std::vector<std::string> keep_float;       // operators by the name of a result, or a pattern with *
  // Accuracy recovery. Automatic: tried, and kept if the held-back samples say so. Equalization that is on is kept.
  Choice rewrite = Choice::kAutomatic;  // other ways to compute the same with fewer roundings
  Choice equalize = Choice::kAutomatic;
  Choice correct_biases = Choice::kAutomatic;
  Choice keep_sensitive_float = Choice::kAutomatic;
  Choice adaptive_rounding = Choice::kOff;    // slow; on: tried and kept if better
  Choice split_outputs = Choice::kAutomatic;  // outputs that join parts: split where ranges differ, always, never
  std::int64_t max_samples = 0;               // 0: all
  std::int64_t held_back = -1;                // samples kept for measuring; -1: a fifth, 64 at most
  int threads = 1;
  Budget budget = {};
  // Told what is going on: a phase, how many of how many samples are done. May be empty.
  std::function<void(std::string_view phase, std::int64_t done, std::int64_t total)> progress;
};

}  // namespace reef::quantize
