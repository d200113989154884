// SPDX-License-Identifier: Apache-2.0
// Which values every field of every instruction has in the public compiled files that were counted, and how often.
//
// seen.def is the list, written by tools/count_seen.cpp from a collection of compiled files; the files themselves are
// not part of the repository. A field that seen.def does not mention has its usual value in all of them. Of a field
// with many values only the range is kept. docs/hardware/seen.md is the same list for people.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "isa/instruction.h"
#include "isa/program.h"

namespace reef::isa {

struct SeenValue {
  std::int64_t value = 0;  // as Instruction::get() gives it
  std::int64_t instructions = 0, files = 0;
};

struct SeenField {
  Opcode opcode = Opcode::kScalar;
  const Field* field = nullptr;
  std::vector<SeenValue> values;  // empty: only the range was kept
  std::int64_t lowest = 0, highest = 0;
};

struct SeenOpcode {
  Opcode opcode = Opcode::kScalar;
  std::int64_t instructions = 0, files = 0;
};

// The contents of seen.def.
struct SeenTable {
  std::int64_t files = 0, programs = 0, instructions = 0;
  std::vector<SeenOpcode> opcodes;
  std::vector<SeenField> fields;                         // by opcode, then by bit
  std::map<std::pair<Opcode, int>, std::size_t> places;  // of fields, by opcode and first bit

  // Null: the field has its usual value in every instruction counted.
  const SeenField* find(Opcode opcode, const Field& field) const;
};
const SeenTable& seen_table();

// A field of an instruction with a value that no counted file has.
struct Unseen {
  const Field* field = nullptr;
  std::int64_t value = 0;
  const SeenField* seen = nullptr;  // null: only the usual value was seen
};
std::vector<Unseen> unseen_in(const Instruction& instruction);
// "0 in 1,234 instructions of 56 files, 3 in 7 of 2", or "0 to 2047", or "always 0".
std::string describe_seen(const Field& field, const SeenField* seen);

// Counts for a new seen.def.
class SeenCounter {
 public:
  // All programs of one file.
  void add_file(std::span<const Program> programs);
  std::string to_def() const;

 private:
  struct Counts {
    std::int64_t instructions = 0, files = 0, last_file = -1;
    void add(std::int64_t file) {
      ++instructions;
      if (last_file != file) ++files;
      last_file = file;
    }
  };
  struct FieldCounts {
    std::map<std::int64_t, Counts> values;  // up to kMostValues; then cleared for good
    bool has_many = false;
    std::int64_t lowest = 0, highest = 0;
  };
  std::int64_t files_ = 0, programs_ = 0, instructions_ = 0;
  std::map<Opcode, Counts> opcodes_;
  std::map<std::pair<Opcode, std::size_t>, FieldCounts> fields_;  // by number of the field
};

}  // namespace reef::isa
