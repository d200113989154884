// SPDX-License-Identifier: Apache-2.0
// Groups of operators that are known to suffer in integers together, and a state in which they stay float.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "quantize/session.h"

namespace reef::quantize {

struct FloatCandidate {
  std::string name;
  std::vector<std::int32_t> ops;  // numbers of integer operators
};

// Operators between a mean of something and its division by the square root of a variance.
std::vector<std::int32_t> normalizations(const ir::Model& model, const std::vector<Decision>& decisions);

// What turns sound or other signals into spectra: everything in front of the last logarithm, square root or power that
// only a few layers feed. Its values span many orders of magnitude.
std::vector<std::int32_t> spectrum_front_end(const ir::Model& model, const std::vector<Decision>& decisions);

// `from` with these operators in float.
State with_float(const State& from, const std::vector<std::int32_t>& ops, const QuantizeOptions& options);

}  // namespace reef::quantize
