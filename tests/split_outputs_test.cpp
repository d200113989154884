// SPDX-License-Identifier: Apache-2.0
// Detectors' heads in the forms that exporters write them: outputs whose parts differ in range are split, and nothing
// else is; the parts, put together, are the output.
#include "quantize/split_outputs.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "command_line.h"
#include "formats/numpy/npy.h"
#include "formats/tflite/writer.h"
#include "ir/verify.h"
#include "passes/float/test_graph.h"
#include "quantize/quantize.h"
#include "random_samples.h"

namespace reef::quantize {
namespace {

using passes::testing::Maker;
using passes::testing::operators_of;
using testing::RandomSamples;

const RandomSamples kSamples(24, -1, 1);

QuantizeOptions plain(Choice split = Choice::kAutomatic) {
  QuantizeOptions options;
  options.automatic_ranges = false;
  options.rewrite = options.equalize = options.correct_biases = options.keep_sensitive_float = Choice::kOff;
  options.split_outputs = split;
  return options;
}

// Numbers from 0 to `largest`, [1, rows, columns].
int values(Maker& make, int x, int rows, int columns, float largest) {
  const int wide = make.dense(x, rows * columns);
  return make.reshape(make.binary("MUL", make.unary("LOGISTIC", wide), make.number(largest)), {1, rows, columns});
}

struct Head {
  ir::Model model;
  std::vector<ir::Shape> split;  // shapes of the outputs once it is split; one: it must not be
  int axis = 0;                  // along which they join
};

// form: see the comments.
Head head(int form) {
  Maker make(static_cast<std::uint32_t>(form) + 1);
  const int x = make.input({1, 32});
  const auto boxes = [&](int rows, int columns) { return values(make, x, rows, columns, 320); };
  const auto scores = [&](int rows, int columns) { return values(make, x, rows, columns, 1); };
  switch (form) {
    case 0:  // YOLOv8: [1, 4 + classes, n]
      return {make.finish({make.concatenation({boxes(4, 30), scores(7, 30)}, 1)}), {{1, 4, 30}, {1, 7, 30}}, 1};
    case 1: {  // the same, joined channels last and turned
      const int joined = make.concatenation({boxes(30, 4), scores(30, 7)}, 2);
      return {make.finish({make.transpose(joined, {0, 2, 1})}), {{1, 4, 30}, {1, 7, 30}}, 1};
    }
    case 2: {  // YOLOv5: boxes and scores of each feature map are joined, then the feature maps
      std::vector<int> maps;
      for (const int cells : {16, 4, 2}) {
        const int anchors = cells / 2;
        const int joined = make.concatenation({boxes(cells, 2), boxes(cells, 2), scores(cells, 8)}, 2);
        maps.push_back(make.reshape(make.reshape(joined, {1, 2, anchors, 1, 12}), {1, cells, 12}));
      }
      return {make.finish({make.concatenation(maps, 1)}), {{1, 22, 4}, {1, 22, 8}}, 2};
    }
    case 3: {  // boxes in cells, and a product with strides behind the joint
      const int joined = make.concatenation({values(make, x, 30, 4, 40), scores(30, 7)}, 2);
      std::vector<float> strides(11, 1);
      std::fill_n(strides.begin(), 4, 8.0f);
      const int scaled = make.binary("MUL", joined, make.constant(strides, {1, 1, 11}, ir::DataType::kFloat32));
      return {make.finish({scaled}), {{1, 30, 4}, {1, 30, 7}}, 2};
    }
    case 4: {  // SSD, RetinaNet: feature maps are joined first, boxes and scores last
      const int all_boxes = make.concatenation({boxes(20, 4), boxes(10, 4)}, 1);
      const int all_scores = make.concatenation({scores(20, 7), scores(10, 7)}, 1);
      return {make.finish({make.concatenation({all_boxes, all_scores}, 2)}), {{1, 30, 4}, {1, 30, 7}}, 2};
    }
    case 5:  // YOLOv10: boxes, scores and classes of the best
      return {make.finish({make.concatenation({boxes(30, 4), scores(30, 1), values(make, x, 30, 1, 79)}, 2)}),
              {{1, 30, 4}, {1, 30, 1}, {1, 30, 1}},
              2};
    case 6: {  // a function behind the joint makes the ranges alike
      const int joined = make.concatenation({boxes(30, 4), scores(30, 7)}, 2);
      return {make.finish({make.unary("LOGISTIC", joined)}), {{1, 30, 11}}, 2};
    }
    case 7:  // fractions of the picture: ranges are alike
      return {make.finish({make.concatenation({scores(30, 4), scores(30, 7)}, 2)}), {{1, 30, 11}}, 2};
    case 8: {  // somebody else reads the joint
      const int joined = make.concatenation({boxes(30, 4), scores(30, 7)}, 2);
      const int sum = make.reduce("SUM", joined, {2}, false);
      return {make.finish({joined, sum}), {{1, 30, 4}, {1, 30, 7}, {1, 30}}, 2};
    }
    case 9: {  // YOLOv8's newer exports: feature maps first, functions behind each joint, and a turn: two ways to take
               // it apart
      const int all_boxes = make.concatenation({boxes(20, 4), boxes(10, 4)}, 1);
      const int all_scores = make.unary("LOGISTIC", make.concatenation({scores(20, 7), scores(10, 7)}, 1));
      return {make.finish({make.transpose(make.concatenation({all_boxes, all_scores}, 2), {0, 2, 1})}),
              {{1, 4, 30}, {1, 7, 30}},
              1};
    }
    default:
      return {};
  }
}
constexpr int kForms = 10;

std::vector<float> floats(const std::vector<std::uint8_t>& bytes) {
  std::vector<float> result(bytes.size() / 4);
  std::memcpy(result.data(), bytes.data(), bytes.size());
  return result;
}

// Outputs joined along an axis, as a user would.
std::vector<float> joined(const passes::testing::Values& parts, const std::vector<ir::Shape>& shapes, int axis) {
  std::vector<float> result;
  for (std::int64_t outer = 0; outer < shapes[0].product(0, axis); ++outer) {
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const std::int64_t row = shapes[i].product(axis, shapes[i].rank());
      const std::vector<float> values = floats(parts[i]);
      result.insert(result.end(), values.begin() + outer * row, values.begin() + (outer + 1) * row);
    }
  }
  return result;
}

TEST(SplitOutputs, HeadsOfDetectors) {
  for (int form = 0; form < kForms; ++form) {
    SCOPED_TRACE(form);
    const Head given = head(form);
    const auto result = split_outputs(given.model, &kSamples, plain());
    ASSERT_TRUE(result.ok()) << result.status().message();
    const ir::Subgraph& graph = result->model.subgraphs[0];
    ASSERT_EQ(graph.outputs.size(), given.split.size()) << operators_of(result->model);
    for (std::size_t i = 0; i < given.split.size(); ++i) {
      EXPECT_EQ(graph.tensors[static_cast<std::size_t>(graph.outputs[i])].shape, given.split[i]);
    }
    EXPECT_EQ(result->notes.size(), given.split.size() > 1 ? 1u : 0u);
    const auto inputs = passes::testing::random_inputs(given.model, 5);
    auto before = passes::testing::evaluate(given.model, inputs);
    auto after = passes::testing::evaluate(result->model, inputs);
    ASSERT_TRUE(before.ok() && after.ok());
    if (form == 8) before->pop_back(), after->pop_back();
    EXPECT_EQ(floats((*before)[0]), joined(*after, given.split, given.axis));
  }
}

// Scores survive with default options, and do not where the user keeps the output whole: then a warning says so.
TEST(SplitOutputs, ScoresStayAliveByDefault) {
  for (const int form : {0, 1, 2, 3, 4}) {
    SCOPED_TRACE(form);
    const Head given = head(form);
    const auto split = quantize(given.model, &kSamples, plain());
    ASSERT_TRUE(split.ok()) << split.status().message();
    ASSERT_EQ(split->parts.size(), 2u);
    for (const PartError& part : split->parts) {
      EXPECT_GT(part.sqnr_db, 20) << part.part.name;
      EXPECT_FALSE(part.is_dead);
    }
    const auto whole = quantize(given.model, &kSamples, plain(Choice::kOff));
    ASSERT_TRUE(whole.ok()) << whole.status().message();
    EXPECT_EQ(whole->model.subgraphs[0].outputs.size(), 1u);
    ASSERT_GE(whole->parts.size(), 2u);
    EXPECT_LT(whole->parts.back().sqnr_db, 5);
    EXPECT_GT(whole->error->mean_sqnr_db, 20);  // boxes hide it
    EXPECT_FALSE(whole->warnings.empty());
  }
}

TEST(SplitOutputs, APartThatRoundsToOneNumberIsReported) {
  Maker make;
  const int x = make.input({1, 32});
  const int low = make.binary("MUL", values(make, x, 30, 7, 1), make.number(0.3f));
  const int joined = make.concatenation({values(make, x, 30, 4, 320), low}, 2);
  const auto whole = quantize(make.finish({joined}), &kSamples, plain(Choice::kOff));
  ASSERT_TRUE(whole.ok()) << whole.status().message();
  ASSERT_EQ(whole->parts.size(), 2u);
  EXPECT_FALSE(whole->parts[0].is_dead);
  EXPECT_TRUE(whole->parts[1].is_dead);
  EXPECT_NE(whole->warnings[whole->warnings.size() - 2].find("is dead"), std::string::npos);
}

TEST(SplitOutputs, SignaturesFollow) {
  Head given = head(0);
  given.model.signatures.push_back(
      {"serving_default", 0, {{"x", 0}}, {{"output0", given.model.subgraphs[0].outputs[0]}}});
  const auto result = quantize(given.model, &kSamples, plain());
  ASSERT_TRUE(result.ok()) << result.status().message();
  const ir::Signature& signature = result->model.signatures[0];
  ASSERT_EQ(signature.outputs.size(), 2u);
  EXPECT_EQ(signature.outputs[0].name, "output0_0");
  EXPECT_EQ(signature.outputs[1].name, "output0_1");
  EXPECT_EQ(signature.outputs[0].tensor, result->model.subgraphs[0].outputs[0]);
  EXPECT_EQ(signature.outputs[1].tensor, result->model.subgraphs[0].outputs[1]);
}

// What a user sees, and that the two options do not go together.
using SplitOutputsCommandLine = testing::CommandLine;

TEST_F(SplitOutputsCommandLine, SaysWhatWasKeptOfEachPart) {
  const auto path = [&](const char* name) { return (folder_ / name).string(); };
  const Head given = head(1);
  const auto bytes = tflite::write_model(given.model);
  ASSERT_TRUE(bytes.ok());
  std::vector<float> samples(40 * 32);
  std::mt19937 random(3);
  for (float& v : samples) v = std::uniform_real_distribution<float>(-1, 1)(random);
  const std::vector<std::int64_t> shape = {40, 32};
  const std::span<const std::uint8_t> data(reinterpret_cast<const std::uint8_t*>(samples.data()), samples.size() * 4);
  ASSERT_TRUE(numpy::save_npy(path("samples.npy"), ir::DataType::kFloat32, shape, data).ok());
  ASSERT_TRUE(write_file(path("head.tflite"), *bytes).ok());
  const std::string command = "quantize " + path("head.tflite") + " --data " + path("samples.npy") +
                              " --calibration minmax -o " + path("int8.tflite");
  const testing::Outcome split = testing::reef(command);
  EXPECT_EQ(split.exit_code, 0) << split.text;
  EXPECT_NE(split.text.find("is given out as 2 outputs"), std::string::npos) << split.text;
  EXPECT_NE(split.text.find("_0': "), std::string::npos) << split.text;
  EXPECT_NE(split.text.find("_1': "), std::string::npos) << split.text;
  EXPECT_EQ(split.text.find("WARNING: output"), std::string::npos) << split.text;
  const testing::Outcome joined = testing::reef(command + " --join-outputs");
  EXPECT_EQ(joined.exit_code, 0) << joined.text;
  EXPECT_NE(joined.text.find("part 2 of 2': "), std::string::npos) << joined.text;
  EXPECT_NE(joined.text.find("WARNING: output"), std::string::npos) << joined.text;
  EXPECT_EQ(testing::reef(command + " --split-outputs").exit_code, 0);
  EXPECT_NE(testing::reef(command + " --split-outputs --join-outputs").exit_code, 0);
}

}  // namespace
}  // namespace reef::quantize
