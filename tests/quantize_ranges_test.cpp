// SPDX-License-Identifier: Apache-2.0
// Numbers that must not get into a range, ranges that no scale can hold, and operators that fail on some values only.
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "passes/float/test_graph.h"
#include "quantize/masks.h"
#include "quantize/quantize.h"
#include "quantize/scale_limits.h"
#include "random_samples.h"

namespace reef::quantize {
namespace {

using passes::testing::count;
using passes::testing::Maker;
using passes::testing::operators_of;
using testing::RandomSamples;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

QuantizeOptions plain() {
  QuantizeOptions options;
  options.automatic_ranges = false;
  options.rewrite = options.equalize = options.correct_biases = options.keep_sensitive_float = Choice::kOff;
  return options;
}

Result<QuantizeResult> quantized(const ir::Model& model, float low = -1, float high = 1,
                                 const QuantizeOptions& options = plain()) {
  const RandomSamples samples(40, low, high);
  return quantize(model, &samples, options);
}

void expect_sound_scales(const ir::Model& model) {
  const Status status = check_scales(model);
  EXPECT_TRUE(status.ok()) << status.message();
}

// Scores between 12 tokens, of which the last 4 are masked: by a sum, by a choice, by numbers of several sizes.
ir::Model masked_attention(int form, float mask) {
  Maker make;
  const int x = make.input({1, 12, 8});
  const int keys = make.dense(x, 8);
  const int scores =
      make.op("BATCH_MATMUL", "BatchMatMulOptions", Maker::attributes({{"adj_y", true}}), {x, keys}, {1, 12, 12});
  std::vector<float> numbers(12, 0);
  std::vector<std::uint8_t> is_masked(12, 0);
  for (std::size_t i = 8; i < 12; ++i) numbers[i] = mask, is_masked[i] = 1;
  int masked = -1;
  if (form == 0) masked = make.binary("ADD", scores, make.constant(numbers, {1, 1, 12}, ir::DataType::kFloat32));
  if (form == 1) {
    const int condition = make.constant(is_masked, {1, 1, 12}, ir::DataType::kBool);
    masked = make.op("SELECT_V2", "SelectV2Options", {}, {condition, make.number(mask), scores}, {1, 12, 12});
  }
  if (form == 2) {  // the mask is computed: numbers from 0 to 1 times a constant
    const int shares = make.reduce("REDUCE_MAX", make.unary("RELU", x), {2}, false);
    const int row = make.reshape(make.binary("MUL", shares, make.number(mask)), {1, 1, 12});
    masked = make.binary("ADD", scores, row);
  }
  const int weights = make.op("SOFTMAX", "SoftmaxOptions", Maker::attributes({{"beta", 1.0}}), {masked}, {1, 12, 12});
  const int y = make.op("BATCH_MATMUL", "BatchMatMulOptions", {}, {weights, x}, {1, 12, 8});
  return make.finish({y});
}

TEST(UsableRanges, MasksDoNotWidenRanges) {
  const auto unmasked = quantized(masked_attention(0, 0));
  ASSERT_TRUE(unmasked.ok()) << unmasked.status().message();
  for (const int form : {0, 1}) {
    for (const float mask : {-1e4f, -1e9f, -1e30f, std::numeric_limits<float>::lowest(), -kInfinity}) {
      SCOPED_TRACE(form);
      SCOPED_TRACE(mask);
      const auto result = quantized(masked_attention(form, mask));
      ASSERT_TRUE(result.ok()) << result.status().message();
      expect_sound_scales(result->model);
      EXPECT_TRUE(result->float_ops.empty());
      EXPECT_GT(result->error->mean_sqnr_db, unmasked->error->mean_sqnr_db - 6);
    }
  }
  for (const float mask : {-1e9f, -1e30f}) {
    const auto result = quantized(masked_attention(2, mask));
    ASSERT_TRUE(result.ok()) << result.status().message();
    expect_sound_scales(result->model);
  }
}

TEST(UsableRanges, SoftmaxReadsMasksAsJustLowEnough) {
  const std::vector<float> values = {1, 2, -1e9f, 0, -kInfinity, 5, -1e4f, -1e4f, -1e4f};
  std::vector<float> memory;
  const auto read = as_softmax_reads(values, 3, memory);
  const float depth = std::log(512.0f * 3);
  ASSERT_EQ(read.size(), 6u);  // the last row is masked as a whole
  EXPECT_FLOAT_EQ(read[2], 2 - depth);
  EXPECT_FLOAT_EQ(read[4], 5 - depth);
  EXPECT_LT(3 * std::exp(-depth), 1.0f / 511);
  const std::vector<float> usual = {-3, 2, 40, -900, 0, 7};
  EXPECT_EQ(as_softmax_reads(usual, 3, memory).data(), usual.data());
}

// Filling that only a max pool reads, in a form that simplification did not take away.
TEST(UsableRanges, PaddingDoesNotWidenRanges) {
  for (const float filling : {-50.0f, -1e9f, std::numeric_limits<float>::lowest(), -kInfinity}) {
    SCOPED_TRACE(filling);
    Maker make;
    const int x = make.input({1, 6, 6, 3});
    const int layer = make.conv_nhwc(x, 4, 3, 1, "SAME");
    const int amounts = make.constant(std::vector<std::int32_t>{0, 0, 1, 1, 1, 1, 0, 0}, {4, 2}, ir::DataType::kInt32);
    const int padded = make.op("PADV2", "PadV2Options", {}, {layer, amounts, make.number(filling)}, {1, 8, 8, 4});
    const int y = make.op("MAX_POOL_2D", "Pool2DOptions",
                          Maker::attributes({{"padding", ir::EnumName{"VALID"}},
                                             {"stride_w", std::int64_t{2}},
                                             {"stride_h", std::int64_t{2}},
                                             {"filter_width", std::int64_t{3}},
                                             {"filter_height", std::int64_t{3}},
                                             {"fused_activation_function", ir::EnumName{"NONE"}}}),
                          {padded}, {1, 3, 3, 4});
    const auto result = quantized(make.finish({y}));
    ASSERT_TRUE(result.ok()) << result.status().message();
    expect_sound_scales(result->model);
    EXPECT_GT(result->error->mean_sqnr_db, 30);
  }
}

TEST(UsableRanges, AScaleBeyondTheLimitsIsAnErrorThatNamesTheTensor) {
  Maker make;
  const int x = make.input({1, 16});
  const int y = make.binary("MUL", make.dense(x, 8), make.number(1e12f));
  make.tensor(y).name = "enormous";
  const auto result = quantized(make.finish({y}));
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.status().message().find("'enormous'"), std::string::npos) << result.status().message();
}

// Infinities that are computed, not given, mean that the float model itself fails.
TEST(UsableRanges, ComputedInfinitiesAreAnError) {
  Maker make;
  const int x = make.input({1, 16});
  const int y = make.unary("EXP", make.binary("MUL", x, make.number(1000)));
  const auto result = quantized(make.finish({make.unary("LOGISTIC", y)}));
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.status().message().find("infinite"), std::string::npos) << result.status().message();
}

// Layers that make everything smaller, as untrained ones do, down to numbers of 1e-25: an attention block and a
// residual sum among them.
TEST(UsableRanges, UntrainedWeightsAreQuantized) {
  Maker make;
  const int x = make.input({1, 6, 6, 8});
  int y = x;
  for (int i = 0; i < 6; ++i) {
    y = make.unary("RELU", make.binary("MUL", make.conv_nhwc(y, 8, 3, 1, "SAME"), make.number(1.0f)));
    const int tiny = make.number(1e-5f);
    y = make.binary("MUL", y, tiny);
    // Biases would keep the numbers up.
    y = make.binary("SUB", y,
                    make.op("MAX_POOL_2D", "Pool2DOptions",
                            Maker::attributes({{"padding", ir::EnumName{"SAME"}},
                                               {"stride_w", std::int64_t{1}},
                                               {"stride_h", std::int64_t{1}},
                                               {"filter_width", std::int64_t{3}},
                                               {"filter_height", std::int64_t{3}},
                                               {"fused_activation_function", ir::EnumName{"NONE"}}}),
                            {y}, make.shape(y)));
    y = make.binary("MUL", y, tiny);
    y = make.binary("MUL", y, tiny);
  }
  const int rows = make.reshape(y, {1, 36, 8});
  const int scores =
      make.op("BATCH_MATMUL", "BatchMatMulOptions", Maker::attributes({{"adj_y", true}}), {rows, rows}, {1, 36, 36});
  const int weights = make.op("SOFTMAX", "SoftmaxOptions", Maker::attributes({{"beta", 1.0}}), {scores}, {1, 36, 36});
  const int mixed = make.op("BATCH_MATMUL", "BatchMatMulOptions", {}, {weights, rows}, {1, 36, 8});
  const int sum = make.binary("ADD", mixed, rows);
  const auto result = quantized(make.finish({make.dense(sum, 4), sum}));
  ASSERT_TRUE(result.ok()) << result.status().message();
  expect_sound_scales(result->model);
  const auto mentions = [&](std::string_view words) {
    return std::any_of(result->warnings.begin(), result->warnings.end(),
                       [&](const std::string& w) { return w.find(words) != std::string::npos; });
  };
  EXPECT_TRUE(mentions("untrained"));
}

// A divisor that gets small, of either sign, computed or constant.
TEST(UsableRanges, DivisorsDoNotRoundToZero) {
  for (const int form : {0, 1, 2, 3}) {
    SCOPED_TRACE(form);
    Maker make;
    const int x = make.input({1, 64});
    const int positive = make.binary("ADD", make.binary("MUL", x, x), make.number(1e-6f));
    int divisor = positive;
    if (form == 1) divisor = make.binary("MUL", positive, make.number(-1));
    if (form == 2) {
      std::vector<float> values(64, 5);
      values[3] = 1e-3f;
      values[4] = -1e-3f;
      divisor = make.constant(values, {1, 64}, ir::DataType::kFloat32);
    }
    if (form == 3) divisor = x;
    const auto result = quantized(make.finish({make.binary("DIV", make.unary("TANH", x), divisor)}));
    ASSERT_TRUE(result.ok()) << result.status().message();
    EXPECT_EQ(count(result->model, form == 1 ? "MINIMUM" : "MAXIMUM"), form < 2 ? 1 : 0);
    EXPECT_EQ(result->float_ops.empty(), form != 3);  // with both signs it stays float
  }
}

// 8-bit SOFTMAX sums exponentials in a number that holds 4095: longer rows can overflow it, even ones do.
TEST(UsableRanges, LongSoftmaxStaysFloat) {
  for (const std::int32_t length : {4095, 4096, 6906}) {
    SCOPED_TRACE(length);
    Maker make;
    const int x = make.input({1, length});
    const int logits = make.binary("MUL", x, make.number(1e-3f));
    const int y = make.op("SOFTMAX", "SoftmaxOptions", Maker::attributes({{"beta", 1.0}}), {logits}, {1, length});
    const auto result = quantized(make.finish({y}));
    ASSERT_TRUE(result.ok()) << result.status().message();
    EXPECT_EQ(result->float_ops.size(), length > 4095 ? 1u : 0u);
  }
}

}  // namespace
}  // namespace reef::quantize
