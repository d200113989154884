// SPDX-License-Identifier: Apache-2.0
// The parameters of one convolution, depthwise convolution or fully connected layer, and the chunk of bytes the Edge
// TPU reads them from.
//
// A compiled package carries its parameters in blobs; a blob is a row of chunks without gaps, one per layer, each
// padded with zeros to a multiple of 64 bytes. `pack` writes such a chunk and `unpack` reads it. The layout (pictures
// in docs/hardware/parameters.md):
//
//   convolution, fully connected       for each group of 64 output channels ("cells"):
//     header                             one 32-bit word per cell and array: [multipliers] [biases] [zero points]
//     weights                            one line per step: 4 consecutive input channels for every cell
//   depthwise                          for each 4 channels:
//     header                             [multipliers x4] [biases x4] [zero points x4]
//     weights                            per kernel position a 4x4 matrix [out][in], weights on the diagonal
//
// How it is known: chunks regenerated from the source models equal the bytes of the packages Google's compilers (four
// generations) wrote for them; tests/zoo_parameters_test.cpp counts them. Nothing was run on a chip. Where no package
// shows a case, the comment says "inferred".
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "chip/machine.h"

namespace reef::darwinn {

inline constexpr std::size_t kChunkAlignment = 64;           // bytes
inline constexpr std::int32_t kCellsPerTile = chip::kCells;  // output channels computed side by side
inline constexpr std::int32_t kInputChannelsPerWord = 4;     // one 32-bit word of a cell's weights

enum class LayerKind { kConvolution, kDepthwise, kFullyConnected };

std::string_view layer_kind_name(LayerKind kind);  // "convolution", ...

struct LayerShape {
  LayerKind kind = LayerKind::kConvolution;
  std::int32_t kernel_height = 1;   // fully connected: 1
  std::int32_t kernel_width = 1;    // fully connected: 1
  std::int32_t input_channels = 1;  // depthwise: the same as output_channels
  std::int32_t output_channels = 1;
  // Cells of a stored line. 0: what the compiler chooses (see cells_per_line). Other values must be a multiple of 4, at
  // least the output channels rounded up to 4, at most 64, and only layers of up to 64 output channels can have them.
  std::int32_t cells = 0;
  friend bool operator==(const LayerShape&, const LayerShape&) = default;
};

// Which arrays stand in front of the weights.
struct Presence {
  bool multipliers = false;  // one float32 per output channel; otherwise the program holds the one there is
  bool biases = false;
  bool zero_points = false;  // the weight zero point once per output channel; otherwise it is in the program
  int arrays() const { return int{multipliers} + int{biases} + int{zero_points}; }
  friend bool operator==(const Presence&, const Presence&) = default;
};

// The order of the weight lines of a convolution. Input channels are taken in blocks of `block_words` words of 4:
//   for each block: for ky: for kx: for each word of the block
// All channels in one block is the compiler's choice when sums stay in accumulators ("yxz"); blocks of few words when
// partial sums go through memory ("zyx" is block_words = 1). See loop_order.h for the compiler's rule. For kernels of
// one position all orders are the same.
struct LoopOrder {
  std::int32_t block_words = 0;  // 0: all input channels
  static LoopOrder kernel_first() { return {0}; }
  static LoopOrder channels_first() { return {1}; }
  friend bool operator==(const LoopOrder&, const LoopOrder&) = default;
};

struct LayerParameters {
  LayerShape shape;
  LoopOrder order;
  // The chip's unsigned values (int8 weights with the top bit flipped), in the order of the TFLite tensor: convolution
  // [out][ky][kx][in], depthwise [ky][kx][channel], fully connected [out][in].
  std::vector<std::uint8_t> weights;
  // 0..255. Padding has this value, so that it multiplies as zero. Absent: not known, which is the case for an unpacked
  // layer whose chunk has neither padding nor a zero point array.
  std::optional<std::uint8_t> weight_zero_point;
  std::vector<float> multipliers;    // one per output channel, or empty: no array
  std::vector<std::int32_t> biases;  // one per output channel, or empty: no array
  bool has_zero_points = false;      // weight_zero_point is written out for every output channel

  Presence presence() const { return {!multipliers.empty(), !biases.empty(), has_zero_points}; }
};

// Sizes within what TFLite and the layout can express, and a chunk of less than 2^31 bytes.
Status validate(const LayerShape& shape);

// Cells of a stored line: `shape.cells`, or the compiler's choice: 64 above 64 output channels, 4 for convolutions of
// up to 4 (these run like depthwise layers), 4 for depthwise, and otherwise the output channels rounded up to 16. A
// 32x32 kernel with few output channels was once seen with 64: that takes `shape.cells`.
std::int32_t cells_per_line(const LayerShape& shape);

// Bytes of the chunk, a multiple of 64. Fails for a shape that `validate` refuses.
Result<std::size_t> packed_size(const LayerShape& shape, Presence presence);

Result<std::vector<std::uint8_t>> pack(const LayerParameters& layer);

// `chunk` must be exactly packed_size(shape, presence) bytes. Fails unless packing the result gives `chunk` again:
// padding that `pack` would write differently is reported with its offset.
// weight_zero_point: known from the program or the source model; absent: taken from the chunk where it shows.
Result<LayerParameters> unpack(std::span<const std::uint8_t> chunk, const LayerShape& shape, Presence presence,
                               LoopOrder order, std::optional<std::uint8_t> weight_zero_point = std::nullopt);

}  // namespace reef::darwinn
