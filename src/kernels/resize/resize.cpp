// SPDX-License-Identifier: Apache-2.0
#include "kernels/resize/resize.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <vector>

#include "kernels/simd/loops.h"
#include "kernels/simd/trace.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace reef::kernels {
namespace {

constexpr std::int64_t kColumnsPerBlock = 64;  // positions along x are computed for so many pixels at a time
constexpr std::int64_t kOne = kResizeUnits;    // one pixel in fixed point

// Where an output position lies between two input positions. Weight: float, or int32_t in units of 1/1024.
template <typename Weight>
struct Position {
  std::int64_t lower = 0, upper = 0;
  Weight lower_weight{}, upper_weight{};
};

// Input pixels per output pixel.
float float_scale(std::int64_t input_size, std::int64_t output_size, bool align_corners) {
  if (align_corners && output_size > 1) {
    return static_cast<float>(input_size - 1) / static_cast<float>(output_size - 1);
  }
  return static_cast<float>(input_size) / static_cast<float>(output_size);
}

std::int64_t fixed_scale(std::int64_t input_size, std::int64_t output_size, bool align_corners) {
  const std::int64_t trim = align_corners && output_size > 1 ? 1 : 0;
  const std::int64_t out = output_size - trim;
  return (kOne * (input_size - trim) + out / 2) / out;
}

Position<float> float_position(std::int64_t index, float scale, bool half_pixel_centers, std::int64_t input_size) {
  const auto at = static_cast<float>(index);
  const float scaled = half_pixel_centers ? (at + 0.5F) * scale - 0.5F : at * scale;
  const auto lower = std::max<std::int64_t>(static_cast<std::int64_t>(std::floor(scaled)), 0);
  const auto upper = static_cast<std::int64_t>(std::ceil(scaled));
  const float fraction = scaled - static_cast<float>(lower);
  return {std::min(lower, input_size - 1), std::clamp<std::int64_t>(upper, 0, input_size - 1), 1 - fraction, fraction};
}

std::int64_t fixed_place(std::int64_t index, std::int64_t scale, bool half_pixel_centers) {
  return half_pixel_centers ? index * scale + scale / 2 - kOne / 2 : index * scale;
}

Position<std::int32_t> fixed_position(std::int64_t index, std::int64_t scale, bool half_pixel_centers,
                                      std::int64_t input_size) {
  const std::int64_t scaled = fixed_place(index, scale, half_pixel_centers);
  const std::int64_t lower = std::max<std::int64_t>(scaled / kOne, 0);
  const std::int64_t upper = (scaled + kOne - 1) / kOne;
  const auto fraction = static_cast<std::int32_t>(scaled - kOne * lower);
  return {std::min(lower, input_size - 1), std::clamp<std::int64_t>(upper, 0, input_size - 1),
          static_cast<std::int32_t>(kOne) - fraction, fraction};
}

// The order of multiplications and additions is the reference's.
template <typename T>
T blend(T lower_left, T upper_left, T lower_right, T upper_right, const Position<float>& y, const Position<float>& x) {
  const float sum = static_cast<float>(lower_left) * y.lower_weight * x.lower_weight +
                    static_cast<float>(upper_left) * y.upper_weight * x.lower_weight +
                    static_cast<float>(lower_right) * y.lower_weight * x.upper_weight +
                    static_cast<float>(upper_right) * y.upper_weight * x.upper_weight;
  if constexpr (std::is_same_v<T, float>) {
    return sum + 0.0F;
  } else {
    return static_cast<T>(static_cast<std::int32_t>(sum + 0.5F));
  }
}

template <typename T>
T blend(T lower_left, T upper_left, T lower_right, T upper_right, const Position<std::int32_t>& y,
        const Position<std::int32_t>& x) {
  // 8-bit values times two weights below 2^11 sum up below 2^31.
  using Sum = std::conditional_t<sizeof(T) == 1, std::int32_t, std::int64_t>;
  const Sum sum =
      Sum{lower_left} * (y.lower_weight * x.lower_weight) + Sum{upper_left} * (y.upper_weight * x.lower_weight) +
      Sum{lower_right} * (y.lower_weight * x.upper_weight) + Sum{upper_right} * (y.upper_weight * x.upper_weight);
  constexpr Sum kHalf = Sum{1} << 19;
  return static_cast<T>((sum > 0 ? sum + kHalf : sum - kHalf) / (Sum{1} << 20));
}

// kChannels: how many there are, if they are few; 0: any number.
template <std::int64_t kChannels, typename T, typename Weight>
void blend_row(const ResizeGeometry& g, const T* image, const Position<Weight> y, const Position<Weight>* columns,
               std::int64_t column_count, T* output) {
  // By value, because stores of single bytes might change anything that is behind a reference.
  const std::int64_t channels = kChannels > 0 ? kChannels : g.channels;
  const T* const lower_row = image + y.lower * g.input_width * channels;
  const T* const upper_row = image + y.upper * g.input_width * channels;
  for (std::int64_t i = 0; i < column_count; ++i, output += channels) {
    const Position<Weight> x = columns[i];
    const T* const lower_left = lower_row + x.lower * channels;
    const T* const upper_left = upper_row + x.lower * channels;
    const T* const lower_right = lower_row + x.upper * channels;
    const T* const upper_right = upper_row + x.upper * channels;
    REEF_INDEPENDENT
    for (std::int64_t c = 0; c < channels; ++c) {
      output[c] = blend<T>(lower_left[c], upper_left[c], lower_right[c], upper_right[c], y, x);
    }
  }
}

template <typename T, typename Weight, typename PositionOf>
void resize_rows(const ResizeGeometry& g, const T* input, T* output, std::int64_t first_row, std::int64_t last_row,
                 PositionOf row_position, PositionOf column_position) {
  std::array<Position<Weight>, kColumnsPerBlock> columns;
  for (std::int64_t left = 0; left < g.output_width; left += kColumnsPerBlock) {
    const std::int64_t count = std::min(kColumnsPerBlock, g.output_width - left);
    for (std::int64_t i = 0; i < count; ++i) {
      columns[static_cast<std::size_t>(i)] = column_position(left + i, g.input_width);
    }
    for (std::int64_t row = first_row; row < last_row; ++row) {
      const T* image = input + row / g.output_height * g.input_height * g.input_width * g.channels;
      const Position<Weight> y = row_position(row % g.output_height, g.input_height);
      T* to = output + (row * g.output_width + left) * g.channels;
      in_vectors([&] {
        if (g.channels == 1) return blend_row<1>(g, image, y, columns.data(), count, to);
        if (g.channels == 3) return blend_row<3>(g, image, y, columns.data(), count, to);
        if (g.channels == 4) return blend_row<4>(g, image, y, columns.data(), count, to);
        blend_row<0>(g, image, y, columns.data(), count, to);
      });
    }
  }
}

}  // namespace

namespace baseline {
namespace {
#define REEF_LANES 8
#define REEF_STORE_UINT8(vector, out)                                                   \
  for (int lane = 0; lane < REEF_LANES; ++lane) {                                       \
    (out)[lane] = static_cast<std::uint8_t>(static_cast<std::int32_t>((vector)[lane])); \
  }
#define REEF_STORE_INT8(vector, out) \
  for (int lane = 0; lane < REEF_LANES; ++lane) (out)[lane] = static_cast<std::int8_t>((vector)[lane])
#include "kernels/resize/bilinear_row_body.h"
#undef REEF_LANES
#undef REEF_STORE_UINT8
#undef REEF_STORE_INT8
}  // namespace
}  // namespace baseline

#if defined(__x86_64__)
#include "kernels/simd/begin_sse4.h"
namespace sse4 {
namespace {
#define REEF_LANES 4
// gcc takes such conversions apart, number by number.
[[gnu::always_inline]] inline void store_four(__m128i bytes, void* out) {
  const std::int32_t four = _mm_cvtsi128_si32(bytes);
  std::memcpy(out, &four, sizeof four);
}
#define REEF_STORE_UINT8(vector, out)               \
  const __m128i numbers = _mm_cvttps_epi32(vector); \
  store_four(_mm_packus_epi16(_mm_packs_epi32(numbers, numbers), numbers), out)
#define REEF_STORE_INT8(vector, out)                      \
  const auto numbers = reinterpret_cast<__m128i>(vector); \
  store_four(_mm_packs_epi16(_mm_packs_epi32(numbers, numbers), numbers), out)
#include "kernels/resize/bilinear_row_body.h"
#undef REEF_LANES
#undef REEF_STORE_UINT8
#undef REEF_STORE_INT8
}  // namespace
}  // namespace sse4
#include "kernels/simd/end_target.h"

#include "kernels/simd/begin_avx2.h"
namespace avx2 {
namespace {
[[gnu::always_inline]] inline __m128i packed_words(__m256i numbers) {
  return _mm_packs_epi32(_mm256_castsi256_si128(numbers), _mm256_extracti128_si256(numbers, 1));
}
#define REEF_LANES 8
#define REEF_STORE_UINT8(vector, out)                              \
  const __m128i words = packed_words(_mm256_cvttps_epi32(vector)); \
  _mm_storel_epi64(reinterpret_cast<__m128i*>(out), _mm_packus_epi16(words, words))
#define REEF_STORE_INT8(vector, out)                                     \
  const __m128i words = packed_words(reinterpret_cast<__m256i>(vector)); \
  _mm_storel_epi64(reinterpret_cast<__m128i*>(out), _mm_packs_epi16(words, words))
#include "kernels/resize/bilinear_row_body.h"
#undef REEF_LANES
#undef REEF_STORE_UINT8
#undef REEF_STORE_INT8
}  // namespace
}  // namespace avx2
#include "kernels/simd/end_target.h"

#include "kernels/simd/begin_avx512.h"
namespace avx512 {
namespace {
#define REEF_LANES 16
#define REEF_STORE_UINT8(vector, out)               \
  _mm_storeu_si128(reinterpret_cast<__m128i*>(out), \
                   _mm512_maskz_cvtusepi32_epi8(0xFFFF, _mm512_maskz_cvttps_epi32(0xFFFF, vector)))
#define REEF_STORE_INT8(vector, out)                \
  _mm_storeu_si128(reinterpret_cast<__m128i*>(out), \
                   _mm512_maskz_cvtepi32_epi8(0xFFFF, reinterpret_cast<__m512i>(vector)))
#include "kernels/resize/bilinear_row_body.h"
#undef REEF_LANES
#undef REEF_STORE_UINT8
#undef REEF_STORE_INT8
}  // namespace
}  // namespace avx512
#include "kernels/simd/end_target.h"
#endif

namespace {

constexpr std::int64_t kNarrowestVector = 8;

// Pixels of kNarrowestVector channels or more: input rows are put together once per output row, then neighbours are
// added up. T: uint8_t or int8_t.
template <typename T, typename Weight, typename PositionOf>
void resize_bytes(const ResizeGeometry& g, const T* input, T* output, std::int64_t first_row, std::int64_t last_row,
                  PositionOf row_position, PositionOf column_position) {
  const std::int64_t line = g.input_width * g.channels;
  std::vector<Weight> lower(static_cast<std::size_t>(line)), upper(std::is_same_v<T, std::uint8_t> ? lower.size() : 0);
  std::vector<Position<Weight>> columns(static_cast<std::size_t>(g.output_width));
  for (std::int64_t i = 0; i < g.output_width; ++i) {
    columns[static_cast<std::size_t>(i)] = column_position(i, g.input_width);
  }
  for (std::int64_t row = first_row; row < last_row; ++row) {
    const T* image = input + row / g.output_height * g.input_height * line;
    const Position<Weight> y = row_position(row % g.output_height, g.input_height);
    T* to = output + row * g.output_width * g.channels;
    // Integers are put together in one array alone.
    const Weight* second = upper.empty() ? lower.data() : upper.data();
#define REEF_RESIZE_ROW(target)                                                                       \
  target::weigh(image + y.lower * line, image + y.upper * line, line, y, lower.data(), upper.data()); \
  target::blend_pixels(lower.data(), second, g.channels, columns.data(), g.output_width, to)
#if defined(__x86_64__)
    if (g.channels >= 2 * kNarrowestVector && runs_in(SimdTarget::kAvx512)) {
      REEF_RESIZE_ROW(avx512);
      continue;
    }
    if (runs_in(SimdTarget::kAvx2)) {
      REEF_RESIZE_ROW(avx2);
      continue;
    }
    if (runs_in(SimdTarget::kSse4)) {
      REEF_RESIZE_ROW(sse4);
      continue;
    }
#endif
    REEF_RESIZE_ROW(baseline);
#undef REEF_RESIZE_ROW
  }
}

std::int64_t nearest(std::int64_t index, std::int64_t input_size, std::int64_t output_size, bool align_corners,
                     bool half_pixel_centers) {
  const float scale = float_scale(input_size, output_size, align_corners);
  const float at = (static_cast<float>(index) + (half_pixel_centers ? 0.5F : 0.0F)) * scale;
  const float rounded = align_corners ? std::round(at) : std::floor(at);
  return std::clamp<std::int64_t>(static_cast<std::int64_t>(rounded), 0, input_size - 1);
}

}  // namespace

template <typename T>
void resize_bilinear(const ResizeGeometry& g, const T* input, T* output, std::int64_t first_row,
                     std::int64_t last_row) {
  constexpr bool kInFloat = std::is_same_v<T, float> || std::is_same_v<T, std::uint8_t>;
  using Weight = std::conditional_t<kInFloat, float, std::int32_t>;
  const auto positions = [&](std::int64_t input_size, std::int64_t output_size) {
    if constexpr (kInFloat) {
      return [half = g.half_pixel_centers, scale = float_scale(input_size, output_size, g.align_corners)](
                 std::int64_t index, std::int64_t size) { return float_position(index, scale, half, size); };
    } else {
      return [half = g.half_pixel_centers, scale = fixed_scale(input_size, output_size, g.align_corners)](
                 std::int64_t index, std::int64_t size) { return fixed_position(index, scale, half, size); };
    }
  };
  if constexpr (sizeof(T) == 1) {
    if (g.channels >= kNarrowestVector) {
      return resize_bytes<T, Weight>(g, input, output, first_row, last_row, positions(g.input_height, g.output_height),
                                     positions(g.input_width, g.output_width));
    }
  }
  resize_rows<T, Weight>(g, input, output, first_row, last_row, positions(g.input_height, g.output_height),
                         positions(g.input_width, g.output_width));
}

template void resize_bilinear<float>(const ResizeGeometry&, const float*, float*, std::int64_t, std::int64_t);
template void resize_bilinear<std::uint8_t>(const ResizeGeometry&, const std::uint8_t*, std::uint8_t*, std::int64_t,
                                            std::int64_t);
template void resize_bilinear<std::int8_t>(const ResizeGeometry&, const std::int8_t*, std::int8_t*, std::int64_t,
                                           std::int64_t);
template void resize_bilinear<std::int16_t>(const ResizeGeometry&, const std::int16_t*, std::int16_t*, std::int64_t,
                                            std::int64_t);

void resize_nearest(const ResizeGeometry& g, std::size_t element_bytes, const std::byte* input, std::byte* output,
                    std::int64_t first_row, std::int64_t last_row) {
  const std::size_t pixel_bytes = static_cast<std::size_t>(g.channels) * element_bytes;
  std::array<std::size_t, kColumnsPerBlock> columns;  // offsets in bytes
  for (std::int64_t left = 0; left < g.output_width; left += kColumnsPerBlock) {
    const std::int64_t count = std::min(kColumnsPerBlock, g.output_width - left);
    for (std::int64_t i = 0; i < count; ++i) {
      columns[static_cast<std::size_t>(i)] =
          pixel_bytes * static_cast<std::size_t>(
                            nearest(left + i, g.input_width, g.output_width, g.align_corners, g.half_pixel_centers));
    }
    for (std::int64_t row = first_row; row < last_row; ++row) {
      const std::int64_t y =
          nearest(row % g.output_height, g.input_height, g.output_height, g.align_corners, g.half_pixel_centers);
      const std::int64_t source_row = row / g.output_height * g.input_height + y;
      const std::byte* from = input + static_cast<std::size_t>(source_row * g.input_width) * pixel_bytes;
      std::byte* to = output + static_cast<std::size_t>(row * g.output_width + left) * pixel_bytes;
      for (std::int64_t i = 0; i < count; ++i, to += pixel_bytes) {
        std::memcpy(to, from + columns[static_cast<std::size_t>(i)], pixel_bytes);
      }
    }
  }
}

std::int64_t resize_place(std::int64_t index, std::int64_t input_size, std::int64_t output_size, bool align_corners,
                          bool half_pixel_centers) {
  return fixed_place(index, fixed_scale(input_size, output_size, align_corners), half_pixel_centers);
}

}  // namespace reef::kernels
