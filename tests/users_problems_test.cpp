// SPDX-License-Identifier: Apache-2.0
// The 25 problems that Coral's users report most (docs/users_problems.md has the list, with links), one test or more
// for each that a test can show: a model with the problem, and what Reef says or does about it.
#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "compiler/check_subject.h"
#include "compiler/plan.h"
#include "ir/verify.h"
#include "partition/search.h"
#include "partition/segments.h"
#include "quantized_model.h"
#include "report/check_report.h"

namespace reef {
namespace {

using compiler::Plan;
using compiler::PlanOptions;
using partition::Place;
using testing::Quantized;
using testing::QuantizedModel;

PlanOptions as_google() {
  PlanOptions options;
  options.rewrites.none = true;
  options.partition.choice = partition::PartitionOptions::Choice::kFirst;
  return options;
}

Plan must_plan(const ir::Model& model, const PlanOptions& options) {
  auto plan = compiler::make_plan(std::make_shared<const ir::Model>(model), options);
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  return plan.ok() ? std::move(plan).value() : Plan();
}

std::size_t op_count(const Plan& plan) { return plan.model->subgraphs[0].operators.size(); }
bool all_on_chip(const Plan& plan) {
  return plan.partition.chip_op_count() == static_cast<std::int32_t>(op_count(plan));
}

std::string report_of(const ir::Model& model, const Plan& plan) {
  return report::check_text(compiler::check_subject("model.tflite", model, plan), {});
}

// What is left on the CPU, for messages.
std::string left(const Plan& plan) {
  std::string text;
  for (std::size_t op = 0; op < op_count(plan); ++op) {
    if (plan.partition.ops[op].place == Place::kChip) continue;
    text += fmt::format("{} {}", op, plan.model->subgraphs[0].operators[op].type);
    if (!plan.assessment.ops[op].fits()) text += fmt::format(" [{}]", plan.assessment.ops[op].findings[0].rule->id);
    text += "; ";
  }
  return text;
}

bool has_rule(const Plan& plan, std::size_t op, std::string_view id) {
  const auto& findings = plan.assessment.ops[op].findings;
  return std::any_of(findings.begin(), findings.end(), [&](const auto& finding) { return finding.rule->id == id; });
}

// The same model computes the same: outputs of both on the CPU, largest difference in steps.
int largest_difference(const ir::Model& a, const ir::Model& b) {
  const auto run = [](const ir::Model& model) {
    std::vector<std::vector<std::uint8_t>> inputs;
    std::uint32_t state = 7;
    for (const std::int32_t tensor : model.subgraphs[0].inputs) {
      const ir::Tensor& input = model.subgraphs[0].tensors[static_cast<std::size_t>(tensor)];
      auto& values = inputs.emplace_back(static_cast<std::size_t>(*ir::byte_size(input.shape, input.type)));
      for (std::uint8_t& byte : values)
        byte = static_cast<std::uint8_t>((state = state * 1664525u + 1013904223u) >> 24);
    }
    auto outputs = compiler::cpu_evaluator()(model, inputs);
    EXPECT_TRUE(outputs.ok()) << outputs.status().message();
    std::vector<std::vector<std::uint8_t>> bytes;
    if (outputs.ok()) {
      for (cpu::Value& value : *outputs) bytes.push_back(std::move(value.bytes));
    }
    return bytes;
  };
  const auto first = run(a), second = run(b);
  EXPECT_EQ(first.size(), second.size());
  int largest = 0;
  for (std::size_t i = 0; i < std::min(first.size(), second.size()); ++i) {
    EXPECT_EQ(first[i].size(), second[i].size());
    for (std::size_t j = 0; j < std::min(first[i].size(), second[i].size()); ++j) {
      largest =
          std::max(largest, std::abs(static_cast<std::int8_t>(first[i][j]) - static_cast<std::int8_t>(second[i][j])));
    }
  }
  return largest;
}

// ---- 1: "Internal compiler error. Aborting!" ----

// Attributes and constants that no converter writes: nothing crashes, and what does not fit has a rule.
TEST(UsersProblems, P01_NonsenseIsAnsweredNotCrashedOn) {
  for (const std::int64_t value : {std::int64_t{0}, std::int64_t{-1}, std::int64_t{1} << 31, std::int64_t{-1} << 40}) {
    QuantizedModel builder;
    std::int32_t x = builder.conv(builder.input({1, 8, 8, 4}), 4, 3);
    builder.last_op().attributes.set("stride_w", value);
    builder.last_op().attributes.set("dilation_h_factor", value);
    x = builder.max_pool(x, 2, 1);
    builder.last_op().attributes.set("filter_height", value);
    builder.last_op().attributes.set("padding", ir::EnumName{"SIDEWAYS"});
    x = builder.concatenation({x, x}, 3);
    builder.last_op().attributes.set("axis", value);
    x = builder.transpose(x, {0, 2, 1, 3});
    x = builder.mean(x, {1, 2});
    builder.last_op().inputs[1] = builder.ints({static_cast<std::int32_t>(value), 100000});
    const ir::Model model = builder.finish({x});
    const Plan plan = must_plan(model, {});
    EXPECT_FALSE(report_of(model, plan).empty());
  }
}

// ---- 2: "not mapped due to some unspecified limitation" ----

TEST(UsersProblems, P02_EveryRefusalNamesRulePlaceNumbersAndAWayOn) {
  QuantizedModel builder;
  const std::int32_t x = builder.conv(builder.input({1, 80, 80, 16}), 64, 3);
  builder.name(x, "head/conv");
  const std::int32_t out = builder.transpose(x, {0, 3, 1, 2});
  builder.name(out, "head/transpose");
  const ir::Model model = builder.finish({out});
  const Plan plan = must_plan(model, as_google());
  ASSERT_FALSE(plan.assessment.ops[1].fits());
  const partition::Finding& finding = plan.assessment.ops[1].findings[0];
  EXPECT_EQ(finding.rule->id, "transpose-size");
  EXPECT_FALSE(finding.rule->suggestion.empty());
  const std::string text = report_of(model, plan);
  for (const char* part : {"op 1 TRANSPOSE 'head/transpose'", "1x80x80x64", "409,600", "[transpose-size]", "ms"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
}

// ---- 3: "More than one subgraph is not supported" ----

TEST(UsersProblems, P03_OneOperatorStrandsTheRestAndIsNamed) {
  QuantizedModel builder;
  std::int32_t x = builder.input({1, 48, 48, 32});
  for (int i = 0; i < 4; ++i) x = builder.conv(x, 128, 3);
  x = builder.unary("FLOOR", x);
  for (int i = 0; i < 6; ++i) x = builder.conv(x, 128, 3);
  const ir::Model model = builder.finish({x});
  const Plan plan = must_plan(model, as_google());
  EXPECT_EQ(plan.partition.chip_op_count(), 4);
  EXPECT_EQ(plan.partition.ops[4].strands, 6);
  EXPECT_GT(plan.partition.ops[4].gain_us, 0);
  for (std::size_t op = 5; op < 11; ++op) {
    EXPECT_EQ(plan.partition.ops[op].place, Place::kCascade);
    EXPECT_EQ(plan.partition.ops[op].blocker, 4);
  }
  // The best single part is the larger one; several parts take both.
  EXPECT_EQ(must_plan(model, {}).partition.chip_op_count(), 6);
  PlanOptions several = as_google();
  several.partition.several_parts = true;
  EXPECT_EQ(must_plan(model, several).partition.chip_op_count(), 10);
}

// ---- 5: dynamic-sized tensors ----

TEST(UsersProblems, P05_TensorsOfUnknownSizeAreNamed) {
  QuantizedModel builder;
  const std::int32_t x = builder.input({1, 8, 8, 4});
  const std::int32_t target = builder.computed_plain({2}, ir::DataType::kInt32, "target_shape");
  const std::int32_t given = builder.input({1, 8, 8, 4}, "other");
  builder.op("SHAPE", {given}, {target}, "ShapeOptions");
  const std::int32_t y = builder.computed({1, 256}, {}, "reshaped");
  builder.op("RESHAPE", {x, target}, {y});
  const ir::Model model = builder.finish({y});
  const Plan plan = must_plan(model, as_google());
  ASSERT_FALSE(plan.assessment.dynamic_tensors.empty());
  const std::string text = report_of(model, plan);
  EXPECT_NE(text.find("'reshaped'"), std::string::npos) << text;
}

// ---- 6: "Model not quantized" although it is ----

TEST(UsersProblems, P06_FloatTensorsAreListedWithTheCommandThatQuantizes) {
  QuantizedModel builder;
  const std::int32_t x = builder.float_input({1, 8, 8, 4});
  const std::int32_t y = builder.op("RELU", {x}, {builder.computed_plain({1, 8, 8, 4}, ir::DataType::kFloat32, "act")});
  const ir::Model model = builder.finish({y});
  const Plan plan = must_plan(model, {});
  EXPECT_FALSE(plan.assessment.is_quantized);
  EXPECT_EQ(plan.assessment.float_tensors, (std::vector<std::int32_t>{x, y}));
  const std::string text = report_of(model, plan);
  EXPECT_NE(text.find("`reef quantize MODEL --data SAMPLES -o OUT.tflite`"), std::string::npos) << text;
  EXPECT_NE(text.find("'act'"), std::string::npos) << text;
}

TEST(UsersProblems, P06_HalfQuantizedModelsAreTakenAsFarAsTheyGo) {
  QuantizedModel builder;
  const std::int32_t in = builder.float_input({1, 32, 32, 8});
  std::int32_t x = builder.quantize(in, {});
  for (int i = 0; i < 4; ++i) x = builder.conv(x, 16, 3);
  const std::int32_t real = builder.dequantize(x);
  const std::int32_t out =
      builder.op("RELU", {real}, {builder.computed_plain(builder.shape(real), ir::DataType::kFloat32, "tail")});
  const Plan plan = must_plan(builder.finish({out}), as_google());
  EXPECT_TRUE(plan.assessment.is_quantized);
  EXPECT_EQ(plan.partition.chip_op_count(), 4) << left(plan);
  EXPECT_EQ(plan.assessment.ops[0].google_status(), ops::GoogleStatus::kUnspecifiedLimitation);
  EXPECT_EQ(plan.assessment.ops[5].google_status(), ops::GoogleStatus::kUnsupportedType);
}

// ---- 7: newer op codes and versions ----

TEST(UsersProblems, P07_UnknownOperatorsStayOnTheCpuAndTheRestIsMapped) {
  QuantizedModel builder;
  std::int32_t x = builder.input({1, 32, 32, 8});
  for (int i = 0; i < 3; ++i) x = builder.conv(x, 8, 3);
  const std::int32_t y = builder.computed(builder.shape(x), {}, "from_the_future");
  builder.op("BUILTIN_250", {x}, {y});
  builder.last_op().builtin_code = 250;
  const std::int32_t z = builder.conv(y, 8, 3);
  const ir::Model model = builder.finish({z});
  const Plan plan = must_plan(model, as_google());
  EXPECT_EQ(plan.partition.chip_op_count(), 3) << left(plan);
  EXPECT_EQ(plan.partition.ops[4].blocker, 3);
  EXPECT_NE(report_of(model, plan).find("from_the_future"), std::string::npos);
}

TEST(UsersProblems, P07_NewerVersionsAreNamed) {
  QuantizedModel builder;
  const std::int32_t x = builder.conv(builder.input({1, 8, 8, 8}), 8);
  builder.last_op().version = 99;
  const Plan plan = must_plan(builder.finish({x}), as_google());
  EXPECT_EQ(plan.assessment.ops[0].google_status(), ops::GoogleStatus::kVersionNotSupported) << left(plan);
}

// ---- 8: RESIZE ----

TEST(UsersProblems, P08_ResizesAreJudgedBySizeAndCentres) {
  QuantizedModel builder;
  const std::int32_t x = builder.input({1, 12, 12, 16});
  std::vector<std::int32_t> outputs = {builder.resize("RESIZE_BILINEAR", x, 24, 24),
                                       builder.resize("RESIZE_NEAREST_NEIGHBOR", x, 24, 24),
                                       builder.resize("RESIZE_BILINEAR", x, 24, 24, false, true)};
  const Plan plan = must_plan(builder.finish(outputs), as_google());
  EXPECT_TRUE(all_on_chip(plan)) << left(plan);
  PlanOptions old = as_google();
  old.runtime = 12;
  const Plan older = must_plan(*plan.model, old);
  EXPECT_FALSE(older.assessment.ops[2].fits());
}

// ---- 9: YOLO heads ----

// The end of a YOLOv8 as converters write it: per scale CONCATENATION, TRANSPOSE to channels first, RESHAPE; joined
// over all anchors; boxes by a softmax over 16 bins and a convolution, scores by a sigmoid.
ir::Model yolo_v8(int size) {
  QuantizedModel builder;
  std::int32_t x = builder.conv(builder.input({1, size, size, 3}), 16, 3, 2);
  std::vector<std::int32_t> scales;
  for (int level = 0; level < 5; ++level) {
    if (level > 0) x = builder.conv(x, 32, 3, 2);
    if (level >= 2) scales.push_back(x);
  }
  std::vector<std::int32_t> joined;
  std::int32_t anchors = 0;
  for (const std::int32_t scale : scales) {
    const std::int32_t boxes = builder.conv(scale, 64), scores = builder.conv(scale, 80);
    const std::int32_t both = builder.concatenation({boxes, scores}, 3);
    const std::int32_t channels_first = builder.transpose(both, {0, 3, 1, 2});
    const std::int32_t area = builder.shape(both)[1] * builder.shape(both)[2];
    joined.push_back(builder.reshape(channels_first, {1, 144, area}));
    anchors += area;
  }
  const std::int32_t all = builder.concatenation(joined, 2);
  const auto slice = [&](int from, int to) {
    const std::int32_t out = builder.computed({1, to - from, anchors}, {});
    ir::Attributes attributes;
    for (const char* mask : {"begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"}) {
      attributes.set(mask, std::int64_t{0});
    }
    return builder.op("STRIDED_SLICE",
                      {all, builder.ints({0, from, 0}), builder.ints({1, to, anchors}), builder.ints({1, 1, 1})}, {out},
                      "StridedSliceOptions", attributes);
  };
  const std::int32_t bins = builder.transpose(builder.reshape(slice(0, 64), {1, 4, 16, anchors}), {0, 1, 3, 2});
  const std::int32_t distances = builder.reshape(builder.conv(builder.softmax(bins), 1), {1, 4, anchors});
  const std::int32_t scores = builder.logistic(slice(64, 144));
  return builder.finish({distances, builder.quantize(scores, {})});
}

// Everything, but for transpositions at the very end: whoever exported the model wants its outputs channels first.
bool all_but_final_transpositions(const Plan& plan) {
  for (std::size_t op = 0; op < op_count(plan); ++op) {
    if (plan.partition.ops[op].place == Place::kChip) continue;
    const ir::Subgraph& graph = plan.model->subgraphs[0];
    const ir::Operator& source = graph.operators[op];
    const bool is_output =
        std::find(graph.outputs.begin(), graph.outputs.end(), source.outputs[0]) != graph.outputs.end();
    if (source.type != "TRANSPOSE" || !is_output) return false;
  }
  return true;
}

TEST(UsersProblems, P09_YoloHeadsFitAtEverySize) {
  const Plan before = must_plan(yolo_v8(640), as_google());
  EXPECT_LT(before.partition.chip_op_count(), static_cast<std::int32_t>(op_count(before)));
  for (const int size : {192, 320, 640}) {
    const ir::Model model = yolo_v8(size);
    const Plan plan = must_plan(model, {});
    EXPECT_TRUE(all_but_final_transpositions(plan)) << size << ": " << left(plan);
    EXPECT_TRUE(ir::verify(*plan.model).ok()) << ir::verify(*plan.model).message();
    if (size == 320) {
      EXPECT_LE(largest_difference(model, *plan.model), 1);
    }
  }
}

// ---- 10: the size lottery ----

TEST(UsersProblems, P10_WhatFitsDoesNotDependOnLuck) {
  for (int size = 160; size <= 640; size += 32) {
    const Plan plan = must_plan(yolo_v8(size), {});
    EXPECT_TRUE(all_but_final_transpositions(plan)) << size << ": " << left(plan);
  }
}

// ---- 11: boxes and scores in one tensor ----

TEST(UsersProblems, P11_MixedRangesAreSaid) {
  QuantizedModel builder;
  const std::int32_t x = builder.input({1, 10, 10, 16});
  const std::int32_t boxes = builder.conv(x, 4);
  builder.tensor(boxes).quantization.scale = {2.5f};
  const std::int32_t scores = builder.quantize(builder.logistic(builder.conv(x, 80)), {ir::DataType::kInt8, 2.5f, 0});
  const Plan plan = must_plan(builder.finish({builder.concatenation({boxes, scores}, 3)}), as_google());
  ASSERT_FALSE(plan.partition.notes.empty());
  EXPECT_NE(plan.partition.notes[0].find("mixes ranges"), std::string::npos);
}

// ---- 14: activations that the chip does not have ----

class UsersProblemsActivation : public ::testing::TestWithParam<const char*> {};

TEST_P(UsersProblemsActivation, P14_IsReplaced) {
  const std::string type = GetParam();
  QuantizedModel builder;
  std::int32_t x = builder.conv(builder.input({1, 16, 16, 8}), 8, 3);
  if (type == "LEAKY_RELU") {
    ir::Attributes attributes;
    attributes.set("alpha", 0.1);
    x = builder.unary(type, x, "LeakyReluOptions", attributes, 2);
  } else if (type == "GELU") {
    ir::Attributes attributes;
    attributes.set("approximate", false);
    x = builder.unary(type, x, "GeluOptions", attributes);
  } else {
    x = builder.unary(type, x);
  }
  x = builder.conv(x, 8, 3);
  const ir::Model model = builder.finish({x});
  const Plan before = must_plan(model, as_google());
  EXPECT_EQ(before.partition.chip_op_count(), 1) << left(before);
  const Plan plan = must_plan(model, {});
  EXPECT_TRUE(all_on_chip(plan)) << left(plan);
}

INSTANTIATE_TEST_SUITE_P(All, UsersProblemsActivation, ::testing::Values("HARD_SWISH", "LEAKY_RELU", "ELU", "GELU"));

// ---- 16: -d takes hundreds of attempts ----

TEST(UsersProblems, P16_TheSearchTakesTenAttemptsNot535) {
  const auto found = partition::longest_that_compiles(535, 1, [](std::int32_t n) -> Result<bool> { return n <= 119; });
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->ops, 119);
  EXPECT_LE(found->attempts, 11);
}

// ---- 17: -a maps more and is slower ----

TEST(UsersProblems, P17_SeveralPartsAreNotPredictedSlowerThanOne) {
  QuantizedModel builder;
  std::int32_t x = builder.conv(builder.input({1, 64, 64, 32}), 32, 3);
  for (int i = 0; i < 8; ++i) x = builder.conv(builder.unary("FLOOR", x), 32, 1);  // short pieces, large tensors
  const ir::Model model = builder.finish({x});
  PlanOptions several = as_google();
  several.partition.several_parts = true;
  EXPECT_LE(must_plan(model, several).partition.predicted_us, must_plan(model, as_google()).partition.predicted_us);
}

// ---- 19: batches ----

TEST(UsersProblems, P19_BatchesAreUnrolled) {
  QuantizedModel builder;
  std::int32_t x = builder.input({4, 32, 32, 8});
  for (int i = 0; i < 3; ++i) x = builder.conv(x, 16, 3);
  const ir::Model model = builder.finish({x});
  const Plan before = must_plan(model, as_google());
  EXPECT_EQ(before.partition.chip_op_count(), 0);
  EXPECT_TRUE(has_rule(before, 0, "batch"));
  EXPECT_EQ(before.assessment.ops[0].google_status(), ops::GoogleStatus::kUnsupportedRank);
  const Plan plan = must_plan(model, {});
  EXPECT_GE(plan.partition.chip_op_count(), 12) << left(plan);
  EXPECT_EQ(largest_difference(model, *plan.model), 0);
}

// ---- 20: weights that are computed from constants ----

TEST(UsersProblems, P20_TransposedWeightsOfATransposeConvAreFolded) {
  QuantizedModel builder;
  const std::int32_t x = builder.input({1, 16, 16, 8});
  const std::int32_t stored = builder.weights({2, 2, 8, 4});
  const std::int32_t weights = builder.computed({4, 2, 2, 8}, {ir::DataType::kInt8, 0.02f, 0}, "transposed_weights");
  builder.op("TRANSPOSE", {stored, builder.ints({3, 0, 1, 2})}, {weights}, "TransposeOptions", {}, 2);
  ir::Attributes attributes;
  attributes.set("padding", ir::EnumName{"SAME"});
  attributes.set("stride_w", std::int64_t{2});
  attributes.set("stride_h", std::int64_t{2});
  const std::int32_t out = builder.computed({1, 32, 32, 4}, {}, "upsampled");
  builder.op("TRANSPOSE_CONV", {builder.ints({1, 32, 32, 4}), weights, x}, {out}, "TransposeConvOptions", attributes,
             2);
  const ir::Model model = builder.finish({out});
  const Plan before = must_plan(model, as_google());
  EXPECT_EQ(before.assessment.ops[1].google_status(), ops::GoogleStatus::kNotConstant) << left(before);
  const Plan plan = must_plan(model, {});
  EXPECT_EQ(op_count(plan), 1u);
  EXPECT_TRUE(all_on_chip(plan)) << left(plan);
  EXPECT_EQ(largest_difference(model, *plan.model), 0);
}

// ---- 22: float inputs and outputs ----

TEST(UsersProblems, P22_FloatEndsStayOnTheCpuOrAreStripped) {
  QuantizedModel builder;
  std::int32_t x = builder.quantize(builder.float_input({1, 16, 16, 8}), {});
  x = builder.dequantize(builder.conv(x, 8, 3));
  const ir::Model model = builder.finish({x});
  const Plan plan = must_plan(model, {});
  EXPECT_EQ(plan.partition.chip_op_count(), 1) << left(plan);
  PlanOptions strip;
  strip.rewrites.enable = {"io"};
  const Plan stripped = must_plan(model, strip);
  EXPECT_TRUE(all_on_chip(stripped)) << left(stripped);
  EXPECT_EQ(stripped.model->subgraphs[0].tensors[static_cast<std::size_t>(stripped.model->subgraphs[0].inputs[0])].type,
            ir::DataType::kInt8);
}

// ---- 25: -n and balance ----

TEST(UsersProblems, P25_SegmentsAreBalancedByTime) {
  QuantizedModel builder;
  std::int32_t x = builder.input({1, 128, 128, 16});
  for (int i = 0; i < 8; ++i) x = builder.conv(x, 32, 3);  // early layers: long, few parameters
  x = builder.conv(x, 64, 3, 4);
  for (int i = 0; i < 8; ++i) x = builder.conv(x, 256, 3, i == 0 ? 4 : 1);  // late layers: short, many parameters
  const ir::Model model = builder.finish({x});
  const Plan plan = must_plan(model, as_google());
  const auto segments = partition::cut_segments(model, plan.assessment, *plan.costs, 2);
  ASSERT_TRUE(segments.ok());
  double slowest = 0, all = 0;
  for (const auto& segment : *segments) {
    slowest = std::max(slowest, segment.predicted_us);
    all += segment.predicted_us;
  }
  EXPECT_LT(slowest, 0.75 * all);
  // By parameters, nine tenths of which are in the last eight layers, the cut would lie among those.
  EXPECT_LE((*segments)[0].ops.size(), 10u);
}

}  // namespace
}  // namespace reef
