// SPDX-License-Identifier: Apache-2.0
// Expected constants are the ones found in programs and parameters that Google's compilers wrote; the comment beside
// each says in which package of the model collection and for which operator of its source. Scales are the source's.
#include "numeric/chip_requantize.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace reef::numeric {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

struct LayerCase {
  float input_scale, weight_scale, output_scale, multiplier;
};
constexpr LayerCase kLayers[] = {
    {0x1.010102p-8f, 0x1.ea7b22p-10f, 0x1.ec15b0p-1f, 0x1.002a96p-17f},  // asr_tflite_model_ASR_Model v2, op 0
    {0x1.ec15b0p-1f, 0x1.08689ep-9f, 0x1.e62da2p-2f, 0x1.0b9ef2p-8f},    // the same, op 1
    {0x1.03fe24p+0f, 0x1.fd33fcp-10f, 0x1.fa8d38p-2f, 0x1.055a86p-8f},   // ..._fm15_ASR_Model10 v2, op 1
    {0x1.000000p-8f, 0x1.42850ap-4f, 0x1.b9168ep-4f, 0x1.765eaep-9f},    // bright_64x64 v16, op 3
    {0x1.817d96p-6f, 0x1.322640p-5f, 0x1.6aeb54p-2f, 0x1.4530a4p-9f},    // mobilenet_v2_1.0_224_quant v2, op 2
    {0x1.813468p-6f, 0x1.24a45ep+0f, 0x1.817d96p-6f, 0x1.246cd2p+0f},    // mobilenet_v2_inat_bird v2, op 1
    {0x1.8181b8p-6f, 0x1.7e9b1ap-5f, 0x1.263806p-1f, 0x1.f55156p-10f},   // deeplabv3_mnv2_dm05_pascal v15, op 8
    {0x1.818182p-6f, 0x1.e24946p-10f, 0x1.818182p-6f, 0x1.e24948p-10f},  // op_model_mat_Add v1, op 501
    {0x1.020408p-7f, 0x1.b23a32p-8f, 0x1.818182p-6f, 0x1.229fe4p-9f},    // op_model_padding_stride_2x2x3 v1, op 1
    {0x1.583d6ap-10f, 0x1.17f250p-7f, 0x1.b75efep-5f, 0x1.b6aab8p-13f},  // tcn v16, op 4
};

TEST(ChipRequantize, LayerMultipliersOfGooglePrograms) {
  for (const LayerCase& c : kLayers) {
    EXPECT_EQ(chip_layer_multiplier(c.input_scale, c.weight_scale, c.output_scale), c.multiplier);
  }
}

// The vectors above tell the order of operations: no other plausible one gives all of them.
TEST(ChipRequantize, OtherOrdersOfOperationsDiffer) {
  int divided = 0, ratio_first = 0, in_double = 0;
  for (const LayerCase& c : kLayers) {
    divided += c.input_scale * c.weight_scale / c.output_scale != c.multiplier;
    ratio_first += c.input_scale / c.output_scale * c.weight_scale != c.multiplier;
    in_double += static_cast<float>(double{c.input_scale} * c.weight_scale / c.output_scale) != c.multiplier;
  }
  EXPECT_GT(divided, 0);
  EXPECT_GT(ratio_first, 0);
  EXPECT_GT(in_double, 0);
}

TEST(ChipRequantize, ProductMultipliersOfGooglePrograms) {
  // looming_128x128_3x3 v16, MUL ops 2 and 4
  EXPECT_EQ(chip_product_multiplier(0x1.f9797ap-1f, 0x1.f9797ap-1f, 0x1.24fb3cp+6f), 0x1.b40accp-7f);
  EXPECT_EQ(chip_product_multiplier(0x1.fafafap-1f, 0x1.fafafap-1f, 0x1.f60808p+5f), 0x1.fffa6ap-7f);
}

TEST(ChipRequantize, ConstantsPerChannelOfGooglePackages) {
  // asr_tflite_model_ASR_Model v2, EXECUTION_ONLY parameters: first row of MUL op 2 (constants 255, 118, 84, 99)
  const float s_in = 0x1.e62da2p-2f, s_const = 0x1.4b4c2cp-9f, s_out = 0x1.61c13ap-4f;
  EXPECT_EQ(chip_constant_product_multiplier(s_in, s_const, 255, s_out), 0x1.c5892ep+1f);
  EXPECT_EQ(chip_constant_product_multiplier(s_in, s_const, 118, s_out), 0x1.a3be34p+0f);
  EXPECT_EQ(chip_constant_product_multiplier(s_in, s_const, 84, s_out), 0x1.2accd4p+0f);
  EXPECT_EQ(chip_constant_product_multiplier(s_in, s_const, 99, s_out), 0x1.602842p+0f);
  // ... and of ADD op 3 (constants 101, 110, 51, 145; zero point 255)
  EXPECT_EQ(chip_constant_bias(101 - 255, 0x1.34f364p-9f, 0x1.61c13ap-4f), -4);
  EXPECT_EQ(chip_constant_bias(110 - 255, 0x1.34f364p-9f, 0x1.61c13ap-4f), -4);
  EXPECT_EQ(chip_constant_bias(51 - 255, 0x1.34f364p-9f, 0x1.61c13ap-4f), -6);
  EXPECT_EQ(chip_constant_bias(145 - 255, 0x1.34f364p-9f, 0x1.61c13ap-4f), -3);
}

TEST(ChipRequantize, AddWeightsOfTheOldestCompiler) {
  // mobilenet_v2_1.0_224_inat_bird_quant as a compiler of runtime 10 made it: ops 16 to 57.
  struct Case {
    float a, b;
    std::int32_t a_weight, b_weight;
  };
  const Case cases[] = {{0.20531466603279114f, 0.21807660162448883f, 2558, 2717},
                        {0.21439629793167114f, 0.25656723976135254f, 5872, 7027},
                        {0.18392203748226166f, 0.1935267150402069f, 4749, 4997},
                        {0.14029687643051147f, 0.1974429041147232f, 3906, 5497},
                        {0.12441560626029968f, 0.2044331431388855f, 3203, 5263},
                        {0.116579569876194f, 0.18311135470867157f, 587, 922},
                        {0.14907671511173248f, 0.17915226519107819f, 4927, 5921},
                        {0.08581352978944778f, 0.10421788692474365f, 2336, 2837},
                        {0.1515214741230011f, 0.12084195762872696f, 1373, 1095}};
  for (const Case& c : cases) {
    const auto old = chip_add(c.a, 0, c.b, 0, 1.0f, ChipAddWeights::kFirstWhole);
    ASSERT_TRUE(old.has_value());
    EXPECT_EQ(old->a_weight, c.a_weight);
    EXPECT_EQ(old->b_weight, c.b_weight);
  }
  EXPECT_EQ(chip_add(cases[1].a, 0, cases[1].b, 0, 1.0f)->a_weight, 18948);  // the closest: 18948 to 22675
  // Scales so far apart that no weight of 15 bits is whole.
  EXPECT_FALSE(chip_add(1.0e-6f, 0, 0.7123f, 0, 1.0f, ChipAddWeights::kFirstWhole).has_value());
}

TEST(ChipRequantize, ConstantBiasIsNotRoundedToFloatOnTheWay) {
  // movenet_single_pose_lightning, op 4 (SUB): 255 * s / (2 * s)
  EXPECT_EQ(chip_constant_bias(255, 0.003921569f, 0.007843138f), 128);
  EXPECT_EQ(chip_constant_bias(-255, 0.003921569f, 0.007843138f), -128);
  // Every half is a half, whatever the scale's last bits: to even.
  for (int i = 0; i < 1000; ++i) {
    const float scale = 0.001f + 0.0000123f * static_cast<float>(i);
    EXPECT_EQ(chip_constant_bias(2 * i + 1, scale, 2 * scale), i + i % 2) << scale;
  }
}

TEST(ChipRequantize, ConstantBiasOutOfRangeIsRefused) {
  EXPECT_FALSE(chip_constant_bias(255, 1.0f, 1e-9f).has_value());
  EXPECT_FALSE(chip_constant_bias(255, kNaN, 1.0f).has_value());
  EXPECT_FALSE(chip_constant_bias(255, 1.0f, 0.0f).has_value());
  EXPECT_EQ(chip_constant_bias(5, 1.0f, 2.0f), 2);  // 2.5: halves to even
}

TEST(ChipRequantize, ClampsOfGooglePrograms) {
  using A = ChipActivation;
  // asr_tflite_model_ASR_Model v2, op 0: the largest value is not 255
  EXPECT_EQ(chip_clamp(0x1.ec15b0p-1f, 0, A::kNone), (ChipClamp{0x1.fdfffep+7f, 0.0f}));
  // color_blue_64x64 v16, op 1 (RELU) and op 4
  EXPECT_EQ(chip_clamp(0x1.fcfcfcp-1f, 0, A::kRelu), (ChipClamp{0x1.fe0002p+7f, 0.0f}));
  EXPECT_EQ(chip_clamp(0x1.e1e0dap-4f, 85, A::kNone), (ChipClamp{0x1.53fffep+7f, -0x1.53fffep+6f}));
  // deeplabv3_mnv2_dm05_pascal_quant v15, op 0 (RELU6: 6 / scale) and op 8
  EXPECT_EQ(chip_clamp(0x1.8181b8p-6f, 0, A::kRelu6), (ChipClamp{0x1.fdffb8p+7f, 0.0f}));
  EXPECT_EQ(chip_clamp(0x1.263806p-1f, 110, A::kNone), (ChipClamp{0x1.21fffep+7f, -0x1.b80000p+6f}));
  // posenet_481_641 v15, op 33
  EXPECT_EQ(chip_clamp(0x1.67c9e2p-4f, 194, A::kNone), (ChipClamp{0x1.e80002p+5f, -0x1.840002p+7f}));
}

TEST(ChipRequantize, ClampOfReluStartsAtTheZeroPoint) {
  EXPECT_EQ(chip_clamp(0.5f, 100, ChipActivation::kRelu), (ChipClamp{155.0f, 0.0f}));
  EXPECT_EQ(chip_clamp(0.5f, 100, ChipActivation::kRelu6), (ChipClamp{12.0f, 0.0f}));
  EXPECT_EQ(chip_clamp(0.5f, 100, ChipActivation::kReluN1To1), (ChipClamp{2.0f, -2.0f}));
}

TEST(ChipRequantize, PoolMultipliersOfGooglePrograms) {
  // deeplabv3_mnv2_dm05_pascal_quant v15, op 61: 33x33; the other order would give 0x1.e1709ap-11
  EXPECT_EQ(chip_pool_multiplier(0x1.678f66p-3f, 0x1.678f66p-3f, 1089, ChipPoolOrder::kOutputLast), 0x1.e17098p-11f);
  EXPECT_EQ(chip_pool_multiplier(0x1.678f66p-3f, 0x1.678f66p-3f, 1089, ChipPoolOrder::kCountLast), 0x1.e1709ap-11f);
  // mobilenetv2_small_50 v16, op 68: 7x7
  EXPECT_EQ(chip_pool_multiplier(0x1.818182p-6f, 0x1.5b58b0p-6f, 49, ChipPoolOrder::kOutputLast), 0x1.7319d4p-6f);
  // mobilenet_v1_0.5_160_quant v2, op 27: 5x5
  EXPECT_EQ(chip_pool_multiplier(0x1.817d96p-6f, 0x1.817d96p-6f, 25, ChipPoolOrder::kCountLast), 0x1.47ae14p-5f);
}

TEST(ChipRequantize, AdditionsOfGooglePrograms) {
  // mobilenet_v2_1.0_224_quant v2, ops 9 and 16
  EXPECT_EQ(chip_add(0x1.9b20f8p-2f, 136, 0x1.1a7452p-2f, 119, 0x1.ba8a80p-2f),
            (ChipAdd{24433, 16786, 0x1.3ef5fep-15f, -5320422}));
  EXPECT_EQ(chip_add(0x1.d2d32cp-3f, 121, 0x1.bf34ccp-3f, 127, 0x1.09ec2cp-2f),
            (ChipAdd{7543, 7226, 0x1.e812a4p-14f, -1830405}));
  // looming_64x64_3x3 v16, op 5
  EXPECT_EQ(chip_add(0x1.1e88c8p+6f, 0, 0x1.f50a2ap+5f, 0, 0x1.1e88c8p+6f),
            (ChipAdd{23375, 20437, 0x1.66def4p-15f, 0}));
}

TEST(ChipRequantize, AdditionIsSymmetric) {
  const auto ab = chip_add(0.25f, 3, 0.1f, 200, 0.5f), ba = chip_add(0.1f, 200, 0.25f, 3, 0.5f);
  ASSERT_TRUE(ab && ba);
  EXPECT_EQ(ab->a_weight, ba->b_weight);
  EXPECT_EQ(ab->b_weight, ba->a_weight);
  EXPECT_EQ(ab->multiplier, ba->multiplier);
  EXPECT_EQ(ab->offset, ba->offset);
}

TEST(ChipRequantize, AdditionOfNonsenseIsRefused) {
  EXPECT_FALSE(chip_add(0.0f, 0, 1.0f, 0, 1.0f).has_value());
  EXPECT_FALSE(chip_add(1.0f, 0, kNaN, 0, 1.0f).has_value());
  EXPECT_FALSE(chip_add(1.0f, 0, 1.0f, 0, INFINITY).has_value());
  EXPECT_FALSE(chip_add(1.0f, 256, 1.0f, 0, 1.0f).has_value());
}

TEST(ClosestFraction, KnownValues) {
  // Python: Fraction(x).limit_denominator(n)
  EXPECT_EQ(closest_fraction(3.141592653589793, 1000), (Fraction{355, 113}));
  EXPECT_EQ(closest_fraction(3.141592653589793, 10), (Fraction{22, 7}));
  EXPECT_EQ(closest_fraction(0.1, 32767), (Fraction{1, 10}));
  EXPECT_EQ(closest_fraction(0.5, 1), (Fraction{0, 1}));  // 0 and 1 are equally close
  EXPECT_EQ(closest_fraction(2.718281828459045, 32767), (Fraction{49171, 18089}));
  EXPECT_EQ(closest_fraction(0.0, 32767), (Fraction{0, 1}));
  EXPECT_EQ(closest_fraction(1.0, 32767), (Fraction{1, 1}));
  EXPECT_EQ(closest_fraction(1e-300, 32767), (Fraction{0, 1}));
  EXPECT_EQ(closest_fraction(1.0 / 65534, 32767), (Fraction{0, 1}));
  EXPECT_EQ(closest_fraction(1.0 / 65533, 32767), (Fraction{1, 32767}));
}

// No fraction with a denominator within the limit is closer: tried one by one, in exact arithmetic on 53-bit integers.
TEST(ClosestFraction, NoneIsCloser) {
  std::uint32_t state = 1;
  for (int i = 0; i < 200; ++i) {
    state = state * 1664525u + 1013904223u;
    const auto numerator = static_cast<std::int64_t>(state >> 2);  // value = numerator / 2^30
    const double value = static_cast<double>(numerator) / 1073741824.0;
    constexpr std::int64_t kLimit = 500;
    const Fraction best = closest_fraction(value, kLimit);
    ASSERT_GE(best.denominator, 1);
    ASSERT_LE(best.denominator, kLimit);
    // |p/q - n/2^30| = |p * 2^30 - n * q| / (q * 2^30)
    const auto error = [&](std::int64_t p, std::int64_t q) { return std::abs(p * 1073741824 - numerator * q); };
    for (std::int64_t q = 1; q <= kLimit; ++q) {
      const auto p = static_cast<std::int64_t>(std::llround(value * static_cast<double>(q)));
      ASSERT_LE(error(best.numerator, best.denominator) * q, error(p, q) * best.denominator)
          << value << " " << p << "/" << q;
    }
  }
}

TEST(ChipRequantize, RoundsHalvesToEvenOnce) {
  const ChipClamp wide{255.0f, -255.0f};
  EXPECT_EQ(chip_requantize(5, 0.5f, wide, 0), 2);    // 2.5
  EXPECT_EQ(chip_requantize(7, 0.5f, wide, 0), 4);    // 3.5
  EXPECT_EQ(chip_requantize(-5, 0.5f, wide, 10), 8);  // -2.5
  EXPECT_EQ(chip_requantize(-7, 0.5f, wide, 10), 6);  // -3.5
}

TEST(ChipRequantize, ClampsBeforeRoundingAndSaturates) {
  EXPECT_EQ(chip_requantize(1000, 1.0f, ChipClamp{12.6f, 0.0f}, 100), 113);
  EXPECT_EQ(chip_requantize(-1000, 1.0f, ChipClamp{12.6f, 0.0f}, 100), 100);
  EXPECT_EQ(chip_requantize(1000, 1.0f, ChipClamp{500.0f, -500.0f}, 100), 255);
  EXPECT_EQ(chip_requantize(std::numeric_limits<std::int32_t>::min(), 1.0f, ChipClamp{500.0f, -500.0f}, 100), 0);
  EXPECT_EQ(chip_requantize(1, kNaN, ChipClamp{500.0f, -7.0f}, 100), 93);  // foreign constants: any byte, no trap
}

}  // namespace
}  // namespace reef::numeric
