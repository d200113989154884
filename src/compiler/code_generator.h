// SPDX-License-Identifier: Apache-2.0
// Where machine code comes from: a part of a model in, a package out.
//
// The seam between choosing operators for the chip and generating code for them. A generator answers kUnsupported for a
// part that it has no code for, or that does not fit into the chip, with the operators that stand in the way or the
// place where memory is shortest: the part is cut there and tried again (part_search.h). Any other error means that the
// part cannot be compiled at all (edgetpu_compiler -d then looks for a smaller one).
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/budget.h"
#include "base/status.h"
#include "formats/darwinn/package.h"
#include "ir/model.h"
#include "lower/lower.h"
#include "schedule/parameter_places.h"
#include "tiled/program.h"

namespace reef::compiler {

struct PartProgram {
  const ir::Model& model;                     // verified; the part is of subgraph 0
  std::vector<std::int32_t> ops;              // ascending
  std::vector<std::int32_t> inputs, outputs;  // tensors, in the order of the custom op's operands
  int min_runtime_version = 14;
  std::uint64_t caching_token = 0;  // equal in everything that is compiled together
  // Others with the same token keep parameters on the same chip: what they have left, and how much of that this part
  // should take.
  bool shares_chip = false;
  std::int64_t cached_bytes_max = 0;
  schedule::CacheRoom room = {};
  tiled::Level level = tiled::kDefaultLevel;
  // Gets the operators that there is no code for, when the answer is kUnsupported; empty: the reason lies in none
  // alone.
  std::vector<lower::RefusedOp>* refused = nullptr;
  Budget budget = {};  // kResourceExhausted when it is over
  // Gets the operator at which memory is shortest, where that is the reason; else it is left as it is.
  std::int32_t* crowded = nullptr;
  // Plans of movements that other programs have as well (lower/lower.h); not for several threads at once.
  lower::RearrangementCache* movements = nullptr;
};

// The chip's memory for parameters as the code uses it.
struct MemoryUse {
  std::array<std::int32_t, chip::kTiles> next_line{};   // of each tile: below are the parameters of this and of others
  std::int32_t lowest_scratch_line = chip::kWideLines;  // none of the others may keep parameters from here on
  std::int64_t cached_bytes = 0;                        // whole lines
  std::int64_t streamed_bytes = 0;                      // with every inference
};

struct PartCode {
  darwinn::Package package;
  std::optional<MemoryUse> memory = std::nullopt;  // nothing: not known
  // What it was made from, for reports and comparisons.
  tiled::TiledProgram program = {};
  std::vector<std::int32_t> step_begins = {};  // emit/package.h: EmittedPackage
  std::vector<std::int64_t> step_rows = {};    // the same
};

using CodeGenerator = std::function<Result<PartCode>(const PartProgram&)>;

// Reef's own: lower, schedule, emit. Covers parts of the operators in lower/lowerings.def; all others are answered with
// kUnsupported and the reason.
Result<PartCode> generate_part(const PartProgram& part);
Result<darwinn::Package> generate_code(const PartProgram& part);

// Choices given from outside, so that programs can be compared with Google's, or tried out.
struct GenerationOptions {
  std::optional<tiled::Level> level = std::nullopt;  // instead of the part's
  // schedule/schedule.h says what these are.
  std::optional<std::vector<std::vector<tiled::ParameterPiece>>> parameter_places = std::nullopt;
  std::map<std::int32_t, std::int32_t> narrow_addresses = {};
  std::map<std::int32_t, std::int32_t> wide_lines = {};
  std::optional<std::vector<lower::SliceGroup>> slices = std::nullopt;  // work in slices; nothing: as needed
  std::set<std::int32_t> hosted = {};                                   // with `slices`: what the host keeps
  std::int64_t narrow_bytes = chip::kNarrowBytes;                       // as if the tiles had less memory
  std::optional<std::string> compiler_version = std::nullopt;           // instead of Reef's name and version
  numeric::LstmArguments lstm_arguments = numeric::LstmArguments::kWide;
};
Result<darwinn::Package> generate_code_with(const PartProgram& part, const GenerationOptions& options);
Result<PartCode> generate_part_with(const PartProgram& part, const GenerationOptions& options);

}  // namespace reef::compiler
