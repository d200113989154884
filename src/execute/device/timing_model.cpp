// SPDX-License-Identifier: Apache-2.0
#include "execute/device/timing_model.h"

#include <algorithm>

namespace reef::device {
namespace {

constexpr TimingReading kReadings[] = {
    {},
    // PoseNet 721, in four pieces, is published at 32.4 ms: 32.0 this way, 31.0 as usual.
    {.name = "instructions-in-turn",
     .meaning = "a piece of a long program crosses the link when the one before has been executed",
     .instructions_in_turn = true},
    // The chip's buffer for parameters has 128 KiB; one USB trace shows 38,000 bytes under way.
    {.name = "far-ahead", .meaning = "the chip takes 128 KiB of data ahead of its use", .ahead_bytes = 131072},
    // 23 to 87 MB/s were measured over USB 3; the link's 57 are a fit with a decoder on the CPU inside.
    {.name = "fast-output", .meaning = "results cross the link half as fast again", .output_speed = 1.5},
    // Fits published networks as well as the usual one, and differs for wide 3x3 convolutions of many pixels.
    {.name = "two-ports",
     .meaning = "weights arrive while others are used, and each visit of a partial sum takes 8 cycles",
     .takes_lines_while_computing = true,
     .sum_visit = 8},
};

}  // namespace

std::span<const TimingReading> timing_readings() { return kReadings; }

const TimingReading* find_reading(std::string_view name) {
  const auto* found =
      std::find_if(std::begin(kReadings), std::end(kReadings), [&](const TimingReading& r) { return r.name == name; });
  return found == std::end(kReadings) ? nullptr : found;
}

}  // namespace reef::device
