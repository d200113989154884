// SPDX-License-Identifier: Apache-2.0
#include "lower/rearrange.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "lower/rearrangement_cache.h"
#include "lower/rearrangement_plan.h"
#include "lower/ring_copies.h"
#include "lower/windows.h"
#include "numeric/chip_requantize.h"

namespace reef::lower {
namespace {

using tiled::LocalCopies;
using tiled::RingCopies;

// What both steps need to know; made when the first of them is finished.
struct RearrangePlan {
  Rearrangement what;
  std::optional<ObjectRoles> roles = {};
  std::optional<PlannedMovement> movement = {};
  std::int32_t buffer = tiled::kNowhere;
  // In sketches.
  std::vector<std::int32_t> key = {};
  std::optional<SketchSizes::Sizes> known = {};
};

// What sizes follow from: how all tensors lie in the tiles. Where an image begins matters little; its remainder by a
// few small factors does.
void describe(const tiled::TiledTensor& tensor, std::vector<std::int32_t>& key) {
  constexpr std::int32_t kFactors = 12;
  key.insert(key.end(), {static_cast<std::int32_t>(tensor.spread), tensor.height, tensor.width, tensor.channels,
                         tensor.pitch, tensor.offset, tensor.tiles, tensor.run, tensor.rows.is_local});
  if (tensor.spread != tiled::Spread::kGrid) return;
  for (const auto* axis : {&tensor.rows, &tensor.columns}) {
    for (const tiled::TileShare& share : axis->tiles) {
      key.insert(key.end(), {share.begin % kFactors, share.own(), share.before, share.after, share.begin - share.base,
                             share.held});
    }
  }
}

std::vector<std::int32_t> key_of(const Builder& builder, const tiled::Step& step, const Rearrangement& what) {
  std::vector<std::int32_t> key = {step.op};
  describe(builder.tensor(what.output), key);
  for (const Read& read : what.operands) describe(builder.tensor(read.tensor), key);
  return key;
}

// Both steps of a sketch; false: not known yet.
bool use_known_sizes(Builder& builder, tiled::Step& step, RearrangePlan& plan) {
  if (builder.sketch_sizes() == nullptr) return false;
  plan.key = key_of(builder, step, plan.what);
  const auto known = builder.sketch_sizes()->rearrangements.find(plan.key);
  if (known == builder.sketch_sizes()->rearrangements.end()) return false;
  plan.known = known->second;
  plan.buffer = builder.new_narrow(known->second.buffer);
  if (known->second.buffer > 0) step.narrow_used.push_back(plan.buffer);
  return true;
}

// Plans the movement, or takes the plan of an equal one.
Status plan_movement(Builder& builder, RearrangePlan& plan) {
  plan.roles.emplace(builder, plan.what);
  RearrangementCache* cache = builder.movements();
  std::string key = cache == nullptr ? "" : RearrangementCache::key_of(builder, plan.what, *plan.roles);
  if (const PlannedMovement* known = cache == nullptr ? nullptr : cache->find(key)) {
    plan.movement = *known;
    return ok_status();
  }
  RearrangementPlan planner(builder, plan.what, *plan.roles);
  plan.movement = planner.plan();
  REEF_RETURN_IF_ERROR(planner.status());
  if (cache != nullptr) cache->keep(std::move(key), *plan.movement);
  return ok_status();
}

Status finish_transfers(Builder& builder, tiled::Step& step, RearrangePlan& plan) {
  if (use_known_sizes(builder, step, plan)) return ok_status();
  REEF_RETURN_IF_ERROR(plan_movement(builder, plan));
  plan.buffer = builder.new_narrow(plan.movement->buffer_bytes);
  if (plan.movement->buffer_bytes > 0) step.narrow_used.push_back(plan.buffer);
  RingCopies copies{std::move(plan.movement->transfers)};
  if (copies.copies.empty()) return ok_status();
  for (tiled::RingCopy& copy : copies.copies) {
    for (tiled::WordWalk* walk : {&copy.source, &copy.target}) {
      walk->object = plan.roles->object_of(walk->object, plan.buffer, tiled::kNowhere);
    }
  }
  return set_ring_copies(builder, step, std::move(copies));
}

LocalCopies take_copies(RearrangePlan& plan, std::int32_t scratch) {
  LocalCopies work = std::move(plan.movement->copies);
  const auto name = [&](std::int32_t& object) { object = plan.roles->object_of(object, plan.buffer, scratch); };
  for (tiled::LocalFill& fill : work.fills) name(fill.target);
  for (auto* round : {&work.first_round, &work.second_round}) {
    for (tiled::LocalCopy& copy : *round) {
      name(copy.source);
      name(copy.target);
    }
  }
  work.output = plan.what.output;
  return work;
}

Status finish_copies(Builder& builder, tiled::Step& step, RearrangePlan& plan) {
  const SketchSizes::Sizes sizes =
      plan.known ? *plan.known : SketchSizes::Sizes{plan.movement->buffer_bytes, plan.movement->scratch_bytes};
  const std::int32_t scratch = builder.new_narrow(sizes.scratch);
  if (sizes.scratch > 0) step.narrow_used.push_back(scratch);
  if (sizes.buffer > 0) step.narrow_used.push_back(plan.buffer);
  if (plan.known) return ok_status();
  if (builder.sketch_sizes() != nullptr) builder.sketch_sizes()->rearrangements[plan.key] = sizes;
  LocalCopies work = take_copies(plan, scratch);
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
  plan.movement.reset();
  return ok_status();
}

}  // namespace

std::int32_t add_rearrangement(Builder& builder, std::int32_t op, Rearrangement what) {
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
  const auto plan = std::make_shared<RearrangePlan>(RearrangePlan{std::move(what)});
  builder.add_step(op, RingCopies{}, reads, {output},
                   [plan](Builder& b, tiled::Step& step) -> Status { return finish_transfers(b, step, *plan); });
  builder.add_step(op, LocalCopies{}, reads, {output},
                   [plan](Builder& b, tiled::Step& step) -> Status { return finish_copies(b, step, *plan); });
  return output;
}

}  // namespace reef::lower
