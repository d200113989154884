// SPDX-License-Identifier: Apache-2.0
#include "execute/device/tensor_plan.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <optional>

namespace reef::device {
namespace {

using isa::NestShape;
using isa::TensorOperation;

// Longer runs are cut into single steps: no compiled program has them, and the tables must stay small.
constexpr std::int64_t kMaxRunSteps = 1 << 13;

void set_lengths(NestShape& nest) {
  nest.pass_lengths[0] = 1;
  for (int k = 0; k < nest.dims; ++k) {
    const auto d = static_cast<std::size_t>(k);
    nest.pass_lengths[d + 1] = nest.pass_lengths[d] * nest.count[d];
  }
  nest.steps = nest.size();
}

// The part of a nest beyond its first `steps` steps, one step for each of their repetitions. Nothing where these steps
// are not a whole part of it.
std::optional<NestShape> beyond(const NestShape& nest, std::int64_t steps) {
  int k = 0;
  while (k < nest.dims && nest.pass_length(k + 1) <= steps) ++k;  // dimensions that lie wholly inside
  const std::int64_t inside = nest.pass_length(k);
  if (steps % inside != 0) return std::nullopt;
  const std::int64_t part = steps / inside;  // of dimension k
  NestShape outer;
  outer.base = nest.base;
  outer.buffer_stride = nest.buffer_stride;
  if (k == nest.dims) {
    if (part != 1) return std::nullopt;
    outer.dims = 1;
    outer.count[0] = 1;
  } else {
    if (nest.count[static_cast<std::size_t>(k)] % part != 0) return std::nullopt;
    outer.dims = nest.dims - k;
    for (int d = 0; d < outer.dims; ++d) {
      const auto from = static_cast<std::size_t>(k + d), to = static_cast<std::size_t>(d);
      outer.count[to] = nest.count[from];
      outer.stride[to] = nest.stride[from];
    }
    outer.count[0] /= part;
    outer.stride[0] *= static_cast<std::uint64_t>(part);
  }
  set_lengths(outer);
  if (nest.buffer_stride == 0) return outer;
  const std::int64_t toggle = nest.pass_length(nest.buffer_level);
  if (toggle % steps != 0) return std::nullopt;
  for (outer.buffer_level = 0; outer.buffer_level <= outer.dims; ++outer.buffer_level) {
    if (outer.pass_length(outer.buffer_level) == toggle / steps) return outer;
  }
  return std::nullopt;
}

// Runs in a row that use the same parameters.
std::int64_t shared_runs(const TensorOperation& op, const NestShape& param_runs, std::int64_t run_steps) {
  std::int64_t shared = 1;
  for (int d = 0; d < param_runs.dims; ++d) {
    const auto k = static_cast<std::size_t>(d);
    if (param_runs.count[k] != 1 && param_runs.stride[k] != 0) break;
    shared *= param_runs.count[k];
  }
  if (param_runs.buffer_stride != 0) shared = std::gcd(shared, param_runs.pass_length(param_runs.buffer_level));
  // The zero points may change where the scaling buffer does.
  if (op.has_zero_line) shared = std::gcd(shared, op.loops.pass_length(op.scaling_level) / run_steps);
  return std::max<std::int64_t>(shared, 1);
}

bool is_clipped(const TensorOperation& op) {
  return op.loops.clip_dim > 0 || op.in.clip_dim > 0 || op.param.clip_dim > 0 || op.psum.clip_dim > 0;
}

std::optional<NestShape> slots_beyond(const TensorOperation& op, int inner_dims) {
  NestShape slots;
  slots.dims = std::max(op.loops.dims - inner_dims, 1);
  slots.count.fill(1);
  std::int64_t size = 1;
  for (int d = inner_dims; d < op.loops.dims; ++d) {
    const auto to = static_cast<std::size_t>(d - inner_dims);
    slots.count[to] = op.loops.count[static_cast<std::size_t>(d)];
    if ((op.reduce_dims >> d & 1) != 0) continue;
    slots.stride[to] = static_cast<std::uint64_t>(size);
    size *= slots.count[to];
  }
  set_lengths(slots);
  return slots;
}

}  // namespace

bool reduces_innermost(const TensorOperation& op, isa::Opcode opcode) {
  if (op.group_level >= 0 || opcode == isa::Opcode::kResample) return true;
  return (op.reduce_dims & (op.reduce_dims + 1)) == 0;
}

std::int64_t slots_of(const TensorOperation& op, isa::Opcode opcode) {
  if (reduces_innermost(op, opcode)) return 1;
  std::int64_t slots = 1;
  for (int d = 0; d < op.loops.dims; ++d) {
    if ((op.reduce_dims >> d & 1) == 0) slots *= op.loops.count[static_cast<std::size_t>(d)];
  }
  return slots;
}

void step_offsets(const NestShape& nest, std::int64_t steps, std::vector<std::int32_t>& offsets) {
  NestShape plain = nest;
  plain.buffer_stride = 0;
  isa::NestCursor cursor(plain, 0);
  const std::int64_t first = cursor.address();
  offsets.clear();
  for (std::int64_t i = 0; i < steps; ++i) {
    offsets.push_back(static_cast<std::int32_t>(cursor.address() - first));
    cursor.advance();
  }
}

TensorPlan plan_tensor(const TensorOperation& op, isa::Opcode opcode) {
  TensorPlan plan;
  constexpr std::int32_t kMaxByte = 255;
  const bool are_bytes = opcode == isa::Opcode::kMultiplyAdd && !op.in_16 && !op.param_16 && op.in_zero <= kMaxByte &&
                         op.param_zero <= kMaxByte;
  if (!are_bytes || is_clipped(op)) return plan;
  const int inner_dims = std::countr_one(op.reduce_dims);
  plan.run_steps = op.group_level >= 0 ? op.psum.pass_length(op.group_level) : op.loops.pass_length(inner_dims);
  if (plan.run_steps > kMaxRunSteps || op.loops.pass_length(op.scaling_level) % plan.run_steps != 0) return plan;
  const auto in_runs = beyond(op.in, plan.run_steps), param_runs = beyond(op.param, plan.run_steps);
  if (!in_runs || !param_runs) return plan;
  plan.in_runs = *in_runs;
  plan.param_runs = *param_runs;
  if (!reduces_innermost(op, opcode)) {
    const auto slots = slots_beyond(op, inner_dims);
    if (!slots) return plan;
    plan.slot_runs = *slots;
    plan.outer_reduced = op.reduce_dims >> inner_dims;
  }
  plan.shared_runs = shared_runs(op, plan.param_runs, plan.run_steps);
  plan.operands = (plan.run_steps * op.products + 1) / 2 * 2;
  plan.is_regular = true;
  return plan;
}

}  // namespace reef::device
