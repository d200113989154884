// SPDX-License-Identifier: Apache-2.0
// Integer steps from an audio spectrum to features for speech models, equal to TFLite-Micro's signal library: energies,
// mel filter bank, square root, noise subtraction, per-channel gain control (PCAN), logarithm.
#pragma once

#include <cstdint>
#include <span>

#include "base/status.h"

namespace reef::kernels {

// output = saturate(input * window >> shift), 0 <= shift <= 31.
void apply_window(std::span<const std::int16_t> input, std::span<const std::int16_t> window, int shift,
                  std::int16_t* output);

// Shifts to the left as far as the largest magnitude allows; returns by how many bits.
int scale_up_for_fft(std::span<const std::int16_t> input, std::int16_t* output);

// |z|^2 of complex numbers (real, imaginary) first .. end - 1; the others are 0.
void spectrum_energy(std::span<const std::int16_t> spectrum, std::int64_t first, std::int64_t end,
                     std::uint32_t* energy);

// A bank of overlapping triangular filters: each frequency counts with `weights` for its channel and with `unweights`
// for the next one. Channel i covers `widths[i]` frequencies from `starts[i]`, whose weights start at
// `weight_starts[i]`. The first channel only feeds the second and has no output.
struct FilterBank {
  std::span<const std::int16_t> weights, unweights, starts, weight_starts, widths;
};
// Fails if an index leads outside.
Status run_filter_bank(const FilterBank& bank, std::span<const std::uint32_t> energy,
                       std::span<std::uint64_t> channels);

// round(sqrt(x)), but below 2^32 the result never exceeds 65535.
std::uint32_t rounded_square_root(std::uint64_t x);

struct NoiseSubtraction {
  // Weights of the new and of the old value in a channel's running mean, for channels of even and of odd number.
  std::uint32_t smoothing[2] = {}, one_minus_smoothing[2] = {};
  std::uint32_t min_signal_remaining = 0;
  int smoothing_bits = 0;             // 0 to 31
  int spectral_subtraction_bits = 0;  // fractional bits of the weights, 0 to 63
  bool clamping = false;              // the estimate never exceeds the signal
};
void subtract_noise(const NoiseSubtraction& settings, std::span<const std::uint32_t> signal,
                    std::span<std::uint32_t> noise_estimate, std::uint32_t* output);

// Gain control by a piecewise quadratic function of the noise; `table` has 125 entries at least. 0 <= snr_shift <= 63.
inline constexpr std::size_t kGainTableEntries = 125;
std::uint32_t pcan(std::uint32_t signal, std::uint32_t noise_estimate, std::span<const std::int16_t> table,
                   int snr_shift);

// ln(x << correction_bits) * output_scale, rounded, at most 32767; 0 where the argument is 0 or 1.
std::int16_t scaled_logarithm(std::uint32_t x, std::uint32_t output_scale, int correction_bits);

}  // namespace reef::kernels
