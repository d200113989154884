// SPDX-License-Identifier: Apache-2.0
// A small detector that gives out its five best rows: boxes in pixels, the score and the number of the class.
#include "quantize/selection_tail.h"

#include <cstring>
#include <random>

#include <gtest/gtest.h>

#include "ir/text.h"
#include "ir/verify.h"
#include "quantize/quantize.h"

namespace reef::quantize {
namespace {

constexpr std::string_view kDetector = R"(model {
  subgraph "main" inputs(%0) outputs(%20) {
    %0 "picture" : float32[1, 8, 8, 2]
    %1 "weights" : float32[6, 1, 1, 2] buffer=1 = [0.3, -0.2, 0.1, 0.4, -0.3, 0.2, 0.5, 0.1, 3, -2, -1, 4]
    %2 "bias" : float32[6] buffer=2 = [0.5, 0.4, 0.3, 0.2, -1, -1]
    %3 "raw" : float32[1, 8, 8, 6]
    %4 "sizes" : int32[2] buffer=3 = [64, 6]
    %5 "rows" : float32[64, 6]
    %6 "zero" : int32[2] buffer=4 = [0, 0]
    %7 "four" : int32[2] buffer=5 = [64, 4]
    %8 "edges" : float32[64, 4]
    %9 "pixels" : float32[] buffer=6 = [300]
    %10 "boxes" : float32[64, 4]
    %11 "behind" : int32[2] buffer=7 = [0, 4]
    %12 "two" : int32[2] buffer=8 = [64, 2]
    %13 "logits" : float32[64, 2]
    %14 "scores" : float32[64, 2]
    %15 "last" : int32[1] buffer=9 = [1]
    %16 "best" : float32[64]
    %17 "count" : int32[] buffer=10 = [5]
    %18 "top" : float32[5]
    %19 "places" : int32[5]
    %20 "found" : float32[5, 6]
    %21 "axis" : int32[] buffer=11 = [1]
    %22 "kind" : int32[64]
    %23 "kinds" : int32[5]
    %24 "kind_number" : float32[5]
    %25 "top_boxes" : float32[5, 4]
    %26 "column" : int32[2] buffer=12 = [5, 1]
    %27 "top_column" : float32[5, 1]
    %28 "kind_column" : float32[5, 1]
    %3 = CONV_2D(%0, %1, %2) code=3 Conv2DOptions{padding=VALID, stride_w=1, stride_h=1}
    %5 = RESHAPE(%3, %4) code=22 ReshapeOptions{}
    %8 = SLICE(%5, %6, %7) code=65 SliceOptions{}
    %10 = MUL(%8, %9) code=18 MulOptions{}
    %13 = SLICE(%5, %11, %12) code=65 SliceOptions{}
    %14 = LOGISTIC(%13) code=14
    %16 = REDUCE_MAX(%14, %15) code=82 ReducerOptions{}
    %22 = ARG_MAX(%14, %21) code=56 ArgMaxOptions{output_type=INT32}
    %18, %19 = TOPK_V2(%16, %17) code=48 TopKV2Options{}
    %25 = GATHER(%10, %19) code=36 GatherOptions{axis=0}
    %23 = GATHER(%22, %19) code=36 GatherOptions{axis=0}
    %24 = CAST(%23) code=53 CastOptions{}
    %27 = RESHAPE(%18, %26) code=22 ReshapeOptions{}
    %28 = RESHAPE(%24, %26) code=22 ReshapeOptions{}
    %20 = CONCATENATION(%25, %27, %28) code=2 ConcatenationOptions{axis=1}
  }
  signature "serving_default" subgraph=0 inputs("x" = %0) outputs("y" = %20)
})";

class Noise : public data::SampleSource {
 public:
  std::int64_t size() const override { return 12; }
  Status read(std::int64_t sample, const data::InputSpec& input, std::span<std::byte> target) const override {
    std::mt19937 random(static_cast<unsigned>(sample) + 1);
    const double scale = input.type == ir::DataType::kFloat32 ? 0 : input.quantization.scale[0];
    for (std::int64_t i = 0; i < input.shape.elements(); ++i) {
      const float v = static_cast<float>(random() % 1000) / 500 - 1;
      if (scale == 0) {
        std::memcpy(target.data() + i * 4, &v, 4);
        continue;
      }
      const double q =
          std::clamp(std::nearbyint(v / scale) + static_cast<double>(input.quantization.zero_point[0]), -128.0, 127.0);
      target[at(i)] = static_cast<std::byte>(static_cast<std::int8_t>(q));
    }
    return ok_status();
  }
};

ir::Model detector() {
  auto model = ir::parse(kDetector);
  EXPECT_TRUE(model.ok()) << model.status().message();
  EXPECT_TRUE(ir::verify(*model).ok()) << ir::verify(*model).message();
  return std::move(model).value();
}

std::vector<std::string> types_of(const ir::Model& model) {
  std::vector<std::string> types;
  for (const ir::Operator& op : model.subgraphs[0].operators) types.push_back(op.type);
  return types;
}

TEST(SelectionTail, IsTakenOffWithWhatCountsForIt) {
  ir::Model rest = detector();
  const SelectionTail tail = take_off_selection(rest);
  EXPECT_EQ(tail.ops.size(), 8u);
  EXPECT_EQ(types_of(rest),
            (std::vector<std::string>{"CONV_2D", "RESHAPE", "SLICE", "MUL", "SLICE", "LOGISTIC", "REDUCE_MAX"}));
  EXPECT_EQ(rest.subgraphs[0].outputs, (std::vector<std::int32_t>{14, 16, 10}));
  EXPECT_TRUE(ir::verify(rest).ok()) << ir::verify(rest).message();
}

TEST(SelectionTail, PutBackItIsTheModelThatItWas) {
  const auto before = std::make_shared<const ir::Model>(detector());
  ir::Model changed = *before;
  const SelectionTail tail = take_off_selection(changed);
  const Status put = put_back_selection(tail, {{0, 1, 0}, {1, 1, 0}, {2, 1, 0}}, changed);
  ASSERT_TRUE(put.ok()) << put.message();
  EXPECT_EQ(changed.signatures[0].outputs.size(), 1u);
  const std::vector<std::int64_t> samples = {0, 1, 2};
  const auto a = run_outputs(before, Noise(), samples, {});
  const auto b = run_outputs(std::make_shared<const ir::Model>(changed), Noise(), samples, {});
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_EQ(*a, *b);
}

TEST(SelectionTail, StaysFloatAndTheModelIsUsable) {
  const ir::Model model = detector();
  const Noise noise;
  const auto result = quantize(model, &noise, QuantizeOptions{});
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_TRUE(result->lost.empty()) << result->lost[0];
  const ir::Subgraph& graph = result->model.subgraphs[0];
  ASSERT_EQ(graph.outputs.size(), 1u);
  EXPECT_EQ(graph.tensors[at(graph.outputs[0])].type, ir::DataType::kFloat32);
  for (const ir::Operator& op : graph.operators) {
    const ir::DataType type = graph.tensors[at(op.inputs[0])].type;
    if (op.type == "CONV_2D" || op.type == "LOGISTIC" || op.type == "MUL") {
      EXPECT_EQ(type, ir::DataType::kInt8);
    }
    if (op.type == "TOPK_V2" || op.type == "CONCATENATION") {
      EXPECT_EQ(type, ir::DataType::kFloat32);
    }
  }
  // At one scale with pixels the best score would be 0 or 1 step of a hundred.
  const std::vector<std::int64_t> samples = {0, 1, 2, 3};
  const auto before = run_outputs(std::make_shared<const ir::Model>(model), noise, samples, {});
  const auto after = run_outputs(std::make_shared<const ir::Model>(result->model), noise, samples, {});
  ASSERT_TRUE(before.ok() && after.ok());
  for (std::size_t s = 0; s < samples.size(); ++s) EXPECT_NEAR((*before)[s][0][4], (*after)[s][0][4], 0.03);
}

TEST(SelectionTail, ALayerBehindTheChoiceKeepsIt) {
  ir::Model model = detector();
  ir::Subgraph& graph = model.subgraphs[0];
  ir::Operator layer = graph.operators[0];
  layer.inputs[0] = 20;
  graph.operators.push_back(layer);  // shapes do not matter here
  graph.operators.back().outputs = {24};
  const ir::Model before = model;
  EXPECT_TRUE(take_off_selection(model).empty());
  EXPECT_EQ(model, before);
}

TEST(SelectionTail, IsNotForFullIntegerModels) {
  const ir::Model model = detector();
  const Noise noise;
  QuantizeOptions options;
  options.keep_sensitive_float = Choice::kOff;
  const auto result = quantize(model, &noise, options);
  ASSERT_TRUE(result.ok()) << result.status().message();
  for (const ir::Operator& op : result->model.subgraphs[0].operators) {
    if (op.type != "TOPK_V2") continue;
    EXPECT_EQ(result->model.subgraphs[0].tensors[at(op.inputs[0])].type, ir::DataType::kInt8);
  }
}

}  // namespace
}  // namespace reef::quantize
