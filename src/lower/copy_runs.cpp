// SPDX-License-Identifier: Apache-2.0
#include "lower/copy_runs.h"

#include <map>

namespace reef::lower {
namespace {

using tiled::CopyDim;

// Nests of which many have the same loops, which are numbered.
struct Block {
  Move first;
  std::size_t shape = 0;
};

class Shapes {
 public:
  Shapes() { shapes_.emplace_back(); }
  const std::vector<CopyDim>& at(std::size_t shape) const { return shapes_[shape]; }
  // A shape with one more loop around it.
  std::size_t with(std::size_t shape, const CopyDim& dim) {
    const auto [found, is_new] = numbers_.try_emplace({shape, dim}, shapes_.size());
    if (is_new) {
      std::vector<CopyDim> dims = shapes_[shape];
      dims.push_back(dim);
      shapes_.push_back(std::move(dims));
    }
    return found->second;
  }

 private:
  std::vector<std::vector<CopyDim>> shapes_;
  std::map<std::pair<std::size_t, CopyDim>, std::size_t> numbers_;
};

// How many blocks from `begin` on have the same shape and follow each other in equal steps.
std::size_t run_length(const std::vector<Block>& blocks, std::size_t begin, std::size_t most) {
  const auto step = [&](std::size_t i) {
    return Move{blocks[i + 1].first.source - blocks[i].first.source,
                blocks[i + 1].first.target - blocks[i].first.target};
  };
  std::size_t end = begin + 1;
  while (end < blocks.size() && end - begin < most && blocks[end].shape == blocks[begin].shape &&
         step(end - 1) == step(begin)) {
    ++end;
  }
  return end - begin;
}

}  // namespace

std::vector<MoveNest> as_nests(std::span<const Move> moves, std::size_t most_dims, std::int32_t most_count) {
  Shapes shapes;
  std::vector<Block> blocks;
  blocks.reserve(moves.size());
  for (const Move& move : moves) blocks.push_back({move, 0});
  for (std::size_t level = 0; level < most_dims; ++level) {
    std::vector<Block> joined;
    for (std::size_t i = 0; i < blocks.size();) {
      const std::size_t run = run_length(blocks, i, static_cast<std::size_t>(most_count));
      Block block = blocks[i];
      if (run > 1) {
        block.shape =
            shapes.with(block.shape, {static_cast<std::int32_t>(run), blocks[i + 1].first.source - block.first.source,
                                      blocks[i + 1].first.target - block.first.target});
      }
      joined.push_back(block);
      i += run;
    }
    const bool is_done = joined.size() == blocks.size();
    blocks = std::move(joined);
    if (is_done) break;
  }
  std::vector<MoveNest> nests;
  nests.reserve(blocks.size());
  for (const Block& block : blocks) nests.push_back({block.first, shapes.at(block.shape)});
  return nests;
}

}  // namespace reef::lower
