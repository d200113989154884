// SPDX-License-Identifier: Apache-2.0
// The end of an edit: operators come into an order that works, new tensors get names of their own.
#include <set>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>

#include "graph/graph.h"

namespace reef::graph {

// Operators as soon as what they need is there, the first in the file's order first.
Result<std::vector<OpId>> Graph::order() const {
  std::vector<int> missing(slots_.size(), 0);
  std::vector<std::vector<OpId>> followers(slots_.size());
  const auto precede = [&](OpId first, OpId second) {
    followers[index(first)].push_back(second);
    ++missing[index(second)];
  };
  OpId last_effect = kNone;
  std::set<std::pair<std::int64_t, OpId>> ready;
  std::size_t alive = 0;
  for (OpId id = 0; id < op_slots(); ++id) {
    if (!is_alive(id)) continue;
    ++alive;
    for (const TensorId input : op(id).inputs) {
      if (input >= 0 && producer(input) != kNone) precede(producer(input), id);
    }
    if (!slots_[index(id)].has_effect) continue;  // those are never new: their ids are in the file's order
    if (last_effect != kNone) precede(last_effect, id);
    last_effect = id;
  }
  for (OpId id = 0; id < op_slots(); ++id) {
    if (is_alive(id) && missing[index(id)] == 0) ready.emplace(slots_[index(id)].position, id);
  }
  std::vector<OpId> result;
  while (!ready.empty()) {
    const OpId id = ready.begin()->second;
    ready.erase(ready.begin());
    result.push_back(id);
    for (const OpId follower : followers[index(id)]) {
      if (--missing[index(follower)] == 0) ready.emplace(slots_[index(follower)].position, follower);
    }
  }
  if (result.size() != alive) return internal_error("operators depend on each other in a circle");
  return result;
}

// New tensors are named after those they stand for. A name that is taken gets a number.
void Graph::name_new_tensors() {
  std::unordered_set<std::string> taken;
  std::unordered_map<std::string, int> numbers;
  const auto is_used = [this](std::size_t i) { return producers_[i] != kNone || !users_[i].empty() || is_input_[i]; };
  for (std::size_t i = 0; i < given_tensors_; ++i) {
    if (is_used(i)) taken.insert(graph().tensors[i].name);
  }
  for (std::size_t i = given_tensors_; i < graph().tensors.size(); ++i) {
    if (!is_used(i)) continue;
    std::string& name = change().tensors[i].name;
    const std::string base = name;
    while (!taken.insert(name).second) name = fmt::format("{}_{}", base, ++numbers[base]);
  }
}

Result<std::vector<OpId>> Graph::settle() {
  REEF_ASSIGN_OR_RETURN(std::vector<OpId> sequence, order());
  std::vector<ir::Operator> operators;
  std::vector<Slot> slots;
  operators.reserve(sequence.size());
  for (const OpId id : sequence) {
    slots.push_back(slots_[index(id)]);
    slots.back().position = static_cast<std::int64_t>(operators.size());
    operators.push_back(std::move(change().operators[index(id)]));
  }
  change().operators = std::move(operators);
  slots_ = std::move(slots);
  std::vector<TensorId> known = std::move(perhaps_dead_);  // indexing finds no more
  index_operators();
  perhaps_dead_ = std::move(known);
  return sequence;
}

Status Graph::finish() {
  sweep();
  REEF_RETURN_IF_ERROR(settle().status());
  name_new_tensors();
  return ok_status();
}

}  // namespace reef::graph
