// SPDX-License-Identifier: Apache-2.0
#include "prune/study.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include <fmt/format.h>

#include "base/thread_pool.h"
#include "execute/cpu/run_samples.h"
#include "ir/constants.h"
#include "prune/normal_equations.h"
#include "prune/removal_order.h"
#include "prune/walk.h"

namespace reef::prune {
namespace {

constexpr double kTrialShares[] = {0.25, 0.5, 0.75};
constexpr double kTrialRidge = 1e-3;
constexpr double kLeastError = 1e-7;  // of outputs; below it is rounding

std::vector<bool> all_false(const Axes& axes) {
  return std::vector<bool>(static_cast<std::size_t>(axes.limit()), false);
}

// The gram matrix without its constant, around the means.
Matrix centred(const Matrix& gram) {
  const std::size_t n = gram.rows - 1;
  const double rows = std::max(gram(n, n), 1.0);
  Matrix result(n, n);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t k = 0; k < n; ++k) result(i, k) = gram(i, k) - gram(i, n) * gram(k, n) / rows;
  }
  return result;
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

// A tensor's mean over everything but its last axis.
std::vector<float> channel_means(const Walk& walk, const ir::Model& model, std::int32_t tensor) {
  const auto channels =
      static_cast<std::size_t>(model.subgraphs[0].tensors[static_cast<std::size_t>(tensor)].shape.last());
  std::vector<double> sums(channels, 0);
  double rows = 0;
  for (std::size_t s = 0; s < walk.samples(); ++s) {
    const std::span<const float> values = walk.values(tensor, s);
    for (std::size_t i = 0; i < values.size(); ++i) sums[i % channels] += values[i];
    rows += static_cast<double>(values.size() / channels);
  }
  std::vector<float> means;
  for (const double sum : sums) means.push_back(static_cast<float>(sum / std::max(rows, 1.0)));
  return means;
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

// Runs the original once and gathers what orders and trials need.
Status Study::order_groups() {
  std::vector<bool> is_read(layers_.size(), false), is_made(layers_.size(), false);
  for (const StudiedGroup& each : groups_) {
    for (const std::size_t n : each.group.consumers) is_read[n] = layers_[n].columns() <= kMostColumns;
    for (const std::size_t n : each.group.producers) is_made[n] = true;
  }
  grams_.resize(layers_.size());
  variances_.resize(layers_.size());
  ThreadPool pool(std::max(options_.threads, 1));
  Walk walk(model_, options_.threads, options_.budget);
  REEF_RETURN_IF_ERROR(walk.start(*source_, samples_));
  std::vector<std::size_t> all(samples_.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  const std::size_t count = model_.subgraphs[0].operators.size();
  for (std::size_t op = 0; op < count; ++op) {
    REEF_RETURN_IF_ERROR(walk.step(op));
    for (std::size_t n = 0; n < layers_.size(); ++n) {
      const LinearLayer& layer = layers_[n];
      if (layer.op != op) continue;
      const SampleValues x = [&](std::size_t s) { return walk.values(layer.input, s); };
      for (std::size_t g = 0; is_read[n] && g < layer.groups; ++g) {
        grams_[n].push_back(gather(layer, g, all, x, {}, pool).gram);
      }
      if (!is_made[n]) continue;
      const std::size_t channels = layer.groups * layer.outputs;
      std::vector<double> sums(channels, 0), squares(channels, 0);
      double rows = 0;
      for (std::size_t s = 0; s < samples_.size(); ++s) {
        const std::span<const float> y = walk.values(layer.output, s);
        for (std::size_t i = 0; i < y.size(); ++i) {
          sums[i % channels] += y[i];
          squares[i % channels] += static_cast<double>(y[i]) * y[i];
        }
        rows += static_cast<double>(y.size() / channels);
      }
      for (std::size_t c = 0; c < channels; ++c) {
        variances_[n].push_back(std::max(0.0, squares[c] / rows - sums[c] / rows * sums[c] / rows));
      }
    }
    for (StudiedBlock& each : blocks_) {
      if (each.block.ops.back() == op) each.block.mean = channel_means(walk, model_, each.block.branch);
    }
    walk.forget_behind(op);
    tell("looking at layers", op + 1, count);
  }
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    StudiedGroup& each = groups_[i];
    const std::vector<std::int32_t>& units = each.group.units;
    std::vector<Reader> readers;
    for (const std::size_t n : each.group.consumers) {
      const std::vector<std::vector<std::size_t>> columns = columns_of(layers_[n], *axes_, units);
      for (std::size_t g = 0; g < grams_[n].size(); ++g) {
        Matrix weights = weights_of(model_, layers_[n], g);
        weights.data.resize(weights.data.size() - weights.columns);
        --weights.rows;
        readers.push_back({centred(grams_[n][g]), std::move(weights), columns});
      }
    }
    if (!readers.empty()) {
      each.order = removal_order(std::move(readers), units.size());
    } else {
      // No layer reads them: both operands of a product of activations (queries and keys). What a unit adds to it is
      // the product of its values.
      std::vector<double> power(units.size(), 1);
      for (const std::size_t n : each.group.producers) {
        const LinearLayer& layer = layers_[n];
        std::vector<double> of_layer(units.size(), 0);
        for (std::size_t c = 0; c < variances_[n].size(); ++c) {
          const std::int32_t unit = axes_->unit(layer.weights, layer.output_axis, static_cast<std::int32_t>(c));
          const auto found = std::lower_bound(units.begin(), units.end(), unit);
          if (found != units.end() && *found == unit)
            of_layer[static_cast<std::size_t>(found - units.begin())] += variances_[n][c];
        }
        for (std::size_t u = 0; u < units.size(); ++u) power[u] *= of_layer[u];
      }
      each.order.resize(units.size());
      std::iota(each.order.begin(), each.order.end(), std::size_t{0});
      std::stable_sort(each.order.begin(), each.order.end(),
                       [&](std::size_t a, std::size_t b) { return power[a] < power[b]; });
    }
    REEF_RETURN_IF_ERROR(options_.budget.check("pruning"));
    tell("ordering channels", i + 1, groups_.size());
  }
  return ok_status();
}

KeptIndices Study::kept_without(std::span<const std::size_t> removed) const {
  std::vector<bool> gone = all_false(*axes_);
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    for (std::size_t i = 0; i < removed[g]; ++i) {
      gone[static_cast<std::size_t>(groups_[g].group.units[groups_[g].order[i]])] = true;
    }
  }
  return kept_indices(model_, *axes_, gone);
}

// One group alone is smaller, and the layers that read it are fitted to that.
Result<ir::Model> Study::trial_model(const StudiedGroup& group, std::size_t removed) const {
  std::vector<std::size_t> counts(groups_.size(), 0);
  counts[static_cast<std::size_t>(&group - groups_.data())] = removed;
  const KeptIndices kept = kept_without(counts);
  REEF_ASSIGN_OR_RETURN(ir::Model model, remove_units(model_, kept));
  for (const std::size_t n : group.group.consumers) {
    if (grams_[n].empty()) continue;
    const LinearLayer& before = layers_[n];
    const auto after = linear_layer(model, before.op);
    if (!after) continue;
    const std::vector<bool>& inputs =
        kept[static_cast<std::size_t>(before.weights)][static_cast<std::size_t>(before.input_axis)];
    const std::vector<bool>& outputs =
        kept[static_cast<std::size_t>(before.weights)][static_cast<std::size_t>(before.output_axis)];
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
      std::vector<float>& to = outputs[static_cast<std::size_t>(position)].emplace_back();
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

namespace {

// Error and saving between the points that were tried. The error grows with the square near 0 and exponentially
// between points, which keeps it convex; beyond the last point it goes on growing.
double error_at(const std::vector<TrialPoint>& trials, double removed) {
  if (removed <= 0) return 0;
  std::size_t k = 1;
  while (k + 1 < trials.size() && static_cast<double>(trials[k].removed) < removed) ++k;
  const TrialPoint &low = trials[k - 1], &high = trials[k];
  const double share = (removed - static_cast<double>(low.removed)) / static_cast<double>(high.removed - low.removed);
  if (k == 1) return high.error * share * share;
  return low.error * std::pow(high.error / low.error, share);
}

double saved_at(const std::vector<TrialPoint>& trials, double removed) {
  std::size_t k = 1;
  while (k + 1 < trials.size() && static_cast<double>(trials[k].removed) < removed) ++k;
  const TrialPoint &low = trials[k - 1], &high = trials[k];
  const double share = (removed - static_cast<double>(low.removed)) / static_cast<double>(high.removed - low.removed);
  return low.saved + share * (high.saved - low.saved);
}

}  // namespace

void Study::build_ladder() {
  struct Place {
    std::size_t removed = 0;
    std::vector<std::size_t> next;  // numbers of removed units that may follow, ascending
  };
  std::vector<Place> places(groups_.size());
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    const StudiedGroup& group = groups_[g];
    if (group.trials.size() < 2) continue;
    const std::size_t units = group.group.units.size();
    const auto each = static_cast<std::size_t>(group.group.channels_each);
    // Units whose channels are a multiple of what tiles like.
    std::size_t multiple = static_cast<std::size_t>(std::max(options_.multiple, 1));
    multiple = std::max<std::size_t>(1, multiple / std::gcd(multiple, each));
    if (units < 2 * multiple) multiple = 1;
    const auto least = std::max<std::size_t>(
        multiple, static_cast<std::size_t>(std::ceil(options_.least_kept * static_cast<double>(units))));
    for (std::size_t kept = (units - 1) / multiple * multiple; kept >= least && kept > 0; kept -= multiple) {
      places[g].next.push_back(units - kept);
      if (kept < multiple) break;
    }
  }
  std::vector<bool> block_stays(blocks_.size(), true);
  while (true) {
    std::size_t best = groups_.size();
    std::size_t best_block = blocks_.size();
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      if (places[g].next.empty()) continue;
      const std::vector<TrialPoint>& trials = groups_[g].trials;
      const auto now = static_cast<double>(places[g].removed), then = static_cast<double>(places[g].next.front());
      const double saved = saved_at(trials, then) - saved_at(trials, now);
      const double price = (error_at(trials, then) - error_at(trials, now)) / std::max(saved, 1e-12);
      if (saved > 0 && price < least) least = price, best = g;
    }
    for (std::size_t b = 0; b < blocks_.size(); ++b) {
      const double price = blocks_[b].error / std::max(blocks_[b].saved, 1e-12);
      if (block_stays[b] && blocks_[b].saved > 0 && price < least) least = price, best_block = b;
    }
    if (best_block < blocks_.size()) {
      block_stays[best_block] = false;
      ladder_.push_back({best_block, 0, true});
      // Nothing is left of groups that the block's own layers compute.
      const std::vector<std::size_t>& gone = blocks_[best_block].block.ops;
      for (std::size_t g = 0; g < groups_.size(); ++g) {
        const std::vector<std::size_t>& producers = groups_[g].group.producers;
        if (std::all_of(producers.begin(), producers.end(),
                        [&](std::size_t n) { return std::binary_search(gone.begin(), gone.end(), layers_[n].op); })) {
          places[g].next.clear();
        }
      }
      continue;
    }
    if (best == groups_.size()) return;
    Place& place = places[best];
    place.removed = place.next.front();
    place.next.erase(place.next.begin());
    ladder_.push_back({best, place.removed, false});
  }
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
