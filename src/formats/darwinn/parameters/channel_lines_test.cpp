// SPDX-License-Identifier: Apache-2.0
#include "formats/darwinn/parameters/channel_lines.h"

#include <gtest/gtest.h>

#include <bit>

#include "ir/text.h"
#include "ir/verify.h"

namespace reef::darwinn {
namespace {

TEST(ChannelLines, FourChannelsPerRow) {
  const std::vector<std::uint32_t> words = {0x04030201, 2, 3, 4, 0xffffffff};
  std::vector<std::uint8_t> expected(128, 0);
  expected[0] = 1, expected[1] = 2, expected[2] = 3, expected[3] = 4;
  expected[4] = 2, expected[8] = 3, expected[12] = 4;
  expected[64] = expected[65] = expected[66] = expected[67] = 255;
  EXPECT_EQ(pack_channel_lines(words), expected);
  const auto back = unpack_channel_lines(expected, 5);
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_EQ(*back, words);
}

TEST(ChannelLines, DamageIsReported) {
  std::vector<std::uint8_t> chunk = pack_channel_lines(std::vector<std::uint32_t>{1, 2, 3});
  EXPECT_TRUE(unpack_channel_lines(chunk, 3).ok());
  EXPECT_TRUE(unpack_channel_lines(chunk, 4).ok());  // the fourth is 0
  EXPECT_FALSE(unpack_channel_lines(chunk, 5).ok());
  EXPECT_FALSE(unpack_channel_lines(chunk, 0).ok());
  EXPECT_FALSE(unpack_channel_lines(chunk, SIZE_MAX).ok());
  EXPECT_FALSE(unpack_channel_lines(std::span(chunk).first(63), 3).ok());
  chunk[16] = 1;
  const auto damaged = unpack_channel_lines(chunk, 3);
  ASSERT_FALSE(damaged.ok());
  EXPECT_NE(damaged.status().message().find("byte 16 "), std::string::npos);
}

Result<std::vector<std::uint32_t>> words_of(
    const std::string& op, const std::string& constant,
    const std::string& variable = "uint8[1, 2, 2, 3] quant(scale=0.5, zero_point=0)") {
  const auto model = ir::parse("model { subgraph \"main\" inputs(%0) outputs(%2) {\n %0 \"in\" : " + variable +
                               "\n %1 \"c\" : " + constant +
                               "\n %2 \"out\" : uint8[1, 2, 2, 3] quant(scale=2, zero_point=0)\n %2 = " + op + "\n} }");
  EXPECT_TRUE(model.ok()) << model.status().message();
  EXPECT_TRUE(ir::verify(*model).ok()) << ir::verify(*model).message();
  return channel_words_of(*model, model->subgraphs[0], model->subgraphs[0].operators[0]);
}

const std::string kConstant = "uint8[3] quant(scale=0.25, zero_point=10) buffer=1 = [10, 14, 6]";

TEST(ChannelLines, ProductsBecomeMultipliers) {
  for (const char* op : {"MUL(%0, %1) code=18", "MUL(%1, %0) code=18", "PRELU(%0, %1) code=54"}) {
    const auto words = words_of(op, kConstant);
    ASSERT_TRUE(words.ok()) << words.status().message();
    ASSERT_EQ(words->size(), 3u);
    EXPECT_EQ(std::bit_cast<float>((*words)[0]), 0.0f);
    EXPECT_EQ(std::bit_cast<float>((*words)[1]), 0.25f);  // (1/2) * (0.5 * (0.25 * 4))
    EXPECT_EQ(std::bit_cast<float>((*words)[2]), -0.25f);
  }
}

TEST(ChannelLines, SumsBecomeBiases) {
  const auto sum = words_of("ADD(%0, %1) code=0", kConstant);  // 0.25 * {0, 4, -4} in units of 0.5
  ASSERT_TRUE(sum.ok()) << sum.status().message();
  EXPECT_EQ(*sum, (std::vector<std::uint32_t>{0, 2, 0xfffffffe}));
  const auto difference = words_of("SUB(%0, %1) code=41", kConstant);
  ASSERT_TRUE(difference.ok());
  EXPECT_EQ(*difference, (std::vector<std::uint32_t>{0, 0xfffffffe, 2}));
}

TEST(ChannelLines, Int8ConstantsAreSigned) {
  const auto words =
      words_of("ADD(%0, %1) code=0", "int8[3] quant(scale=0.5, zero_point=-1) buffer=1 = [-128, 127, -1]");
  ASSERT_TRUE(words.ok()) << words.status().message();
  EXPECT_EQ(*words, (std::vector<std::uint32_t>{0xffffff81, 128, 0}));
}

TEST(ChannelLines, Refusals) {
  EXPECT_FALSE(words_of("SUB(%1, %0) code=41", kConstant).ok());  // the constant is not what is subtracted
  EXPECT_FALSE(words_of("DIV(%0, %1) code=42", kConstant).ok());
  EXPECT_FALSE(words_of("MUL(%0, %1) code=18", "uint8[1] quant(scale=0.25, zero_point=0) buffer=1 = [1]").ok());
  EXPECT_FALSE(words_of("MUL(%0, %1) code=18", "uint8[3] buffer=1 = [1, 2, 3]").ok());
  EXPECT_FALSE(words_of("MUL(%0, %1) code=18", "int16[3] quant(scale=0.25, zero_point=0) buffer=1 = [1, 2, 3]").ok());
  EXPECT_FALSE(words_of("ADD(%0, %1) code=0", kConstant, "uint8[1, 2, 2, 3] quant(scale=1e-12, zero_point=0)").ok());
}

}  // namespace
}  // namespace reef::darwinn
