// SPDX-License-Identifier: Apache-2.0
// The chunks a model's operators may have in a blob, in every form a compiler is known to choose.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "formats/darwinn/parameters/blob_layout.h"
#include "ir/model.h"

namespace reef::darwinn {

struct Candidate {
  explicit Candidate(ChunkKind chunk_kind, std::string part = "") : kind(chunk_kind), role(std::move(part)) {}
  ChunkKind kind;
  std::int32_t op = -1;
  std::string role;
  LayerShape shape;
  Presence presence;
  LoopOrder order;
  // Identify the chunk's bytes, which are made again when the hash is found in the blob, to keep memory small.
  std::size_t size = 0;
  std::uint64_t first_row_hash = 0;
  std::uint64_t hash = 0;
};

// Candidates of at most `max_size` bytes, in the order of the operators. Operators without parameters have none.
// Refused: a model whose operators share weights so often that the candidates come to more than 512 MiB.
Result<std::vector<Candidate>> blob_candidates(const ir::Model& model, std::size_t max_size);

// The bytes of a candidate of this model.
Result<std::vector<std::uint8_t>> candidate_bytes(const ir::Model& model, const Candidate& candidate);

}  // namespace reef::darwinn
