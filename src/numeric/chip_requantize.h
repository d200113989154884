// SPDX-License-Identifier: Apache-2.0
// The Edge TPU's requantization: THE definition of the chip flavour. (TFLite's is numeric/fixed_point.h; the two are
// never mixed.)
//
// The chip works on unsigned bytes: an int8 tensor's values and zero point are 128 higher there. A sum is turned into
// an output byte in single precision, with one rounding:
//
//   int32 sum + bias + offset -> float32 -> * multiplier -> clamp to [min, max] -> round half to even -> + zero point
//   -> saturate to 0..255
//
// The constants of that line are computed by the compiler, and Google's compilers compute them in float32 in a certain
// order of operations; another order gives other last bits. The functions here follow theirs.
//
// How it is known: constants read from the programs Google's compilers produced, compared with the source models'
// scales (each function says how many); rounding from outputs recorded on a device. Nothing was run on a chip for this.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>

namespace reef::numeric {

// The activation that is fused into an operator: the range of real numbers that it allows.
enum class ChipActivation { kNone, kRelu, kRelu6, kReluN1To1 };

// Bounds of the scaled sum, relative to the output zero point, before rounding.
struct ChipClamp {
  float max = 0;
  float min = 0;
  friend bool operator==(const ChipClamp&, const ChipClamp&) = default;
};
inline constexpr ChipClamp kNoChipClamp = {std::numeric_limits<float>::infinity(),
                                           -std::numeric_limits<float>::infinity()};

// Convolution, depthwise, fully connected: (1/s_out) * (s_in * s_w). Exact for 1792 per-channel multipliers and every
// per-tensor layer compared; eight other orders are not.
float chip_layer_multiplier(float input_scale, float weight_scale, float output_scale);

// QUANTIZE, RELU, copies between scales: (1/s_out) * s_in.
float chip_rescale_multiplier(float input_scale, float output_scale);

// Product of two tensors: (1/s_out) * (s_a * s_b).
float chip_product_multiplier(float a_scale, float b_scale, float output_scale);

// Product with a constant, per channel: (1/s_out) * (s_in * (s_const * (q - zero_point))).
float chip_constant_product_multiplier(float input_scale, float constant_scale, std::int32_t constant_minus_zero_point,
                                       float output_scale);

// A constant added per channel, in units of the input's scale: the bias that stands for (q - zero_point) * s_const. It
// is the one constant that is not computed in float32: MoveNet subtracts 255 * 0.003921569 from values of scale
// 0.007843138, which is 127.5 and became 128, while the product rounded to float32 gives 127.49999 and 127. Halves to
// even. Returns nullopt when it does not fit 32 bits or a scale is not a positive number.
std::optional<std::int32_t> chip_constant_bias(std::int32_t constant_minus_zero_point, float constant_scale,
                                               float input_scale);

// f32(f32((q - zp) * s) * f32(1/s)) for q = 255 and 0: not always 255 - zp, 254.99998 occurs. `zero_point` is the
// chip's (0..255). An activation first limits the real value; kReluN1To1 is inferred from the others.
ChipClamp chip_clamp(float scale, std::int32_t zero_point, ChipActivation activation);

// Average pooling over `count` values. Two orders exist. Whole maps by compilers of generation 15 and later divide by
// the output scale last: (1/s_out) * (s_in * (1/n)). Whole maps by older ones, and windows smaller than the map, divide
// by the count last: (1/n) * (s_in * (1/s_out)); for such windows no package with different scales tells the two apart.
enum class ChipPoolOrder { kCountLast, kOutputLast };
float chip_pool_multiplier(float input_scale, float output_scale, std::int32_t count, ChipPoolOrder order);

// ADD of two tensors: the sum of integer multiples p_a * (a - z_a) + p_b * (b - z_b), where p_a : p_b is the fraction
// closest to s_a : s_b with both at most 32767. 124 of 124 additions compared.
struct ChipAdd {
  std::int32_t a_weight = 0, b_weight = 0;  // 0..32767; the larger scale's is the denominator
  float multiplier = 0;                     // (1/s_out) * (larger scale / denominator)
  std::int32_t offset = 0;                  // -(p_a * z_a + p_b * z_b), added to the sum
  friend bool operator==(const ChipAdd&, const ChipAdd&) = default;
};
// The oldest of Google's compilers (packages without a model identifier) chooses the fraction otherwise: it counts the
// smaller scale's weight up from 1 until (weight * (1/smaller)) * larger, in float32, is a whole number, which is the
// larger one's. Nine of nine additions compared (a MobileNet v2 for birds).
enum class ChipAddWeights { kClosest, kFirstWhole };
// nullopt: a scale is not a positive finite number, a zero point is not the chip's (0..255), or counting finds no
// weights of 15 bits.
std::optional<ChipAdd> chip_add(float a_scale, std::int32_t a_zero_point, float b_scale, std::int32_t b_zero_point,
                                float output_scale, ChipAddWeights weights = ChipAddWeights::kClosest);

// The fraction closest to `value` among those with a denominator of at most `max_denominator`; of two equally close the
// one with the smaller denominator. Exact: no rounding enters the choice. 0 <= value <= 2^31, 1 <= max_denominator <=
// 2^31.
struct Fraction {
  std::int64_t numerator = 0;
  std::int64_t denominator = 1;
  friend bool operator==(const Fraction&, const Fraction&) = default;
};
Fraction closest_fraction(double value, std::int64_t max_denominator);

// The pipeline of the head comment, after bias and offset.
std::uint8_t chip_requantize(std::int32_t sum, float multiplier, ChipClamp clamp, std::int32_t zero_point);

}  // namespace reef::numeric
