// SPDX-License-Identifier: Apache-2.0
// A point in simulated time that remembers how the time up to it was spent.
//
// When something waits for several things, the last of them decides; taking over its record along with its time makes
// the record of the last moment of a run the account of its critical path.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/at.h"

namespace reef::device {

enum class Spent : std::uint8_t {
  kHost,          // the host's part of every inference: system calls, driver
  kInstructions,  // on the link
  kInput,
  kParameters,
  kCompute,
  kRing,
  kLoopBack,  // depthwise weights through the scalar core
  kMesh,
  kMovers,  // between narrow, wide and scaling memory
  kScalarCore,
  kOutput,  // on the link
};
inline constexpr std::size_t kSpentKinds = 11;
inline constexpr std::array<std::string_view, kSpentKinds> kSpentNames = {"host",
                                                                          "instructions over the link",
                                                                          "input over the link",
                                                                          "parameters over the link",
                                                                          "computing",
                                                                          "ring",
                                                                          "loop-back",
                                                                          "mesh",
                                                                          "movers",
                                                                          "scalar core",
                                                                          "output over the link"};

// Cycles of the tile clock since the inference began.
struct Moment {
  double time = 0;
  std::array<float, kSpentKinds> spent{};  // adds up to `time`, but for rounding

  void wait_for(const Moment& other) {
    if (other.time > time) *this = other;
  }
  void spend(Spent kind, double cycles) {
    time += cycles;
    spent[at(kind)] += static_cast<float>(cycles);
  }
};

}  // namespace reef::device
