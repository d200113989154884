// SPDX-License-Identifier: Apache-2.0
#include "partition/candidates.h"
#include "ops/registry.h"

#include <algorithm>

namespace reef::partition {
namespace {

// Adds every operator of one kind whose predecessors are all taken or of this run.
void take_run(const ops::Dependencies& graph, const std::vector<bool>& fits, bool kind, std::vector<bool>& taken,
              OpSet* run) {
  for (std::int32_t op = 0; op < graph.op_count(); ++op) {
    if (fits[at(op)] != kind) continue;
    const auto before = graph.predecessors(op);
    if (!std::all_of(before.begin(), before.end(), [&](std::int32_t p) { return taken[at(p)]; })) continue;
    taken[at(op)] = true;
    if (run != nullptr) run->push_back(op);
  }
}

}  // namespace

OpSet first_part(const ops::Dependencies& graph, const std::vector<bool>& fits) {
  OpSet run;
  if (graph.op_count() == 0) return run;
  std::vector<bool> taken(fits.size());
  if (!fits[0]) take_run(graph, fits, false, taken, nullptr);
  take_run(graph, fits, true, taken, &run);
  return run;
}

std::vector<OpSet> layers(const ops::Dependencies& graph, const std::vector<bool>& fits, Layering layering) {
  // An operator's layer is the number of changes from chip to CPU on the path to it that has most of them; seen from
  // the end for kLate.
  const bool early = layering == Layering::kEarly;
  std::vector<int> layer(fits.size());
  int last = 0;
  for (std::int32_t i = 0; i < graph.op_count(); ++i) {
    const std::int32_t op = early ? i : graph.op_count() - 1 - i;
    for (const std::int32_t other : early ? graph.predecessors(op) : graph.successors(op)) {
      const int changes = fits[at(other)] && !fits[at(op)] ? 1 : 0;
      layer[at(op)] = std::max(layer[at(op)], layer[at(other)] + changes);
    }
    last = std::max(last, layer[at(op)]);
  }
  std::vector<OpSet> result(static_cast<std::size_t>(last) + 1);
  for (std::int32_t op = 0; op < graph.op_count(); ++op) {
    if (fits[at(op)]) result[at(early ? layer[at(op)] : last - layer[at(op)])].push_back(op);
  }
  std::erase_if(result, [](const OpSet& ops) { return ops.empty(); });
  return result;
}

std::vector<bool> without_views_for_cpu(const ops::Dependencies& graph, const std::vector<bool>& fits) {
  std::vector<bool> result = fits;
  for (std::int32_t op = graph.op_count() - 1; op >= 0; --op) {
    if (!fits[at(op)] || !ops::has_same_bytes(graph.graph().operators[at(op)])) continue;
    const auto readers = graph.successors(op);
    const bool serves_cpu = !readers.empty() && std::none_of(readers.begin(), readers.end(),
                                                             [&](std::int32_t reader) { return result[at(reader)]; });
    if (serves_cpu) result[at(op)] = false;
  }
  return result;
}

LayersAround layers_around(const ops::Dependencies& graph, const std::vector<bool>& fits, const OpSet& taken) {
  enum : char { kElsewhere, kTaken, kBehind };
  std::vector<char> where(fits.size(), kElsewhere);
  for (const std::int32_t op : taken) where[at(op)] = kTaken;
  for (std::int32_t op = 0; op < graph.op_count(); ++op) {
    if (where[at(op)] == kTaken) continue;
    for (const std::int32_t before : graph.predecessors(op)) {
      if (where[at(before)] != kElsewhere) where[at(op)] = kBehind;
    }
  }
  // The part is one operator that does not fit, between what it needs and what needs it. An operator's layer is the
  // number of changes from chip to CPU, or to the part, on the way to it.
  std::vector<int> layer(fits.size());
  int part_layer = 0;
  const auto reach = [&](std::int32_t op, bool is_chip, int& own) {
    for (const std::int32_t before : graph.predecessors(op)) {
      const bool from_part = where[at(before)] == kTaken;
      const int changes = !from_part && fits[at(before)] && !is_chip ? 1 : 0;
      own = std::max(own, (from_part ? part_layer : layer[at(before)]) + changes);
    }
  };
  const auto visit = [&](char kind) {
    for (std::int32_t op = 0; op < graph.op_count(); ++op) {
      if (where[at(op)] != kind) continue;
      if (kind == kTaken) {
        // Its operators among each other do not count.
        for (const std::int32_t before : graph.predecessors(op)) {
          if (where[at(before)] != kTaken) {
            part_layer = std::max(part_layer, layer[at(before)] + (fits[at(before)] ? 1 : 0));
          }
        }
      } else {
        reach(op, fits[at(op)], layer[at(op)]);
      }
    }
  };
  visit(kElsewhere);
  visit(kTaken);
  visit(kBehind);
  const int last = layer.empty() ? 0 : std::max(part_layer, *std::max_element(layer.begin(), layer.end()));
  std::vector<OpSet> by_layer(static_cast<std::size_t>(last) + 1);
  for (std::int32_t op = 0; op < graph.op_count(); ++op) {
    if (fits[at(op)] && where[at(op)] != kTaken) by_layer[at(layer[at(op)])].push_back(op);
  }
  LayersAround result;
  for (int i = 0; i <= last; ++i) {
    if (by_layer[at(i)].empty()) continue;
    if (i < part_layer) ++result.before;
    result.sets.push_back(std::move(by_layer[at(i)]));
  }
  return result;
}

OpSet leading_to(const ops::Dependencies& graph, const OpSet& ops, const std::vector<std::int32_t>& tensors) {
  std::vector<bool> needed(static_cast<std::size_t>(graph.op_count()));
  for (const std::int32_t tensor : tensors) {
    if (graph.producer(tensor) >= 0) needed[at(graph.producer(tensor))] = true;
  }
  for (std::int32_t op = graph.op_count() - 1; op >= 0; --op) {
    if (!needed[at(op)]) continue;
    for (const std::int32_t before : graph.predecessors(op)) needed[at(before)] = true;
  }
  OpSet result;
  std::copy_if(ops.begin(), ops.end(), std::back_inserter(result), [&](std::int32_t op) { return needed[at(op)]; });
  return result;
}

}  // namespace reef::partition
