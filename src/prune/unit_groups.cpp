// SPDX-License-Identifier: Apache-2.0
#include "prune/unit_groups.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace reef::prune {
namespace {

using LayerSets = std::pair<std::set<std::size_t>, std::set<std::size_t>>;  // producers, consumers

// How many channels of one unit a layer computes beside each other, on average: all of a head's, where heads are the
// units; one, where a unit is a place within every head, and so are its channels one in each of them.
std::int64_t adjacent_channels(const LinearLayer& layer, const Axes& axes, const std::vector<std::int32_t>& units) {
  std::int64_t channels = 0, rows = 0;
  std::int32_t before = -1;
  for (std::int32_t i = 0; i < axes.size(layer.weights, layer.output_axis); ++i) {
    const std::int32_t unit = axes.unit(layer.weights, layer.output_axis, i);
    if (std::binary_search(units.begin(), units.end(), unit)) {
      ++channels;
      rows += unit != before ? 1 : 0;
    }
    before = unit;
  }
  return std::max<std::int64_t>(1, channels / std::max<std::int64_t>(1, rows));
}

}  // namespace

std::vector<UnitGroup> unit_groups(const ir::Model& model, const Axes& axes, const std::vector<LinearLayer>& layers) {
  std::map<std::int32_t, LayerSets> by_unit;
  for (std::size_t n = 0; n < layers.size(); ++n) {
    const LinearLayer& layer = layers[n];
    for (std::int32_t i = 0; i < axes.size(layer.weights, layer.output_axis); ++i) {
      by_unit[axes.unit(layer.weights, layer.output_axis, i)].first.insert(n);
    }
    if (layer.kind == LinearLayer::Kind::kDepthwise) continue;
    for (std::int32_t i = 0; i < axes.size(layer.weights, layer.input_axis); ++i) {
      by_unit[axes.unit(layer.weights, layer.input_axis, i)].second.insert(n);
    }
  }
  std::map<LayerSets, std::vector<std::int32_t>> by_layers;
  for (const auto& [unit, sets] : by_unit) {
    if (!axes.is_fixed(unit) && !sets.first.empty()) by_layers[sets].push_back(unit);
  }
  std::vector<UnitGroup> result;
  for (const auto& [sets, units] : by_layers) {
    if (units.size() < 2) continue;
    UnitGroup group;
    group.units = units;
    group.producers.assign(sets.first.begin(), sets.first.end());
    group.consumers.assign(sets.second.begin(), sets.second.end());
    const LinearLayer& first = layers[group.producers.front()];
    group.name = model.subgraphs[0].tensors[reef::at(first.output)].name;
    group.channels_each = adjacent_channels(first, axes, units);
    result.push_back(std::move(group));
  }
  return result;
}

std::vector<std::vector<std::size_t>> columns_of(const LinearLayer& layer, const Axes& axes,
                                                 const std::vector<std::int32_t>& units) {
  std::vector<std::vector<std::size_t>> result(units.size());
  if (layer.kind == LinearLayer::Kind::kDepthwise) return result;
  for (std::size_t c = 0; c < layer.inputs; ++c) {
    const std::int32_t unit = axes.unit(layer.weights, layer.input_axis, static_cast<std::int32_t>(c));
    const auto found = std::lower_bound(units.begin(), units.end(), unit);
    if (found == units.end() || *found != unit) continue;
    for (std::size_t at = 0; at < layer.window; ++at) {
      result[reef::at(found - units.begin())].push_back(layer.column(at, c));
    }
  }
  return result;
}

}  // namespace reef::prune
