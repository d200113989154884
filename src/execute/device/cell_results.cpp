// SPDX-License-Identifier: Apache-2.0
#include "execute/device/cell_results.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "execute/device/vector_code.h"

namespace reef::device {
namespace {

constexpr std::ptrdiff_t kBlock = 8;
using Ints = std::int32_t __attribute__((vector_size(4 * kBlock)));
using Halves = std::uint16_t __attribute__((vector_size(2 * kBlock)));
using Quarters = std::uint8_t __attribute__((vector_size(kBlock)));
using Floats = float __attribute__((vector_size(4 * kBlock)));

template <typename Vector, typename Number>
REEF_VECTOR_BODY void load(Vector& vector, const Number* from) {
  std::memcpy(&vector, from, sizeof(vector));
}

// a += b, saturated.
REEF_VECTOR_BODY void add_saturated(Ints& a, const Ints& b) {
  using Unsigned = std::uint32_t __attribute__((vector_size(4 * kBlock)));
  const Ints sum = (Ints)((Unsigned)a + (Unsigned)b);
  const Ints overflows = ((a ^ sum) & (b ^ sum)) >> 31;
  const Ints limit = (a >> 31) ^ std::numeric_limits<std::int32_t>::max();
  a = (overflows & limit) | (~overflows & sum);
}

// Values beyond +-2^20 saturate whatever they are, and adding 1.5 * 2^23 rounds to the nearest integer, half to even.
constexpr float kLimit = 1 << 20, kMagic = 12582912.0f;

REEF_VECTOR_BODY void add_body(const ResultRule* rule, const std::int32_t* sums, std::ptrdiff_t count,
                               std::int32_t* whole) {
  const Ints constant = rule->constant - Ints{};
  for (std::ptrdiff_t first = 0; first < count; first += rule->pattern) {
    for (std::ptrdiff_t c = 0; c < rule->pattern; c += kBlock) {
      Ints sum, bias;
      load(sum, sums + first + c);
      load(bias, rule->biases + c);
      add_saturated(sum, constant);
      add_saturated(sum, bias);
      std::memcpy(whole + first + c, &sum, sizeof(sum));
    }
  }
}

REEF_VECTOR_BODY void scale_body(const ResultRule* rule, const std::int32_t* whole, std::ptrdiff_t count,
                                 float* scaled) {
  for (std::ptrdiff_t first = 0; first < count; first += rule->pattern) {
    for (std::ptrdiff_t c = 0; c < rule->pattern; ++c) {
      scaled[first + c] = static_cast<float>(whole[first + c]) * rule->scales[c];
    }
  }
}

template <typename Value>
REEF_VECTOR_BODY void round_body(const ResultRule* rule, const std::int32_t* sums, std::ptrdiff_t count,
                                 Value* values) {
  const Ints constant = rule->constant - Ints{}, zero = rule->zero - Ints{}, limit = rule->limit - Ints{}, none = {};
  const Floats low = std::max(rule->min, -kLimit) - Floats{}, high = std::min(rule->max, kLimit) - Floats{};
  const Floats lowest = -kLimit - Floats{};
  const std::ptrdiff_t pattern = rule->pattern;
  for (std::ptrdiff_t c = 0; c < pattern; c += kBlock) {
    Ints bias;
    Floats scale;
    load(bias, rule->biases + c);
    load(scale, rule->scales + c);
    for (std::ptrdiff_t first = c; first < count; first += pattern) {
      Ints sum;
      load(sum, sums + first);
      add_saturated(sum, constant);
      add_saturated(sum, bias);
      const Floats scaled = __builtin_convertvector(sum, Floats) * scale;
      Floats number = scaled < low ? low : scaled;
      number = high < number ? high : number;
      number = scaled == scaled ? number : lowest;  // not a number
      Ints whole = __builtin_convertvector((number + kMagic) - kMagic, Ints) + zero;
      whole = whole < none ? none : whole;
      whole = whole > limit ? limit : whole;
      const Halves halves = __builtin_convertvector(whole, Halves);
      if constexpr (sizeof(Value) == 1) {
        const Quarters stored = __builtin_convertvector(halves, Quarters);
        std::memcpy(values + first, &stored, sizeof(stored));
      } else {
        std::memcpy(values + first, &halves, sizeof(halves));
      }
    }
  }
}

}  // namespace

void add_constants(const ResultRule& rule, const std::int32_t* sums, std::ptrdiff_t count, std::int32_t* whole) {
  for_this_processor<add_body>(&rule, sums, count, whole);
}

void scale_sums(const ResultRule& rule, const std::int32_t* whole, std::ptrdiff_t count, float* scaled) {
  for_this_processor<scale_body>(&rule, whole, count, scaled);
}

void round_sums(const ResultRule& rule, const std::int32_t* sums, std::ptrdiff_t count, std::uint8_t* values) {
  for_this_processor<round_body<std::uint8_t>>(&rule, sums, count, values);
}

void round_sums(const ResultRule& rule, const std::int32_t* sums, std::ptrdiff_t count, std::uint16_t* values) {
  for_this_processor<round_body<std::uint16_t>>(&rule, sums, count, values);
}

}  // namespace reef::device
