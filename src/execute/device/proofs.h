// SPDX-License-Identifier: Apache-2.0
// Which beliefs of the device public programs need: what tools/doubt_device counted (proofs.def).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "execute/device/beliefs.h"
#include "isa/format.h"

namespace reef::device {

// Files that were run with a doubt, and of them those that noticed.
struct Notices {
  std::int32_t tried = 0;
  std::int32_t stopped = 0;  // the run ended in an error: a standstill, an address outside of a memory ...
  std::int32_t wrong = 0;    // other outputs than those of the source
  std::int32_t other = 0;    // other outputs than before, and the source is not known
  std::int32_t noticed() const { return stopped + wrong + other; }
};

struct FieldProof {
  isa::Opcode opcode = isa::Opcode::kScalar;
  const isa::Field* field = nullptr;
  Notices notices;
};

struct Proofs {
  int files = 0;                   // that could be run, smallest first, then those that were added
  int sources = 0;                 // of them, those whose source is known
  int enough = 0;                  // files that notice a doubt, after which it was not tried on larger ones
  int added = 0;                   // of all files, those that were tried only with what no other file had noticed
  std::vector<Notices> beliefs;    // in the order of beliefs()
  std::vector<FieldProof> fields;  // by opcode, then by bit
};
const Proofs& proofs();

}  // namespace reef::device
