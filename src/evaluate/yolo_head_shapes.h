// SPDX-License-Identifier: Apache-2.0
// Where the numbers of a YOLO's raw heads lie in its outputs, told from shapes alone. yolo_heads.h says which forms
// there are, and decodes them.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "evaluate/boxes.h"

namespace reef::evaluate {

inline constexpr std::int64_t kBins = 16, kBoxChannels = 4 * kBins;
inline constexpr std::int64_t kAnchorNumbers = 5;  // box and objectness

// Where the numbers of one stride lie in an output, in elements.
struct HeadMap {
  std::size_t output = 0;
  std::int64_t height = 0, width = 0;
  std::int64_t anchors = 1, channels = 0;  // channels of one anchor
  std::int64_t first = 0, anchor_step = 0, cell_step = 0, channel_step = 0;
  bool is_row = false;

  std::int64_t cells() const { return height * width; }
  std::size_t at(std::int64_t anchor, std::int64_t cell, std::int64_t channel) const {
    return static_cast<std::size_t>(first + anchor * anchor_step + cell * cell_step + channel * channel_step);
  }
};

enum class HeadKind { kDistributions, kAnchors };

struct Heads {
  HeadKind kind = HeadKind::kDistributions;
  struct Stride {
    HeadMap boxes;                  // or everything
    std::optional<HeadMap> scores;  // where they are an output of their own
  };
  std::vector<Stride> strides;  // finest first
};

// Every kind of heads that these shapes (without the batch) allow, the likelier one first. Rows of anchors are not
// among them, because decoded rows have the same shapes.
std::vector<Heads> possible_heads(const std::vector<std::vector<std::int64_t>>& shapes, const DetectorOptions& options);

// The strides of rows of all cells, [n, c] or [c, n]; with anchors, those of one stride lie behind each other. Nothing:
// their number is not that of a model's cells.
std::vector<HeadMap> maps_of_rows(const std::vector<std::int64_t>& dims, std::int64_t anchors,
                                  const DetectorOptions& options);

// How many anchors each cell has: as many as are given, else three.
std::int64_t anchors_of(const DetectorOptions& options);

}  // namespace reef::evaluate
