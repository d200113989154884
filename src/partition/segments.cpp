// SPDX-License-Identifier: Apache-2.0
// Dynamic programming over the places where a cut is possible. A long model has too many pairs of them; then only the
// cheapest places (fewest bytes crossing) of each stretch of equal predicted time are tried.
#include "partition/segments.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "ir/describe.h"
#include "ops/dependencies.h"
#include "partition/candidates.h"

namespace reef::partition {
namespace {

constexpr std::size_t kMaxCuts = 192;  // places tried; their pairs are what takes time

class Cutter {
 public:
  Cutter(const ir::Model& model, const Assessment& assessment, const Costs& costs) : graph_(model), costs_(costs) {
    for (const OpVerdict& verdict : assessment.ops) fits_.push_back(verdict.fits());
    std::vector<std::int32_t> change(at(op_count()) + 2);
    for (const ops::Dependencies::Tie& tie : graph_.ties()) {
      ++change[at(tie.earlier) + 1];
      --change[at(tie.later) + 1];
    }
    std::partial_sum(change.begin(), change.end(), change.begin());
    for (const std::int32_t ties : change) may_cut_.push_back(ties == 0);
  }

  std::int32_t op_count() const { return graph_.op_count(); }

  // What no operator computes, no segment can return.
  Status check_outputs() const {
    for (const std::int32_t tensor : graph_.graph().outputs) {
      if (tensor < 0 || graph_.producer(tensor) >= 0) continue;
      return invalid_input(
          "-n: the model's output '{}' is {}, which no segment computes; take it from the model's outputs first "
          "(whoever "
          "runs the segments has it already)",
          ir::describe_name(graph_.graph().tensors[at(tensor)].name),
          graph_.is_computed(tensor) ? "one of its inputs or variables" : "a constant");
    }
    return ok_status();
  }

  // Positions before which to cut, first and last included; ascending.
  std::vector<std::int32_t> possible_cuts(int count) const {
    const std::int32_t end = op_count();
    std::vector<std::int32_t> all;
    for (std::int32_t cut = 0; cut <= end; ++cut) {
      if (may_cut_[at(cut)]) all.push_back(cut);
    }
    if (all.size() <= kMaxCuts) return all;
    const std::vector<std::int64_t> crossing = crossing_bytes();
    std::vector<double> until(at(end) + 1);
    for (std::int32_t op = 0; op < end; ++op) until[at(op) + 1] = until[at(op)] + op_us(op);
    const std::size_t stretches = std::max<std::size_t>(kMaxCuts - 2, static_cast<std::size_t>(count));
    std::vector<std::int32_t> best(stretches, -1);
    for (const std::int32_t cut : all) {
      if (cut == 0 || cut == end) continue;
      const double share = until[at(end)] > 0 ? until[at(cut)] / until[at(end)] : static_cast<double>(cut) / end;
      const auto stretch = std::min(stretches - 1, static_cast<std::size_t>(share * static_cast<double>(stretches)));
      if (best[stretch] < 0 || crossing[at(cut)] < crossing[at(best[stretch])]) best[stretch] = cut;
    }
    std::vector<std::int32_t> cuts = {0};
    std::copy_if(best.begin(), best.end(), std::back_inserter(cuts), [](std::int32_t cut) { return cut > 0; });
    cuts.push_back(end);
    return cuts.size() > static_cast<std::size_t>(count) ? cuts : all;
  }

  Segment segment(std::int32_t begin, std::int32_t end) const {
    Segment result;
    result.ops.resize(at(end - begin));
    std::iota(result.ops.begin(), result.ops.end(), begin);
    ops::Dependencies::Border border = graph_.border(result.ops);
    result.inputs = std::move(border.inputs);
    result.outputs = std::move(border.outputs);
    result.predicted_us = predict(begin, end);
    return result;
  }

  // The operators that fit run as one part, the others on the CPU: what happens inside of a segment is decided when it
  // is compiled, and is the same wherever it matters, a segment without operators that do not fit.
  double predict(std::int32_t begin, std::int32_t end) const {
    OpSet chip;
    double total = 0;
    for (std::int32_t op = begin; op < end; ++op) {
      if (fits_[at(op)]) {
        chip.push_back(op);
      } else {
        total += costs_.op(op).cpu;
      }
    }
    if (chip.empty()) return total;
    const ops::Dependencies::Border border = graph_.border(chip);
    return total + costs_.part(chip, border.inputs, border.outputs).total();
  }

 private:
  double op_us(std::int32_t op) const { return fits_[at(op)] ? costs_.op(op).chip : costs_.op(op).cpu; }

  // By position: bytes of tensors computed before it and needed at or behind it.
  std::vector<std::int64_t> crossing_bytes() const {
    std::vector<std::int64_t> change(at(op_count()) + 2);
    const ir::Subgraph& graph = graph_.graph();
    std::vector<std::int32_t> last_use(graph.tensors.size(), -1);
    for (std::int32_t op = 0; op < op_count(); ++op) {
      for (const std::int32_t tensor : graph.operators[at(op)].inputs) {
        if (tensor >= 0) last_use[at(tensor)] = op;
      }
    }
    for (std::size_t tensor = 0; tensor < graph.tensors.size(); ++tensor) {
      const std::int32_t from = graph_.producer(static_cast<std::int32_t>(tensor));
      if (from < 0 || last_use[tensor] <= from) continue;
      const std::int64_t bytes = costs_.tensor_bytes(static_cast<std::int32_t>(tensor));
      change[at(from) + 1] += bytes;
      change[at(last_use[tensor]) + 1] -= bytes;
    }
    std::partial_sum(change.begin(), change.end(), change.begin());
    return change;
  }

  ops::Dependencies graph_;
  const Costs& costs_;
  std::vector<bool> fits_;
  // By position: no variable, and no handle of one, is used on both sides. Each segment has an interpreter of its own.
  std::vector<bool> may_cut_;
};

}  // namespace

Result<std::vector<Segment>> cut_segments(const ir::Model& model, const Assessment& assessment, const Costs& costs,
                                          int count) {
  const Cutter cutter(model, assessment, costs);
  REEF_REQUIRE(count >= 1, "-n {}: a model is cut into 1 segment or more", count);
  REEF_REQUIRE(count <= cutter.op_count(), "-n {}: the model has only {} operators", count, cutter.op_count());
  REEF_RETURN_IF_ERROR(cutter.check_outputs());
  const std::vector<std::int32_t> cuts = cutter.possible_cuts(count);
  REEF_REQUIRE(
      cuts.size() > static_cast<std::size_t>(count),
      "-n {}: the model can be cut into {} segments at most, because operators that share a variable must stay "
      "in one segment",
      count, cuts.size() - 1);
  const std::size_t places = cuts.size();
  // slowest[j]: of `k` segments that end at cuts[j], the largest latency, at best; from[k][j]: where the last begins.
  constexpr double kImpossible = std::numeric_limits<double>::infinity();
  std::vector<std::vector<double>> alone(places, std::vector<double>(places, kImpossible));
  for (std::size_t i = 0; i < places; ++i) {
    for (std::size_t j = i + 1; j < places; ++j) alone[i][j] = cutter.predict(cuts[i], cuts[j]);
  }
  std::vector<double> slowest(places, kImpossible);
  slowest[0] = 0;
  std::vector<std::vector<std::size_t>> from(static_cast<std::size_t>(count), std::vector<std::size_t>(places));
  for (int k = 0; k < count; ++k) {
    std::vector<double> next(places, kImpossible);
    for (std::size_t j = 1; j < places; ++j) {
      for (std::size_t i = 0; i < j; ++i) {
        const double worst = std::max(slowest[i], alone[i][j]);
        if (worst >= next[j]) continue;
        next[j] = worst;
        from[at(k)][j] = i;
      }
    }
    slowest = std::move(next);
  }
  std::vector<Segment> segments;
  std::size_t end = places - 1;
  for (int k = count - 1; k >= 0; --k) {
    const std::size_t begin = from[at(k)][end];
    segments.push_back(cutter.segment(cuts[begin], cuts[end]));
    end = begin;
  }
  std::reverse(segments.begin(), segments.end());
  return segments;
}

}  // namespace reef::partition
