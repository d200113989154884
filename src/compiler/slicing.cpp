// SPDX-License-Identifier: Apache-2.0
#include "compiler/slicing.h"

#include <algorithm>
#include <limits>
#include <optional>

#include <fmt/format.h>

#include "compiler/slicing_estimate.h"
#include "lower/builder.h"
#include "schedule/schedule.h"

namespace reef::compiler {
namespace {

using lower::SliceGroup;
using tiled::TiledProgram;

constexpr std::int32_t kMostOps = 48;  // of a group
constexpr std::int32_t kMostSlices = 4096;
// Limits of what may exist together, in per cent of the memory: lower ones leave room for pieces between things.
constexpr int kLimits[] = {100, 97, 94, 90, 85, 80, 70, 60, 50, 40, 30};
// Which tensors the host keeps: those that take more than this, in per cent of the memory.
constexpr int kHosted[] = {50, 25, 12, 6, 3, 1, 0};

struct Candidate {
  std::int32_t slices = 0;  // 0: none fits
  std::int64_t cycles = 0;  // more than without slices
};

// As few slices as fit. How much they take falls with their number, nearly always; where it does not, the answer may be
// a few too many.
Candidate fewest_slices(const Whole& whole, const lower::Sliceable& sliceable, std::int32_t first, std::int32_t last,
                        const SliceGroup& form, std::int64_t limit) {
  const auto once = sliceable.group({first, last, 1, form.keeps_rows, form.joins_late});
  if (!once) return {};
  GroupEstimate estimate(whole, *once);
  if (estimate.least_bytes() > limit) return {};
  std::int32_t too_few = 0, enough = 1;
  const std::int32_t most = form.keeps_rows ? estimate.most_slices() : kMostSlices;
  while (estimate.bytes(enough) > limit) {
    if (enough >= most) return {};
    too_few = enough;
    enough = std::min(2 * enough, most);
  }
  while (enough - too_few > 1) {
    const std::int32_t middle = (too_few + enough) / 2;
    (estimate.bytes(middle) <= limit ? enough : too_few) = middle;
  }
  return {enough, estimate.cycles(enough) - estimate.cycles(1)};
}

// Groups for everything that exceeds the limit, with least work in all; `form` says how they are executed. Operators
// that no group within the limit holds are listed in `too_large` (positions in the part) and left out; without such a
// list, there is no answer then, nor when no time is left.
std::optional<std::vector<SliceGroup>> groups_within(const Whole& whole, const lower::Sliceable& sliceable,
                                                     const SliceGroup& form, std::int64_t limit, const Budget& budget,
                                                     std::vector<std::int32_t>* too_large = nullptr) {
  constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max() / 2;
  struct Best {
    std::int64_t cycles = kNever;
    SliceGroup last;  // the group that ends here; slices 0: an operator by itself
  };
  std::vector<Best> best(static_cast<std::size_t>(whole.ops()) + 1);  // up to each operator
  best[0].cycles = 0;
  std::int32_t furthest = 0;  // all operators before this one have a group or fit by themselves
  for (std::int32_t first = 0; first < whole.ops(); ++first) {
    if (budget.is_over()) return std::nullopt;
    if (too_large != nullptr && furthest < first) {
      too_large->push_back(furthest);  // the one before `first`: nothing reaches beyond it
      furthest = first;
      best[reef::at(first)] = {0, {first - 1, first - 1, 0}};
    }
    const std::int64_t before = best[reef::at(first)].cycles;
    if (before >= kNever) continue;
    const auto reach = [&](std::int32_t last, std::int64_t cycles, std::int32_t slices) {
      furthest = std::max(furthest, last + 1);
      Best& there = best[static_cast<std::size_t>(last) + 1];
      if (before + cycles < there.cycles)
        there = {before + cycles, {first, last, slices, form.keeps_rows, form.joins_late}};
    };
    if (whole.bytes_at(first) <= limit) reach(first, 0, 0);
    bool has_too_much = false;
    for (std::int32_t last = first; last < std::min(whole.ops(), first + kMostOps); ++last) {
      has_too_much |= whole.bytes_at(last) > limit;
      if (!has_too_much) continue;
      // Slices only add work: a way to get here that is dearer already need not be looked at.
      if (form.keeps_rows && before >= best[static_cast<std::size_t>(last) + 1].cycles) continue;
      const Candidate found = fewest_slices(whole, sliceable, first, last, form, limit);
      if (found.slices > 0) reach(last, found.cycles, found.slices);
    }
  }
  if (too_large != nullptr && furthest < whole.ops()) too_large->push_back(furthest);
  if (best.back().cycles >= kNever) return std::nullopt;
  std::vector<SliceGroup> groups;
  for (std::int32_t end = whole.ops(); end > 0; end = best[reef::at(end)].last.first) {
    const SliceGroup& group = best[reef::at(end)].last;
    if (group.slices > 0) groups.insert(groups.begin(), group);
  }
  return groups;
}

// One way to make everything fit: whether things may be put aside, and what the host keeps.
class Search {
 public:
  Search(const lower::PartBorder& part, lower::LowerOptions how, const TiledProgram& program, std::int64_t memory)
      : part_(part), how_(std::move(how)), program_(program), memory_(memory) {}

  std::optional<SlicePlan> find(bool may_put_aside, const std::set<std::int32_t>& hosted) {
    const Whole whole(part_, program_, may_put_aside, hosted);
    const lower::Sliceable sliceable(part_, hosted);
    std::optional<std::vector<SliceGroup>> last;
    for (const int percent : kLimits) {
      auto groups = groups_within(whole, sliceable, form(may_put_aside), memory_ * percent / 100, how_.budget);
      if (!groups) break;
      if ((groups->empty() && hosted.empty()) || groups == last) continue;
      last = groups;
      SlicePlan plan{*groups, hosted};
      if (fits(plan, may_put_aside, true) && fits(plan, may_put_aside, false)) return plan;
    }
    return std::nullopt;
  }

  // Images that the host can keep, which take more than so much of each tile.
  std::set<std::int32_t> larger_than(std::int64_t bytes) const {
    std::set<std::int32_t> found;
    const Whole whole(part_, program_, false, {});
    const auto add = [&](std::int32_t source) {
      const tiled::TiledTensor* tensor = source < 0 ? nullptr : whole.tensor(source);
      const ir::Tensor& model = part_.model.subgraphs[0].tensors[reef::at(std::max(source, 0))];
      if (tensor != nullptr && model.shape.rank() == 4 && tensor->height > 1 && tensor->grid_bytes() > bytes) {
        found.insert(source);
      }
    };
    for (const std::int32_t op : part_.ops) {
      const ir::Operator& from = part_.model.subgraphs[0].operators[reef::at(op)];
      std::for_each(from.outputs.begin(), from.outputs.end(), add);
    }
    std::for_each(part_.inputs.begin(), part_.inputs.end(), add);
    return found;
  }

  // Operators that do not fit even by themselves, in as many slices as there are rows, while the host keeps everything
  // else: they cannot be in the part. By estimates.
  std::vector<lower::RefusedOp> too_large() const {
    const std::set<std::int32_t> hosted = larger_than(0);
    const Whole whole(part_, program_, true, hosted);
    const lower::Sliceable sliceable(part_, hosted);
    std::vector<std::int32_t> positions;
    groups_within(whole, sliceable, form(true), memory_, how_.budget, &positions);
    std::vector<lower::RefusedOp> result;
    for (const std::int32_t at : positions) {
      result.push_back({part_.ops[reef::at(at)],
                        fmt::format("its activations need about {} bytes of each tile, which has {}, even in slices "
                                    "and with everything else kept elsewhere",
                                    least_bytes(whole, sliceable, at), memory_)});
    }
    return result;
  }

  // The operator at which memory was shortest in the last way that was tried; else the one that takes most by itself.
  std::int32_t crowded() const { return crowded_ >= 0 ? crowded_ : largest(); }

 private:
  // How groups are executed, as far as that does not depend on them.
  SliceGroup form(bool may_put_aside) const {
    const bool is_fast = how_.level >= tiled::Level::kFast;
    return {.keeps_rows = is_fast, .joins_late = is_fast && may_put_aside};
  }

  std::int32_t largest() const {
    const std::set<std::int32_t> hosted = larger_than(0);
    const Whole whole(part_, program_, true, hosted);
    const lower::Sliceable sliceable(part_, hosted);
    std::int64_t most = -1;
    std::int32_t which = -1;
    for (std::int32_t op = 0; op < whole.ops(); ++op) {
      const std::int64_t least = least_bytes(whole, sliceable, op);
      if (least <= most) continue;
      most = least;
      which = part_.ops[reef::at(op)];
    }
    return which;
  }

  // Bytes that one operator takes at least: in as many slices as there are rows.
  static std::int64_t least_bytes(const Whole& whole, const lower::Sliceable& sliceable, std::int32_t op) {
    const std::int64_t least = whole.bytes_at(op);
    const auto group = sliceable.group({op, op, 1});
    return group ? std::min(least, GroupEstimate(whole, *group).bytes(kMostSlices)) : least;
  }

  // First without everything that takes long and says little about sizes; then really.
  bool fits(SlicePlan& plan, bool may_put_aside, bool sketch) {
    how_.groups = plan.groups;
    how_.hosted = plan.hosted;
    how_.sketch = sketch;
    auto sliced = lower::lower(part_.model, part_.ops, part_.inputs, part_.outputs, how_);
    if (!sliced.ok()) return false;
    if (!sketch) plan.program = *sliced;
    if (schedule::activations_fit(*sliced, memory_, may_put_aside)) return true;
    crowded_ = schedule::fullest_op(*sliced, memory_);
    return false;
  }

  const lower::PartBorder& part_;
  lower::LowerOptions how_;
  const TiledProgram& program_;
  const std::int64_t memory_;
  std::int32_t crowded_ = -1;
};

}  // namespace

Result<SlicePlan> choose_slices(const lower::PartBorder& part, const lower::LowerOptions& options, std::int64_t memory,
                                std::int32_t* crowded) {
  lower::LowerOptions how = options;
  how.sketch = true;
  how.groups.clear();
  how.hosted.clear();
  lower::SketchSizes sizes;
  how.sizes = &sizes;
  REEF_ASSIGN_OR_RETURN(TiledProgram program, lower::lower(part.model, part.ops, part.inputs, part.outputs, how));
  if (schedule::activations_fit(program, memory, false)) return SlicePlan();
  Search search(part, how, program, memory);
  if (auto plan = search.find(false, {})) return std::move(*plan);
  TiledProgram copy = program;
  if (schedule::activations_fit(copy, memory, true)) return SlicePlan();
  if (auto plan = search.find(true, {})) return std::move(*plan);
  std::set<std::int32_t> last;
  for (const int percent : kHosted) {
    const std::set<std::int32_t> hosted = search.larger_than(memory * percent / 100);
    if (hosted == last) continue;
    last = hosted;
    if (auto plan = search.find(true, hosted)) return std::move(*plan);
  }
  REEF_RETURN_IF_ERROR(options.budget.check("looking for work in slices"));
  if (std::vector<lower::RefusedOp> too_large = search.too_large(); !too_large.empty()) {
    const lower::RefusedOp first = too_large.front();
    if (options.refused != nullptr) *options.refused = std::move(too_large);
    return unsupported("{}", first.reason)
        .in(fmt::format("op {} {}", first.op, part.model.subgraphs[0].operators[reef::at(first.op)].type));
  }
  if (crowded != nullptr) *crowded = search.crowded();
  if (options.refused != nullptr) options.refused->clear();  // what only some attempt in slices had no code for
  return unsupported(
      "activations need {} bytes of each tile, which has {}; neither work in slices nor keeping some elsewhere was "
      "found to help",
      schedule::activation_bytes(program), memory);
}

}  // namespace reef::compiler
