// SPDX-License-Identifier: Apache-2.0
// Bilinear interpolation of 8-bit pixels for one target, REEF_LANES channels at a time. uint8 in float: the same
// products and sums in the same order as blend() in resize.cpp, and so the same bits. int8 in integers, which are exact
// in any order. No include guard: it is included once per target, see simd/targets.h.

constexpr std::int64_t kLanes = REEF_LANES;
using Floats [[gnu::vector_size(kLanes * 4), gnu::aligned(4), gnu::may_alias]] = float;
using Ints [[gnu::vector_size(kLanes * 4), gnu::aligned(4), gnu::may_alias]] = std::int32_t;

// The two input rows around an output row, put together: in float each with its weight; in integers their sum.
void weigh(const std::uint8_t* lower, const std::uint8_t* upper, std::int64_t count, const Position<float>& y,
           float* lower_weighted, float* upper_weighted) {
  for (std::int64_t i = 0; i < count; ++i) {
    lower_weighted[i] = static_cast<float>(lower[i]) * y.lower_weight;
    upper_weighted[i] = static_cast<float>(upper[i]) * y.upper_weight;
  }
}
void weigh(const std::int8_t* lower, const std::int8_t* upper, std::int64_t count, const Position<std::int32_t>& y,
           std::int32_t* sum, std::int32_t*) {
  for (std::int64_t i = 0; i < count; ++i) sum[i] = lower[i] * y.lower_weight + upper[i] * y.upper_weight;
}

// One vector of channels: the sum of four weighted pixels, to bytes.
[[gnu::always_inline]] inline void blend_vector(const float* lower_left, const float* upper_left,
                                                const float* lower_right, const float* upper_right, float left,
                                                float right, std::uint8_t* out) {
  const auto at = [](const float* from) -> const Floats& { return *reinterpret_cast<const Floats*>(from); };
  const Floats sum = at(lower_left) * left + at(upper_left) * left + at(lower_right) * right + at(upper_right) * right;
  REEF_STORE_UINT8(sum + 0.5f, out);
}

// Twenty bits are cut off, halves away from zero.
[[gnu::always_inline]] inline void blend_vector(const std::int32_t* sums_left, const std::int32_t*,
                                                const std::int32_t* sums_right, const std::int32_t*, std::int32_t left,
                                                std::int32_t right, std::int8_t* out) {
  const auto at = [](const std::int32_t* from) -> const Ints& { return *reinterpret_cast<const Ints*>(from); };
  const Ints sum = at(sums_left) * left + at(sums_right) * right;
  const Ints sign = sum >> 31, size = (sum ^ sign) - sign;
  const Ints result = (((size + (1 << 19)) >> 20) ^ sign) - sign;
  REEF_STORE_INT8(result, out);
}

// A row of output pixels from the rows put together: [input column][channel]. At least kLanes channels.
template <typename T, typename Weight>
void blend_pixels(const Weight* lower, const Weight* upper, std::int64_t channels, const Position<Weight>* columns,
                  std::int64_t count, T* output) {
  for (std::int64_t i = 0; i < count; ++i, output += channels) {
    const Position<Weight> x = columns[i];
    const std::int64_t left = x.lower * channels, right = x.upper * channels;
    for (std::int64_t c = 0; c < channels; c += kLanes) {
      const std::int64_t k = std::min(c, channels - kLanes);  // the last vector may do some channels again
      blend_vector(lower + left + k, upper + left + k, lower + right + k, upper + right + k, x.lower_weight,
                   x.upper_weight, output + k);
    }
  }
}
