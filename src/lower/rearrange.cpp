// SPDX-License-Identifier: Apache-2.0
#include "lower/rearrange.h"

#include <memory>

#include "lower/rearrangement_plan.h"
#include "lower/ring_copies.h"
#include "lower/windows.h"
#include "numeric/chip_requantize.h"

namespace reef::lower {
namespace {

using tiled::LocalCopies;
using tiled::RingCopies;

// What both steps need to know; made when the first of them is finished.
struct Plan {
  Rearrangement what;
  std::unique_ptr<RearrangementPlan> planner = nullptr;
  std::int32_t buffer = tiled::kNowhere;
};

void set_size(Builder& builder, std::int32_t object, std::int64_t bytes) {
  builder.program().narrow[static_cast<std::size_t>(object)].bytes = bytes;
}

Status finish_transfers(Builder& builder, tiled::Step& step, Plan& plan) {
  plan.planner = std::make_unique<RearrangementPlan>(builder, plan.what);
  plan.buffer = builder.new_narrow(0);
  plan.planner->plan_transfers(plan.buffer);
  set_size(builder, plan.buffer, plan.planner->buffer_bytes());
  if (plan.planner->buffer_bytes() > 0) step.narrow_used.push_back(plan.buffer);
  RingCopies copies = plan.planner->take_transfers();
  if (copies.copies.empty()) return ok_status();
  return set_ring_copies(builder, step, std::move(copies));
}

Status finish_copies(Builder& builder, tiled::Step& step, Plan& plan) {
  const std::int32_t scratch = builder.new_narrow(0);
  plan.planner->plan_copies(scratch);
  set_size(builder, scratch, plan.planner->scratch_bytes());
  if (plan.planner->scratch_bytes() > 0) step.narrow_used.push_back(scratch);
  if (plan.planner->buffer_bytes() > 0) step.narrow_used.push_back(plan.buffer);
  LocalCopies work = plan.planner->take_copies();
  const tiled::TiledTensor& output = builder.tensor(plan.what.output);
  work.source_zero = work.target_zero = output.zero_point;
  if (plan.what.requantizes) {
    const tiled::TiledTensor& input = builder.tensor(plan.what.operands[0].tensor);
    work.source_zero = input.zero_point;
    work.multiplier = numeric::chip_rescale_multiplier(input.scale, output.scale);
    const numeric::ChipClamp clamp =
        numeric::chip_clamp(output.scale, output.zero_point, numeric::ChipActivation::kNone);
    work.min = clamp.min;
    work.max = clamp.max;
  }
  if (work.copies()) work.identity = builder.identity(step);
  step.work = std::move(work);
  plan.planner.reset();
  return ok_status();
}

}  // namespace

void add_rearrangement(Builder& builder, std::int32_t op, Rearrangement what) {
  for (Read& read : what.operands) {
    const tiled::TiledTensor& tensor = builder.tensor(read.tensor);
    if (!read.windows) continue;
    // Halos do not reach tiles behind the last one with data.
    if (reads_beyond_owners(tiled::AxisPartition::of(tensor.height, {&read.windows->y, 1})) ||
        reads_beyond_owners(tiled::AxisPartition::of(tensor.width, {&read.windows->x, 1}))) {
      read.windows.reset();
    }
  }
  const std::vector<Read> reads = what.operands;
  const std::int32_t output = what.output;
  const auto plan = std::make_shared<Plan>(Plan{std::move(what)});
  builder.add_step(op, RingCopies{}, reads, {output},
                   [plan](Builder& b, tiled::Step& step) -> Status { return finish_transfers(b, step, *plan); });
  builder.add_step(op, LocalCopies{}, reads, {output},
                   [plan](Builder& b, tiled::Step& step) -> Status { return finish_copies(b, step, *plan); });
}

}  // namespace reef::lower
