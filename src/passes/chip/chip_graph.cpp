// SPDX-License-Identifier: Apache-2.0
#include "passes/chip/chip_graph.h"

#include <algorithm>

#include <fmt/format.h>

#include "ir/describe.h"
#include "ir/excerpt.h"
#include "ops/registry.h"
#include "ops/static_ops.h"
#include "ops/table_functions.h"
#include "passes/pass.h"

namespace reef::passes {
namespace {

// By the rules that stand with each op, where no one else judges.
std::vector<bool> fits_by_rules(const ir::Model& model, int runtime) {
  const ops::StaticOps ops(model);
  std::vector<bool> result;
  for (std::int32_t i = 0; i < ops.count(); ++i) {
    const ops::OpDef* definition = ops.definition(i);
    if (definition == nullptr) {
      result.push_back(false);
      continue;
    }
    const ops::ChipSupport& chip = definition->chip;
    const int first_runtime = ops::first_runtime(*definition, ops.op(i));
    bool fits = first_runtime != 0 && runtime >= first_runtime;
    fits = fits && (chip.newest_version == 0 || ops.op(i).version <= chip.newest_version);
    const ops::OpContext context = ops.context(i);
    for (const ops::ChipRule& rule : chip.rules) {
      fits = fits && (!rule.runtimes.contains(runtime) || rule.broken(context).empty());
    }
    result.push_back(fits);
  }
  return result;
}

}  // namespace

ChipGraph::ChipGraph(ir::Model& model, const RewriteOptions& options)
    : Graph(model, 0, options.evaluate), options_(&options) {}

void ChipGraph::find_varying() const {
  std::vector<std::uint8_t>& varies = varies_.emplace(graph().tensors.size(), 0);
  for (const std::int32_t input : graph().inputs) varies[at(input)] = 1;
  for (std::size_t i = 0; i < varies.size(); ++i) {
    if (graph().tensors[i].is_variable) varies[i] = 1;
  }
  for (std::int32_t i = 0; i < op_count(); ++i) {
    const auto does = [&](std::int32_t tensor) { return tensor >= 0 && varies[at(tensor)] != 0; };
    // Operators with a state (READ_VARIABLE) or unknown ones (random numbers) give another result each time.
    const ops::OpDef* definition = ops::find_op(op(i));
    const bool is_a_function = definition != nullptr && !definition->has_state;
    if (is_a_function && !std::any_of(op(i).inputs.begin(), op(i).inputs.end(), does)) continue;
    for (const std::int32_t output : op(i).outputs) {
      if (output >= 0) varies[at(output)] = 1;
    }
  }
}

bool ChipGraph::varies(std::int32_t tensor) const {
  if (!varies_) find_varying();
  return at(tensor) < varies_->size() && (*varies_)[at(tensor)] != 0;
}

bool ChipGraph::fits(std::int32_t index) const {
  if (!fits_) fits_ = options_->fits ? options_->fits(model()) : fits_by_rules(model(), options_->runtime);
  return at(index) < fits_->size() && (*fits_)[at(index)];
}

std::int32_t ChipGraph::count_fitting() const {
  std::int32_t count = 0;
  for (std::int32_t i = 0; i < op_count(); ++i) count += fits(i) ? 1 : 0;
  return count;
}

std::vector<std::int32_t> ChipGraph::origins() const {
  std::vector<std::int32_t> result;
  for (std::int32_t i = 0; i < op_count(); ++i) result.push_back(origin(i));
  return result;
}

void ChipGraph::note(std::int32_t index, std::string what, std::string place, int difference) {
  const std::string how = fmt::format("{} {}", is_trial_ ? "--rewrite" : "--no-rewrite", pass_->name);
  applications_.push_back(
      {pass_->name, index < 0 ? -1 : origin(index), std::move(what), std::move(place), difference, !is_trial_, how});
}

void ChipGraph::note_left(std::int32_t index, std::string what, std::string place, int difference, std::string how) {
  Application left{pass_->name,   index < 0 ? -1 : origin(index), std::move(what), std::move(place), difference, false,
                   std::move(how)};
  // A pass that changes something is followed by another, which finds the same again.
  for (const Application& known : applications_) {
    if (!known.made && known.rewrite == left.rewrite && known.op == left.op && known.what == left.what) return;
  }
  applications_.push_back(std::move(left));
}

void ChipGraph::note_change(std::int32_t index, std::string what, std::string place, int difference) {
  note(index, std::move(what), std::move(place), difference);
  ++changes_;
}

bool ChipGraph::accepts(std::int32_t index, std::string_view into, int difference) {
  if (difference <= kLargestDifference || contains(options_->enable, pass_->name)) return true;
  note_left(
      index,
      fmt::format("{} could become {}, but results would differ by up to {} steps", describe(index), into, difference),
      tensor(op(index).outputs[0]).name, difference, fmt::format("--rewrite {}", pass_->name));
  return false;
}

void ChipGraph::commit_anyway(std::int32_t index, std::vector<ir::Operator> with, std::string_view into,
                              int difference) {
  note(index, fmt::format("{} {} {}", describe(index), is_trial_ ? "could become" : "became", into),
       tensor(op(index).outputs[0]).name, difference);
  substitute(index, std::move(with));
  settle_keeping({});
  ++changes_;
}

void ChipGraph::settle_keeping(std::optional<std::vector<bool>> fits) {
  forget();
  const auto former = settle();
  if (!former.ok()) status_ = former.status();
  if (!former.ok() || !fits) return;
  std::vector<bool>& moved = fits_.emplace();
  for (const graph::OpId id : *former) moved.push_back(at(id) < fits->size() && (*fits)[at(id)]);
}

void ChipGraph::remove_dead() {
  std::optional<std::vector<bool>> fits = std::move(fits_);
  sweep();
  settle_keeping(std::move(fits));
}

void ChipGraph::replace_operators(std::vector<ir::Operator> operators, const std::vector<std::int32_t>& origins) {
  set_operators(std::move(operators), origins);
  forget();
}

bool ChipGraph::is_batch_of_inputs(std::int32_t tensor) const {
  const ir::Shape& first = shape(tensor);
  if (first.rank() == 0 || first[0] == 1) return false;
  return std::any_of(graph().inputs.begin(), graph().inputs.end(),
                     [&](std::int32_t input) { return shape(input).rank() > 1 && shape(input)[0] == first[0]; });
}

bool ChipGraph::commit(std::int32_t index, std::vector<ir::Operator> with, std::string_view into, int difference,
                       OpName except) {
  std::optional<std::vector<bool>> known = std::move(fits_);
  std::vector<bool> judged;
  if (options_->fits) {
    ir::Model alone = ir::excerpt(model(), with);
    for (ir::Tensor& tensor : alone.subgraphs[0].tensors) tensor.shape_signature.clear();  // who made them has looked
    judged = options_->fits(alone);
    for (std::size_t i = 0; i < with.size(); ++i) {
      if (with[i].type == except || (i < judged.size() && judged[i])) continue;
      fits_ = std::move(known);
      return false;
    }
  }
  commit_anyway(index, std::move(with), into, difference);
  if (!known || judged.empty()) return true;
  // The others are as they were: an operator's verdict depends on its own tensors alone.
  known->erase(known->begin() + index);
  known->insert(known->begin() + index, judged.begin(), judged.end());
  fits_ = std::move(known);
  return true;
}

void ChipGraph::forget() {
  fits_.reset();
  varies_.reset();
}

void ChipGraph::begin(const Pass& pass, bool is_trial) {
  pass_ = &pass;
  is_trial_ = is_trial;
}

std::vector<Application> ChipGraph::take_applications() { return std::move(applications_); }

}  // namespace reef::passes
