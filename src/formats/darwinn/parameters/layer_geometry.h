// SPDX-License-Identifier: Apache-2.0
// Where in a chunk each value of a layer stands. Shared by pack and unpack, so that they cannot disagree.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "formats/darwinn/parameters/layer_parameters.h"

namespace reef::darwinn {

// All offsets are in bytes from the start of the chunk. The shape must be valid.
class LayerGeometry {
 public:
  LayerGeometry(const LayerShape& shape, Presence presence, LoopOrder order)
      : depthwise_(shape.kind == LayerKind::kDepthwise),
        presence_(presence),
        outputs_(shape.output_channels),
        cells_(cells_per_line(shape)),
        group_channels_(depthwise_ ? cells_ : std::min(outputs_, kCellsPerTile)),
        kernel_width_(shape.kernel_width),
        kernel_positions_(std::int64_t{shape.kernel_height} * shape.kernel_width),
        words_(depthwise_ ? 1 : (std::int64_t{shape.input_channels} + 3) / kInputChannelsPerWord),
        block_words_(order.block_words <= 0 ? words_ : std::min<std::int64_t>(order.block_words, words_)) {}

  std::int32_t cells() const { return cells_; }
  std::int32_t groups() const { return (outputs_ + group_channels_ - 1) / group_channels_; }
  std::int32_t group_channels() const { return group_channels_; }
  // Channels of group `group` that exist; the last group may have fewer than the others.
  std::int32_t channels_in(std::int32_t group) const {
    return std::min(group_channels_, outputs_ - group * group_channels_);
  }
  std::int64_t lines() const { return kernel_positions_ * words_; }
  std::int64_t line_bytes() const { return std::int64_t{4} * cells_; }
  std::int64_t header_bytes() const { return presence_.arrays() * line_bytes(); }
  std::int64_t group_bytes() const { return header_bytes() + lines() * line_bytes(); }
  std::int64_t unpadded_bytes() const { return groups() * group_bytes(); }

  std::int64_t multiplier_offset(std::int32_t output) const { return header_offset(0, output); }
  std::int64_t bias_offset(std::int32_t output) const { return header_offset(int{presence_.multipliers}, output); }
  std::int64_t zero_point_offset(std::int32_t output) const {
    return header_offset(int{presence_.multipliers} + int{presence_.biases}, output);
  }
  // Offset of the first weight line of a group.
  std::int64_t weights_offset(std::int32_t group) const { return group * group_bytes() + header_bytes(); }

  // Depthwise layers: `input` is ignored, the weight stands on the diagonal.
  std::int64_t weight_offset(std::int32_t output, std::int32_t ky, std::int32_t kx, std::int32_t input) const {
    const std::int32_t cell = output % group_channels_;
    const std::int64_t word = depthwise_ ? 0 : input / kInputChannelsPerWord;
    const std::int32_t lane = depthwise_ ? cell : input % kInputChannelsPerWord;
    const std::int64_t block = word / block_words_;
    const std::int64_t words_in_block = std::min(block_words_, words_ - block * block_words_);
    const std::int64_t line = block * block_words_ * kernel_positions_ +
                              (std::int64_t{ky} * kernel_width_ + kx) * words_in_block + word % block_words_;
    return weights_offset(output / group_channels_) + line * line_bytes() + std::int64_t{4} * cell + lane;
  }

 private:
  std::int64_t header_offset(int array, std::int32_t output) const {
    return output / group_channels_ * group_bytes() + array * line_bytes() +
           std::int64_t{4} * (output % group_channels_);
  }

  bool depthwise_;
  Presence presence_;
  std::int32_t outputs_, cells_, group_channels_, kernel_width_;
  std::int64_t kernel_positions_, words_, block_words_;
};

}  // namespace reef::darwinn
