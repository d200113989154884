// SPDX-License-Identifier: Apache-2.0
// Networks that integers ruin: spectra, whose values span many orders of magnitude. With default options the result is
// usable; where the user forbids what it takes, the verdict says so.
#include <cmath>
#include <numbers>
#include <random>

#include <gtest/gtest.h>

#include "base/file.h"
#include "command_line.h"
#include "formats/numpy/npy.h"
#include "formats/tflite/writer.h"
#include "passes/float/test_graph.h"
#include "quantize/quantize.h"
#include "random_samples.h"

namespace reef::quantize {
namespace {

using passes::testing::Maker;

constexpr int kSamplesOfSound = 64, kBands = 16;

// Power of sound in bands, as a logarithm, and a classifier behind it.
ir::Model spectrogram(bool has_classifier) {
  Maker make;
  const int x = make.input({1, kSamplesOfSound});
  const auto basis = [&](double phase) {
    std::vector<float> values;
    for (int band = 0; band < kBands; ++band) {
      for (int i = 0; i < kSamplesOfSound; ++i) {
        // Low bands are loud, high ones are quiet: as sound is, and worse.
        const double size = std::pow(10.0, -0.25 * band);
        values.push_back(
            static_cast<float>(size * std::cos(2 * std::numbers::pi * (band + 1) * i / kSamplesOfSound + phase)));
      }
    }
    const int weights = make.constant(values, {kBands, kSamplesOfSound}, ir::DataType::kFloat32);
    return make.op("FULLY_CONNECTED", "FullyConnectedOptions",
                   Maker::attributes({{"fused_activation_function", ir::EnumName{"NONE"}},
                                      {"weights_format", ir::EnumName{"DEFAULT"}},
                                      {"keep_num_dims", false}}),
                   {x, weights, make.number(0, {kBands})}, {1, kBands});
  };
  const int real = basis(0), imaginary = basis(std::numbers::pi / 2);
  const int power = make.binary("ADD", make.binary("MUL", real, real), make.binary("MUL", imaginary, imaginary));
  const int spectrum = make.unary("LOG", make.binary("ADD", power, make.number(1e-10f)));
  return make.finish({has_classifier ? make.dense(spectrum, 8) : spectrum});
}

const testing::RandomSamples kSound(48, -1, 1);

TEST(RescuedOutputs, SpectraStayFloatAndTheRestDoesNot) {
  for (const bool has_classifier : {false, true}) {
    SCOPED_TRACE(has_classifier);
    const ir::Model model = spectrogram(has_classifier);
    const auto result = quantize(model, &kSound, {});
    ASSERT_TRUE(result.ok()) << result.status().message();
    EXPECT_TRUE(result->lost.empty());
    EXPECT_GE(result->error->mean_sqnr_db, 10);
    EXPECT_FALSE(result->float_ops.empty());
    // The classifier behind the logarithm does well in integers.
    if (has_classifier) {
      EXPECT_EQ(result->model.subgraphs[0].operators.back().type, "FULLY_CONNECTED");
    }
    EXPECT_FALSE(result->notes.empty());
  }
}

// Powers of samples that are integers of 16 bits: no scale holds them.
TEST(RescuedOutputs, ValuesThatNoScaleHoldsStayFloat) {
  Maker make;
  const int x = make.input({1, 32});
  const int loud = make.binary("MUL", make.dense(x, 16), make.number(30000));
  const int power = make.binary("MUL", loud, loud);
  const int spectrum = make.unary("LOG", make.binary("ADD", make.unary("ABS", power), make.number(1)));
  const ir::Model model = make.finish({make.dense(spectrum, 8), power});
  const auto result = quantize(model, &kSound, {});
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_TRUE(result->lost.empty());
  ASSERT_FALSE(result->float_ops.empty());
  EXPECT_NE(result->float_ops[0].why.find("no 8-bit scale"), std::string::npos) << result->float_ops[0].why;
  const ir::Subgraph& graph = result->model.subgraphs[0];
  EXPECT_EQ(graph.tensors[static_cast<std::size_t>(graph.outputs[1])].type, ir::DataType::kFloat32);
  QuantizeOptions options;
  options.keep_sensitive_float = Choice::kOff;
  EXPECT_NE(quantize(model, &kSound, options).status().message().find("would get scale"), std::string::npos);
}

// Two sums that integers compute coarsely, with a layer before them. `layer_behind`: with another one behind.
ir::Model coarse_sums(bool layer_behind) {
  Maker make;
  const int x = make.dense(make.input({1, 32}), 16);
  const int far = make.binary("ADD", x, make.number(60));
  const int back = make.binary("ADD", far, make.number(-60));
  return make.finish({layer_behind ? make.dense(back, 8) : back});
}

// A gain of some decibels is not worth all layers behind an operator, which would stay on the CPU.
TEST(RescuedOutputs, OperatorsBetweenLayersStayInIntegersWhileTheResultIsGood) {
  QuantizeOptions options;
  options.rewrite = options.equalize = options.correct_biases = Choice::kOff;
  const auto usual = quantize(coarse_sums(true), &kSound, options);
  ASSERT_TRUE(usual.ok()) << usual.status().message();
  EXPECT_GE(usual->error->mean_sqnr_db, 15);
  EXPECT_LT(usual->error->mean_sqnr_db, 30);
  EXPECT_TRUE(usual->float_ops.empty());
  options.keep_sensitive_float = Choice::kOn;
  const auto wanted = quantize(coarse_sums(true), &kSound, options);
  ASSERT_TRUE(wanted.ok()) << wanted.status().message();
  EXPECT_EQ(wanted->float_ops.size(), 2u);
  EXPECT_GE(wanted->error->mean_sqnr_db, usual->error->mean_sqnr_db + 3);
  options.keep_sensitive_float = Choice::kAutomatic;
  const auto at_the_end = quantize(coarse_sums(false), &kSound, options);
  ASSERT_TRUE(at_the_end.ok()) << at_the_end.status().message();
  EXPECT_EQ(at_the_end->float_ops.size(), 2u);
}

TEST(RescuedOutputs, TheVerdictSaysWhatIsLost) {
  QuantizeOptions options;
  options.keep_sensitive_float = Choice::kOff;
  const auto result = quantize(spectrogram(false), &kSound, options);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_LT(result->error->mean_sqnr_db, 10);
  ASSERT_EQ(result->lost.size(), 1u);
  EXPECT_NE(result->lost[0].find(" dB"), std::string::npos);
}

using RescuedOutputsCommandLine = testing::CommandLine;

TEST_F(RescuedOutputsCommandLine, ALostOutputIsAnExitCodeAndNamesLayers) {
  const auto path = [&](const char* name) { return (folder_ / name).string(); };
  const auto bytes = tflite::write_model(spectrogram(true));
  ASSERT_TRUE(bytes.ok() && write_file(path("m.tflite"), *bytes).ok());
  std::vector<float> samples(48 * kSamplesOfSound);
  std::mt19937 random(3);
  for (float& v : samples) v = std::uniform_real_distribution<float>(-1, 1)(random);
  const std::span<const std::uint8_t> data(reinterpret_cast<const std::uint8_t*>(samples.data()), samples.size() * 4);
  const std::vector<std::int64_t> shape = {48, kSamplesOfSound};
  ASSERT_TRUE(numpy::save_npy(path("x.npy"), ir::DataType::kFloat32, shape, data).ok());
  const std::string how = fmt::format("quantize {} --data {} -o {}", path("m.tflite"), path("x.npy"), path("q.tflite"));
  const testing::Outcome rescued = testing::reef(how), lost = testing::reef(how + " --no-automatic-float");
  EXPECT_EQ(rescued.exit_code, 0) << rescued.text;
  EXPECT_NE(rescued.text.find("stay float"), std::string::npos) << rescued.text;
  EXPECT_EQ(lost.exit_code, 3) << lost.text;
  EXPECT_EQ(lost.text.rfind("NOT USABLE", 0), 0u) << lost.text;
  EXPECT_NE(lost.text.find("layer at fault: "), std::string::npos) << lost.text;
}

}  // namespace
}  // namespace reef::quantize
