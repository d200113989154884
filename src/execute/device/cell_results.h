// SPDX-License-Identifier: Apache-2.0
// From sums to stored numbers, for many cells at once: what numeric/chip_tensor.h defines, where no table is involved.
#pragma once

#include <cstddef>
#include <cstdint>

namespace reef::device {

// `pattern` cells have biases and scales of their own, which repeat over the sums. A multiple of 8.
struct ResultRule {
  std::ptrdiff_t pattern = 8;
  const std::int32_t* biases = nullptr;  // zeros where there are none
  const float* scales = nullptr;
  std::int32_t constant = 0;
  float min = 0, max = 0;
  std::int32_t zero = 0, limit = 255;
};

// sum + constant + bias, saturated after each; in this order, no evidence tells what saturates in between, and no
// program comes near. `count` is a multiple of the rule's pattern; `whole` may be `sums`.
void add_constants(const ResultRule& rule, const std::int32_t* sums, std::ptrdiff_t count, std::int32_t* whole);
void scale_sums(const ResultRule& rule, const std::int32_t* whole, std::ptrdiff_t count, float* scaled);

// All of it, to bytes or 16-bit numbers (limit 255 or 65535). Not a number: 0.
void round_sums(const ResultRule& rule, const std::int32_t* sums, std::ptrdiff_t count, std::uint8_t* values);
void round_sums(const ResultRule& rule, const std::int32_t* sums, std::ptrdiff_t count, std::uint16_t* values);

}  // namespace reef::device
