// SPDX-License-Identifier: Apache-2.0
#include "kernels/signal/audio_features.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "numeric/fixed_point.h"

namespace reef::kernels {
namespace {

// Number of bits from the lowest to the highest that is set.
int bit_length(std::uint64_t x) { return 64 - std::countl_zero(x); }

// Digit by digit. `highest` is the largest result; it is not rounded up beyond.
template <typename Unsigned>
Unsigned square_root_by_digits(Unsigned x, Unsigned highest) {
  Unsigned result = 0;
  for (int bit_number = (bit_length(x) - 1) & ~1; bit_number >= 0; bit_number -= 2) {
    const Unsigned bit = Unsigned{1} << bit_number;
    if (x >= result + bit) {
      x -= result + bit;
      result = (result >> 1) + bit;
    } else {
      result >>= 1;
    }
  }
  return x > result && result != highest ? result + 1 : result;
}

constexpr int kLogFractionBits = 16;
constexpr int kLogSegmentBits = 7;

// log2(1 + x) - x at the ends of 128 segments of [0, 1], with 16 fractional bits; one more so that the end has a next.
const std::array<std::int32_t, (1 << kLogSegmentBits) + 2>& log_table() {
  static const auto table = [] {
    std::array<std::int32_t, (1 << kLogSegmentBits) + 2> result = {};
    for (int i = 0; i <= 1 << kLogSegmentBits; ++i) {
      const double x = static_cast<double>(i) / (1 << kLogSegmentBits);
      result[static_cast<std::size_t>(i)] =
          static_cast<std::int32_t>(std::lround((std::log2(1 + x) - x) * (1 << kLogFractionBits)));
    }
    return result;
  }();
  return table;
}

// log2(x) with 16 fractional bits, x >= 1.
std::uint32_t log2_fixed(std::uint32_t x) {
  const int whole = bit_length(x) - 1;
  auto fraction = static_cast<std::int32_t>(x - (std::uint32_t{1} << whole));
  fraction = whole < kLogFractionBits ? fraction << (kLogFractionBits - whole) : fraction >> (whole - kLogFractionBits);
  const int segment_shift = kLogFractionBits - kLogSegmentBits;
  const std::int32_t segment = fraction >> segment_shift;
  const std::int32_t low = log_table()[static_cast<std::size_t>(segment)];
  const std::int32_t high = log_table()[static_cast<std::size_t>(segment) + 1];
  const std::int32_t within = ((high - low) * (fraction - (segment << segment_shift))) >> kLogFractionBits;
  return (static_cast<std::uint32_t>(whole) << kLogFractionBits) + static_cast<std::uint32_t>(fraction + low + within);
}

// The gain for an amount of noise: three coefficients for every octave, with 10 bits of position within it.
std::int16_t gain_for(std::uint32_t noise, std::span<const std::int16_t> table) {
  if (noise <= 2) return table[noise];
  const int octave = bit_length(noise);
  const std::int16_t* coefficients = table.data() + 4 * octave - 6;
  constexpr int kPositionBits = 10;
  const int shift = kPositionBits + 1 - octave;
  const auto position =
      static_cast<std::int32_t>((shift > 0 ? noise << shift : noise >> -shift) & ((1u << kPositionBits) - 1));
  std::int32_t result = (coefficients[2] * position) >> 5;
  result = numeric::wrapping_add(result, numeric::wrapping_shift_left(coefficients[1], 5));
  result = numeric::wrapping_mul(result, position);
  result = numeric::wrapping_add(result, 1 << 14) >> 15;
  return static_cast<std::int16_t>(result + coefficients[0]);
}

}  // namespace

void apply_window(std::span<const std::int16_t> input, std::span<const std::int16_t> window, int shift,
                  std::int16_t* output) {
  for (std::size_t i = 0; i < input.size(); ++i) {
    output[i] = numeric::saturate<std::int16_t>((input[i] * window[i % window.size()]) >> shift);
  }
}

int scale_up_for_fft(std::span<const std::int16_t> input, std::int16_t* output) {
  int largest = 0;
  for (const std::int16_t value : input) largest = std::max(largest, std::abs(int{value}));
  // All zeros are not scaled; neither is -32768, which has no positive counterpart.
  const int bits = largest == 0 ? 0 : std::max(0, 15 - bit_length(static_cast<std::uint64_t>(largest)));
  for (std::size_t i = 0; i < input.size(); ++i) output[i] = static_cast<std::int16_t>(input[i] * (1 << bits));
  return bits;
}

void spectrum_energy(std::span<const std::int16_t> spectrum, std::int64_t first, std::int64_t end,
                     std::uint32_t* energy) {
  const auto count = static_cast<std::int64_t>(spectrum.size() / 2);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int32_t real = spectrum[static_cast<std::size_t>(2 * i)];
    const std::int32_t imaginary = spectrum[static_cast<std::size_t>(2 * i + 1)];
    energy[i] = i >= first && i < end
                    ? static_cast<std::uint32_t>(real * real) + static_cast<std::uint32_t>(imaginary * imaginary)
                    : 0;
  }
}

Status run_filter_bank(const FilterBank& bank, std::span<const std::uint32_t> energy,
                       std::span<std::uint64_t> channels) {
  std::uint64_t weighted = 0, unweighted = 0;
  for (std::size_t i = 0; i <= channels.size(); ++i) {
    const std::int64_t start = bank.starts[i], weight_start = bank.weight_starts[i];
    const std::int64_t width = std::max<std::int64_t>(0, bank.widths[i]);
    const auto weights = static_cast<std::int64_t>(std::min(bank.weights.size(), bank.unweights.size()));
    REEF_REQUIRE(width == 0 || (start >= 0 && start + width <= static_cast<std::int64_t>(energy.size()) &&
                                weight_start >= 0 && weight_start + width <= weights),
                 "channel {} covers {} frequencies from {} and weights from {}; there are {} and {}", i, width, start,
                 weight_start, energy.size(), weights);
    for (std::int64_t j = 0; j < width; ++j) {
      const std::uint64_t value = energy[static_cast<std::size_t>(start + j)];
      const auto at = static_cast<std::size_t>(weight_start + j);
      weighted += static_cast<std::uint64_t>(std::int64_t{bank.weights[at]}) * value;
      unweighted += static_cast<std::uint64_t>(std::int64_t{bank.unweights[at]}) * value;
    }
    if (i > 0) channels[i - 1] = weighted;
    weighted = unweighted;
    unweighted = 0;
  }
  return ok_status();
}

std::uint32_t rounded_square_root(std::uint64_t x) {
  if (x == 0) return 0;
  if (x >> 32 == 0) return square_root_by_digits(static_cast<std::uint32_t>(x), std::uint32_t{0xFFFF});
  return static_cast<std::uint32_t>(square_root_by_digits(x, std::uint64_t{0xFFFFFFFF}));
}

void subtract_noise(const NoiseSubtraction& settings, std::span<const std::uint32_t> signal,
                    std::span<std::uint32_t> noise_estimate, std::uint32_t* output) {
  for (std::size_t i = 0; i < signal.size(); ++i) {
    const std::uint32_t scaled_up = signal[i] << settings.smoothing_bits;
    const std::uint64_t mean = std::uint64_t{scaled_up} * settings.smoothing[i % 2] +
                               std::uint64_t{noise_estimate[i]} * settings.one_minus_smoothing[i % 2];
    noise_estimate[i] = static_cast<std::uint32_t>(mean >> settings.spectral_subtraction_bits);
    std::uint32_t estimate = noise_estimate[i];
    if (estimate > scaled_up) {
      estimate = scaled_up;
      if (settings.clamping) noise_estimate[i] = estimate;
    }
    const auto floor = static_cast<std::uint32_t>((std::uint64_t{signal[i]} * settings.min_signal_remaining) >>
                                                  settings.spectral_subtraction_bits);
    output[i] = std::max((scaled_up - estimate) >> settings.smoothing_bits, floor);
  }
}

std::uint32_t pcan(std::uint32_t signal, std::uint32_t noise_estimate, std::span<const std::int16_t> table,
                   int snr_shift) {
  constexpr int kSnrBits = 12, kOutputBits = 6;  // fractional bits
  const auto gain = static_cast<std::uint32_t>(std::int32_t{gain_for(noise_estimate, table)});
  const auto snr = static_cast<std::uint32_t>((std::uint64_t{signal} * gain) >> snr_shift);
  // x^2 / 4 below 2, x - 1 from there on.
  if (snr < (2u << kSnrBits)) return (snr * snr) >> (2 + 2 * kSnrBits - kOutputBits);
  return (snr >> (kSnrBits - kOutputBits)) - (1u << kOutputBits);
}

std::int16_t scaled_logarithm(std::uint32_t x, std::uint32_t output_scale, int correction_bits) {
  constexpr std::uint64_t kLn2 = 45426;  // with 16 fractional bits
  constexpr std::uint32_t kHalf = 1u << (kLogFractionBits - 1);
  const std::uint32_t scaled = x << correction_bits;
  if (scaled <= 1) return 0;
  const auto natural = static_cast<std::uint32_t>((kLn2 * log2_fixed(scaled) + kHalf) >> kLogFractionBits);
  const std::uint32_t result = (output_scale * natural + kHalf) >> kLogFractionBits;
  return static_cast<std::int16_t>(std::min<std::uint32_t>(result, 32767));
}

}  // namespace reef::kernels
