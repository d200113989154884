// SPDX-License-Identifier: Apache-2.0
#include "compiler/choices_by_code.h"

#include <gtest/gtest.h>

#include "chip/links.h"
#include "quantized_model.h"

namespace reef::compiler {
namespace {

using testing::QuantizedModel;

PlanOptions beside_a_desktop() {
  PlanOptions options;
  options.costs.link = chip::find_link("usb3");
  options.host_is_assumed = false;
  return options;
}

Plan planned(const std::shared_ptr<const ir::Model>& model, const PlanOptions& options, const TryPart& try_part) {
  auto plan = make_faster_plan(model, options);
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  PartSearchOptions search;
  search.plan = options;
  search.given = model;
  const auto report = find_parts(*plan, try_part, search);
  EXPECT_TRUE(report.ok()) << report.status().message();
  return std::move(plan).value();
}

bool has_note(const Plan& plan, const std::string& text) {
  const auto& notes = plan.partition.notes;
  return std::any_of(notes.begin(), notes.end(), [&](const auto& n) { return n.find(text) != std::string::npos; });
}

// Tokens that go out channels first: single bytes change places, and the code for that is most of what the link
// carries. A CPU does it in microseconds.
TEST(ChoicesByCode, LastMovementsStayOnTheCpuWhereThatIsFaster) {
  QuantizedModel network;
  const std::int32_t x = network.conv(network.input({1, 10, 10, 64}), 64);
  const auto model = std::make_shared<const ir::Model>(
      network.finish({network.transpose(network.reshape(x, {1, 100, 64}), {0, 2, 1})}));
  PlanOptions options;  // on a host that nobody named
  const Plan shorter = planned(model, options, trial_of_generator(ops::kNewestRuntime));
  options.all_rewrites = true;
  const Plan whole = planned(model, options, trial_of_generator(ops::kNewestRuntime));
  EXPECT_EQ(whole.partition.chip_op_count(), 3);
  EXPECT_EQ(shorter.partition.chip_op_count(), 1);
  EXPECT_LT(shorter.partition.predicted_us, 0.7 * whole.partition.predicted_us);
  EXPECT_TRUE(has_note(shorter, "left to the CPU"));
}

// A layer whose result is only seen in another shape goes out as ever.
TEST(ChoicesByCode, MovementsThatCostNothingStayInThePart) {
  QuantizedModel network;
  const std::int32_t x = network.conv(network.input({1, 10, 10, 64}), 64);
  const auto model = std::make_shared<const ir::Model>(network.finish({network.reshape(x, {1, 100, 64})}));
  const Plan plan = planned(model, {}, trial_of_generator(ops::kNewestRuntime));
  EXPECT_EQ(plan.partition.chip_op_count(), 2);
}

// A rewrite brings ABS to the chip, and with it all layers, in front and behind. `bytes`: of instructions that the code
// of the whole has.
Plan with_code_of(std::int64_t bytes) {
  QuantizedModel network;
  std::int32_t x = network.unary("ABS", network.conv(network.input({1, 16, 16, 64}), 64, 3));
  for (int i = 0; i < 12; ++i) x = network.conv(x, 64, 3);
  const auto model = std::make_shared<const ir::Model>(network.finish({x}));
  const TryPart try_part = [bytes](const ir::Model& judged, const partition::Part& part) {
    constexpr std::int64_t kUsualBytes = 4096;
    const std::int64_t of_part = part.ops.size() == judged.subgraphs[0].operators.size() ? bytes : kUsualBytes;
    partition::PartInCode code;
    code.ops = part.ops;
    code.of_op.resize(part.ops.size());
    code.of_op[0] = {.instruction_bytes = of_part, .computes = true};
    code.piece_bytes = {of_part};
    code.in_bytes = code.out_bytes = 16384;
    return PartTrial{.status = ok_status(), .refused = {}, .code = code};
  };
  return planned(model, beside_a_desktop(), try_part);
}

TEST(ChoicesByCode, RewritesThatCodeShowsToBeSlowAreNotMade) {
  const Plan fast = with_code_of(16384), slow = with_code_of(std::int64_t{8} << 20);
  EXPECT_EQ(fast.partition.chip_op_count(), static_cast<std::int32_t>(fast.model->subgraphs[0].operators.size()));
  EXPECT_FALSE(has_note(fast, "--all-rewrites"));
  EXPECT_EQ(slow.partition.chip_op_count(), 12);  // those behind ABS, which stays where it is
  EXPECT_TRUE(has_note(slow, "--all-rewrites makes them"));
  EXPECT_LT(slow.partition.predicted_us, slow.partition.all_cpu_us + 1000);
}

}  // namespace
}  // namespace reef::compiler
