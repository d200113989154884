// SPDX-License-Identifier: Apache-2.0
// Makes the rows that tiles multiply from bytes (REEF_BYTE_ROWS: unsigned; ARM: signed; else 16-bit numbers less the
// zero point), in one of three ways.
//   - Lines of the image, with what lies outside of it to the left and right: windows read from these, nothing is
//     copied twice. For windows without gaps between their columns.
//   - Rows, one per window, for groups of channels and dilated columns.
//   - The pixels as they are, where nothing must be done to them.
// No include guard: it is included once per target, after the tile loop.

// `length` bytes become row elements. Up to 31 elements beyond the end may be written too.
// `end`: of the tensor, which must not be read beyond.
template <typename T>
[[gnu::always_inline]] inline void load_piece(const T* from, std::int64_t length, [[maybe_unused]] const T* end,
                                              [[maybe_unused]] std::int32_t zero_point, RowElement* to) {
#if REEF_BYTE_ROWS
  const Ints flip = REEF_MM(set1_epi8)(std::is_signed_v<T> ? static_cast<char>(0x80) : 0);
  std::int64_t i = 0;
  for (; i + kVectorBytes <= length; i += kVectorBytes) store_ints(to + i, load_ints(from + i) ^ flip);
  if (i == length) return;
#if REEF_VECTOR_BYTES == 32
  if (length - i <= 16 && end - from >= i + 16) {
    // Fewer bytes cross fewer cache lines.
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i), bytes ^ _mm256_castsi256_si128(flip));
    return;
  }
#endif
#if REEF_VNNI
  const auto mask = static_cast<__mmask32>((1u << (length - i)) - 1);
  // Masked loads take longer, masked stores far longer.
  const Ints bytes = end - from >= i + 32 ? load_ints(from + i) : _mm256_maskz_loadu_epi8(mask, from + i);
#else
  alignas(kVectorBytes) T few[kVectorBytes] = {};
  if (end - from < i + kVectorBytes) std::memcpy(few, from + i, static_cast<std::size_t>(length - i));
  const Ints bytes = load_ints(end - from < i + kVectorBytes ? few : from + i);
#endif
  store_ints(to + i, bytes ^ flip);  // what lies beyond the end is written later, or multiplied by 0
#elif defined(__aarch64__)
  if constexpr (std::is_signed_v<T>) {
    std::memcpy(to, from, static_cast<std::size_t>(length));
  } else {
    std::int64_t i = 0;
    for (; i + 16 <= length; i += 16) {
      vst1q_s8(to + i, vreinterpretq_s8_u8(veorq_u8(vld1q_u8(from + i), vdupq_n_u8(0x80))));
    }
    for (; i < length; ++i) to[i] = static_cast<RowElement>(from[i] ^ 0x80);
  }
#else
  for (std::int64_t i = 0; i < length; ++i) to[i] = static_cast<std::int16_t>(from[i] - zero_point);
#endif
}

// Positions outside of the image.
template <typename T>
[[gnu::noinline]] void load_outside(std::int64_t length, [[maybe_unused]] std::int32_t zero_point, RowElement* to) {
#if REEF_BYTE_ROWS
  const std::int32_t element = zero_point + (std::is_signed_v<T> ? 128 : 0);
#elif defined(__aarch64__)
  const std::int32_t element = zero_point - (std::is_signed_v<T> ? 0 : 128);
#else
  const std::int32_t element = 0;
#endif
  for (std::int64_t i = 0; i < length; ++i) to[i] = static_cast<RowElement>(element);
}

std::int32_t sum_of_line(const RowElement* line, std::int64_t length) {
#if REEF_BYTE_ROWS
  Ints total = zero_ints();  // two or four sums of 64 bits
  std::int64_t i = 0;
  for (; i + kVectorBytes <= length; i += kVectorBytes)
    total = REEF_MM(add_epi64)(total, REEF_MM(sad_epu8)(load_ints(line + i), zero_ints()));
  if (i < length) {
#if REEF_VNNI
    const Ints rest = _mm256_maskz_loadu_epi8(static_cast<__mmask32>((1u << (length - i)) - 1), line + i);
#else
    alignas(kVectorBytes) RowElement few[kVectorBytes] = {};
    std::memcpy(few, line + i, static_cast<std::size_t>(length - i));
    const Ints rest = load_ints(few);
#endif
    total = REEF_MM(add_epi64)(total, REEF_MM(sad_epu8)(rest, zero_ints()));
  }
  std::int64_t sums[kVectorBytes / 8];
  store_ints(sums, total);
  return static_cast<std::int32_t>(std::accumulate(std::begin(sums), std::end(sums), std::int64_t{0}));
#elif defined(__aarch64__)
  int32x4_t totals = vdupq_n_s32(0);
  std::int64_t i = 0;
  for (; i + 16 <= length; i += 16) totals = vpadalq_s16(totals, vpaddlq_s8(vld1q_s8(line + i)));
  std::int32_t total = vaddvq_s32(totals);
  for (; i < length; ++i) total += line[i];
  return total;
#else
  std::int32_t total = 0;
  for (std::int64_t i = 0; i < length; ++i) total += line[i];
  return total;
#endif
}

// Sums of `count` rows of `lines` lines each.
void sum_rows(const RowElement* const* starts, std::int64_t count, std::int64_t lines, std::int64_t line_stride,
              std::int64_t line_length, std::int32_t* sums) {
  for (std::int64_t r = 0; r < count; ++r) {
    std::int32_t sum = 0;
    for (std::int64_t line = 0; line < lines; ++line) sum += sum_of_line(starts[r] + line * line_stride, line_length);
    sums[r] = sum;
  }
}

// Lines [first_y, first_y + count) of an image, from where the first window begins to where the last one ends. Lines
// and columns outside of the image are zero points. `end`: of the tensor.
template <typename T>
void load_lines(const ConvShape& s, const T* image, const T* end, std::int32_t zero_point, std::int64_t first_y,
                std::int64_t count, RowElement* to, std::int64_t line_stride) {
  const std::int64_t channels = s.input_channels, x0 = s.x.origin(0);
  const std::int64_t span = (s.x.output - 1) * s.x.stride + s.x.window;
  const std::int64_t first = std::clamp<std::int64_t>(-x0, 0, span);
  const std::int64_t last = std::clamp<std::int64_t>(s.x.input - x0, first, span);
  for (std::int64_t y = first_y; y < first_y + count; ++y, to += line_stride) {
    if (y < 0 || y >= s.y.input) {
      load_outside<T>(span * channels, zero_point, to);
      continue;
    }
    if (first > 0) load_outside<T>(first * channels, zero_point, to);
    load_piece<T>(image + (y * s.x.input + x0 + first) * channels, (last - first) * channels, end, zero_point,
                  to + first * channels);
    if (last < span) load_outside<T>((span - last) * channels, zero_point, to + last * channels);
  }
}

// Windows of output pixels [first, first + count) of a group of channels as rows, one after the other.
template <typename T>
void load_rows(const ConvShape& s, const T* input, std::int32_t zero_point, std::int64_t group, std::int64_t first,
               std::int64_t count, RowElement* rows, std::int64_t row_stride) {
  const std::int64_t channels = s.group_inputs(), width = s.x.input;
  const T* group_input = input + group * channels;
  const T* const end = input + s.batches * s.input_batch_size();
  if (s.is_pointwise() && s.groups == 1 && s.input_channels == row_stride) {
    load_piece<T>(input + first * row_stride, count * row_stride, end, zero_point, rows);
    return;
  }
  for (std::int64_t pixel = first; pixel < first + count; ++pixel, rows += row_stride) {
    const std::int64_t row = pixel / s.x.output;
    const T* image = group_input + row / s.y.output * s.input_batch_size();
    const std::int64_t y0 = s.y.origin(row % s.y.output), x0 = s.x.origin(pixel % s.x.output);
    RowElement* to = rows;
    for (std::int64_t ky = 0; ky < s.y.window; ++ky) {
      const std::int64_t y = y0 + ky * s.y.dilation;
      for (std::int64_t kx = 0; kx < s.x.window; ++kx, to += channels) {
        const std::int64_t x = x0 + kx * s.x.dilation;
        if (y >= 0 && y < s.y.input && x >= 0 && x < width) {
          load_piece<T>(image + (y * width + x) * s.input_channels, channels, end, zero_point, to);
        } else {
          load_outside<T>(channels, zero_point, to);
        }
      }
    }
  }
}
