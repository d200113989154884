// SPDX-License-Identifier: Apache-2.0
// Sums of 8-bit products to 8-bit outputs, in floats that know when they are not sure: the same bits as
// matmul/requantize.h.
//
// The reference rounds twice in fixed point, which equals (shift >= 0 to the right)
//   zero_point + floor(sum * factor + 1/2 + (sum < 0 ? -1 : 1) * 2^-(shift + 1))
// over real numbers. This is computed in float, plus kSlack units of the last of 16 binary places, and made an integer
// of that many places. How far off can that be? Only products of at most 256 count; larger ones are beyond an 8-bit
// output's range, and beyond 2^15 they are cut off. With 16 places 256 are 2^24 units: rounding the factor to a float
// moves them by 1 unit at most, rounding the sum (of 2^24 or more) by 1, the constant by 1/2, the result and its
// integer by 3/4; without a fused multiply-add (SSE4) the product is rounded, too, by 1/2 where it is below 256: less
// than kSlack in all. So what lies 2 * kSlack units or more above an integer lies above it for sure; for the others,
// one number in 8,000, the reference's function decides.
//
// For factors of 1 and more the reference shifts the sum to the left in 32 bits and rounds once: the same formula
// without the last term, as long as no bits are lost. A channel whose sums may lose some, or may be beyond 32 bits with
// the zero point added, gets a factor of 0 and nothing above an integer, so that the reference's function decides all
// of its results.
//
// 16 places: result and places are the halves of a 32-bit number, where AVX-512 gets at them with one instruction each.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/matmul/requantize.h"
#include "kernels/simd/aligned.h"

namespace reef::kernels {

inline constexpr std::int32_t kSlack = 4;
// With this many units of the last binary place or more above an integer, a number is on that side of it for sure.
inline constexpr std::int32_t kSurePlaces = 2 * kSlack;
inline constexpr int kPlaces = 16;  // binary ones

// How sums become 8-bit outputs. Arrays have one element per slot, usually the channel; a kernel whose vectors hold
// channels in another order has another order of slots.
struct ByteScaling {
  std::shared_ptr<const Requantizer> exact;
  AlignedVector<std::int32_t> start;  // bias, and what makes up for zero points
  AlignedVector<float> factor;        // times 2^kPlaces
  // Zero point and one half, moved as above for sums >= 0 and < 0, times 2^kPlaces, plus kSlack.
  AlignedVector<float> above, below;
  // `above` serves all sums, because negative ones give the lowest output (a fused RELU) or are rounded alike; no
  // result is beyond 2^15; and the limits are those of the type, as where RELU6 is all that the output's scale reaches.
  bool is_plain = false;
};
// The largest float that fits a 32-bit integer; no float result may exceed it.
inline constexpr float kLargestScaled = 2147483520.0f;

// The number that a channel's sum begins with, and the largest magnitude that the sum may have.
struct ChannelSums {
  std::int32_t start = 0;
  double largest = 0;
  std::int64_t channel = 0, slot = 0;  // several slots may hold one channel
};
// The arrays have `slots` elements, zeros where there is no channel.
ByteScaling make_byte_scaling(const std::shared_ptr<const Requantizer>& exact, const std::vector<ChannelSums>& channels,
                              std::int64_t slots);

// Whether requantization is of the kinds that this does: 32-bit sums, in fixed point or times a real number.
bool suits_byte_scaling(const Requantizer& q);

// The output for a channel's sum (with its start), by the reference's function.
std::uint8_t exact_byte(const Requantizer& q, std::int32_t sum, std::int64_t channel);

}  // namespace reef::kernels
