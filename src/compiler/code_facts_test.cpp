// SPDX-License-Identifier: Apache-2.0
#include "compiler/code_facts.h"

#include <algorithm>
#include <numeric>
#include <string>

#include <gtest/gtest.h>

#include "compiler/chip_time.h"
#include "compiler/part_search.h"
#include "quantized_model.h"

namespace reef::compiler {
namespace {

using testing::QuantizedModel;

// As `reef check` plans it.
Plan planned(const ir::Model& model) {
  PlanOptions options;
  options.all_rewrites = true;
  auto plan = make_faster_plan(std::make_shared<const ir::Model>(model), options);
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  PartSearchOptions search;
  search.plan = options;
  const auto report = find_parts(*plan, trial_of_generator(ops::kNewestRuntime), search);
  EXPECT_TRUE(report.ok()) << report.status().message();
  return std::move(plan).value();
}

// Maps whose channels and places change sides: copies of single bytes, most of the time on the link.
ir::Model moving() {
  QuantizedModel model;
  const std::int32_t x = model.reshape(model.conv(model.input({1, 10, 10, 64}), 64), {1, 100, 64});
  return model.finish({model.conv(model.reshape(model.transpose(x, {0, 2, 1}), {1, 8, 8, 100}), 32)});
}
ir::Model attention(int tokens, int width, int heads) {
  QuantizedModel model;
  const std::int32_t x = model.input({1, 1, tokens, width});
  const auto split = [&](std::int32_t y, std::vector<std::int32_t> order) {
    return model.transpose(model.reshape(y, {1, tokens, heads, width / heads}), std::move(order));
  };
  const std::int32_t q = split(model.conv(x, width), {0, 2, 1, 3}), k = split(model.conv(x, width), {0, 2, 1, 3}),
                     v = split(model.conv(x, width), {0, 2, 1, 3});
  ir::Attributes by_rows;
  by_rows.set("adj_y", true);
  const auto product = [&](std::int32_t a, std::int32_t b, ir::Shape shape, ir::Attributes how) {
    const std::int32_t made = model.computed(std::move(shape), {});
    return model.op("BATCH_MATMUL", {a, b}, {made}, "BatchMatMulOptions", std::move(how), 4);
  };
  const std::int32_t weights = model.softmax(product(q, k, {1, heads, tokens, tokens}, by_rows));
  const std::int32_t y = product(weights, v, {1, heads, tokens, width / heads}, {});
  const std::int32_t joined = model.reshape(model.transpose(y, {0, 2, 1, 3}), {1, 1, tokens, width});
  return model.finish({model.add(x, model.conv(joined, width))});
}
// More parameters than the chip keeps, 2.4 MiB each.
ir::Model streaming() {
  QuantizedModel model;
  std::int32_t x = model.input({1, 14, 14, 512});
  for (int i = 0; i < 5; ++i) x = model.conv(x, 512, 3);
  return model.finish({x});
}
ir::Model plain() {
  QuantizedModel model;
  std::int32_t x = model.conv(model.input({1, 64, 64, 3}), 32, 3, 2);
  for (int i = 0; i < 4; ++i) x = model.conv(model.depthwise(x), 64, 1);
  return model.finish({model.softmax(model.fully_connected(model.mean(x, {1, 2}, false), 12))});
}

// A dense layer of 18,432 inputs, more than a tile keeps weights for: they pass by on the ring.
ir::Model flattened() {
  QuantizedModel model;
  const std::int32_t x = model.conv(model.input({1, 48, 48, 3}), 8, 3);
  return model.finish({model.fully_connected(model.reshape(x, {1, 18432}), 10)});
}

TEST(CodeFacts, PredictionsAreNearSimulatedTimes) {
  const std::pair<std::string, ir::Model> networks[] = {{"moving", moving()},
                                                        {"attention of 64 tokens", attention(64, 64, 4)},
                                                        {"attention of 50 tokens", attention(50, 96, 3)},
                                                        {"streaming", streaming()},
                                                        {"many inputs", flattened()},
                                                        {"plain", plain()}};
  for (const auto& [name, model] : networks) {
    const Plan plan = planned(model);
    ASSERT_EQ(plan.partition.parts.size(), 1u) << name;
    EXPECT_EQ(plan.partition.chip_op_count(), static_cast<std::int32_t>(plan.partition.ops.size())) << name;
    const auto simulated = simulate_time(model, nullptr, {});
    ASSERT_TRUE(simulated.ok()) << name << ": " << simulated.status().message();
    const double predicted = plan.partition.parts[0].cost.total() / 1000;
    EXPECT_NEAR(predicted / simulated->chip_ms, 1, 0.15) << name << ": " << predicted << " ms predicted";
    EXPECT_EQ(plan.partition.parts[0].cost.streamed_bytes, simulated->streamed_bytes) << name;
  }
}

// Tokens that go out channels first: the code for that is most of what the link carries.
TEST(CodeFacts, OperatorsWithManyInstructionsAreNotWorthTheChip) {
  QuantizedModel model;
  const std::int32_t x = model.conv(model.input({1, 10, 10, 64}), 64);
  const Plan plan = planned(model.finish({model.transpose(model.reshape(x, {1, 100, 64}), {0, 2, 1})}));
  const std::vector<std::string>& notes = plan.partition.notes;
  EXPECT_TRUE(std::any_of(notes.begin(), notes.end(), [](const std::string& note) {
    return note.find("of instructions with every inference") != std::string::npos;
  })) << (notes.empty() ? "no notes" : notes.front());
}

TEST(CodeFacts, AllInstructionsAreCounted) {
  const ir::Model model = moving();
  std::vector<std::int32_t> ops(model.subgraphs[0].operators.size());
  std::iota(ops.begin(), ops.end(), 0);
  PartProgram program{
      .model = model, .ops = ops, .inputs = model.subgraphs[0].inputs, .outputs = model.subgraphs[0].outputs};
  const auto code = generate_part(program);
  ASSERT_TRUE(code.ok()) << code.status().message();
  const partition::PartInCode facts = facts_of(*code, ops);
  const std::int64_t all = std::accumulate(facts.piece_bytes.begin(), facts.piece_bytes.end(), std::int64_t{0});
  std::int64_t of_ops = facts.first_bytes;
  for (const partition::OpInCode& op : facts.of_op) of_ops += op.instruction_bytes;
  EXPECT_LT(of_ops, all);
  EXPECT_GT(of_ops, 0.9 * static_cast<double>(all)) << "the rest is the program's end";
  EXPECT_GE(facts.in_bytes, 6400);
  EXPECT_GE(facts.out_bytes, 64 * 32);
  const auto transposed = std::find_if(ops.begin(), ops.end(), [&](std::int32_t op) {
    return model.subgraphs[0].operators[at(op)].type == "TRANSPOSE";
  });
  ASSERT_NE(transposed, ops.end());
  const partition::OpInCode& moves = facts.of_op[at(*transposed)];
  EXPECT_FALSE(moves.computes);
  EXPECT_GT(moves.move_cycles, 0);
}

}  // namespace
}  // namespace reef::compiler
