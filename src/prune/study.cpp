// SPDX-License-Identifier: Apache-2.0
#include "prune/study.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "execute/cpu/run_samples.h"
#include "ir/constants.h"
#include "prune/normal_equations.h"
#include "prune/walk.h"

namespace reef::prune {
namespace {

constexpr double kTrialShares[] = {0.25, 0.5, 0.75};
constexpr double kTrialRidge = 1e-3;
constexpr double kLeastError = 1e-7;  // of outputs; below it is rounding

std::vector<bool> all_false(const Axes& axes) {
  return std::vector<bool>(static_cast<std::size_t>(axes.limit()), false);
}

// The weights that give the original's results from the columns that stay, on the rows of its gram matrix.
Matrix refitted(const Matrix& gram, const Matrix& weights, const std::vector<std::size_t>& kept) {
  NormalEquations equations;
  equations.gram = submatrix(gram, kept);
  equations.cross = Matrix(kept.size(), weights.columns);
  for (std::size_t i = 0; i < kept.size(); ++i) {
    for (std::size_t k = 0; k < gram.rows; ++k) {
      const double a = gram(kept[i], k);
      if (a == 0) continue;
      for (std::size_t o = 0; o < weights.columns; ++o) equations.cross(i, o) += a * weights(k, o);
    }
  }
  const Matrix from = rows_of(weights, kept);
  Matrix fitted = ridge_solution(equations, from, kTrialRidge, /*has_bias=*/true);
  return fitted.data.empty() ? from : fitted;
}

// Squared error over the power around the mean, of one output over all samples.
double relative_error(const std::vector<std::vector<std::vector<float>>>& a,
                      const std::vector<std::vector<std::vector<float>>>& b, std::size_t output) {
  double sum = 0, count = 0, error = 0, power = 0;
  for (const auto& sample : a) {
    for (const float v : sample[output]) sum += v, ++count;
  }
  const double mean = count > 0 ? sum / count : 0;
  for (std::size_t s = 0; s < a.size(); ++s) {
    for (std::size_t i = 0; i < a[s][output].size(); ++i) {
      const double difference = static_cast<double>(a[s][output][i]) - b[s][output][i];
      const double around = a[s][output][i] - mean;
      error += difference * difference;
      power += around * around;
    }
  }
  if (!std::isfinite(error)) return std::numeric_limits<double>::max();
  return power > 0 ? error / power : 0;
}

}  // namespace

std::int64_t parameter_count(const ir::Model& model) {
  std::int64_t sum = 0;
  for (const ir::Tensor& tensor : model.subgraphs[0].tensors) {
    if (ir::is_float_constant(model, tensor)) sum += tensor.shape.checked_elements().value_or(0);
  }
  return sum;
}

void Study::tell(std::string_view phase, std::size_t done, std::size_t total) const {
  if (options_.progress) options_.progress(phase, static_cast<std::int64_t>(done), static_cast<std::int64_t>(total));
}

Result<std::unique_ptr<Study>> Study::make(ir::Model model, std::shared_ptr<const data::SampleSource> source,
                                           std::vector<std::int64_t> samples, const StudyOptions& options,
                                           const Cost& cost) {
  REEF_REQUIRE(!samples.empty(), "there are no samples: pruning is chosen by what it does to outputs of samples");
  REEF_REQUIRE(
      model.subgraphs.size() == 1,
      "the model has control flow ({} subgraphs): pruning runs one operator after the other and cannot follow it",
      model.subgraphs.size());
  std::unique_ptr<Study> study(new Study);
  study->options_ = options;
  study->model_ = std::move(model);
  study->fused_ = split_activations(study->model_);
  own_biases(study->model_);
  study->source_ = std::move(source);
  const double each = 2 * walk_bytes(study->model_, 1);
  const auto room = static_cast<std::size_t>(std::max(1.0, options.memory_bytes / std::max(each, 1.0)));
  if (samples.size() > room) {
    study->notes_.push_back(
        fmt::format("{} of {} samples were used: values of more do not fit the memory", room, samples.size()));
    samples.resize(room);
  }
  study->samples_ = std::move(samples);
  REEF_ASSIGN_OR_RETURN(Axes axes, Axes::find(study->model_, options.heads));
  study->axes_.emplace(std::move(axes));
  study->layers_ = linear_layers(study->model_);
  for (UnitGroup& group : unit_groups(study->model_, *study->axes_, study->layers_)) {
    study->groups_.push_back({std::move(group), {}, {}});
  }
  REEF_REQUIRE(!study->groups_.empty(),
               "nothing can be removed: no layer with constant float weights has channels that only other layers read");
  if (options.blocks) {
    for (Block& block : find_blocks(study->model_)) study->blocks_.push_back({std::move(block), 0, 0});
  }
  REEF_RETURN_IF_ERROR(study->order_groups());
  REEF_RETURN_IF_ERROR(study->try_groups(cost));
  REEF_RETURN_IF_ERROR(study->try_blocks(cost));
  study->build_ladder();
  REEF_REQUIRE(!study->ladder_.empty(), "nothing can be removed: {}",
               study->notes_.empty() ? std::string("every group is at its least size") : study->notes_.back());
  return study;
}

KeptIndices Study::kept_without(std::span<const std::size_t> removed) const {
  std::vector<bool> gone = all_false(*axes_);
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    for (std::size_t i = 0; i < removed[g]; ++i) {
      gone[reef::at(groups_[g].group.units[groups_[g].order[i]])] = true;
    }
  }
  return kept_indices(model_, *axes_, gone);
}

// One group alone is smaller, and the layers that read it are fitted to that.
Result<ir::Model> Study::trial_model(const StudiedGroup& group, std::size_t removed) const {
  std::vector<std::size_t> counts(groups_.size(), 0);
  counts[reef::at(&group - groups_.data())] = removed;
  const KeptIndices kept = kept_without(counts);
  REEF_ASSIGN_OR_RETURN(ir::Model model, remove_units(model_, kept));
  for (const std::size_t n : group.group.consumers) {
    if (grams_[n].empty()) continue;
    const LinearLayer& before = layers_[n];
    const auto after = linear_layer(model, before.op);
    if (!after) continue;
    const std::vector<bool>& inputs = kept[reef::at(before.weights)][reef::at(before.input_axis)];
    const std::vector<bool>& outputs = kept[reef::at(before.weights)][reef::at(before.output_axis)];
    if (!std::all_of(outputs.begin(), outputs.end(), [](bool k) { return k; })) continue;  // reads and makes them
    std::vector<std::size_t> columns;
    for (std::size_t at = 0; at < before.window; ++at) {
      for (const std::size_t c : numbers_of(inputs)) columns.push_back(before.column(at, c));
    }
    columns.push_back(before.columns());
    std::vector<Matrix> weights;
    for (std::size_t g = 0; g < before.groups; ++g) {
      weights.push_back(refitted(grams_[n][g], weights_of(model_, before, g), columns));
    }
    set_weights(model, *after, weights);
  }
  return model;
}

Result<Study::Outputs> Study::run(const ir::Model& model) const {
  const std::size_t count = std::min<std::size_t>(samples_.size(), static_cast<std::size_t>(options_.trial_samples));
  Outputs outputs(count);
  cpu::SampleHooks hooks;
  hooks.use = [&](std::int64_t position, int, const cpu::Interpreter& interpreter) {
    for (int i = 0; i < interpreter.output_count(); ++i) {
      const ops::Tensor& output = interpreter.output(i);
      std::vector<float>& to = outputs[reef::at(position)].emplace_back();
      if (output.type != ir::DataType::kFloat32) continue;
      const auto values = output.values<float>();
      to.assign(values.begin(), values.end());
    }
    return ok_status();
  };
  cpu::RunOptions run;
  run.threads = options_.threads;
  run.budget = options_.budget;
  REEF_RETURN_IF_ERROR(cpu::run_samples(std::make_shared<const ir::Model>(model), *source_,
                                        std::span(samples_).first(count), run, hooks));
  return outputs;
}

Result<double> Study::output_error(const ir::Model& model) const {
  REEF_ASSIGN_OR_RETURN(const Outputs outputs, run(model));
  double sum = 0;
  const std::size_t each = outputs_[0].size();
  for (std::size_t o = 0; o < each; ++o) sum += relative_error(outputs_, outputs, o);
  return each == 0 ? 0 : sum / static_cast<double>(each);
}

Status Study::try_group(StudiedGroup& group, const Cost& cost) {
  const std::size_t units = group.group.units.size();
  group.trials.push_back({0, 0, 0});
  REEF_ASSIGN_OR_RETURN(const double whole, cost(model_));
  for (const double share : kTrialShares) {
    const auto removed = static_cast<std::size_t>(std::llround(share * static_cast<double>(units)));
    if (removed <= group.trials.back().removed || removed >= units) continue;
    REEF_ASSIGN_OR_RETURN(const ir::Model model, trial_model(group, removed));
    REEF_ASSIGN_OR_RETURN(const double error, output_error(model));
    REEF_ASSIGN_OR_RETURN(const double left, cost(model));
    group.trials.push_back({removed, std::max({error, group.trials.back().error, kLeastError}), whole - left});
  }
  return ok_status();
}

Status Study::try_groups(const Cost& cost) {
  REEF_ASSIGN_OR_RETURN(outputs_, run(model_));
  std::size_t done = 0;
  const std::size_t total = groups_.size();
  for (StudiedGroup& group : groups_) {
    // A group whose removal an operator does not take stays whole.
    const Status status = try_group(group, cost);
    if (status.code() == StatusCode::kResourceExhausted) return status;
    if (!status.ok()) {
      notes_.push_back(fmt::format("'{}' stays whole: {}", group.group.name, status.message()));
      group.trials.clear();
    }
    tell("trying removals", ++done, total);
  }
  return ok_status();
}

Status Study::try_blocks(const Cost& cost) {
  REEF_ASSIGN_OR_RETURN(const double whole, cost(model_));
  const KeptIndices all = kept_without(std::vector<std::size_t>(groups_.size(), 0));
  for (std::size_t b = 0; b < blocks_.size(); ++b) {
    ir::Model model = model_;
    remove_block(blocks_[b].block, all, model);
    drop_unneeded(model);
    REEF_ASSIGN_OR_RETURN(const double error, output_error(model));
    REEF_ASSIGN_OR_RETURN(const double left, cost(model));
    blocks_[b].error = std::max(error, kLeastError);
    blocks_[b].saved = whole - left;
    tell("trying blocks", b + 1, blocks_.size());
  }
  return ok_status();
}

std::vector<std::size_t> Study::removed_at(std::size_t point) const {
  std::vector<std::size_t> removed(groups_.size(), 0);
  for (std::size_t i = 0; i < std::min(point, ladder_.size()); ++i) {
    if (!ladder_[i].is_block) removed[ladder_[i].group] = ladder_[i].removed;
  }
  return removed;
}

std::vector<std::size_t> Study::blocks_removed_at(std::size_t point) const {
  std::vector<std::size_t> removed;
  for (std::size_t i = 0; i < std::min(point, ladder_.size()); ++i) {
    if (ladder_[i].is_block) removed.push_back(ladder_[i].group);
  }
  return removed;
}

Result<ir::Model> Study::cut_apart(std::size_t point, const KeptIndices& kept) const {
  REEF_ASSIGN_OR_RETURN(ir::Model model, remove_units(model_, kept));
  for (const std::size_t b : blocks_removed_at(point)) remove_block(blocks_[b].block, kept, model);
  return model;
}

Result<ir::Model> Study::cut(std::size_t point) const {
  REEF_ASSIGN_OR_RETURN(ir::Model model, cut_apart(point, kept_without(removed_at(point))));
  join_activations(model, fused_);
  drop_unneeded(model);
  return model;
}

Result<Study::Pruned> Study::repaired(std::size_t point, double zeros) const {
  Pruned result;
  result.kept = kept_without(removed_at(point));
  REEF_ASSIGN_OR_RETURN(result.model, cut_apart(point, result.kept));
  RepairOptions how;
  how.threads = options_.threads;
  how.budget = options_.budget;
  how.zeros = zeros;
  how.progress = [&](std::int64_t done, std::int64_t total) {
    tell("fitting layers", static_cast<std::size_t>(done), static_cast<std::size_t>(total));
  };
  REEF_ASSIGN_OR_RETURN(result.report, repair(model_, result.kept, *source_, samples_, how, result.model));
  join_activations(result.model, fused_);
  drop_unneeded(result.model);
  return result;
}

}  // namespace reef::prune
