// SPDX-License-Identifier: Apache-2.0
// Lines of parameters that a program makes itself: words are written to narrow memory by the mesh units, which can
// store a constant instead of what arrives, and moved to wide memory.
#pragma once

#include <cstdint>
#include <span>

#include "emit/program_writer.h"
#include "tiled/program.h"

namespace reef::emit {

// Makes the identity line if this step is to make it. What uses the line must wait until NARROW_TO_WIDE has reached
// what the writer's total says afterwards. All tiles; the words must be free. `signals` false: nothing is counted, and
// a fence must follow.
void make_identity(ProgramWriter& writer, const tiled::TiledProgram& program, const tiled::Identity& identity,
                   bool signals = true);

// Writes the words to narrow memory of all tiles, equal ones by one instruction, by all four mesh units in turn; then
// moves them to lines of `line_words` words. As above, NARROW_TO_WIDE says when they are there. Directly behind a fence
// that clears all counters.
void make_lines(ProgramWriter& writer, std::span<const std::uint32_t> words, std::int32_t line_words,
                std::int32_t first_byte, std::int32_t line);

}  // namespace reef::emit
