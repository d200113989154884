// SPDX-License-Identifier: Apache-2.0
// Bilinear resizing of many channels, which goes in vectors, against one channel at a time, which does not: random
// sizes, all three ways to place pixels, on every target. Equal to the bit. (That single channels are TFLite's is shown
// by tests/vectors.)
#include "kernels/resize/resize.h"

#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/simd/each_target.h"

namespace reef::kernels {
namespace {

template <typename T>
void compare(std::mt19937& random) {
  const auto pick = [&](int low, int high) { return std::uniform_int_distribution<std::int64_t>(low, high)(random); };
  ResizeGeometry g;
  g.batches = pick(1, 2);
  g.channels = pick(1, 40);
  g.input_height = pick(1, 9);
  g.input_width = pick(1, 9);
  g.output_height = pick(1, 20);
  g.output_width = pick(1, 20);
  const std::int64_t kind = pick(0, 2);
  g.align_corners = kind == 1;
  g.half_pixel_centers = kind == 2;
  const std::int64_t in_pixels = g.batches * g.input_height * g.input_width;
  const std::int64_t out_pixels = g.batches * g.output_height * g.output_width;
  std::vector<T> in(static_cast<std::size_t>(in_pixels * g.channels));
  const bool is_extreme = pick(0, 3) == 0;
  for (T& x : in) x = static_cast<T>(is_extreme ? (random() % 2 ? 127 : 128) : random());
  std::vector<T> want(static_cast<std::size_t>(out_pixels * g.channels));
  ResizeGeometry single = g;
  single.channels = 1;
  for (std::int64_t c = 0; c < g.channels; ++c) {
    std::vector<T> one(static_cast<std::size_t>(in_pixels)), result(static_cast<std::size_t>(out_pixels));
    for (std::size_t i = 0; i < one.size(); ++i)
      one[i] = in[i * static_cast<std::size_t>(g.channels) + static_cast<std::size_t>(c)];
    resize_bilinear<T>(single, one.data(), result.data(), 0, g.batches * g.output_height);
    for (std::size_t i = 0; i < result.size(); ++i) {
      want[i * static_cast<std::size_t>(g.channels) + static_cast<std::size_t>(c)] = result[i];
    }
  }
  for_each_supported_target([&](SimdTarget target) {
    std::vector<T> got(want.size());
    const std::int64_t rows = g.batches * g.output_height, cut = rows / 2;
    resize_bilinear<T>(g, in.data(), got.data(), 0, cut);
    resize_bilinear<T>(g, in.data(), got.data(), cut, rows);
    EXPECT_EQ(got, want) << target_name(target) << ": " << g.input_height << "x" << g.input_width << " to "
                         << g.output_height << "x" << g.output_width << ", " << g.channels << " channels, kind "
                         << kind;
  });
}

TEST(ResizeBilinear, ManyChannelsEqualSingleOnes) {
  std::mt19937 random(31);
  for (int trial = 0; trial < 200; ++trial) {
    compare<std::uint8_t>(random);
    compare<std::int8_t>(random);
  }
}

}  // namespace
}  // namespace reef::kernels
