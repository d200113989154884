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
using tiled::TileRanges;

constexpr std::int32_t kMostOps = 48;  // of a group
constexpr std::int32_t kMostSlices = 512;
// Limits of what may exist together, in per cent of the memory: lower ones leave room for pieces between things.
constexpr int kLimits[] = {100, 97, 94, 90, 85, 80, 70, 60, 50};
// Cycles that things take besides the work itself (estimates). Instructions come from the host with every inference:
// a block of some 80 rows, or some 400 for an input, at about 0.8 bytes a cycle.
constexpr std::int64_t kBlockCycles = 1600, kInputBlockCycles = 8000, kInputByteCycles = 2;
constexpr std::int64_t kRingLineCycles = 16;
constexpr std::int64_t kInputConstants = 512;  // bytes that come with the slots of an input

// The part without slices: what there is of each tensor, and how much exists at each operator. With `may_put_aside`,
// only what an operator uses exists: everything else can be put aside meanwhile.
class Whole {
 public:
  Whole(const lower::PartBorder& part, TiledProgram program, bool may_put_aside)
      : part_(part), program_(std::move(program)), may_put_aside_(may_put_aside) {
    std::map<std::int32_t, std::int32_t> positions;
    for (std::size_t i = 0; i < part.ops.size(); ++i) positions[part.ops[i]] = static_cast<std::int32_t>(i);
    bytes_.assign(part.ops.size(), 0);
    std::int32_t at = 0;
    for (const tiled::Step& step : program_.steps) {
      const auto found = positions.find(step.op);
      if (found != positions.end()) at = found->second;
      position_of_step_.push_back(at);
    }
    find_presence();
    count_bytes();
    for (std::size_t t = 0; t < program_.tensors.size(); ++t) {
      tensors_[program_.tensors[t].source].push_back(static_cast<std::int32_t>(t));
    }
  }

  const lower::PartBorder& part() const { return part_; }
  const TiledProgram& program() const { return program_; }
  std::int32_t ops() const { return static_cast<std::int32_t>(bytes_.size()); }
  // The most that exists at one of the operator's steps.
  std::int64_t bytes_at(std::int32_t op) const { return bytes_[static_cast<std::size_t>(op)]; }

  // The tensor of the model on the chip; null: it is another view of one. Copies of it come behind.
  const TiledTensor* tensor(std::int32_t source) const {
    const auto found = tensors_.find(source);
    return found == tensors_.end() ? nullptr : &program_.tensor(found->second.front());
  }
  // All memory that holds it, copies too.
  std::vector<std::int32_t> objects(std::int32_t source) const {
    std::vector<std::int32_t> objects;
    const auto found = tensors_.find(source);
    if (found == tensors_.end()) return objects;
    for (const std::int32_t t : found->second) objects.push_back(program_.tensor(t).object);
    return objects;
  }
  bool exists_at(std::int32_t object, std::int32_t op) const {
    const std::vector<tiled::Lifetime>& present = presence_[static_cast<std::size_t>(object)];
    return std::any_of(present.begin(), present.end(), [&](const tiled::Lifetime& steps) {
      return position(steps.first) <= op && op <= position(steps.last);
    });
  }
  std::int64_t bytes_of(std::int32_t object) const { return program_.narrow[static_cast<std::size_t>(object)].bytes; }

 private:
  std::int32_t position(std::int32_t step) const { return position_of_step_[static_cast<std::size_t>(step)]; }

  // By object: runs of steps.
  void find_presence() {
    presence_.resize(program_.narrow.size());
    if (!may_put_aside_) {
      for (std::size_t i = 0; i < presence_.size(); ++i) {
        if (program_.narrow[i].life.first >= 0) presence_[i] = {program_.narrow[i].life};
      }
      return;
    }
    const auto use = [&](std::int32_t object, std::size_t step) {
      const auto at = static_cast<std::int32_t>(step);
      std::vector<tiled::Lifetime>& present = presence_[static_cast<std::size_t>(object)];
      if (present.empty() || present.back().last < at - 1) {
        present.push_back({at, at});
      } else {
        present.back().last = at;
      }
    };
    for (std::size_t i = 0; i < program_.steps.size(); ++i) {
      const tiled::Step& step = program_.steps[i];
      for (const auto* tensors : {&step.reads, &step.writes}) {
        for (const std::int32_t t : *tensors) use(program_.tensor(t).object, i);
      }
      for (const std::int32_t object : step.narrow_used) use(object, i);
    }
  }

  void count_bytes() {
    std::vector<std::int64_t> change(program_.steps.size() + 1, 0);
    for (std::size_t i = 0; i < presence_.size(); ++i) {
      for (const tiled::Lifetime& steps : presence_[i]) {
        change[static_cast<std::size_t>(steps.first)] += program_.narrow[i].bytes;
        change[static_cast<std::size_t>(steps.last) + 1] -= program_.narrow[i].bytes;
      }
    }
    std::int64_t now = 0;
    for (std::size_t step = 0; step < program_.steps.size(); ++step) {
      now += change[step];
      std::int64_t& most = bytes_[static_cast<std::size_t>(position_of_step_[step])];
      most = std::max(most, now);
    }
  }

  const lower::PartBorder& part_;
  TiledProgram program_;
  std::vector<std::int32_t> position_of_step_;          // of the operator, or of the one before
  std::vector<std::int64_t> bytes_;                     // by operator
  std::vector<std::vector<tiled::Lifetime>> presence_;  // by object: steps
  const bool may_put_aside_;
  std::map<std::int32_t, std::vector<std::int32_t>> tensors_;  // by source
};

// What a group takes and costs, estimated from the part without slices.
class GroupEstimate {
 public:
  GroupEstimate(const Whole& whole, const SlicedOps& group) : whole_(whole), group_(group) {
    for (const std::int32_t source : group.tensors()) tensors_.push_back(whole.tensor(source));
    find_lives();
    find_others();
  }

  // The most that exists at one time, in bytes of a tile. The first, the last and one of the other slices stand for
  // all.
  std::int64_t bytes(const SlicedOps& sliced) const {
    std::int64_t most = 0;
    for (const std::int32_t slice : {0, sliced.group().slices / 2, sliced.group().slices - 1}) {
      const std::vector<std::int64_t> sizes = slice_bytes(sliced.rows(slice));
      for (std::size_t at = 0; at < others_.size(); ++at) {
        std::int64_t bytes = others_[at];
        for (std::size_t id = 0; id < sizes.size(); ++id) {
          if (lives_[id].first <= static_cast<std::int32_t>(at) && static_cast<std::int32_t>(at) <= lives_[id].last) {
            bytes += sizes[id];
          }
        }
        if (at == 0) bytes += input_buffers();
        most = std::max(most, bytes);
      }
    }
    return most;
  }
  // More slices do not make it less than this.
  std::int64_t least_bytes() const { return *std::max_element(others_.begin(), others_.end()); }

  // Cycles of the busiest tile in all slices.
  std::int64_t cycles(const SlicedOps& sliced) const {
    const std::int32_t slices = sliced.group().slices;
    std::int64_t cycles = slice_cycles(sliced.rows(0));
    if (slices > 1) cycles += slice_cycles(sliced.rows(slices - 1));
    if (slices > 2) cycles += slice_cycles(sliced.rows(slices / 2)) * (slices - 2);
    return cycles;
  }

 private:
  // When tensors between operands and results exist: positions in the group, of the first and last that touch them.
  void find_lives() {
    lives_.resize(tensors_.size());
    std::vector<std::int32_t> roots(tensors_.size());  // of other views of a tensor
    for (std::size_t id = 0; id < roots.size(); ++id) roots[id] = static_cast<std::int32_t>(id);
    const auto root = [&](std::int32_t id) { return static_cast<std::size_t>(roots[static_cast<std::size_t>(id)]); };
    for (std::size_t i = 0; i < group_.ops().size(); ++i) {
      const SlicedOps::SlicedOp& op = group_.ops()[i];
      if (!op.computes) roots[static_cast<std::size_t>(op.id)] = static_cast<std::int32_t>(root(op.reads[0].id));
      for (const SlicedOps::RowRead& read : op.reads) lives_[root(read.id)].include(static_cast<std::int32_t>(i));
      lives_[root(op.id)].include(static_cast<std::int32_t>(i));
    }
    for (const std::int32_t id : group_.inputs()) lives_[static_cast<std::size_t>(id)].include(0);
    for (const auto* list : {&group_.results(), &group_.operands()}) {
      for (const std::int32_t id : *list) lives_[root(id)] = {};
    }
  }

  // By operator of the group: what exists whole. Operands and results do all the time.
  void find_others() {
    std::vector<std::int32_t> sliced;  // objects of which there are slices instead
    std::int64_t fixed = 0;
    std::vector<std::int32_t> borders;
    for (const auto* list : {&group_.results(), &group_.operands()}) {
      for (const std::int32_t id : *list) {
        const TiledTensor* tensor = tensors_[static_cast<std::size_t>(id)];
        if (tensor == nullptr || std::find(borders.begin(), borders.end(), tensor->object) != borders.end()) continue;
        borders.push_back(tensor->object);
        fixed += whole_.bytes_of(tensor->object);
      }
    }
    for (const std::int32_t source : group_.tensors()) {
      for (const std::int32_t object : whole_.objects(source)) sliced.push_back(object);
    }
    std::sort(sliced.begin(), sliced.end());
    sliced.erase(std::unique(sliced.begin(), sliced.end()), sliced.end());
    for (std::int32_t op = group_.group().first; op <= group_.group().last; ++op) {
      std::int64_t bytes = whole_.bytes_at(op);
      for (const std::int32_t object : sliced) {
        if (whole_.exists_at(object, op)) bytes -= whole_.bytes_of(object);
      }
      others_.push_back(fixed + std::max<std::int64_t>(bytes, 0));
    }
  }

  std::vector<std::int64_t> slice_bytes(const std::vector<TileRanges>& rows) const {
    std::vector<std::int64_t> sizes(rows.size(), 0);
    for (std::size_t id = 0; id < rows.size(); ++id) {
      const TiledTensor* tensor = tensors_[id];
      if (tensor == nullptr || lives_[id].first < 0) continue;
      const tiled::AxisPartition local = tiled::AxisPartition::local(tensor->height, rows[id]);
      sizes[id] = std::int64_t{local.max_length()} * tensor->columns.max_length() * tensor->pitch;
    }
    return sizes;
  }
  std::int64_t input_buffers() const {
    std::int64_t bytes = 0;
    for (const std::int32_t id : group_.inputs()) {
      const TiledTensor* tensor = tensors_[static_cast<std::size_t>(id)];
      if (tensor != nullptr) bytes += 2 * std::int64_t{tiled::InputSlots::of(*tensor).bytes} + kInputConstants;
    }
    return bytes;
  }

  std::int64_t slice_cycles(const std::vector<TileRanges>& rows) const {
    std::int64_t cycles = 0;
    for (const SlicedOps::SlicedOp& op : group_.ops()) {
      const TiledTensor* result = op.computes ? tensors_[static_cast<std::size_t>(op.id)] : nullptr;
      if (result == nullptr) continue;
      std::int32_t most = 0;
      for (const tiled::Range& range : rows[static_cast<std::size_t>(op.id)]) {
        const tiled::Range inside = range.within(0, op.height);
        most = std::max(most, inside.end - inside.begin);
      }
      cycles += std::int64_t{most} * result->columns.max_own() * pixel_cycles(op) + parameter_cycles(op) + kBlockCycles;
    }
    for (const std::int32_t id : group_.inputs()) {
      const TiledTensor* input = tensors_[static_cast<std::size_t>(id)];
      if (input == nullptr) continue;
      std::int64_t all = 0;
      for (const tiled::Range& range : rows[static_cast<std::size_t>(id)]) {
        const tiled::Range inside = range.within(0, input->height);
        all += std::max(0, inside.end - inside.begin);
      }
      cycles += all * input->width * input->channels * kInputByteCycles + kInputBlockCycles;
    }
    return cycles;
  }

  const ir::Subgraph& graph() const { return whole_.part().model.subgraphs[0]; }
  const ir::Operator& model_op(const SlicedOps::SlicedOp& op) const {
    return graph().operators[static_cast<std::size_t>(op.op)];
  }
  // Steps of the tensor unit for one pixel of the result.
  std::int64_t pixel_cycles(const SlicedOps::SlicedOp& op) const {
    const ir::Operator& model = model_op(op);
    const std::int64_t channels = graph().tensors[static_cast<std::size_t>(op.result)].shape.last();
    if (model.type != "CONV_2D" && model.type != "DEPTHWISE_CONV_2D") return (channels + 3) / 4;
    const ir::Shape& weights = graph().tensors[static_cast<std::size_t>(model.inputs[1])].shape;
    const std::int64_t positions = std::int64_t{weights[1]} * weights[2];
    if (model.type == "DEPTHWISE_CONV_2D") return positions * ((channels + 3) / 4);
    return positions * ((weights[3] + 3) / 4) * ((channels + 63) / 64);
  }
  std::int64_t parameter_cycles(const SlicedOps::SlicedOp& op) const {
    const ir::Operator& model = model_op(op);
    return model.type == "CONV_2D" || model.type == "DEPTHWISE_CONV_2D" ? kRingLineCycles * pixel_cycles(op) : 0;
  }

  const Whole& whole_;
  const SlicedOps& group_;
  std::vector<const TiledTensor*> tensors_;  // by position in group_.tensors(); null: another view of one
  std::vector<tiled::Lifetime> lives_;       // the same
  std::vector<std::int64_t> others_;         // by operator of the group
};

struct Candidate {
  std::int32_t slices = 0;  // 0: none fits
  std::int64_t cycles = 0;  // more than without slices
};

// As few slices as fit. How much they take falls with their number, nearly always; where it does not, the answer may be
// a few too many.
Candidate fewest_slices(const Whole& whole, const lower::Sliceable& sliceable, std::int32_t first, std::int32_t last,
                        std::int64_t limit) {
  const auto once = sliceable.group({first, last, 1});
  if (!once) return {};
  const GroupEstimate estimate(whole, *once);
  if (estimate.least_bytes() > limit) return {};
  const auto fits = [&](std::int32_t slices) {
    const auto sliced = sliceable.group({first, last, slices});
    return sliced && estimate.bytes(*sliced) <= limit;
  };
  std::int32_t too_few = 1, enough = 2;
  while (!fits(enough)) {
    too_few = enough;
    enough *= 2;
    if (enough > kMostSlices) return {};
  }
  while (enough - too_few > 1) {
    const std::int32_t middle = (too_few + enough) / 2;
    (fits(middle) ? enough : too_few) = middle;
  }
  const auto sliced = sliceable.group({first, last, enough});
  return {enough, estimate.cycles(*sliced) - estimate.cycles(*once)};
}

// Groups for everything that exceeds the limit, with least work in all; nothing where there are none.
std::optional<std::vector<SliceGroup>> groups_within(const Whole& whole, const lower::Sliceable& sliceable,
                                                     std::int64_t limit) {
  constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max() / 2;
  struct Best {
    std::int64_t cycles = kNever;
    SliceGroup last;  // the group that ends here; slices 0: an operator by itself
  };
  std::vector<Best> best(static_cast<std::size_t>(whole.ops()) + 1);  // up to each operator
  best[0].cycles = 0;
  for (std::int32_t first = 0; first < whole.ops(); ++first) {
    const std::int64_t before = best[static_cast<std::size_t>(first)].cycles;
    if (before >= kNever) continue;
    const auto reach = [&](std::int32_t last, std::int64_t cycles, std::int32_t slices) {
      Best& there = best[static_cast<std::size_t>(last) + 1];
      if (before + cycles < there.cycles) there = {before + cycles, {first, last, slices}};
    };
    if (whole.bytes_at(first) <= limit) reach(first, 0, 0);
    bool has_too_much = false;
    for (std::int32_t last = first; last < std::min(whole.ops(), first + kMostOps); ++last) {
      has_too_much |= whole.bytes_at(last) > limit;
      if (!has_too_much) continue;
      const Candidate found = fewest_slices(whole, sliceable, first, last, limit);
      if (found.slices > 0) reach(last, found.cycles, found.slices);
    }
  }
  if (best.back().cycles >= kNever) return std::nullopt;
  std::vector<SliceGroup> groups;
  for (std::int32_t end = whole.ops(); end > 0; end = best[static_cast<std::size_t>(end)].last.first) {
    const SliceGroup& group = best[static_cast<std::size_t>(end)].last;
    if (group.slices > 0) groups.insert(groups.begin(), group);
  }
  return groups;
}

std::optional<std::vector<SliceGroup>> find_groups(const lower::PartBorder& part, lower::LowerOptions how,
                                                   const TiledProgram& program, bool may_put_aside) {
  const Whole whole(part, program, may_put_aside);
  const lower::Sliceable sliceable(part);
  std::vector<SliceGroup> last;
  for (const int percent : kLimits) {
    auto groups = groups_within(whole, sliceable, std::int64_t{chip::kNarrowBytes} * percent / 100);
    if (!groups) break;
    if (groups->empty() || *groups == last) continue;
    how.groups = last = *groups;
    auto sliced = lower::lower(part.model, part.ops, part.inputs, part.outputs, how);
    if (sliced.ok() && schedule::activation_bytes(*sliced, may_put_aside) <= chip::kNarrowBytes) return groups;
  }
  return std::nullopt;
}

}  // namespace

Result<std::vector<SliceGroup>> choose_slices(const lower::PartBorder& part, const lower::LowerOptions& options) {
  lower::LowerOptions how = options;
  how.sketch = true;
  how.groups.clear();
  REEF_ASSIGN_OR_RETURN(TiledProgram program, lower::lower(part.model, part.ops, part.inputs, part.outputs, how));
  const std::int64_t needed = schedule::activation_bytes(program);
  if (needed <= chip::kNarrowBytes) return std::vector<SliceGroup>();
  if (auto groups = find_groups(part, how, program, false)) return std::move(*groups);
  TiledProgram copy = program;
  if (schedule::activation_bytes(copy, true) <= chip::kNarrowBytes) return std::vector<SliceGroup>();
  if (auto groups = find_groups(part, how, program, true)) return std::move(*groups);
  return unsupported(
      "activations need {} bytes of each tile, which has {}; neither work in slices nor putting some aside was found "
      "to help",
      needed, chip::kNarrowBytes);
}

}  // namespace reef::compiler
