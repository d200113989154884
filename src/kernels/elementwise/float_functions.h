// SPDX-License-Identifier: Apache-2.0
// Functions of floats that the C library computes one number at a time, in vectors.
//
// Results are the same bits on every target, for any number of threads and wherever an element lies; they are not the C
// library's bits. Largest errors over 43,000 floats of all sizes, measured against it in double
// (float_functions_test.cpp): exponentials 2 units in the last place, ELU, logistic and tanh 4, GELU 16. Infinities and
// NaN come out as the C library has them; results below the smallest normal number may be off by one of the smallest
// number there is.
#pragma once

#include <cstdint>

namespace reef::kernels {

// out[i] = exp(in[i]); `in` and `out` may be the same, here and below.
void exponentials(const float* in, std::int64_t count, float* out);
// 1 / (1 + exp(-x)); below -9 it is exp(x), above 16.6 it is 1, as in TFLite.
void logistics(const float* in, std::int64_t count, float* out);
// x where x >= 0, exp(x) - 1 below.
void elus(const float* in, std::int64_t count, float* out);
void hyperbolic_tangents(const float* in, std::int64_t count, float* out);
// x times the probability that a standard normal number is below x, and its approximation by tanh.
void gelus(const float* in, std::int64_t count, float* out);
void gelus_by_tanh(const float* in, std::int64_t count, float* out);

// sqrt(in[i]) and 1 / sqrt(in[i]), rounded after each step: the C library's bits, without its errno.
void square_roots(const float* in, std::int64_t count, float* out);
void inverse_square_roots(const float* in, std::int64_t count, float* out);

// exp(x) of numbers that are not positive, by the GNU C library's algorithm: its bits, but for one number in millions
// (it uses fused multiply-adds where the CPU has them). For functions whose results TFLite takes from there.
void c_exponentials(const float* in, std::int64_t count, float* out);

// The largest number, NaN left out; the lowest float if there is none.
float largest(const float* in, std::int64_t count);

}  // namespace reef::kernels
