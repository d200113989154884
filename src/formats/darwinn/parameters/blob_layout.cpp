// SPDX-License-Identifier: Apache-2.0
#include "formats/darwinn/parameters/blob_layout.h"

#include <algorithm>
#include <unordered_map>

#include "formats/darwinn/parameters/blob_candidates.h"
#include "formats/darwinn/parameters/row_hash.h"
#include "formats/darwinn/parameters/selection_matrix.h"

namespace reef::darwinn {
namespace {

// Comparisons of a candidate with a place. A model and a blob made to agree in every first row could ask for more.
constexpr std::uint64_t kMaxComparisons = std::uint64_t{1} << 28;

class Locator {
 public:
  Locator(const ir::Model& model, std::span<const std::uint8_t> blob, std::vector<Candidate> candidates)
      : model_(model), blob_(blob), hashes_(blob), selections_(blob), candidates_(std::move(candidates)) {
    for (std::size_t i = 0; i < candidates_.size(); ++i) by_first_row_[candidates_[i].first_row_hash].push_back(i);
    located_.resize(model.subgraphs.empty() ? 0 : model.subgraphs[0].operators.size());
  }

  Result<BlobLayout> run() {
    std::size_t offset = 0;
    while (offset < blob_.size()) {
      REEF_ASSIGN_OR_RETURN(const std::optional<std::size_t> candidate, best_candidate_at(offset));
      if (candidate) {
        take(candidates_[*candidate], offset);
      } else if (const auto selection = selections_.longest_at(offset)) {
        BlobChunk chunk(ChunkKind::kSelection, offset, selection->size);
        chunk.role = describe(selection->selection);
        chunk.shape = selection->selection.shape();
        chunk.presence = selection->selection.presence();
        layout_.chunks.push_back(std::move(chunk));
      } else {
        take_unknown(offset);
      }
      offset = layout_.chunks.back().offset + layout_.chunks.back().size;
    }
    list_shared();
    return std::move(layout_);
  }

 private:
  // An operator not yet located is preferred to one that is, a longer chunk to a shorter, an earlier operator to a
  // later.
  bool is_better(const Candidate& a, const Candidate& b) const {
    const bool a_new = !is_located(a), b_new = !is_located(b);
    if (a.size != b.size) return a.size > b.size;
    return a_new != b_new ? a_new : a.op < b.op;
  }

  // Parts of one operator (the gates of an LSTM) are told apart by their roles.
  bool is_located(const Candidate& candidate) const {
    const std::vector<std::string>& roles = located_[at(candidate.op)];
    return std::find(roles.begin(), roles.end(), candidate.role) != roles.end();
  }

  Result<std::optional<std::size_t>> best_candidate_at(std::size_t offset) {
    std::optional<std::size_t> best;
    const std::size_t row = offset / kChunkAlignment;
    const auto found = by_first_row_.find(hashes_.of_row(row));
    if (found == by_first_row_.end()) return best;
    for (const std::size_t index : found->second) {
      const Candidate& candidate = candidates_[index];
      if (++comparisons_ > kMaxComparisons) {
        return make_error(StatusCode::kResourceExhausted,
                          "the blob has too many places that look like a layer's start");
      }
      if (candidate.size > blob_.size() - offset) continue;
      if (hashes_.of_run(row, candidate.size / kChunkAlignment) != candidate.hash) continue;
      if (best && !is_better(candidate, candidates_[*best])) continue;
      const Result<std::vector<std::uint8_t>> bytes = candidate_bytes(model_, candidate);
      if (!bytes.ok() ||
          !std::equal(bytes->begin(), bytes->end(), blob_.begin() + static_cast<std::ptrdiff_t>(offset))) {
        continue;
      }
      best = index;
    }
    return best;
  }

  void take(const Candidate& candidate, std::size_t offset) {
    BlobChunk chunk(candidate.kind, offset, candidate.size);
    chunk.op = candidate.op;
    chunk.role = candidate.role;
    chunk.shape = candidate.shape;
    chunk.presence = candidate.presence;
    chunk.order = candidate.order;
    layout_.chunks.push_back(std::move(chunk));
    if (!is_located(candidate)) located_[at(candidate.op)].push_back(candidate.role);
  }

  void take_unknown(std::size_t offset) {
    if (layout_.chunks.empty() || layout_.chunks.back().kind != ChunkKind::kUnknown) {
      layout_.chunks.emplace_back(ChunkKind::kUnknown, offset, 0);
    }
    layout_.chunks.back().size += kChunkAlignment;
  }

  // Operators without a chunk of their own whose bytes are in the blob: identical layers that the compiler stored once.
  void list_shared() {
    std::unordered_map<std::uint64_t, std::size_t> chunk_of_hash;
    for (std::size_t i = 0; i < layout_.chunks.size(); ++i) {
      const BlobChunk& chunk = layout_.chunks[i];
      if (chunk.op < 0) continue;
      chunk_of_hash.emplace(hashes_.of_run(chunk.offset / kChunkAlignment, chunk.size / kChunkAlignment), i);
    }
    for (const Candidate& candidate : candidates_) {
      if (candidate.kind != ChunkKind::kLayer || is_located(candidate)) continue;
      const auto found = chunk_of_hash.find(candidate.hash);
      if (found == chunk_of_hash.end()) continue;
      BlobChunk& chunk = layout_.chunks[found->second];
      if (chunk.size != candidate.size || chunk.kind != candidate.kind) continue;
      chunk.also_for.push_back(candidate.op);
      located_[at(candidate.op)].push_back(candidate.role);
    }
  }

  const ir::Model& model_;
  std::span<const std::uint8_t> blob_;
  RowHashes hashes_;
  SelectionFinder selections_;
  std::vector<Candidate> candidates_;
  std::unordered_map<std::uint64_t, std::vector<std::size_t>> by_first_row_;
  std::vector<std::vector<std::string>> located_;  // [op]: roles
  std::uint64_t comparisons_ = 0;
  BlobLayout layout_;
};

}  // namespace

std::string_view chunk_kind_name(ChunkKind kind) {
  switch (kind) {
    case ChunkKind::kLayer:
      return "layer";
    case ChunkKind::kSoftmax:
      return "softmax rows";
    case ChunkKind::kChannelLines:
      return "constants per channel";
    case ChunkKind::kConstant:
      return "constant";
    case ChunkKind::kSelection:
      return "selection matrix";
    case ChunkKind::kUnknown:
      break;
  }
  return "unknown";
}

std::size_t BlobLayout::bytes_of(ChunkKind kind) const {
  std::size_t bytes = 0;
  for (const BlobChunk& chunk : chunks) bytes += chunk.kind == kind ? chunk.size : 0;
  return bytes;
}

const BlobChunk* BlobLayout::find(std::int32_t op, std::string_view role) const {
  for (const BlobChunk& chunk : chunks) {
    if (chunk.op == op && chunk.role == role) return &chunk;
    if (std::find(chunk.also_for.begin(), chunk.also_for.end(), op) != chunk.also_for.end()) return &chunk;
  }
  return nullptr;
}

Result<BlobLayout> locate(const ir::Model& model, std::span<const std::uint8_t> blob) {
  REEF_REQUIRE(blob.size() % kChunkAlignment == 0, "a parameter blob of {} bytes is not made of rows of {}",
               blob.size(), kChunkAlignment);
  REEF_ASSIGN_OR_RETURN(std::vector<Candidate> candidates, blob_candidates(model, blob.size()));
  return Locator(model, blob, std::move(candidates)).run();
}

}  // namespace reef::darwinn
