// SPDX-License-Identifier: Apache-2.0
#include "partition/cost.h"

#include <chrono>
#include <numeric>

#include <gtest/gtest.h>

#include "partition/cpu_cost.h"
#include "published_networks.h"

namespace reef::partition {
namespace {

using testing::NetworkBuilder;

PartCost whole(const ir::Model& model, const CostOptions& options = {}, std::int64_t cache_bytes = -1) {
  const CostModel costs(model, options);
  const ir::Subgraph& graph = model.subgraphs[0];
  std::vector<std::int32_t> ops(graph.operators.size());
  std::iota(ops.begin(), ops.end(), 0);
  return costs.part(ops, graph.inputs, graph.outputs, cache_bytes);
}

ir::Model small_network() {
  NetworkBuilder b(56, 56, 16);
  return b.finish(b.conv(b.depthwise(b.conv(b.input(), 64), 3, 1), 30));
}

TEST(Cost, PartIsComputeStreamingAndTransfer) {
  const PartCost cost = whole(small_network());
  EXPECT_GT(cost.compute, 0);
  EXPECT_EQ(cost.streaming, 0);
  EXPECT_EQ(cost.streamed_bytes, 0);
  EXPECT_EQ(cost.input_bytes, 56 * 56 * 16);
  EXPECT_EQ(cost.output_bytes, 56 * 56 * 32);  // channels fill whole words
  const chip::LinkProfile& link = chip::link_profiles().front();
  EXPECT_NEAR(cost.transfer,
              link.overhead_us +
                  static_cast<double>(cost.input_bytes + cost.instruction_bytes) * 1e6 / link.in_bytes_per_second +
                  static_cast<double>(cost.output_bytes) * 1e6 / link.out_bytes_per_second,
              1e-6);
}

TEST(Cost, ASlowLinkAndASlowClockTakeLonger) {
  const ir::Model model = small_network();
  CostOptions slow;
  slow.link = chip::find_link("usb2");
  EXPECT_GT(whole(model, slow).total(), whole(model).total());
  EXPECT_DOUBLE_EQ(whole(model, slow).compute, whole(model).compute);
  CostOptions half;
  half.clock_hz = chip::kClockHzMax / 2;
  EXPECT_DOUBLE_EQ(whole(model, half).compute, 2 * whole(model).compute);
}

TEST(Cost, WithoutRoomParametersAreStreamedAndComputingHidesSome) {
  NetworkBuilder b(14, 14, 512);
  const ir::Model model = b.finish(b.conv(b.conv(b.input(), 512, 3), 512, 3));
  const PartCost cached = whole(model), streamed = whole(model, {}, 0);
  EXPECT_EQ(cached.streaming, 0);
  EXPECT_EQ(streamed.cached_bytes, 0);
  EXPECT_EQ(streamed.cache_capacity, 0);
  EXPECT_EQ(streamed.streamed_bytes, cached.cached_bytes);
  EXPECT_DOUBLE_EQ(streamed.compute, cached.compute);
  const double sending =
      static_cast<double>(streamed.streamed_bytes) * 1e6 / chip::link_profiles().front().in_bytes_per_second;
  EXPECT_NEAR(streamed.streaming + streamed.compute, sending, 1e-3 * sending);
  const PartCost half = whole(model, {}, cached.cache_used / 2);
  EXPECT_GT(half.streaming, 0);
  EXPECT_LT(half.streaming, streamed.streaming);
  EXPECT_EQ(half.cached_bytes + half.streamed_bytes, cached.cached_bytes);
}

TEST(Cost, CodeSaysMoreThanShapes) {
  const ir::Model model = small_network();
  const ir::Subgraph& graph = model.subgraphs[0];
  const CostModel costs(model, {});
  const std::vector<std::int32_t> ops = {0, 1, 2};
  const PartCost by_shapes = costs.part(ops, graph.inputs, graph.outputs);
  PartInCode code;
  code.ops = ops;
  // The first emits nothing, the second copies, the third computes and streams.
  code.of_op = {{}, {1000, 0, 5000, false}, {2000, 1 << 20, 0, true}};
  code.first_bytes = 500;
  code.piece_bytes = {4000};
  code.in_bytes = by_shapes.input_bytes;
  code.out_bytes = by_shapes.output_bytes;
  code.cache_used = 256;
  const CostModel by_code = costs.with_code({code});
  EXPECT_EQ(by_code.op(0).chip, 0);
  EXPECT_DOUBLE_EQ(by_code.op(1).chip, 5000 / chip::kClockHzMax * 1e6);
  EXPECT_DOUBLE_EQ(by_code.op(2).chip, costs.op(2).chip);
  EXPECT_EQ(by_code.op(0).cpu, costs.op(0).cpu);
  const PartCost cost = by_code.part(ops, graph.inputs, graph.outputs);
  EXPECT_EQ(cost.instruction_bytes, 4000);
  EXPECT_EQ(cost.streamed_bytes, 1 << 20);
  EXPECT_GT(cost.streaming, 0);
  EXPECT_DOUBLE_EQ(cost.compute, by_code.op(1).chip + by_code.op(2).chip);
  // The link carries all of it, one after the other.
  const chip::LinkProfile& link = chip::link_profiles().front();
  EXPECT_GE(cost.total(), link.overhead_us + ((1 << 20) + 4000) * 1e6 / link.in_bytes_per_second);
  // With less room than the code uses, and of other sets, there is no code that anybody has seen.
  EXPECT_EQ(by_code.part(ops, graph.inputs, graph.outputs, 0).cached_bytes, 0);
  EXPECT_NE(by_code.part(ops, graph.inputs, graph.outputs, 0).instruction_bytes, 4000);
  const std::vector<std::int32_t> fewer = {0, 1};
  EXPECT_EQ(by_code.part(fewer, graph.inputs, graph.outputs).streamed_bytes, 0);
}

// Pieces of the program, inputs and parameters wait for each other on the link.
TEST(Cost, InstructionsComeBehindTheParametersOfThePieceBefore) {
  const ir::Model model = small_network();
  const ir::Subgraph& graph = model.subgraphs[0];
  const std::vector<std::int32_t> ops = {0, 1, 2};
  const auto total = [&](std::vector<std::int64_t> pieces, std::int64_t streamed) {
    PartInCode code;
    code.ops = ops;
    code.of_op = {{100'000, streamed, 1000, true}, {100'000, 0, 1000, true}, {100'000, 0, 1000, true}};
    code.piece_bytes = std::move(pieces);
    return CostModel(model, {}).with_code({code}).part(ops, graph.inputs, graph.outputs).total();
  };
  const double second = 1e6 / chip::link_profiles().front().in_bytes_per_second;
  EXPECT_LT(total({100'000, 200'000}, 0), total({300'000}, 0));
  EXPECT_NEAR(total({100'000, 200'000}, 4 << 20), total({300'000}, 4 << 20), 200'000 * second);
  EXPECT_GE(total({100'000, 200'000}, 4 << 20), (300'000 + (4 << 20)) * second);
}

TEST(Cost, AnEmptyPartCostsTheCallAlone) {
  const ir::Model model = small_network();
  const CostModel costs(model, {});
  EXPECT_DOUBLE_EQ(costs.part({}, {}, {}).total(), chip::link_profiles().front().overhead_us);
}

TEST(Cost, UnknownOperatorsAndShapesHaveACost) {
  ir::Model model = small_network();
  ir::Subgraph& graph = model.subgraphs[0];
  graph.operators[0].type = "BUILTIN_999";
  graph.operators[1].inputs.clear();
  graph.tensors[at(graph.outputs[0])].shape = {-1, 56, 56, 30};
  const CostModel costs(model, {});
  EXPECT_EQ(costs.op(0).chip, 0);
  EXPECT_GT(costs.op(0).cpu, 0);
  EXPECT_EQ(costs.op(1).chip, 0);
  EXPECT_EQ(costs.op(2).chip, 0);
  EXPECT_EQ(costs.tensor_bytes(graph.outputs[0]), 0);
  EXPECT_GT(whole(model).total(), 0);
}

TEST(Cost, SeveralProgramsShareTheCache) {
  NetworkBuilder a(7, 7, 512), b(7, 7, 512);
  const ir::Model first = a.finish(a.conv(a.input(), 1024, 3)), second = b.finish(b.conv(b.input(), 1024, 3));
  const std::int32_t ops[] = {0};
  const CacheModel models[] = {CostModel(first, {}).cache_model(ops), CostModel(second, {}).cache_model(ops)};
  const auto shares = share_cache(models, CachePolicy::kInOrder);
  EXPECT_EQ(shares[0].streamed_bytes, 0);
  EXPECT_GT(shares[1].streamed_bytes, 0);
  const PartCost later = whole(second, {}, shares[0].lines_left * chip::kWideLineBytes);
  EXPECT_NEAR(static_cast<double>(later.streamed_bytes), static_cast<double>(shares[1].streamed_bytes),
              0.02 * static_cast<double>(shares[1].streamed_bytes));
}

TEST(Cost, SmallHostsAreSlower) {
  const ir::Model model = small_network();
  double last = 0;
  for (const std::string_view link : {"usb3", "usb3-rpi4", "pcie-devboard"}) {
    CostOptions options;
    options.link = chip::find_link(link);
    ASSERT_NE(options.link, nullptr) << link;
    const double us = CostModel(model, options).op(0).cpu;
    EXPECT_GT(us, last) << link;
    last = us;
  }
}

TEST(Cost, EveryLinkHasAHost) {
  for (const chip::LinkProfile& link : chip::link_profiles()) EXPECT_EQ(host_cpu(link.name).link, link.name);
  EXPECT_EQ(&host_cpu("no such link"), host_cpus().data());
}

TEST(Cost, CpuTimeFollowsProducts) {
  NetworkBuilder narrow(28, 28, 64), wide(28, 28, 128);
  const ir::Model one = narrow.finish(narrow.conv(narrow.input(), 64, 3)),
                  two = wide.finish(wide.conv(wide.input(), 64, 3));
  EXPECT_NEAR(CostModel(two, {}).op(0).cpu / CostModel(one, {}).op(0).cpu, 2, 0.02);
}

TEST(Cost, FiveHundredOperatorsTakeMilliseconds) {
  NetworkBuilder b(56, 56, 16);
  std::int32_t x = b.input();
  for (int i = 0; i < 250; ++i) x = b.add(x, b.conv(x, 16, 3));
  const ir::Model model = b.finish(x);
  double best = 1e9;
  for (int i = 0; i < 5; ++i) {
    const auto start = std::chrono::steady_clock::now();
    const PartCost cost = whole(model);
    best = std::min(best, std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
    EXPECT_GT(cost.total(), 0);
  }
  EXPECT_LT(best, 5);
}

}  // namespace
}  // namespace reef::partition
