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

// No compiled program has longer runs, and the tables must stay small.
constexpr std::int64_t kMaxRunSteps = 1 << 13;
// Farther than any memory reaches.
constexpr std::int64_t kMaxOffset = 1 << 30;

void set_lengths(NestShape& nest) {
  nest.pass_lengths[0] = 1;
  for (int k = 0; k < nest.dims; ++k) {
    const auto d = static_cast<std::size_t>(k);
    nest.pass_lengths[d + 1] = nest.pass_lengths[d] * nest.count[d];
  }
  nest.steps = nest.size();
}

// The same addresses with fewer dimensions: those of one step go, and those that continue each other become one.
NestShape compacted(const NestShape& nest) {
  NestShape result;
  result.base = nest.base;
  result.buffer_stride = nest.buffer_stride;
  const std::int64_t toggle = nest.buffer_stride == 0 ? 0 : nest.pass_length(nest.buffer_level);
  std::int64_t length = 1;  // of a pass of what is there
  for (int k = 0; k < nest.dims; ++k) {
    const auto from = static_cast<std::size_t>(k);
    if (nest.count[from] == 1) continue;
    const auto last = static_cast<std::size_t>(std::max(result.dims - 1, 0));
    const bool continues = result.dims > 0 && length != toggle &&
                           nest.stride[from] == result.stride[last] * static_cast<std::uint64_t>(result.count[last]);
    if (continues) {
      result.count[last] *= nest.count[from];
    } else {
      const auto to = static_cast<std::size_t>(result.dims++);
      result.count[to] = nest.count[from];
      result.stride[to] = nest.stride[from];
    }
    length *= nest.count[from];
  }
  if (result.dims == 0) result.count[at(result.dims++)] = 1;
  set_lengths(result);
  while (toggle > 0 && result.pass_length(result.buffer_level) != toggle) ++result.buffer_level;
  return result;
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
    if (nest.count[at(k)] % part != 0) return std::nullopt;
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

NestShape slots_beyond(const TensorOperation& op, int inner_dims) {
  NestShape slots;
  slots.dims = std::max(op.loops.dims - inner_dims, 1);
  slots.count.fill(1);
  std::int64_t size = 1;
  for (int d = inner_dims; d < op.loops.dims; ++d) {
    const auto to = static_cast<std::size_t>(d - inner_dims);
    slots.count[to] = op.loops.count[at(d)];
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
    if ((op.reduce_dims >> d & 1) == 0) slots *= op.loops.count[at(d)];
  }
  // A last run that is longer than the others goes beyond.
  if (op.loops.clip_dim > 0) slots += std::max<std::int64_t>(op.loops.clip_steps - op.loops.count[0], 0);
  return slots;
}

namespace {

// Addresses of a nest's first steps relative to the first one, double buffers aside. False: too far apart.
bool step_offsets(const NestShape& nest, std::int64_t steps, std::vector<std::int32_t>& offsets) {
  NestShape plain = nest;
  plain.buffer_stride = 0;
  isa::NestCursor cursor(plain, 0);
  const std::int64_t first = cursor.address();
  offsets.reserve(static_cast<std::size_t>(steps));
  for (std::int64_t i = 0; i < steps; ++i) {
    const std::int64_t offset = cursor.address() - first;
    if (offset > kMaxOffset || offset < -kMaxOffset) return false;
    offsets.push_back(static_cast<std::int32_t>(offset));
    cursor.advance();
  }
  return true;
}

void join_spans(const std::vector<std::int32_t>& offsets, std::int32_t products, std::int32_t element_bytes,
                TensorPlan& plan) {
  for (const std::int32_t offset : offsets) {
    plan.in_low = std::min<std::int64_t>(plan.in_low, offset);
    plan.in_high = std::max<std::int64_t>(plan.in_high, offset + products * element_bytes);
    if (!plan.in_spans.empty()) {
      TensorPlan::Span& last = plan.in_spans.back();
      if (offset == last.offset + last.elements * element_bytes) {
        last.elements += products;
        continue;
      }
    }
    plan.in_spans.push_back({offset, products});
  }
}

// Whether runs of so many steps make matrices; fills in what follows from it.
bool try_run_steps(const TensorOperation& op, std::int64_t run_steps, TensorPlan& plan) {
  if (run_steps > kMaxRunSteps || op.loops.pass_length(op.scaling_level) % run_steps != 0) return false;
  const auto in_runs = beyond(op.in, run_steps), param_runs = beyond(op.param, run_steps);
  if (!in_runs || !param_runs) return false;
  plan.run_steps = run_steps;
  plan.in_runs = compacted(*in_runs);
  plan.param_runs = compacted(*param_runs);
  return true;
}

bool find_runs(const TensorOperation& op, isa::Opcode opcode, TensorPlan& plan) {
  const int inner_dims = std::countr_one(op.reduce_dims);
  if (!reduces_innermost(op, opcode)) {
    for (int dims = inner_dims; dims >= 0; --dims) {
      if (!try_run_steps(op, op.loops.pass_length(dims), plan)) continue;
      plan.slot_runs = slots_beyond(op, dims);
      plan.outer_reduced = op.reduce_dims >> dims;
      return true;
    }
    return false;
  }
  const std::int64_t result_steps =
      op.group_level >= 0 ? op.psum.pass_length(op.group_level) : op.loops.pass_length(inner_dims);
  // Where buffers change within a result, it is made of several runs.
  std::int64_t run_steps = result_steps;
  for (const NestShape* nest : {&op.in, &op.param}) {
    if (nest->buffer_stride != 0) run_steps = std::gcd(run_steps, nest->pass_length(nest->buffer_level));
  }
  for (const std::int64_t steps : {result_steps, run_steps}) {
    if (!try_run_steps(op, steps, plan)) continue;
    plan.result_runs = result_steps / steps;
    return true;
  }
  return false;
}

}  // namespace

TensorPlan plan_tensor(const TensorOperation& op, isa::Opcode opcode, std::int64_t& budget) {
  TensorPlan plan;
  if (opcode != isa::Opcode::kMultiplyAdd || is_clipped(op) || op.sums_are_results()) return plan;
  const std::int64_t size = op.loops.unclipped_size();
  if (op.in.unclipped_size() != size || op.param.unclipped_size() != size) return plan;
  if (op.group_level >= 0 && op.psum.unclipped_size() != size) return plan;
  if (!find_runs(op, opcode, plan) || plan.run_steps > budget) return plan;
  std::vector<std::int32_t> in_offsets;
  if (!step_offsets(op.in, plan.run_steps, in_offsets)) return plan;
  if (!step_offsets(op.param, plan.run_steps, plan.param_offsets)) return plan;
  budget -= plan.run_steps;
  join_spans(in_offsets, op.products, op.in_16 ? 2 : 1, plan);
  plan.spans_are_words = std::all_of(plan.in_spans.begin(), plan.in_spans.end(),
                                     [](const TensorPlan::Span& span) { return span.elements == 4; });
  const auto [low, high] = std::minmax_element(plan.param_offsets.begin(), plan.param_offsets.end());
  plan.param_low = *low;
  plan.param_high = *high;
  constexpr std::int32_t kMaxByte = 255;
  plan.is_wide = op.in_16 || op.param_16 || op.in_zero < 0 || op.in_zero > kMaxByte || op.param_zero < 0 ||
                 op.param_zero > kMaxByte;
  plan.shared_runs = shared_runs(op, plan.param_runs, plan.run_steps);
  plan.operands = plan.run_steps * op.products;
  if (!plan.is_wide) plan.operands = (plan.operands + 1) / 2 * 2;
  plan.is_regular = true;
  return plan;
}

}  // namespace reef::device
