// SPDX-License-Identifier: Apache-2.0
// One generated network (random_network.h) through everything: the ways in which the CPU computes it, and its code on
// the virtual device. Tests give it seeds, fuzzers bytes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "random_network.h"

namespace reef::testing {

// Whether networks of this kind of layer can be compiled: an operator that there is code for, or a block of several.
bool has_code(std::string_view op);

struct Trial {
  bool failed = false;
  bool ran = false;
  std::string message;  // why it failed, or did not run
};

// Compiles at one level, runs in one order of the chip's units and compares with the chip reference; the code must be
// sound by the audit. `seed` decides on level, order and input.
Trial compile_and_run(const RandomNetwork& network, unsigned seed);

// Computes the network by plain loops, operator by operator, and on every vector target of this CPU with operators
// joined, on one thread and on three. It fails where one of them gives other bytes.
Trial compute_on_cpu(const RandomNetwork& network, unsigned seed);

// A fuzzer's bytes as a network of at most `kMostFuzzedLayers` layers. Every sequence of bytes is one; bytes that are
// missing count as zeros.
inline constexpr int kMostFuzzedLayers = 8;
RandomNetwork network_from_bytes(std::span<const std::uint8_t> bytes);

}  // namespace reef::testing
