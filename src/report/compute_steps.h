// SPDX-License-Identifier: Apache-2.0
// A compiled program seen from far: what it computes, step by step, and where each step's parameters come from.
//
// A step is a run of tensor instructions that differ only in tiles and addresses: what one layer (or one part of it)
// makes of several classes of tiles. Parameters are attributed by reading the program: a ring send that reads lines
// where the caching program put parameters, or a pop of streamed parameters, belongs to the tensor instructions before
// it (receivers are written before senders); a tensor instruction may also read cached lines of its own tile.
// Steps carry no names: compiled programs do not say which operator an instruction came from.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "formats/darwinn/cached_parameters.h"
#include "formats/darwinn/package.h"
#include "isa/opcode.h"

namespace reef::report {

struct ParameterUse {
  enum class From : std::uint8_t { kRing, kOwnTile, kHost };
  From from = From::kRing;   // sent over the ring by the tile that caches it; read in place; streamed by the host
  std::uint64_t offset = 0;  // in the parameters of the caching program, or of this one when streamed
  std::uint64_t bytes = 0;
  int tile = -1;  // that caches it; -1 when streamed
  std::uint32_t first_line = 0, lines = 0;
};

struct ComputeStep {
  int chunk = 0, row = 0;  // of the first instruction
  int instructions = 0;
  isa::Opcode opcode = isa::Opcode::kMultiplyAdd;
  std::uint32_t tiles = 0;  // mask
  std::int64_t steps = 0;   // of the instruction with the most; one step is one cycle (measured by others)
  int cells = 0;
  int in_zero = 0, param_zero = 0, out_zero = 0;
  float scale = 0, min = 0, max = 0;
  bool weights = false;  // parameters are static, not data
  bool bias = false, scale_per_cell = false, zero_per_cell = false, activation = false;
  bool wide_operands = false, wide_result = false;  // 16 bits
  std::vector<ParameterUse> parameters;
};

Result<std::vector<ComputeStep>> compute_steps(const darwinn::Executable& program,
                                               const std::vector<darwinn::CachedPiece>& cached);

// Lines of wide memory that the program writes for itself (parameters on their way, data to move, partial sums), as
// runs in ascending order, over all tiles together: parameters can be cached in the others.
struct LineRun {
  std::uint32_t first = 0, last = 0;  // both belong to it
};
Result<std::vector<LineRun>> scratch_lines(const darwinn::Executable& program);

// The most lines in a row that `scratch` leaves free.
std::uint32_t longest_free_run(const std::vector<LineRun>& scratch);

}  // namespace reef::report
