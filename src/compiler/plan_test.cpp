// SPDX-License-Identifier: Apache-2.0
// When rewrites are left out because they are predicted to cost time.
#include "compiler/plan.h"

#include <gtest/gtest.h>

#include "chip/links.h"
#include "quantized_model.h"

namespace reef::compiler {
namespace {

using testing::QuantizedModel;

// ABS maps after a rewrite only. `layers` 1x1 layers of `channels` channels stand behind it, on `side`^2 pixels.
std::shared_ptr<const ir::Model> behind_a_rewrite(int layers, int channels, int side) {
  QuantizedModel model;
  std::int32_t x = model.conv(model.input({1, side, side, channels}), channels);
  x = model.unary("ABS", x);
  for (int i = 0; i < layers; ++i) x = model.conv(x, channels);
  return std::make_shared<const ir::Model>(model.finish({x}));
}

Plan planned(const std::shared_ptr<const ir::Model>& model, const char* link) {
  PlanOptions options;
  options.partition.choice = partition::PartitionOptions::Choice::kBest;
  options.costs.link = link == nullptr ? chip::link_profiles().data() : chip::find_link(link);
  options.host_is_assumed = link == nullptr;
  auto plan = make_faster_plan(model, options);
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  return std::move(plan).value();
}

bool maps_all(const Plan& plan) {
  return static_cast<std::size_t>(plan.partition.chip_op_count()) == plan.model->subgraphs[0].operators.size();
}

TEST(FasterPlan, ParametersThatMustBeSentAreNotTheRewritesFault) {
  const Plan plan = planned(behind_a_rewrite(6, 2048, 1), nullptr);  // 29 MB of parameters, 8 on the chip
  EXPECT_GT(plan.partition.parts.at(0).cost.streamed_bytes, std::int64_t{16} << 20);
  EXPECT_GT(plan.partition.predicted_us, plan.partition.all_cpu_us);
  EXPECT_TRUE(maps_all(plan));
}

TEST(FasterPlan, AnUnknownHostMayBeASlowOne) {
  // The chip gains beside a Raspberry Pi (2.2 instead of 2.7 ms) and loses beside a desktop (0.23 ms without it).
  const auto model = behind_a_rewrite(125, 128, 4);
  EXPECT_FALSE(maps_all(planned(model, "usb3")));
  const Plan beside_pi = planned(model, "usb3-rpi4");
  EXPECT_TRUE(maps_all(beside_pi));
  EXPECT_LT(beside_pi.partition.predicted_us, beside_pi.partition.all_cpu_us);
  EXPECT_TRUE(maps_all(planned(model, nullptr)));
}

// A segmenter: an ABS in front that needs a rewrite to map, and at its end an upsampling by eight that needs another,
// whose result is slow to send.
TEST(FasterPlan, OneRewriteThatLosesIsLeftOut) {
  QuantizedModel network;
  std::int32_t x = network.unary("ABS", network.conv(network.input({1, 64, 64, 16}), 64, 3));
  for (int i = 0; i < 8; ++i) x = network.conv(x, 64, 3);
  x = network.resize("RESIZE_BILINEAR", network.conv(x, 21), 512, 512);
  const auto model = std::make_shared<const ir::Model>(network.finish({x}));
  const Plan plan = planned(model, nullptr);
  const auto chip_ops = static_cast<std::size_t>(plan.partition.chip_op_count());
  EXPECT_EQ(chip_ops + 1, plan.model->subgraphs[0].operators.size());  // all but the upsampling
  PlanOptions everything;
  everything.all_rewrites = true;
  everything.costs.link = chip::link_profiles().data();
  const auto all = make_faster_plan(model, everything);
  ASSERT_TRUE(all.ok()) << all.status().message();
  EXPECT_TRUE(maps_all(*all));
  EXPECT_LT(plan.partition.predicted_us, 0.85 * all->partition.predicted_us);
  ASSERT_FALSE(plan.partition.notes.empty());
  EXPECT_NE(plan.partition.notes.back().find("--all-rewrites"), std::string::npos);
}

}  // namespace
}  // namespace reef::compiler
