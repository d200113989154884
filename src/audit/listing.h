// SPDX-License-Identifier: Apache-2.0
// A program's instructions and what they do, all chunks in a row.
#pragma once

#include <optional>
#include <vector>

#include "audit/audit.h"
#include "isa/operation.h"
#include "isa/program.h"

namespace reef::audit {

struct Listing {
  bool is_caching = false;
  std::vector<isa::Instruction> instructions;
  std::vector<isa::Operation> operations;
  std::vector<std::int64_t> rows;
  std::vector<int> chunks;
  std::vector<std::size_t> chunk_starts;  // one more than chunks

  std::size_t size() const { return instructions.size(); }
  Site site(std::size_t index) const;
  // The instruction that begins at a row of the chunk of instruction `index`; nothing where none does.
  std::optional<std::size_t> at_row(std::size_t index, std::int64_t row) const;
};

Result<Listing> listing_of(const darwinn::Executable& executable);

}  // namespace reef::audit
