// SPDX-License-Identifier: Apache-2.0
// The part of a study that runs the original once and says in which order the units of each group go.
#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "base/thread_pool.h"
#include "prune/normal_equations.h"
#include "prune/removal_order.h"
#include "prune/study.h"
#include "prune/walk.h"

namespace reef::prune {
namespace {

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

// A tensor's mean over everything but its last axis.
std::vector<float> channel_means(const Walk& walk, const ir::Model& model, std::int32_t tensor) {
  const auto channels = static_cast<std::size_t>(model.subgraphs[0].tensors[at(tensor)].shape.last());
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

// Variance of each channel of a layer's results.
std::vector<double> channel_variances(const Walk& walk, const LinearLayer& layer) {
  const std::size_t channels = layer.groups * layer.outputs;
  std::vector<double> sums(channels, 0), squares(channels, 0), result;
  double rows = 0;
  for (std::size_t s = 0; s < walk.samples(); ++s) {
    const std::span<const float> y = walk.values(layer.output, s);
    for (std::size_t i = 0; i < y.size(); ++i) {
      sums[i % channels] += y[i];
      squares[i % channels] += static_cast<double>(y[i]) * y[i];
    }
    rows += static_cast<double>(y.size() / channels);
  }
  for (std::size_t c = 0; c < channels; ++c) {
    result.push_back(std::max(0.0, squares[c] / rows - sums[c] / rows * sums[c] / rows));
  }
  return result;
}

}  // namespace

// The matrices of all layers are kept until the last trial; where memory has no room for all, the widest layers are not
// looked at, and the other readers of their channels decide.
void Study::leave_out_widest(std::vector<bool>& is_read) {
  const auto bytes_of = [&](std::size_t n) {
    const auto width = static_cast<double>(layers_[n].columns() + 1);
    return 8 * width * width * static_cast<double>(layers_[n].groups);
  };
  double sum = 0;
  for (std::size_t n = 0; n < layers_.size(); ++n) sum += is_read[n] ? bytes_of(n) : 0;
  while (sum > options_.memory_bytes) {
    std::size_t widest = layers_.size();
    for (std::size_t n = 0; n < layers_.size(); ++n) {
      if (is_read[n] && (widest == layers_.size() || bytes_of(n) > bytes_of(widest))) widest = n;
    }
    if (widest == layers_.size()) return;
    is_read[widest] = false;
    sum -= bytes_of(widest);
    notes_.push_back(fmt::format("op {} is too wide to be looked at within the memory; more memory gives better models",
                                 layers_[widest].op));
  }
}

// Runs the original once and gathers what orders and trials need.
Status Study::gather_layers() {
  std::vector<bool> is_read(layers_.size(), false), is_made(layers_.size(), false);
  for (const StudiedGroup& each : groups_) {
    for (const std::size_t n : each.group.consumers) is_read[n] = layers_[n].columns() <= kMostColumns;
    for (const std::size_t n : each.group.producers) is_made[n] = true;
  }
  leave_out_widest(is_read);
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
      if (is_made[n]) variances_[n] = channel_variances(walk, layer);
    }
    for (StudiedBlock& each : blocks_) {
      if (each.block.ops.back() == op) each.block.mean = channel_means(walk, model_, each.block.branch);
    }
    walk.forget_behind(op);
    tell("looking at layers", op + 1, count);
  }
  return ok_status();
}

// The order by what the layers that read the units cannot make up for.
std::vector<std::size_t> Study::order_by_readers(const UnitGroup& group) const {
  std::vector<Reader> readers;
  for (const std::size_t n : group.consumers) {
    const std::vector<std::vector<std::size_t>> columns = columns_of(layers_[n], *axes_, group.units);
    for (std::size_t g = 0; g < grams_[n].size(); ++g) {
      Matrix weights = weights_of(model_, layers_[n], g);
      weights.data.resize(weights.data.size() - weights.columns);  // without the bias
      --weights.rows;
      readers.push_back({centred(grams_[n][g]), std::move(weights), columns});
    }
  }
  return readers.empty() ? std::vector<std::size_t>() : removal_order(std::move(readers), group.units.size());
}

// The order of units that no layer reads, both operands of a product of activations (queries and keys): what a unit
// adds to that is the product of its values.
std::vector<std::size_t> Study::order_by_power(const UnitGroup& group) const {
  const std::vector<std::int32_t>& units = group.units;
  std::vector<double> power(units.size(), 1);
  for (const std::size_t n : group.producers) {
    const LinearLayer& layer = layers_[n];
    std::vector<double> of_layer(units.size(), 0);
    for (std::size_t c = 0; c < variances_[n].size(); ++c) {
      const std::int32_t unit = axes_->unit(layer.weights, layer.output_axis, static_cast<std::int32_t>(c));
      const auto found = std::lower_bound(units.begin(), units.end(), unit);
      if (found == units.end() || *found != unit) continue;
      of_layer[at(found - units.begin())] += variances_[n][c];
    }
    for (std::size_t u = 0; u < units.size(); ++u) power[u] *= of_layer[u];
  }
  std::vector<std::size_t> order(units.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return power[a] < power[b]; });
  return order;
}

Status Study::order_groups() {
  REEF_RETURN_IF_ERROR(gather_layers());
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    StudiedGroup& each = groups_[i];
    each.order = order_by_readers(each.group);
    if (each.order.empty()) each.order = order_by_power(each.group);
    REEF_RETURN_IF_ERROR(options_.budget.check("pruning"));
    tell("ordering channels", i + 1, groups_.size());
  }
  return ok_status();
}

}  // namespace reef::prune
