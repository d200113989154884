// SPDX-License-Identifier: Apache-2.0
// Segments of a model (-n), run one behind the other as a pipeline runs them, compute what the whole model computes.
// Values go from one to the next by the names of tensors, which is all that a pipeline of files has.
#include <map>
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "compiler/plan.h"
#include "formats/tflite/reader.h"
#include "formats/tflite/writer.h"
#include "ir/verify.h"
#include "partition/segments.h"
#include "quantized_model.h"
#include "rewrite_models.h"

namespace reef {
namespace {

using passes::chip_testing::Buffers;
using testing::QuantizedModel;
using Values = std::map<std::string, std::vector<std::uint8_t>>;  // by tensor

// Branches that cross every possible cut, a result in the middle, operators that only the CPU runs and some that a
// rewrite replaces.
ir::Model network() {
  QuantizedModel b;
  const std::int32_t input = b.input({1, 16, 16, 8});
  const std::int32_t stem = b.conv(input, 8, 3);
  const std::int32_t left = b.unary("HARD_SWISH", b.conv(stem, 8, 3));
  const std::int32_t right = b.unary("CEIL", b.depthwise(stem));
  const std::int32_t middle = b.add(left, right);
  const std::int32_t late = b.add(b.conv(middle, 8), input);
  return b.finish({b.add(late, stem), middle, b.max_pool(right, 2, 2)});
}

const std::string& name_of(const ir::Model& model, std::int32_t tensor) {
  return model.subgraphs[0].tensors[static_cast<std::size_t>(tensor)].name;
}

// What the segments of `model` compute together. Each is written and read first.
Values run_in_turn(const ir::Model& model, const std::vector<partition::Segment>& segments, Values values) {
  std::set<std::string> computed;
  for (const partition::Segment& segment : segments) {
    const auto file =
        tflite::write_model(partition::extract_model(model, segment.ops, segment.inputs, segment.outputs));
    EXPECT_TRUE(file.ok()) << file.status().message();
    if (!file.ok()) return {};
    const auto part = tflite::read_model(Bytes(*file));
    EXPECT_TRUE(part.ok() && ir::verify(*part).ok());
    if (!part.ok()) return {};
    Buffers inputs;
    for (const std::int32_t tensor : part->subgraphs[0].inputs) {
      EXPECT_TRUE(values.contains(name_of(*part, tensor))) << "nobody computes " << name_of(*part, tensor);
      inputs.push_back(values[name_of(*part, tensor)]);
    }
    const auto outputs = passes::chip_testing::evaluate(*part, inputs);
    EXPECT_TRUE(outputs.ok()) << outputs.status().message();
    if (!outputs.ok()) return {};
    for (std::size_t i = 0; i < outputs->size(); ++i) {
      const std::string& name = name_of(*part, part->subgraphs[0].outputs[i]);
      EXPECT_TRUE(computed.insert(name).second) << "two segments compute " << name;
      values[name] = (*outputs)[i];
    }
  }
  return values;
}

// For every number of segments.
void expect_equal_to_whole(const ir::Model& given, bool with_rewrites) {
  compiler::PlanOptions options;
  options.rewrites.none = !with_rewrites;
  const auto plan = compiler::make_plan(std::make_shared<const ir::Model>(given), options);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  const ir::Model& model = *plan->model;
  ASSERT_EQ(model == given, !with_rewrites);
  std::mt19937 random(5);
  const Buffers inputs = passes::chip_testing::random_inputs(model, random);
  const auto whole = passes::chip_testing::evaluate(model, inputs);
  ASSERT_TRUE(whole.ok()) << whole.status().message();
  const auto count = static_cast<int>(model.subgraphs[0].operators.size());
  for (int n = 1; n <= count; ++n) {
    SCOPED_TRACE(n);
    const auto segments = partition::cut_segments(model, plan->assessment, *plan->costs, n);
    ASSERT_TRUE(segments.ok()) << segments.status().message();
    ASSERT_EQ(segments->size(), static_cast<std::size_t>(n));
    Values values;
    for (std::size_t i = 0; i < inputs.size(); ++i) values[name_of(model, model.subgraphs[0].inputs[i])] = inputs[i];
    values = run_in_turn(model, *segments, std::move(values));
    for (std::size_t i = 0; i < whole->size(); ++i) {
      const std::string& name = name_of(model, model.subgraphs[0].outputs[i]);
      ASSERT_TRUE(values.contains(name)) << name;
      EXPECT_EQ(values[name], (*whole)[i]) << name;
    }
  }
}

TEST(Segments, TogetherComputeWhatTheModelDoes) { expect_equal_to_whole(network(), false); }

TEST(Segments, OfARewrittenModelTogetherComputeWhatItDoes) { expect_equal_to_whole(network(), true); }

}  // namespace
}  // namespace reef
