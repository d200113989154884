// SPDX-License-Identifier: Apache-2.0
// From what was observed of a tensor to the range of real values that its integers shall cover.
#pragma once

#include "quantize/options.h"
#include "quantize/statistics.h"

namespace reef::quantize {

struct Range {
  float min = 0, max = 0;  // min <= 0 <= max: zero must be exact, for padding and ReLU
  friend bool operator==(const Range&, const Range&) = default;
};

// Widened to hold zero.
Range hull(const Range& a, const Range& b);

struct RangeRequest {
  RangeMethod method = RangeMethod::kMinMax;
  double percentile = 99.99;
  int levels = 256;        // integers to cover it with
  bool symmetric = false;  // the range will be used as [-m, m]
  double room = 0;         // share of the method's range by which it reaches beyond it
};

// Precondition: statistics.seen().
Range choose_range(const TensorStatistics& statistics, const RangeRequest& request);

// Mean square error of quantizing the observed values with this range and so many levels; an estimate from bins.
double quantization_error(const Histogram& histogram, const Range& range, int levels);

}  // namespace reef::quantize
