// SPDX-License-Identifier: Apache-2.0
#include "partition/parameter_cache.h"

#include <algorithm>
#include <numeric>

namespace reef::partition {
namespace {

class WideMemory {
 public:
  WideMemory(std::int64_t lines_per_tile, std::int64_t line_limit)
      : capacity_(std::max<std::int64_t>(lines_per_tile, 0)) {
    free_.fill(capacity_);
    left_ = std::accumulate(free_.begin(), free_.end(), std::int64_t{0});
    if (line_limit >= 0) left_ = std::min(left_, line_limit);
  }
  std::int64_t left() const { return left_; }
  std::int64_t lines_per_tile() const { return capacity_; }

  // A group of lines into `tile` if it has room for all of them (-1: no tile in particular), else into the emptiest
  // one. Returns how many were taken: all, what the emptiest had left, or none where `is_whole`.
  std::int64_t take(std::int64_t lines, int tile, bool is_whole) {
    std::int64_t* free = tile >= 0 ? &free_[reef::at(tile)] : nullptr;
    if (free == nullptr || *free < lines) free = &*std::max_element(free_.begin(), free_.end());
    const std::int64_t taken = std::min({lines, left_, *free});
    if (is_whole && taken < lines) return 0;
    *free -= taken;
    left_ -= taken;
    return taken;
  }

 private:
  std::int64_t capacity_;
  std::array<std::int64_t, chip::kTiles> free_{};
  std::int64_t left_ = 0;
};

// Caches at most `bytes` more of a layer, group by group.
void cache_layer(const CacheLayer& layer, std::int64_t bytes, WideMemory& memory, std::int64_t& cached,
                 CacheShare& share) {
  bytes = std::min(bytes, layer.bytes - cached);
  if (bytes <= 0 || layer.lines <= 0 || memory.left() <= 0) return;
  constexpr std::int64_t kAnyNumber = 64;  // lines at a time, where it does not matter
  std::int64_t group = layer.group_lines > 0 ? layer.group_lines : kAnyNumber;
  if (group > memory.lines_per_tile()) {
    if (layer.stays_in_tiles) return;
    group = kAnyNumber;  // no file shows how a convolution is stored of which one tile cannot hold 64 channels
  }
  const double lines_per_byte = static_cast<double>(layer.lines) / static_cast<double>(layer.bytes);
  const auto lines_of = [&](std::int64_t some) {
    return some == layer.bytes ? layer.lines : static_cast<std::int64_t>(static_cast<double>(some) * lines_per_byte);
  };
  const std::int64_t first = lines_of(cached), end = lines_of(cached + bytes);
  std::int64_t at = first;
  while (at < end) {
    const std::int64_t wanted = std::min(group - at % group, end - at);
    const int tile = layer.stays_in_tiles ? static_cast<int>(at / group % chip::kTiles) : -1;
    const std::int64_t taken = memory.take(wanted, tile, layer.stays_in_tiles);
    if (taken == 0) break;
    at += taken;
  }
  share.lines += at - first;
  cached = at == end ? cached + bytes : static_cast<std::int64_t>(static_cast<double>(at) / lines_per_byte);
}

using Shares = std::vector<CacheShare>;

void cache_in_order(std::span<const CacheModel> models, WideMemory& memory, Shares& shares) {
  for (std::size_t m = 0; m < models.size(); ++m) {
    for (std::size_t l = 0; l < models[m].layers.size(); ++l) {
      const CacheLayer& layer = models[m].layers[l];
      cache_layer(layer, layer.bytes, memory, shares[m].cached_bytes[l], shares[m]);
    }
    shares[m].lines_left = memory.left();
  }
}

// First what costs time where it is sent, where most time is saved by a line; then the rest.
void cache_for_time(std::span<const CacheModel> models, WideMemory& memory, Shares& shares) {
  struct Portion {
    std::size_t model = 0, layer = 0;
    std::int64_t bytes = 0;
    double us_per_line = 0;
  };
  std::vector<Portion> portions;
  for (std::size_t m = 0; m < models.size(); ++m) {
    for (std::size_t l = 0; l < models[m].layers.size(); ++l) {
      const CacheLayer& layer = models[m].layers[l];
      if (layer.bytes <= 0 || layer.lines <= 0) continue;
      const std::int64_t hidden = std::clamp<std::int64_t>(layer.hidden_bytes, 0, layer.bytes);
      const double saved = layer.us_per_byte * static_cast<double>(layer.bytes) / static_cast<double>(layer.lines);
      portions.push_back({m, l, layer.bytes - hidden, saved});
      portions.push_back({m, l, hidden, 0});
    }
  }
  std::stable_sort(portions.begin(), portions.end(),
                   [](const Portion& a, const Portion& b) { return a.us_per_line > b.us_per_line; });
  for (const Portion& portion : portions) {
    CacheShare& share = shares[portion.model];
    cache_layer(models[portion.model].layers[portion.layer], portion.bytes, memory, share.cached_bytes[portion.layer],
                share);
  }
  for (CacheShare& share : shares) share.lines_left = memory.left();
}

}  // namespace

CacheLayer CacheLayer::of(const ops::ChipWork& work) {
  return {work.parameter_bytes, work.parameter_lines, work.group_lines, work.stays_in_tiles, 0, 0};
}

std::vector<CacheShare> share_cache(std::span<const CacheModel> models, CachePolicy policy, std::int64_t line_limit) {
  std::int64_t scratch = 0;  // of the one that needs most: it must not overwrite what another one cached
  for (const CacheModel& model : models) scratch = std::max(scratch, model.scratch_lines);
  WideMemory memory(chip::kWideLines - scratch, line_limit);
  Shares shares(models.size());
  for (std::size_t m = 0; m < models.size(); ++m) shares[m].cached_bytes.resize(models[m].layers.size());
  policy == CachePolicy::kInOrder ? cache_in_order(models, memory, shares) : cache_for_time(models, memory, shares);
  for (std::size_t m = 0; m < models.size(); ++m) {
    for (std::size_t l = 0; l < models[m].layers.size(); ++l) {
      shares[m].streamed_bytes += models[m].layers[l].bytes - shares[m].cached_bytes[l];
    }
  }
  return shares;
}

}  // namespace reef::partition
