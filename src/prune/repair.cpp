// SPDX-License-Identifier: Apache-2.0
#include "prune/repair.h"

#include <algorithm>
#include <vector>

#include "base/thread_pool.h"
#include "ir/needed_operators.h"
#include "ir/op.h"
#include "ir/uses.h"
#include "prune/normal_equations.h"
#include "prune/sparse_weights.h"
#include "prune/walk.h"

namespace reef::prune {
namespace {

constexpr std::size_t kHeldBackEvery = 4;  // of four samples one checks the ridge

class Repair {
 public:
  Repair(const ir::Model& original, const KeptIndices& kept, const RepairOptions& options, ir::Model& pruned)
      : original_(original),
        kept_(kept),
        options_(options),
        pruned_(pruned),
        uses_(original),
        first_(original, options.threads, options.budget),
        second_(pruned, options.threads, options.budget),
        pool_(std::max(options.threads, 1)),
        needed_(ir::needed_operators(pruned.subgraphs[0])) {}

  Result<RepairReport> run(const data::SampleSource& source, std::span<const std::int64_t> samples) {
    REEF_RETURN_IF_ERROR(first_.start(source, samples));
    REEF_RETURN_IF_ERROR(second_.start(source, samples));
    const std::size_t count = original_.subgraphs[0].operators.size();
    for (std::size_t op = 0; op < count; ++op) {
      REEF_RETURN_IF_ERROR(first_.step(op));
      if (needed_[op]) {  // not of a block that is gone
        if (const auto layer = linear_layer(pruned_, op)) fit(*layer);
        REEF_RETURN_IF_ERROR(second_.step(op));
      }
      first_.forget_behind(op);
      second_.forget_behind(op);
      if (options_.progress) options_.progress(static_cast<std::int64_t>(op + 1), static_cast<std::int64_t>(count));
    }
    return report_;
  }

 private:
  // Neither the layer nor what it reads differs from the original.
  bool is_untouched(const LinearLayer& layer) const {
    const auto& before = original_.subgraphs[0].tensors;
    const auto& after = pruned_.subgraphs[0].tensors;
    const auto weights = static_cast<std::size_t>(layer.weights);
    if (before[weights].shape != after[weights].shape) return false;
    for (std::size_t s = 0; s < first_.samples(); ++s) {
      const auto a = first_.values(layer.input, s), b = second_.values(layer.input, s);
      if (!std::equal(a.begin(), a.end(), b.begin(), b.end())) return false;
    }
    return true;
  }

  // Elements of the original's tensor that the pruned one has: the axes before the last are whole.
  std::vector<float> kept_values(std::int32_t tensor, std::size_t sample) const {
    const std::span<const float> values = first_.values(tensor, sample);
    const std::vector<std::vector<bool>>& axes = kept_[at(tensor)];
    const std::vector<bool>& channels = axes.back();
    std::vector<float> result;
    result.reserve(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (channels[i % channels.size()]) result.push_back(values[i]);
    }
    return result;
  }

  bool has_whole_outer_axes(std::int32_t tensor) const {
    const std::vector<std::vector<bool>>& axes = kept_[at(tensor)];
    if (axes.empty()) return false;
    for (std::size_t axis = 0; axis + 1 < axes.size(); ++axis) {
      if (!std::all_of(axes[axis].begin(), axes[axis].end(), [](bool k) { return k; })) return false;
    }
    return true;
  }

  // The other operand of the sum that alone reads the layer's result, if it is known when the layer runs.
  std::int32_t stream_beside(const LinearLayer& layer) const {
    const std::int32_t reader = uses_.only_consumer(layer.output);
    if (reader < 0) return -1;
    const ir::Operator& sum = original_.subgraphs[0].operators[at(reader)];
    if (sum.type != Op::ADD || sum.inputs.size() != 2) return -1;
    const std::int32_t other = sum.inputs[0] == layer.output ? sum.inputs[1] : sum.inputs[0];
    if (other < 0 || other == layer.output) return -1;
    const auto& tensors = original_.subgraphs[0].tensors;
    const bool same_shape = tensors[at(other)].shape == tensors[at(layer.output)].shape;
    return same_shape && !first_.values(other, 0).empty() && !second_.values(other, 0).empty() ? other : -1;
  }

  std::vector<std::vector<float>> wanted_results(const LinearLayer& layer) const {
    std::vector<std::vector<float>> wanted;
    const std::int32_t stream = stream_beside(layer);
    for (std::size_t s = 0; s < first_.samples(); ++s) {
      wanted.push_back(kept_values(layer.output, s));
      if (stream < 0) continue;
      const std::vector<float> as_it_was = kept_values(stream, s);
      const std::span<const float> as_it_is = second_.values(stream, s);
      for (std::size_t i = 0; i < wanted[s].size(); ++i) wanted[s][i] += as_it_was[i] - as_it_is[i];
    }
    return wanted;
  }

  void fit(const LinearLayer& layer) {
    const bool makes_zeros = options_.zeros > 0;
    if (!uses_.has_one_use(layer.weights)) return;  // what is right for one of its layers is wrong for the others
    if (layer.columns() > kMostColumns) {
      ++report_.too_wide;
      return;
    }
    if (!has_whole_outer_axes(layer.output) || (!makes_zeros && is_untouched(layer))) return;
    const std::vector<std::vector<float>> wanted = wanted_results(layer);
    std::vector<std::size_t> solved_with, held_back;
    for (std::size_t s = 0; s < first_.samples(); ++s) {
      (s % kHeldBackEvery == kHeldBackEvery - 1 ? held_back : solved_with).push_back(s);
    }
    const SampleValues x = [&](std::size_t s) { return second_.values(layer.input, s); };
    const SampleValues y = [&](std::size_t s) { return std::span<const float>(wanted[s]); };
    std::vector<Matrix> weights;
    for (std::size_t g = 0; g < layer.groups; ++g) {
      const Matrix from = weights_of(pruned_, layer, g);
      NormalEquations equations = gather(layer, g, solved_with, x, y, pool_);
      const NormalEquations others = gather(layer, g, held_back, x, y, pool_);
      const double ridge = held_back.empty() ? 1e-2 : best_ridge(equations, others, from, layer.bias >= 0);
      equations.add(others);
      Matrix fitted = ridge_solution(equations, from, ridge, layer.bias >= 0);
      if (fitted.data.empty()) fitted = from;
      if (makes_zeros) {
        fitted = sparse_solution(equations, fitted, options_.zeros, layer.bias >= 0);
        count_zeros(fitted);
      }
      weights.push_back(std::move(fitted));
    }
    set_weights(pruned_, layer, weights);
    ++report_.repaired;
  }

  void count_zeros(const Matrix& w) {
    const auto end = w.data.end() - static_cast<std::ptrdiff_t>(w.columns);
    report_.zeros += std::count(w.data.begin(), end, 0.0);
    report_.weights += end - w.data.begin();
  }

  const ir::Model& original_;
  const KeptIndices& kept_;
  const RepairOptions& options_;
  ir::Model& pruned_;
  const ir::Uses uses_;
  Walk first_, second_;  // of the original and of the pruned model
  ThreadPool pool_;
  const std::vector<bool> needed_;  // operators of the pruned model
  RepairReport report_;
};

}  // namespace

Result<RepairReport> repair(const ir::Model& original, const KeptIndices& kept, const data::SampleSource& source,
                            std::span<const std::int64_t> samples, const RepairOptions& options, ir::Model& pruned) {
  return Repair(original, kept, options, pruned).run(source, samples);
}

}  // namespace reef::prune
