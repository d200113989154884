// SPDX-License-Identifier: Apache-2.0
#include "evaluate/yolo_head_shapes.h"

#include <functional>
#include <map>
#include <span>
#include <string_view>

#include "evaluate/yolo_heads.h"

namespace reef::evaluate {
namespace {

using Dims = std::vector<std::int64_t>;

constexpr std::int64_t kUsualAnchors = 3;
constexpr std::int64_t kLeastStride = 4, kMostStride = 128;

struct Grid {
  std::int64_t height = 0, width = 0;
};

// The stride of a grid over the model's input; 0 if it is none.
std::int64_t stride_of(std::int64_t height, std::int64_t width, const DetectorOptions& options) {
  for (std::int64_t stride = kLeastStride; stride <= kMostStride; stride *= 2) {
    const auto fits = [&](std::int64_t cells, double pixels) { return static_cast<double>(cells * stride) == pixels; };
    if (fits(height, options.input_height) && fits(width, options.input_width)) return stride;
  }
  return 0;
}

// The grids whose cells are `n` rows, if there are some: consecutive strides from 4, 8 or 16 on.
std::vector<Grid> grids_of_rows(std::int64_t n, const DetectorOptions& options) {
  for (std::int64_t first = kLeastStride; first <= 4 * kLeastStride; first *= 2) {
    std::vector<Grid> grids;
    std::int64_t cells = 0;
    for (std::int64_t stride = first; stride <= kMostStride; stride *= 2) {
      const auto width = static_cast<std::int64_t>(options.input_width) / stride;
      const auto height = static_cast<std::int64_t>(options.input_height) / stride;
      if (stride_of(height, width, options) != stride) break;
      grids.push_back({height, width});
      cells += height * width;
      if (cells == n && grids.size() > 1) return grids;
    }
  }
  return {};
}

// One stride's map with an axis for anchors. Axes are named by letters: a anchors, h rows, w columns, n cells, c.
std::optional<HeadMap> map_of_axes(const Dims& dims, std::string_view axes, std::int64_t anchors,
                                   const DetectorOptions& options) {
  std::map<char, std::pair<std::int64_t, std::int64_t>> found;  // size, step
  std::int64_t step = 1;
  for (std::size_t i = dims.size(); i-- > 0;) {
    found[axes[i]] = {dims[i], step};
    step *= dims[i];
  }
  HeadMap map;
  if (found.contains('n')) {
    for (std::int64_t stride = kLeastStride; stride <= kMostStride; stride *= 2) {
      const auto width = static_cast<std::int64_t>(options.input_width) / stride;
      const auto height = static_cast<std::int64_t>(options.input_height) / stride;
      if (stride_of(height, width, options) != stride || height * width != found['n'].first) continue;
      map.height = height;
      map.width = width;
    }
    map.cell_step = found['n'].second;
  } else {
    map.height = found['h'].first;
    map.width = found['w'].first;
    map.cell_step = found['w'].second;
  }
  if (stride_of(map.height, map.width, options) == 0) return std::nullopt;
  if (found.contains('a') && found['a'].first != anchors) return std::nullopt;
  map.anchors = found.contains('a') ? anchors : 1;
  map.anchor_step = found.contains('a') ? found['a'].second : 0;
  map.channels = found['c'].first;
  map.channel_step = found['c'].second;
  return map;
}

std::optional<HeadMap> map_of(const Dims& dims, std::int64_t anchors, const DetectorOptions& options) {
  static constexpr std::string_view kRank3[] = {"hwc", "chw", "nac", "anc"}, kRank4[] = {"ahwc", "hwac", "achw"};
  const std::span<const std::string_view> forms =
      dims.size() == 3 ? std::span<const std::string_view>(kRank3) : std::span<const std::string_view>(kRank4);
  for (const std::string_view axes : forms) {
    if (auto map = map_of_axes(dims, axes, anchors, options)) return map;
  }
  return std::nullopt;
}

// A map whose channels are those of several anchors, one behind the other.
HeadMap with_anchors(HeadMap map, std::int64_t anchors) {
  map.anchors = anchors;
  map.channels /= anchors;
  map.anchor_step = map.channels * map.channel_step;
  return map;
}

bool may_pack_anchors(std::int64_t channels, std::int64_t anchors, const DetectorOptions& options) {
  if (channels % anchors != 0 || channels / anchors <= kAnchorNumbers) return false;
  if (options.classes > 0) return channels == anchors * (kAnchorNumbers + options.classes);
  // Features of a backbone come in multiples of eight, and nothing else tells them from heads.
  constexpr std::int64_t kFeatureMultiple = 8;
  return channels % kFeatureMultiple != 0 || !options.anchors.empty();
}

bool may_be_distributions(std::int64_t channels, const DetectorOptions& options) {
  return options.classes > 0 ? channels == kBoxChannels + options.classes : channels > kBoxChannels;
}

// All maps in all outputs, by number of cells, most first. Empty: an output is no map.
using MapsBySize = std::map<std::int64_t, std::vector<HeadMap>, std::greater<>>;
MapsBySize maps_by_size(const std::vector<Dims>& shapes, std::int64_t anchors, const DetectorOptions& options) {
  MapsBySize maps;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    std::vector<HeadMap> of_output;
    if (shapes[i].size() == 2) {
      of_output = maps_of_rows(shapes[i], 1, options);
    } else if (shapes[i].size() == 3 || shapes[i].size() == 4) {
      if (const auto map = map_of(shapes[i], anchors, options)) of_output.push_back(*map);
    }
    if (of_output.empty()) return {};
    for (HeadMap& map : of_output) {
      map.output = i;
      maps[map.cells()].push_back(map);
    }
  }
  return maps;
}

// Boxes and scores as two outputs of every stride; an output with one number for each cell, the best score, may be a
// third (models for Frigate have it).
std::optional<Heads::Stride> as_pair(std::vector<HeadMap> maps) {
  if (maps.size() == 3) std::erase_if(maps, [](const HeadMap& map) { return map.channels == 1; });
  if (maps.size() != 2 || maps[0].anchors != 1 || maps[1].anchors != 1) return std::nullopt;
  const std::size_t boxes = maps[0].channels == kBoxChannels ? 0 : 1;
  if (maps[boxes].channels != kBoxChannels) return std::nullopt;
  return Heads::Stride{maps[boxes], maps[1 - boxes]};
}

// A map with all numbers of its cells, as distributions and as anchors.
std::optional<HeadMap> as_distributions(const HeadMap& map, const DetectorOptions& options) {
  // Rows with all channels of a cell look like decoded ones unless the number of classes is known.
  const bool is_certain = !map.is_row || options.classes > 0;
  const bool fits = map.anchors == 1 && is_certain && may_be_distributions(map.channels, options);
  return fits ? std::optional<HeadMap>(map) : std::nullopt;
}
std::optional<HeadMap> as_anchors(const HeadMap& map, std::int64_t anchors, const DetectorOptions& options) {
  if (map.anchors > 1) return map.channels > kAnchorNumbers ? std::optional<HeadMap>(map) : std::nullopt;
  if (map.is_row || !may_pack_anchors(map.channels, anchors, options)) return std::nullopt;
  return with_anchors(map, anchors);
}

// All strides of a detector have the same channels.
void add_stride(const std::optional<HeadMap>& map, Heads& heads) {
  if (!map) return;
  if (heads.strides.empty() || heads.strides.back().boxes.channels == map->channels) {
    heads.strides.push_back({*map, std::nullopt});
  }
}

std::vector<Heads> heads_with_classes(const std::vector<Dims>& shapes, const DetectorOptions& options) {
  const std::int64_t anchors = anchors_of(options);
  const MapsBySize maps = maps_by_size(shapes, anchors, options);
  if (maps.size() < 2) return {};  // one map alone is a segmenter's
  Heads pairs, distributions, packed;
  packed.kind = HeadKind::kAnchors;
  for (const auto& entry : maps) {
    const std::vector<HeadMap>& of_size = entry.second;
    if (const auto pair = as_pair(of_size)) pairs.strides.push_back(*pair);
    if (of_size.size() != 1) continue;
    add_stride(as_distributions(of_size.front(), options), distributions);
    add_stride(as_anchors(of_size.front(), anchors, options), packed);
  }
  std::vector<Heads> possible;
  for (Heads* heads : {&pairs, &packed, &distributions}) {
    if (heads->strides.size() == maps.size()) possible.push_back(std::move(*heads));
  }
  return possible;
}

}  // namespace

std::vector<HeadMap> maps_of_rows(const Dims& dims, std::int64_t anchors, const DetectorOptions& options) {
  for (const bool channels_last : {true, false}) {
    const std::int64_t n = dims[channels_last ? 0 : 1], channels = dims[channels_last ? 1 : 0];
    if (n % anchors != 0) continue;
    std::vector<HeadMap> maps;
    std::int64_t row = 0;
    for (const Grid& grid : grids_of_rows(n / anchors, options)) {
      HeadMap map{0, grid.height, grid.width, anchors, channels};
      map.is_row = true;
      const std::int64_t row_step = channels_last ? channels : 1;
      map.channel_step = channels_last ? 1 : n;
      map.first = row * row_step;
      map.cell_step = row_step;
      map.anchor_step = map.cells() * row_step;
      row += anchors * map.cells();
      maps.push_back(map);
    }
    if (!maps.empty()) return maps;
  }
  return {};
}

std::int64_t anchors_of(const DetectorOptions& options) {
  if (options.anchors.empty()) return kUsualAnchors;
  const auto given = parse_anchors(options.anchors);
  return given.ok() ? static_cast<std::int64_t>(given->front().size()) : kUsualAnchors;
}

std::vector<Heads> possible_heads(const std::vector<Dims>& shapes, const DetectorOptions& options) {
  std::vector<Heads> heads = heads_with_classes(shapes, options);
  if (!heads.empty() || options.classes == 0) return heads;
  // Label files often have more names than the model has classes.
  DetectorOptions any_classes = options;
  any_classes.classes = 0;
  return heads_with_classes(shapes, any_classes);
}

}  // namespace reef::evaluate
