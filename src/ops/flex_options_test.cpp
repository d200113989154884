// SPDX-License-Identifier: Apache-2.0
#include "ops/flex_options.h"

#include <limits>

#include <flatbuffers/flexbuffers.h>
#include <gtest/gtest.h>

namespace reef::ops {
namespace {

std::vector<std::uint8_t> sample() {
  flexbuffers::Builder builder;
  builder.Map([&] {
    builder.Int("small", -7);
    builder.Int("large", 123456789);
    builder.UInt("unsigned", 200);
    builder.Float("float", 0.25f);
    builder.Double("double", 0.1);
    builder.Bool("yes", true);
    builder.String("text", "words");
    builder.IndirectInt("indirect", -300);
    builder.Int("huge", std::int64_t{1} << 40);
  });
  builder.Finish();
  return builder.GetBuffer();
}

TEST(FlexOptions, ReadsNumbersOfEveryKind) {
  const Result<FlexOptions> options = FlexOptions::parse(Bytes(sample()));
  ASSERT_TRUE(options.ok()) << options.status().message();
  EXPECT_EQ(*options->get_int("small"), -7);
  EXPECT_EQ(*options->get_int("large"), 123456789);
  EXPECT_EQ(*options->get_int("unsigned"), 200);
  EXPECT_EQ(*options->get_int("indirect"), -300);
  EXPECT_EQ(*options->get_float("float"), 0.25f);
  EXPECT_EQ(*options->get_float("double"), 0.1f);
  EXPECT_EQ(*options->get_float("small"), -7.0f);
  EXPECT_TRUE(options->get_bool("yes"));
  EXPECT_EQ(*options->get_int("absent", 42), 42);
  EXPECT_EQ(*options->get_int("text", 42), 42);
  EXPECT_FALSE(options->get_int("huge").ok());
}

TEST(FlexOptions, RefusesWhatIsNotAMap) {
  flexbuffers::Builder builder;
  builder.Int(5);
  builder.Finish();
  EXPECT_FALSE(FlexOptions::parse(Bytes(builder.GetBuffer())).ok());
  EXPECT_FALSE(FlexOptions::parse(Bytes()).ok());
}

// Damaged bytes may be refused or read as something else, but must never be read beyond (run under the sanitizers).
TEST(FlexOptions, SurvivesDamage) {
  const std::vector<std::uint8_t> whole = sample();
  for (std::size_t cut = 0; cut < whole.size(); ++cut) {
    const auto middle = whole.begin() + static_cast<std::ptrdiff_t>(cut);
    (void)FlexOptions::parse(Bytes(std::vector<std::uint8_t>(whole.begin(), middle)));
    (void)FlexOptions::parse(Bytes(std::vector<std::uint8_t>(middle, whole.end())));
    for (const int value : {0, 1, 9, 0x27, 0x7F, 0xFF}) {
      std::vector<std::uint8_t> damaged = whole;
      damaged[cut] = static_cast<std::uint8_t>(value);
      (void)FlexOptions::parse(Bytes(std::move(damaged)));
    }
  }
}

}  // namespace
}  // namespace reef::ops
