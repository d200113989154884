// SPDX-License-Identifier: Apache-2.0
#include "retarget/retarget.h"

#include <cstring>
#include <random>

#include <gtest/gtest.h>

#include "formats/darwinn/reader.h"
#include "formats/tflite/reader.h"
#include "retarget/sample_package.h"

namespace reef::retarget {
namespace {

using testing::SampleLayer;

SampleLayer random_layer(std::mt19937& random) {
  SampleLayer layer;
  for (std::uint8_t& weight : layer.weights) weight = static_cast<std::uint8_t>(random());
  for (std::int32_t& bias : layer.biases) bias = static_cast<std::int32_t>(random() % 2001) - 1000;
  std::uniform_real_distribution<float> scale(0.01f, 2.0f);
  layer.input_scale = scale(random);
  layer.weight_scale = scale(random);
  layer.output_scale = scale(random);
  layer.input_zero = static_cast<int>(random() % 256);
  layer.weight_zero = static_cast<int>(random() % 256);
  layer.output_zero = static_cast<int>(random() % 256);
  return layer;
}

Bytes compiled(const SampleLayer& layer) {
  auto file = testing::sample_compiled(layer);
  EXPECT_TRUE(file.ok()) << file.status().message();
  return Bytes(std::move(file).value());
}

// The file with every occurrence of one token replaced by another.
std::vector<std::uint8_t> with_token(std::vector<std::uint8_t> file, std::uint64_t from, std::uint64_t to) {
  for (std::size_t i = 0; i + 8 <= file.size(); ++i) {
    if (std::memcmp(&file[i], &from, 8) == 0) std::memcpy(&file[i], &to, 8);
  }
  return file;
}

TEST(Retarget, GivesWhatTheCompilerWouldHaveGiven) {
  std::mt19937 random(1);
  for (int k = 0; k < 20; ++k) {
    const SampleLayer before = random_layer(random), after = random_layer(random);
    const auto result = retarget(compiled(before), testing::sample_model(after));
    ASSERT_TRUE(result.ok()) << result.status().message();
    EXPECT_NE(result->report.new_token, result->report.old_token);
    const Bytes expected = compiled(after);
    const auto file = with_token(result->file, result->report.new_token, result->report.old_token);
    EXPECT_EQ(Bytes(file), expected) << k;
    EXPECT_EQ(result->report.tensor_ops, 1);
    EXPECT_EQ(result->report.layers, 1);
  }
}

TEST(Retarget, SameInputSameBytes) {
  std::mt19937 random(2);
  const SampleLayer before = random_layer(random), after = random_layer(random);
  const auto first = retarget(compiled(before), testing::sample_model(after));
  const auto second = retarget(compiled(before), testing::sample_model(after));
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(first->file, second->file);
}

TEST(Retarget, ChecksTheSourceIfThereIsOne) {
  std::mt19937 random(3);
  const SampleLayer before = random_layer(random), after = random_layer(random);
  const ir::Model source = testing::sample_model(before), model = testing::sample_model(after);
  Options options;
  options.source = &source;
  const auto right = retarget(compiled(before), model, options);
  ASSERT_TRUE(right.ok()) << right.status().message();
  EXPECT_EQ(right->file, retarget(compiled(before), model)->file);
  options.source = &model;
  const auto wrong = retarget(compiled(before), model, options);
  ASSERT_FALSE(wrong.ok());
  EXPECT_NE(wrong.status().message().find("not compiled from --source"), std::string::npos) << wrong.status().message();
}

TEST(Retarget, ReplacesZeroBiases) {
  std::mt19937 random(4);
  const SampleLayer before = random_layer(random);
  SampleLayer after = random_layer(random);
  after.biases = {};
  const auto result = retarget(compiled(before), testing::sample_model(after));
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(Bytes(with_token(result->file, result->report.new_token, result->report.old_token)), compiled(after));
}

void expect_refusal(const ir::Model& model, const std::string& word) {
  std::mt19937 random(5);
  const auto result = retarget(compiled(random_layer(random)), model);
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.status().message().find(word), std::string::npos) << result.status().message();
}

TEST(Retarget, SaysWhatDiffers) {
  const ir::Model good = testing::sample_model({});
  ir::Model wider = good;
  wider.subgraphs[0].tensors[0].shape = {1, 8};
  expect_refusal(wider, "input 0 is uint8[1, 4]");
  ir::Model other_type = good;
  other_type.subgraphs[0].tensors[3].type = ir::DataType::kInt8;
  expect_refusal(other_type, "output 0 is uint8[1, 4] ('out') in the template and int8[1, 4]");
  ir::Model more_inputs = good;
  more_inputs.subgraphs[0].inputs.push_back(1);
  expect_refusal(more_inputs, "the template has 1 inputs, the model 2");
  ir::Model per_channel = good;
  per_channel.subgraphs[0].tensors[1].quantization.scale = {0.1f, 0.2f, 0.3f, 0.4f};
  per_channel.subgraphs[0].tensors[1].quantization.zero_point = {120, 120, 120, 120};
  expect_refusal(per_channel, "op 0 FULLY_CONNECTED 'out'");
}

// An operator that the template has no instruction for.
TEST(Retarget, RefusesWhatFindsNoPlace) {
  ir::Model model = testing::sample_model({});
  ir::Subgraph& graph = model.subgraphs[0];
  graph.tensors.push_back(testing::sample_tensor("relu", ir::DataType::kUInt8, {1, 4}, 0, 1.0f, 17));
  ir::Operator relu;
  relu.type = "RELU";
  relu.builtin_code = 19;
  relu.inputs = {3};
  relu.outputs = {4};
  graph.operators.push_back(relu);
  graph.outputs = {4};
  expect_refusal(model, "op 1 RELU 'relu' has no instruction in the template");
}

TEST(Retarget, RefusesATemplateThatIsNone) {
  const auto result = retarget(Bytes(*tflite::write_model(testing::sample_model({}))), testing::sample_model({}));
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.status().message().find("not compiled for the Edge TPU"), std::string::npos);
}

// Damaged programs end with a message, not otherwise.
TEST(Retarget, SurvivesDamage) {
  std::mt19937 random(6);
  const SampleLayer layer = random_layer(random);
  const Bytes file = compiled(layer);
  const ir::Model model = testing::sample_model(layer);
  auto read = tflite::read_model(file);
  ASSERT_TRUE(read.ok());
  const auto options = darwinn::read_custom_options(read->subgraphs[0].operators[0].custom_options);
  ASSERT_TRUE(options.ok());
  int accepted = 0;
  for (int k = 0; k < 300; ++k) {
    darwinn::CustomOptions damaged = *options;
    darwinn::Executable& executable = damaged.package.executables[random() % 2];
    const auto old = executable.instruction_chunks[0].bitstream.span();
    std::vector<std::uint8_t> bytes(old.begin(), old.end());
    for (int n = 0; n < 3; ++n) bytes[random() % bytes.size()] ^= static_cast<std::uint8_t>(1u << random() % 8);
    executable.instruction_chunks[0].bitstream = Bytes(std::move(bytes));
    auto custom = darwinn::write_custom_options(damaged);
    ASSERT_TRUE(custom.ok());
    ir::Model changed = *read;
    changed.subgraphs[0].operators[0].custom_options = Bytes(std::move(custom).value());
    Options limits;
    limits.max_steps = 100000;
    accepted += retarget(Bytes(*tflite::write_model(changed)), model, limits).ok();
  }
  EXPECT_GT(accepted, 10);  // bits without influence exist
  EXPECT_LT(accepted, 290);
}

}  // namespace
}  // namespace reef::retarget
