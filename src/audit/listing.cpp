// SPDX-License-Identifier: Apache-2.0
#include "audit/listing.h"

#include <algorithm>

#include <fmt/format.h>

namespace reef::audit {

Site Listing::site(std::size_t index) const {
  if (index >= size()) return {};
  return {is_caching, chunks[index], rows[index], std::string(isa::info(instructions[index].opcode()).mnemonic)};
}

std::optional<std::size_t> Listing::at_row(std::size_t index, std::int64_t row) const {
  const auto chunk = static_cast<std::size_t>(chunks[index]);
  const auto begin = rows.begin() + static_cast<std::ptrdiff_t>(chunk_starts[chunk]);
  const auto end = rows.begin() + static_cast<std::ptrdiff_t>(chunk_starts[chunk + 1]);
  const auto found = std::lower_bound(begin, end, row);
  if (found == end || *found != row) return std::nullopt;
  return static_cast<std::size_t>(found - rows.begin());
}

Result<Listing> listing_of(const darwinn::Executable& executable) {
  Listing listing;
  listing.is_caching = executable.type == darwinn::ExecutableType::kParameterCaching;
  for (std::size_t c = 0; c < executable.instruction_chunks.size(); ++c) {
    listing.chunk_starts.push_back(listing.size());
    auto chunk = isa::decode(executable.instruction_chunks[c].bitstream.span());
    if (!chunk.ok()) return chunk.status().in(fmt::format("chunk {}", c));
    std::int64_t row = 0;
    for (isa::Instruction& instruction : *chunk) {
      auto operation = isa::operation_of(instruction);
      if (!operation.ok()) {
        return operation.status().in(
            fmt::format("chunk {} row {} ({})", c, row, isa::info(instruction.opcode()).mnemonic));
      }
      listing.operations.push_back(std::move(*operation));
      listing.rows.push_back(row);
      listing.chunks.push_back(static_cast<int>(c));
      row += instruction.rows();
      listing.instructions.push_back(instruction);
    }
  }
  listing.chunk_starts.push_back(listing.size());
  REEF_REQUIRE(listing.size() > 0, "the program has no instructions");
  return listing;
}

}  // namespace reef::audit
