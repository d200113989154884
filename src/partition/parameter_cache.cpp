// SPDX-License-Identifier: Apache-2.0
#include "partition/parameter_cache.h"

#include <algorithm>
#include <numeric>

namespace reef::partition {
namespace {

class WideMemory {
 public:
  WideMemory(std::int64_t lines_per_tile, std::int64_t line_limit) {
    free_.fill(std::max<std::int64_t>(lines_per_tile, 0));
    left_ = std::accumulate(free_.begin(), free_.end(), std::int64_t{0});
    if (line_limit >= 0) left_ = std::min(left_, line_limit);
  }
  std::int64_t left() const { return left_; }

  // All or nothing.
  bool take_in_first_tiles(std::int64_t lines, int tiles) {
    const auto end = free_.begin() + std::clamp(tiles, 0, chip::kTiles);
    if (left_ < lines * tiles) return false;
    if (std::any_of(free_.begin(), end, [&](std::int64_t free) { return free < lines; })) return false;
    for (auto tile = free_.begin(); tile != end; ++tile) *tile -= lines;
    left_ -= lines * tiles;
    return true;
  }

  // From the emptiest tiles; returns how many there were.
  std::int64_t take_anywhere(std::int64_t lines) {
    const std::int64_t taken = std::min(lines, left_);
    left_ -= taken;
    const std::int64_t piece = std::max<std::int64_t>(1, (taken + chip::kTiles - 1) / chip::kTiles);
    for (std::int64_t rest = taken; rest > 0;) {
      std::int64_t& tile = *std::max_element(free_.begin(), free_.end());
      const std::int64_t part = std::min({rest, piece, tile});
      if (part <= 0) break;  // a limit below what the tiles have keeps this from happening
      tile -= part;
      rest -= part;
    }
    return taken;
  }

 private:
  std::array<std::int64_t, chip::kTiles> free_{};
  std::int64_t left_ = 0;
};

// Caches at most `bytes` more of a layer.
void cache_layer(const CacheLayer& layer, std::int64_t bytes, WideMemory& memory, std::int64_t& cached,
                 CacheShare& share) {
  bytes = std::min(bytes, layer.bytes - cached);
  if (bytes <= 0 || layer.lines <= 0) return;
  if (layer.lines_per_tile > 0) {
    if (!memory.take_in_first_tiles(layer.lines_per_tile, layer.tiles)) return;
    cached = layer.bytes;
    share.lines += layer.lines;
    return;
  }
  const double density = static_cast<double>(layer.bytes) / static_cast<double>(layer.lines);
  const auto wanted = static_cast<std::int64_t>(static_cast<double>(bytes) / density + 0.999);
  const std::int64_t taken = memory.take_anywhere(wanted);
  share.lines += taken;
  cached += taken == wanted ? bytes : std::min(bytes, static_cast<std::int64_t>(static_cast<double>(taken) * density));
}

// Bytes of a layer that cost time where they are sent, or those that do not.
struct Portion {
  std::size_t model = 0, layer = 0;
  std::int64_t bytes = 0;
  double us_per_line = 0;
};

std::vector<Portion> portions_of(std::span<const CacheModel> models) {
  std::vector<Portion> portions;
  for (std::size_t m = 0; m < models.size(); ++m) {
    for (std::size_t l = 0; l < models[m].layers.size(); ++l) {
      const CacheLayer& layer = models[m].layers[l];
      if (layer.bytes <= 0 || layer.lines <= 0) continue;
      const std::int64_t hidden = std::clamp<std::int64_t>(layer.hidden_bytes, 0, layer.bytes);
      const double per_line =
          layer.us_per_byte * static_cast<double>(layer.bytes - hidden) / static_cast<double>(layer.lines);
      if (layer.lines_per_tile > 0) {  // whole or not at all
        portions.push_back({m, l, layer.bytes, per_line});
        continue;
      }
      const double costly = layer.us_per_byte * static_cast<double>(layer.bytes) / static_cast<double>(layer.lines);
      portions.push_back({m, l, layer.bytes - hidden, costly});
      portions.push_back({m, l, hidden, 0});
    }
  }
  return portions;
}

}  // namespace

CacheLayer CacheLayer::of(const ops::ChipWork& work) {
  return {work.parameter_bytes, work.parameter_lines, work.lines_per_tile, work.parameter_tiles, 0, 0};
}

std::vector<CacheShare> share_cache(std::span<const CacheModel> models, CachePolicy policy, std::int64_t line_limit) {
  std::int64_t scratch = 0;  // of the one that needs most: it must not overwrite what another one cached
  for (const CacheModel& model : models) scratch = std::max(scratch, model.scratch_lines);
  WideMemory memory(chip::kWideLines - scratch, line_limit);
  std::vector<CacheShare> shares(models.size());
  for (std::size_t m = 0; m < models.size(); ++m) shares[m].cached_bytes.resize(models[m].layers.size());

  std::vector<Portion> portions = portions_of(models);
  if (policy == CachePolicy::kLeastTime) {
    std::stable_sort(portions.begin(), portions.end(),
                     [](const Portion& a, const Portion& b) { return a.us_per_line > b.us_per_line; });
  }
  for (const Portion& portion : portions) {
    CacheShare& share = shares[portion.model];
    cache_layer(models[portion.model].layers[portion.layer], portion.bytes, memory, share.cached_bytes[portion.layer],
                share);
    share.lines_left = memory.left();
  }
  for (std::size_t m = 0; m < models.size(); ++m) {
    if (policy == CachePolicy::kLeastTime) shares[m].lines_left = memory.left();
    if (policy == CachePolicy::kInOrder && shares[m].lines == 0) {
      shares[m].lines_left =
          m == 0 ? WideMemory(chip::kWideLines - scratch, line_limit).left() : shares[m - 1].lines_left;
    }
    for (std::size_t l = 0; l < models[m].layers.size(); ++l) {
      shares[m].streamed_bytes += models[m].layers[l].bytes - shares[m].cached_bytes[l];
    }
  }
  return shares;
}

}  // namespace reef::partition
