// SPDX-License-Identifier: Apache-2.0
// How parts are chosen. See partition.h for what a part is and candidates.h for where candidates come from.
//
// One part: the first candidate, as Google does, unless another takes much more work off the CPU. Several: beginning
// with that one, what fits around it is added layer by layer, the most profitable first, where the prediction for the
// whole model falls. The single part is not chosen by predicted time: whether a chip pays at all depends on the host,
// and somebody who compiles for one wants it used.
#include "partition/partition.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "ir/describe.h"
#include "ops/dependencies.h"
#include "partition/candidates.h"

namespace reef::partition {
namespace {

// What everybody expects is the first part: another one must take so many times its work off the CPU,
// and not be predicted slower.
constexpr double kMuchMore = 1.5;
// Parts that are tried beside others when the parameter cache does not hold all; each try costs a prediction.
constexpr std::size_t kMostTried = 64;
constexpr std::size_t kMostCommasInAName = 8;
// Operators that are looked at while explaining, all partitionings together: what one broken operator costs is found by
// partitioning the whole model once more, which takes the square of the number of operators. Networks have hundreds or
// thousands, of which all are explained; a file made to keep us busy has a million. Counts work and not time, so that
// the answer is the same everywhere; it is about a second.
constexpr std::size_t kMostLookedAt = std::size_t{1} << 25;

struct Choice {
  std::vector<OpSet> sets;  // in execution order
  double predicted_us = 0;
};

class Partitioner {
 public:
  Partitioner(const ir::Model& model, const Costs& costs, const PartitionOptions& options)
      : graph_(model), costs_(costs), options_(options) {
    for (std::int32_t op = 0; op < graph_.op_count(); ++op) all_cpu_us_ += costs.op(op).cpu;
  }

  const ops::Dependencies& graph() const { return graph_; }
  double all_cpu_us() const { return all_cpu_us_; }

  // -i: names of tensors to tensors. The list was written with commas between names; a name can have some itself, so
  // the longest run of entries that is one wins.
  Status resolve_cuts() {
    const std::vector<std::string>& names = options_.intermediate_tensors;
    for (std::size_t first = 0; first < names.size();) {
      std::size_t next = first;
      std::int32_t tensor = -1;
      std::string name;
      for (std::size_t end = first; end < std::min(names.size(), first + kMostCommasInAName + 1); ++end) {
        name += (end > first ? "," : "") + names[end];
        if (const std::int32_t found = tensor_named(name); found >= 0) {
          tensor = found;
          next = end + 1;
        }
      }
      REEF_REQUIRE(tensor >= 0, "-i: the model has no tensor '{}'; `reef inspect` lists their names",
                   ir::describe_name(names[first]));
      REEF_REQUIRE(graph_.producer(tensor) >= 0,
                   "-i: tensor '{}' is not computed by an operator, so nothing can end there",
                   ir::describe_name(graph_.graph().tensors[at(tensor)].name));
      cuts_.push_back(tensor);
      first = next;
    }
    return ok_status();
  }

  Choice choose(const std::vector<bool>& fits) const {
    OpSet single = choose_single(fits);
    if (single.empty()) return {{}, all_cpu_us_};
    if (options_.several_parts && cuts_.empty() && options_.max_ops < 0) return add_around(fits, std::move(single));
    Choice choice{{std::move(single)}, 0};
    choice.predicted_us = predict(choice.sets);
    return choice;
  }

  bool has_cuts() const { return !cuts_.empty(); }
  std::vector<OpSet> choose_without_cuts(const std::vector<bool>& fits) {
    const std::vector<std::int32_t> cuts = std::exchange(cuts_, {});
    std::vector<OpSet> sets = choose(fits).sets;
    cuts_ = cuts;
    return sets;
  }

  std::vector<Part> make_parts(const std::vector<OpSet>& sets) const {
    std::vector<Part> parts;
    std::int64_t cache = -1;  // of the first part: all there is
    for (const OpSet& ops : sets) {
      ops::Dependencies::Border border = graph_.border(ops);
      Part part{ops, std::move(border.inputs), std::move(border.outputs), {}};
      part.cost = costs_.part(part.ops, part.inputs, part.outputs, cache);
      const std::int64_t room = cache < 0 ? part.cost.cache_capacity : std::min(cache, part.cost.cache_capacity);
      cache = std::max<std::int64_t>(0, room - part.cost.cache_used);
      parts.push_back(std::move(part));
    }
    return parts;
  }

  double predict(const std::vector<OpSet>& sets) const {
    double total = all_cpu_us_;
    for (const Part& part : make_parts(sets)) {
      total += part.cost.total();
      for (const std::int32_t op : part.ops) total -= costs_.op(op).cpu;
    }
    return total;
  }

 private:
  // Names need not be unique: the first that an operator computes, else the first.
  std::int32_t tensor_named(std::string_view name) const {
    const auto& tensors = graph_.graph().tensors;
    std::int32_t result = -1;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      if (tensors[i].name != name) continue;
      const auto tensor = static_cast<std::int32_t>(i);
      if (graph_.producer(tensor) >= 0) return tensor;
      if (result < 0) result = tensor;
    }
    return result;
  }

  OpSet choose_single(const std::vector<bool>& fits) const {
    std::vector<OpSet> candidates = {first_part(graph_, fits)};
    if (options_.choice == PartitionOptions::Choice::kBest) {
      std::vector<std::vector<bool>> choices = {fits};
      if (std::vector<bool> fewer = without_views_for_cpu(graph_, fits); fewer != fits) {
        choices.push_back(std::move(fewer));
      }
      for (const std::vector<bool>& which : choices) {
        for (const Layering layering : {Layering::kEarly, Layering::kLate}) {
          for (OpSet& layer : layers(graph_, which, layering)) candidates.push_back(std::move(layer));
        }
      }
    }
    OpSet best;
    double to_beat = -1;
    for (OpSet& candidate : candidates) {
      if (!cuts_.empty()) candidate = leading_to(graph_, candidate, cuts_);
      if (options_.max_ops >= 0 && candidate.size() > at(options_.max_ops)) candidate.resize(at(options_.max_ops));
      if (candidate.empty()) continue;
      double work = 0;
      for (const std::int32_t op : candidate) work += costs_.op(op).cpu;
      if (work <= to_beat || (!best.empty() && predict({candidate}) > predict({best}))) continue;
      to_beat = best.empty() ? kMuchMore * work : work;
      best = std::move(candidate);
    }
    return best;
  }

  // What one more part saves depends on others only through the parameter cache that they share: where all of them have
  // room in it, each is judged by itself; else they are tried one after the other, the most profitable first.
  Choice add_around(const std::vector<bool>& fits, OpSet single) const {
    LayersAround around = layers_around(graph_, fits, single);
    std::vector<std::pair<double, std::size_t>> gains;
    std::int64_t used = make_parts({single}).front().cost.cache_used, room = std::numeric_limits<std::int64_t>::max();
    for (std::size_t i = 0; i < around.sets.size(); ++i) {
      const PartCost cost = make_parts({around.sets[i]}).front().cost;
      double gain = -cost.total();
      for (const std::int32_t op : around.sets[i]) gain += costs_.op(op).cpu;
      if (gain <= 0) continue;
      gains.emplace_back(gain, i);
      used += cost.cache_used;
      room = std::min(room, cost.cache_capacity);
    }
    std::vector<bool> taken(around.sets.size());
    const auto make = [&] {
      Choice choice;
      for (std::size_t i = 0; i <= around.sets.size(); ++i) {
        if (i == around.before) choice.sets.push_back(single);
        if (i < around.sets.size() && taken[i]) choice.sets.push_back(around.sets[i]);
      }
      choice.predicted_us = predict(choice.sets);
      return choice;
    };
    if (used <= room) {
      for (const auto& [gain, set] : gains) taken[set] = true;
      return make();
    }
    std::sort(gains.begin(), gains.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    if (gains.size() > kMostTried) gains.resize(kMostTried);
    Choice best = make();
    for (const auto& [gain, set] : gains) {
      taken[set] = true;
      Choice with = make();
      if (with.predicted_us < best.predicted_us) {
        best = std::move(with);
      } else {
        taken[set] = false;
      }
    }
    return best;
  }

  ops::Dependencies graph_;
  const Costs& costs_;
  const PartitionOptions& options_;
  std::vector<std::int32_t> cuts_;
  double all_cpu_us_ = 0;
};

std::vector<bool> fitting(const Assessment& assessment) {
  std::vector<bool> fits;
  for (const OpVerdict& verdict : assessment.ops) fits.push_back(verdict.fits());
  return fits;
}

// Operators that lead to the parts: they run before, so what they break strands nobody.
std::vector<bool> leads_to_a_part(const ops::Dependencies& graph, const Partition& result) {
  std::vector<bool> leads(result.ops.size());
  for (std::int32_t op = graph.op_count() - 1; op >= 0; --op) {
    for (const std::int32_t after : graph.successors(op)) {
      if (leads[at(after)] || result.ops[at(after)].place == Place::kChip) leads[at(op)] = true;
    }
  }
  return leads;
}

void place_ops(const ops::Dependencies& graph, const std::vector<bool>& fits, const PartitionOptions& options,
               Partition& result) {
  result.ops.resize(fits.size());
  for (Placement& placement : result.ops) placement.place = Place::kRule;
  for (std::size_t part = 0; part < result.parts.size(); ++part) {
    for (const std::int32_t op : result.parts[part].ops) {
      result.ops[at(op)].place = Place::kChip;
      result.ops[at(op)].part = static_cast<std::int32_t>(part);
    }
  }
  const bool is_cut = !options.intermediate_tensors.empty() || options.max_ops >= 0;
  const std::vector<bool> leads = leads_to_a_part(graph, result);
  std::vector<std::int32_t> blocker(fits.size(), -1);
  for (std::int32_t op = 0; op < graph.op_count(); ++op) {
    Placement& placement = result.ops[at(op)];
    for (const std::int32_t before : graph.predecessors(op)) {
      const bool blocks = !fits[at(before)] && (options.several_parts || !leads[at(before)]);
      const std::int32_t first = blocker[at(before)] >= 0 ? blocker[at(before)] : blocks ? before : -1;
      if (first >= 0 && (blocker[at(op)] < 0 || first < blocker[at(op)])) blocker[at(op)] = first;
    }
    if (placement.place == Place::kChip || !fits[at(op)]) continue;
    placement.blocker = blocker[at(op)];
    if (options.several_parts && !is_cut) {
      placement.place = Place::kNotWorthIt;
    } else if (placement.blocker >= 0) {
      placement.place = Place::kCascade;
    } else {
      placement.place = is_cut ? Place::kAfterCut : Place::kNotChosen;
    }
  }
}

// What each operator that breaks a rule costs: the same partitioning as if it did not. The first ones where there are
// too many: these strand most.
void explain(const Partitioner& partitioner, const std::vector<bool>& fits, Partition& result) {
  const std::int32_t now = result.chip_op_count();
  const auto broken = static_cast<std::size_t>(std::count(fits.begin(), fits.end(), false));
  const std::size_t most = kMostLookedAt / std::max<std::size_t>(fits.size(), 1);
  if (broken > most) {
    result.notes.push_back(fmt::format(
        "what an operator costs that breaks a rule was predicted for the first {} of {} such operators", most, broken));
  }
  std::vector<bool> otherwise = fits;
  std::size_t explained = 0;
  for (std::size_t op = 0; op < fits.size() && explained < most; ++op) {
    if (fits[op]) continue;
    ++explained;
    otherwise[op] = true;
    const Choice choice = partitioner.choose(otherwise);
    otherwise[op] = false;
    std::int32_t then = 0;
    for (const OpSet& ops : choice.sets) then += static_cast<std::int32_t>(ops.size());
    result.ops[op].gain_us = result.predicted_us - choice.predicted_us;
    result.ops[op].strands = std::max(0, then - now - 1);
  }
}

Partition made_of(const Choice& choice, const Partitioner& partitioner, const std::vector<bool>& fits,
                  const PartitionOptions& options) {
  Partition result;
  result.parts = partitioner.make_parts(choice.sets);
  result.predicted_us = choice.predicted_us;
  result.all_cpu_us = partitioner.all_cpu_us();
  place_ops(partitioner.graph(), fits, options, result);
  if (options.explain) explain(partitioner, fits, result);
  return result;
}

}  // namespace

std::int32_t Partition::chip_op_count() const {
  std::int32_t count = 0;
  for (const Part& part : parts) count += static_cast<std::int32_t>(part.ops.size());
  return count;
}

Partition partition_as(const ir::Model& model, const Assessment& assessment, const Costs& costs,
                       const PartitionOptions& options, const std::vector<std::vector<std::int32_t>>& sets) {
  Partitioner partitioner(model, costs, options);
  const Status resolved = partitioner.resolve_cuts();  // names that nobody has are for partition() to report
  static_cast<void>(resolved);
  return made_of({sets, partitioner.predict(sets)}, partitioner, fitting(assessment), options);
}

Result<Partition> partition(const ir::Model& model, const Assessment& assessment, const Costs& costs,
                            const PartitionOptions& options) {
  Partitioner partitioner(model, costs, options);
  REEF_RETURN_IF_ERROR(partitioner.resolve_cuts());
  const std::vector<bool> fits = fitting(assessment);
  const Choice choice = partitioner.choose(fits);
  Partition result = made_of(choice, partitioner, fits, options);
  if (partitioner.has_cuts() && !choice.sets.empty() && partitioner.choose_without_cuts(fits) == choice.sets) {
    result.notes.emplace_back("-i changes nothing: the part that is chosen ends there, or earlier, without it");
  }
  return result;
}

}  // namespace reef::partition
