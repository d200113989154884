// SPDX-License-Identifier: Apache-2.0
#include "compiler/slicing.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>

#include "schedule/schedule.h"

namespace reef::compiler {
namespace {

using lower::SlicedOps;
using lower::SliceGroup;
using tiled::TiledProgram;
using tiled::TiledTensor;

// How far a group may reach beyond the operators that do not fit.
constexpr std::int32_t kMostBefore = 24, kMostBehind = 32;
constexpr std::int32_t kMostSlices = 256;
// Limits of what may exist together, in per cent of the memory: lower ones leave room for pieces between things.
constexpr int kLimits[] = {100, 97, 94, 90, 85, 80, 70, 60, 50};
// Cycles that a block of instructions takes besides its work, and that a byte takes from the host (estimates).
constexpr std::int64_t kBlockCycles = 300, kInputByteCycles = 2;
constexpr std::int64_t kRingLineCycles = 16;

// The part without slices: what there is of each tensor, and how much exists at each operator.
class Whole {
 public:
  Whole(const lower::PartBorder& part, TiledProgram program) : program_(std::move(program)) {
    for (std::size_t i = 0; i < part.ops.size(); ++i) position_[part.ops[i]] = static_cast<std::int32_t>(i);
    positions_.assign(program_.steps.size(), 0);
    std::int32_t last = 0;
    for (std::size_t i = 0; i < program_.steps.size(); ++i) {
      const auto found = position_.find(program_.steps[i].op);
      if (found != position_.end()) last = found->second;
      positions_[i] = last;
    }
    for (std::size_t t = 0; t < program_.tensors.size(); ++t) {
      tensors_.emplace(program_.tensors[t].source, static_cast<std::int32_t>(t));
    }
  }

  const TiledProgram& program() const { return program_; }
  std::int32_t position(std::size_t step) const { return positions_[step]; }  // of the operator, or of the one before
  // The tensor of the model on the chip; null: it is another view of one.
  const TiledTensor* tensor(std::int32_t source) const {
    const auto found = tensors_.find(source);
    return found == tensors_.end() ? nullptr : &program_.tensor(found->second);
  }
  std::int64_t bytes_at(std::size_t step) const {
    std::int64_t bytes = 0;
    for (const tiled::NarrowObject& object : program_.narrow) {
      if (exists_at(object, step)) bytes += object.bytes;
    }
    return bytes;
  }
  static bool exists_at(const tiled::NarrowObject& object, std::size_t step) {
    const auto at = static_cast<std::int32_t>(step);
    return object.life.first <= at && at <= object.life.last && object.life.first >= 0;
  }

 private:
  TiledProgram program_;
  std::map<std::int32_t, std::int32_t> position_;
  std::vector<std::int32_t> positions_;           // by step
  std::map<std::int32_t, std::int32_t> tensors_;  // by source: the first
};

// What a group takes and costs, estimated from the part without slices.
class GroupEstimate {
 public:
  GroupEstimate(const lower::PartBorder& part, const Whole& whole, const SlicedOps& group)
      : part_(part), whole_(whole), group_(group) {
    for (std::int32_t s = 0; s < group.group().slices; ++s) rows_.push_back(group.rows(s));
    find_lives();
  }

  // The most that exists at one time, in bytes of a tile.
  std::int64_t bytes() const {
    std::int64_t fixed = 0;  // exists all the time
    std::vector<bool> counted(whole_.program().narrow.size(), false);
    for (const auto* list : {&group_.results(), &group_.operands()}) {
      for (const std::int32_t source : *list) {
        fixed += object_bytes(source, counted);
        leave_out(source, counted);
      }
    }
    for (const std::int32_t source : group_.inputs()) leave_out(source, counted);
    for (const SlicedOps::SlicedOp& op : group_.ops()) leave_out(op.result, counted);
    std::int64_t most = 0;
    for (std::size_t step = 0; step < whole_.program().steps.size(); ++step) {
      const std::int32_t at = whole_.position(step) - group_.group().first;
      if (at < 0 || at >= static_cast<std::int32_t>(group_.ops().size())) continue;
      std::int64_t others = 0;
      for (std::size_t i = 0; i < counted.size(); ++i) {
        const tiled::NarrowObject& object = whole_.program().narrow[i];
        if (!counted[i] && !object.fills_gaps && Whole::exists_at(object, step)) others += object.bytes;
      }
      for (const lower::TensorRows& rows : rows_) most = std::max(most, fixed + others + sliced_bytes(rows, at));
    }
    return most;
  }

  // Cycles of the busiest tile in all slices.
  std::int64_t cycles() const {
    std::int64_t cycles = 0;
    for (const lower::TensorRows& rows : rows_) {
      for (const SlicedOps::SlicedOp& op : group_.ops()) {
        const TiledTensor* result = op.computes ? whole_.tensor(op.result) : nullptr;
        if (result == nullptr) continue;
        const std::int64_t pixels = std::int64_t{longest(rows, op.result, op.height)} * result->columns.max_own();
        cycles += pixels * pixel_cycles(op) + parameter_cycles(op) + kBlockCycles;
      }
      for (const std::int32_t source : group_.inputs()) {
        const TiledTensor* input = whole_.tensor(source);
        if (input == nullptr) continue;
        std::int64_t all = 0;
        for (const tiled::Range& range : rows.at(source)) {
          all += std::max(0, range.within(0, input->height).end - range.within(0, input->height).begin);
        }
        cycles += all * input->width * input->channels * kInputByteCycles + kBlockCycles;
      }
    }
    return cycles;
  }

 private:
  // Rows of a tile's buffer, padding and all, or without it.
  static std::int32_t longest(const lower::TensorRows& rows, std::int32_t source, std::int32_t height) {
    std::int32_t most = 0;
    for (const tiled::Range& range : rows.at(source)) {
      const tiled::Range inside = range.within(0, height);
      most = std::max(most, inside.end - inside.begin);
    }
    return most;
  }

  // When tensors between operands and results exist: positions in the group, of the first and last that touch them.
  void find_lives() {
    const auto touch = [&](std::int32_t source, std::int32_t at) { lives_[root(source)].include(at); };
    for (std::size_t i = 0; i < group_.ops().size(); ++i) {
      const SlicedOps::SlicedOp& op = group_.ops()[i];
      if (!op.computes) roots_[op.result] = root(op.reads[0].tensor);
      for (const SlicedOps::RowRead& read : op.reads) touch(read.tensor, static_cast<std::int32_t>(i));
      touch(op.result, static_cast<std::int32_t>(i));
    }
    for (const std::int32_t source : group_.inputs()) touch(source, 0);
    for (const auto* list : {&group_.results(), &group_.operands()}) {
      for (const std::int32_t source : *list) lives_.erase(root(source));
    }
  }
  std::int32_t root(std::int32_t source) const {
    const auto found = roots_.find(source);
    return found == roots_.end() ? source : found->second;
  }

  std::int64_t sliced_bytes(const lower::TensorRows& rows, std::int32_t at) const {
    std::int64_t bytes = 0;
    for (const auto& [source, life] : lives_) {
      const TiledTensor* tensor = whole_.tensor(source);
      if (tensor == nullptr || at < life.first || at > life.last) continue;
      const tiled::AxisPartition local = tiled::AxisPartition::local(tensor->height, rows.at(source));
      bytes += std::int64_t{local.max_length()} * tensor->columns.max_length() * tensor->pitch;
    }
    if (at == 0) {
      for (const std::int32_t source : group_.inputs()) {
        const TiledTensor* tensor = whole_.tensor(source);
        if (tensor != nullptr) bytes += 2 * std::int64_t{tiled::InputSlots::of(*tensor).bytes} + kInputConstants;
      }
    }
    return bytes;
  }
  static constexpr std::int64_t kInputConstants = 512;

  // All that the part without slices has of it, copies too: in slices there are slices of them.
  void leave_out(std::int32_t source, std::vector<bool>& counted) const {
    for (const TiledTensor& tensor : whole_.program().tensors) {
      if (tensor.source == source) counted[static_cast<std::size_t>(tensor.object)] = true;
    }
  }
  std::int64_t object_bytes(std::int32_t source, std::vector<bool>& counted) const {
    const TiledTensor* tensor = whole_.tensor(source);
    if (tensor == nullptr || counted[static_cast<std::size_t>(tensor->object)]) return 0;
    counted[static_cast<std::size_t>(tensor->object)] = true;
    return whole_.program().narrow[static_cast<std::size_t>(tensor->object)].bytes;
  }

  const ir::Operator& model_op(const SlicedOps::SlicedOp& op) const {
    return part_.model.subgraphs[0].operators[static_cast<std::size_t>(op.op)];
  }
  // Steps of the tensor unit for one pixel of the result.
  std::int64_t pixel_cycles(const SlicedOps::SlicedOp& op) const {
    const ir::Operator& model = model_op(op);
    const auto& tensors = part_.model.subgraphs[0].tensors;
    const std::int64_t channels = tensors[static_cast<std::size_t>(op.result)].shape.last();
    if (model.type != "CONV_2D" && model.type != "DEPTHWISE_CONV_2D") return (channels + 3) / 4;
    const ir::Shape& weights = tensors[static_cast<std::size_t>(model.inputs[1])].shape;
    const std::int64_t positions = std::int64_t{weights[1]} * weights[2];
    if (model.type == "DEPTHWISE_CONV_2D") return positions * ((channels + 3) / 4);
    return positions * ((weights[3] + 3) / 4) * ((channels + 63) / 64);
  }
  std::int64_t parameter_cycles(const SlicedOps::SlicedOp& op) const {
    const ir::Operator& model = model_op(op);
    return model.type == "CONV_2D" || model.type == "DEPTHWISE_CONV_2D" ? kRingLineCycles * pixel_cycles(op) : 0;
  }

  const lower::PartBorder& part_;
  const Whole& whole_;
  const SlicedOps& group_;
  std::vector<lower::TensorRows> rows_;            // by slice
  std::map<std::int32_t, tiled::Lifetime> lives_;  // by tensor of the model
  std::map<std::int32_t, std::int32_t> roots_;     // of other views of a tensor
};

// Operators at which too much exists, as positions: the first run of them behind `from`.
std::optional<std::pair<std::int32_t, std::int32_t>> next_run(const Whole& whole, std::int32_t from,
                                                              std::int64_t limit) {
  std::optional<std::pair<std::int32_t, std::int32_t>> run;
  for (std::size_t step = 0; step < whole.program().steps.size(); ++step) {
    const std::int32_t at = whole.position(step);
    if (at < from || whole.bytes_at(step) <= limit) continue;
    if (run && at > run->second + 1) break;
    if (!run) run = {at, at};
    run->second = at;
  }
  return run;
}

struct Candidate {
  SliceGroup group;
  std::int64_t cycles = std::numeric_limits<std::int64_t>::max();
};

// The cheapest group around a run. Work that a smaller group leaves to others is counted, too: once, as a whole.
std::optional<Candidate> best_group(const lower::PartBorder& part, const Whole& whole, std::int32_t from,
                                    std::pair<std::int32_t, std::int32_t> run, std::int64_t limit) {
  std::optional<Candidate> best;
  const std::int32_t lowest = std::max(from, run.first - kMostBefore);
  const std::int32_t highest = std::min(static_cast<std::int32_t>(part.ops.size()) - 1, run.second + kMostBehind);
  for (std::int32_t first = run.first; first >= lowest; --first) {
    for (std::int32_t last = run.second; last <= highest; ++last) {
      std::int64_t once = 0;
      for (std::int32_t slices = 1; slices <= kMostSlices; slices = slices < 8 ? slices + 1 : slices + slices / 4) {
        const auto sliced = SlicedOps::of(part, {first, last, slices});
        if (!sliced) break;
        const GroupEstimate estimate(part, whole, *sliced);
        if (slices == 1) once = estimate.cycles();
        const std::int64_t more = estimate.cycles() - once;
        if (best && more >= best->cycles) break;
        if (slices == 1 || estimate.bytes() > limit) continue;
        best = Candidate{sliced->group(), more};
        break;
      }
    }
  }
  return best;
}

// Groups for everything that exceeds the limit; nothing where there is none.
std::optional<std::vector<SliceGroup>> groups_within(const lower::PartBorder& part, const Whole& whole,
                                                     std::int64_t limit) {
  std::vector<SliceGroup> groups;
  std::int32_t from = 0;
  while (const auto run = next_run(whole, from, limit)) {
    const auto best = best_group(part, whole, from, *run, limit);
    if (!best) return std::nullopt;
    groups.push_back(best->group);
    from = best->group.last + 1;
  }
  return groups;
}

}  // namespace

Result<std::vector<SliceGroup>> choose_slices(const lower::PartBorder& part, const lower::LowerOptions& options) {
  lower::LowerOptions how = options;
  how.sketch = true;
  how.groups.clear();
  REEF_ASSIGN_OR_RETURN(TiledProgram program, lower::lower(part.model, part.ops, part.inputs, part.outputs, how));
  const std::int64_t needed = schedule::activation_bytes(program);
  if (needed <= chip::kNarrowBytes) return std::vector<SliceGroup>();
  const Whole whole(part, std::move(program));
  std::vector<SliceGroup> last;
  for (const int percent : kLimits) {
    auto groups = groups_within(part, whole, std::int64_t{chip::kNarrowBytes} * percent / 100);
    if (!groups) break;
    if (groups->empty() || *groups == last) continue;
    how.groups = last = *groups;
    auto sliced = lower::lower(part.model, part.ops, part.inputs, part.outputs, how);
    if (!sliced.ok()) continue;
    if (schedule::activation_bytes(*sliced) <= chip::kNarrowBytes) return *groups;
  }
  return unsupported("activations need {} bytes of each tile, which has {}, and no way to work in slices was found",
                     needed, chip::kNarrowBytes);
}

}  // namespace reef::compiler
