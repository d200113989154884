// SPDX-License-Identifier: Apache-2.0
// Which of an instruction's possibilities are used together, and whether any public file of Google's uses them
// together.
//
// A chip may do something else than we think where an instruction combines what no program of Google's combines,
// although each field by itself is known. A combination is what is switched on and selected: flags, selections, which
// counters are waited for, whether a nest has a double buffer, a clip, dimensions. Addresses, counts, distances, levels
// and constants are not part of it. seen_combinations.def is the list of all that were seen, written by
// tools/count_seen.cpp.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "isa/program.h"

namespace reef::isa {

// The unusual fields in the order of bits: "in_16_bit=1 bias=1 wait_0.enabled=1 wait_0.counter=12 in.clip". Empty if
// everything is as usual.
std::string combination_of(const Instruction& instruction);

struct SeenCombination {
  std::int64_t instructions = 0, files = 0;
};

struct CombinationTable {
  std::int64_t files = 0;
  std::map<std::pair<Opcode, std::string_view>, SeenCombination> seen;
};
// The contents of seen_combinations.def.
const CombinationTable& combination_table();

// Something in a program that no public file of Google's has.
struct Novelty {
  Opcode opcode = Opcode::kScalar;
  std::string what;     // "with in_16_bit=1 and without bias=1", "with store=7, which none has"
  std::string nearest;  // "else as in 12 instructions of 3 files"; empty: nothing is like it
  std::int64_t first_row = 0, times = 0;
  std::vector<std::size_t> instructions;  // by index
};

// In the order of their first rows.
std::vector<Novelty> novelties_of(std::span<const Instruction> program);

// Counts for a new seen_combinations.def.
class CombinationCounter {
 public:
  // All programs of one file.
  void add_file(std::span<const Program> programs);
  std::string to_def() const;

 private:
  std::int64_t files_ = 0;
  std::map<std::pair<Opcode, std::string>, SeenCombination> counts_;
};

}  // namespace reef::isa
