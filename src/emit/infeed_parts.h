// SPDX-License-Identifier: Apache-2.0
// What all ways of bringing in the network's input share (infeed*.cpp).
#pragma once

#include <cstdint>
#include <string>

#include "emit/blocks.h"

namespace reef::emit {

// Units of the activation buffer that are never counted on. Units that two strips share are popped twice, so that the
// counter of pops runs ahead by up to three.
inline constexpr std::int32_t kUnitsKeptFree = 4;
inline constexpr std::int32_t kActivationBlock = chip::kActivationFifoUnits / 2;

// The 4x4 identity, one byte of 1 in each of four words, made in narrow memory at `word` and moved to wide memory.
void make_identity(ProgramWriter& writer, const tiled::InputRows& rows, std::int32_t word, std::int32_t line);

// Asks the host for the whole input.
void request_input(Emission& to, const tiled::Infeed& input);

// Asks for parts of it: first the address, and counters of the buffer from 0; then the parts, each of which follows the
// one before in the buffer.
void begin_requests(Emission& to, const tiled::Infeed& input);
void request_units(Emission& to, const tiled::Infeed& input, std::int64_t first_unit, std::int64_t units);

// Wide lines from `first` on, `at_a_time` of them in two places by turns.
LoopNest lines_by_turns(std::int32_t first, std::int64_t lines, std::int64_t at_a_time);

// Lines of whole units of the buffer to tiles; `first_unit` counts from where requests began, each is waited for.
void send_units(ProgramWriter& writer, std::int64_t first_unit, std::int64_t units, TileMask tiles);

void infeed_by_strips(Emission& to, const tiled::Infeed& input);
void infeed_uneven(Emission& to, const tiled::Infeed& input);
void infeed_by_slots(Emission& to, const tiled::Infeed& input);
void infeed_vector(Emission& to, const tiled::Infeed& input);

}  // namespace reef::emit
