// SPDX-License-Identifier: Apache-2.0
// Depthwise convolution of 8-bit numbers, fast and exact: the same bits as depthwise_convolve (conv/depthwise.h)
// followed by matmul/requantize.h, which are the reference.
//
// 32 channels at a time. Bytes of up to four rows of a window, one below the other, are interleaved, so that one
// instruction (AVX-512 with VNNI) multiplies four and adds them up per channel; columns that neighbouring windows share
// are interleaved once, and for two rows of outputs where windows have three rows. AVX2 and SSE4 have no such
// instruction that is exact; there two at a time are widened to 16 bits. Positions outside of the image read from a
// line of zero points. AVX-512: int8 activations are raised by 128 on the way. Weights less their zero point may need 9
// bits: then each of the block is written as a sum of two, or three for 255. 64-bit ARM multiplies 16-bit numbers, 16
// channels at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/conv/conv_shape.h"
#include "kernels/matmul/byte_scaling.h"
#include "kernels/simd/aligned.h"
#include "kernels/simd/targets.h"

namespace reef::kernels {

inline constexpr std::int64_t kDepthwiseBlock = 32;  // channels
inline constexpr std::int64_t kDepthwiseHalf = 16;   // channels that 64-bit ARM does at a time

// Whether the active target has these kernels for this convolution.
bool has_depthwise_bytes(const ConvShape& s);

// First channel of a block. The last block of 32 or more channels does some of the block before again.
inline std::int64_t block_channel(const ConvShape& s, std::int64_t block) {
  return std::min(block * kDepthwiseBlock, std::max<std::int64_t>(s.output_channels - kDepthwiseBlock, 0));
}
// 64-byte vectors: [block][output row][column of the window][group of 4 rows][summand][64 bytes, twice], channels in
// order. AVX2, SSE4: [block][part of it][column of the window][group of 4 rows][upper, lower two rows][vector of 32 or
// 16 bytes, twice], 16-bit numbers. 64-bit ARM: [block][half of its channels][row][column][channel], 16-bit numbers.
struct DepthwiseWeights {
  bool is_wide = false;  // 64-byte vectors
  bool is_neon = false;  // 64-bit ARM
  bool is_sse4 = false;
  // 64-bit ARM: the channel of a block at which its second half begins. Where there are fewer than 32 channels the
  // second half does some of the first again; none with 16 or fewer.
  std::int64_t second_half = kDepthwiseHalf;
  std::int64_t row_groups = 1;
  bool is_three_by_three = false;  // 64-byte vectors, and windows of 3 by 3 that move by 1 or 2
  std::int64_t output_rows = 1;    // that there are weights for; see depthwise_3x3_body.h
  AlignedVector<std::int8_t> values;
  std::vector<std::int64_t> block_begin;     // where a block's values begin
  std::vector<std::int64_t> block_summands;  // 64-byte vectors: signed bytes that each weight is a sum of
  std::vector<std::int32_t> sums;            // per channel
  std::vector<float> magnitudes;             // per channel

  std::int64_t block_channels = 0;  // of all blocks

  // AVX2, SSE4: parts of 16 or 8 channels that a block has, and a part's first channel. The last does some of the one
  // before again if there are fewer than 32.
  std::int64_t part() const { return is_sse4 ? 8 : 16; }
  std::int64_t parts() const { return std::max<std::int64_t>((block_channels + part() - 1) / part(), 1); }
  std::int64_t part_channel(std::int64_t index) const {
    return std::min(index * part(), std::max<std::int64_t>(block_channels - part(), 0));
  }
  std::int64_t tap_bytes() const { return 8 * part(); }  // four rows of a column
  // Which channel of a block slot `slot` (of 32) is; not below block_channels: none. AVX2 has an order that
  // interleaving gives, and reads 8 to 15 channels as two pieces of 8.
  std::int64_t channel_in_block(std::int64_t slot) const {
    if (is_neon) return slot < kDepthwiseHalf ? slot : second_half + slot - kDepthwiseHalf;
    if (is_wide) return slot;
    const std::int64_t index = slot / part();
    if (index >= parts()) return block_channels;
    if (is_sse4) return part_channel(index) + slot % part();
    const std::int64_t in_part = slot % 8 / 4 * 8 + slot % 16 / 8 * 4 + slot % 4;
    const bool is_second_piece = block_channels >= 8 && block_channels < 16 && in_part >= 8;
    return part_channel(index) + (is_second_piece ? block_channels - 16 : 0) + in_part;
  }
};
// weights: [position][channel], zero points subtracted, within [-255, 255].
DepthwiseWeights pack_depthwise(const ConvShape& s, const std::int16_t* weights);

// T is int8_t or uint8_t. `bias` is null or has one number per channel.
template <typename T>
ByteScaling depthwise_scaling(const ConvShape& s, const DepthwiseWeights& weights,
                              const std::shared_ptr<const Requantizer>& exact, const std::int64_t* bias,
                              std::int32_t input_zero_point);

// Output rows [row_begin, row_end), counted over all batches, and blocks of channels [block_begin, block_end).
template <typename T>
void depthwise_bytes(const ConvShape& s, const T* input, std::int32_t input_zero_point, const DepthwiseWeights& weights,
                     const ByteScaling& scaling, std::int64_t row_begin, std::int64_t row_end, std::int64_t block_begin,
                     std::int64_t block_end, T* output);

}  // namespace reef::kernels
