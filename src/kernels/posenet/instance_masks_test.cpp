// SPDX-License-Identifier: Apache-2.0
// Masks as Coral's own decoder gives them: coral/pose_estimation/posenet_decoder.cc of libcoral (release Grouper),
// called with the fields and people that the generator below makes.
#include "kernels/posenet/instance_masks.h"

#include <gtest/gtest.h>

namespace reef::kernels {
namespace {

struct Generator {
  std::uint32_t state = 0;
  float next(float scale) {
    state = state * 1664525u + 1013904223u;
    return (static_cast<float>(state >> 24) - 128.0f) * scale;
  }
};

struct Case {
  std::int32_t height, width;
  std::size_t people;
  float stride;
  std::vector<std::size_t> ones;
};

std::vector<std::size_t> ones_of(const Case& c, std::size_t numbers) {
  Generator random{static_cast<std::uint32_t>(c.height * 100 + c.width)};
  LongOffsets offsets{c.height, c.width, {}};
  for (std::int32_t i = 0; i < c.height * c.width * 2 * kPoseKeypoints; ++i) {
    offsets.values.push_back(random.next(1.0f / 64));
  }
  std::vector<Pose> poses(c.people);
  for (Pose& pose : poses) {
    for (PosePoint& point : pose.points) {
      point.y = (random.next(1) + 128) * static_cast<float>(c.height - 1) / 255;
      point.x = (random.next(1) + 128) * static_cast<float>(c.width - 1) / 255;
    }
  }
  std::vector<float> masks(numbers, -1.0f);
  decode_instance_masks(offsets, poses, c.stride, masks, [] { return false; });
  std::vector<std::size_t> ones;
  for (std::size_t i = 0; i < masks.size(); ++i) {
    if (masks[i] == 1.0f)
      ones.push_back(i);
    else
      EXPECT_EQ(masks[i], 0.0f) << i;
  }
  return ones;
}

// The second has fewer rows than columns, where Coral's layout is not the natural one; the third has no people.
const Case kCases[] = {
    {7, 7, 3, 16, {14,  24,  28,  29,  31,  32,  35,  36,  38,  42,  44,  49,  50,  51,  52, 53, 54,
                   55,  56,  57,  58,  59,  60,  61,  62,  64,  65,  66,  67,  68,  70,  71, 72, 74,
                   118, 124, 125, 128, 131, 132, 135, 137, 138, 139, 141, 143, 144, 145, 146}},
    {5, 8, 2, 16, {1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 15, 17, 21, 22,
                   24, 27, 40, 45, 50, 54, 55, 56, 57, 58, 59, 60, 61, 63, 65, 66}},
    {6, 6, 0, 8, {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17,
                  18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35}},
    {9, 9, 4, 32, {0,   1,   2,   3,   4,   5,   6,   7,   8,   9,   10,  12,  13,  14,  16,  18,  19,
                   20,  21,  22,  23,  24,  25,  29,  30,  31,  32,  33,  34,  35,  38,  40,  42,  44,
                   48,  49,  92,  96,  98,  107, 109, 117, 128, 137, 203, 205, 212, 213, 214, 215, 221,
                   222, 223, 224, 230, 231, 232, 233, 239, 240, 241, 242, 270, 280, 282, 288, 289, 297,
                   298, 300, 301, 306, 307, 308, 309, 310, 315, 316, 317, 318, 319}}};

TEST(InstanceMasks, AreThoseOfCoralsDecoder) {
  for (const Case& c : kCases) EXPECT_EQ(ones_of(c, 400), c.ones) << c.height << " x " << c.width;
}

TEST(InstanceMasks, WriteNothingBeyondTheirEnd) {
  std::vector<std::size_t> first;
  for (const std::size_t at : kCases[0].ones) {
    if (at < 100) first.push_back(at);
  }
  EXPECT_EQ(ones_of(kCases[0], 100), first);
  EXPECT_TRUE(ones_of(kCases[2], 0).empty());
}

}  // namespace
}  // namespace reef::kernels
