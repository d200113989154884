// SPDX-License-Identifier: Apache-2.0
// matmul/byte_panels.h: weights packed for the tile loops, and what their sums begin with.
#include <cmath>
#include <type_traits>

#include "kernels/matmul/byte_panels.h"
#include "numeric/fixed_point.h"

namespace reef::kernels {

// Whether weights are split, and by how much: what takes the fewest instructions, reckoned for a vector of sums and
// four products each.
void BytePanels::choose_split(const std::function<void(std::int64_t, std::int16_t*)>& row) {
  constexpr double kOfPairs = 4.3;  // two multiplications, two additions, and their part of widening weights
  constexpr double kExtra = 3.5;
  constexpr std::int64_t kMostExtras = 10;  // at most one of so many steps: packed weights must not grow
  constexpr std::int64_t kFewestSteps = 4;
  const std::int64_t steps = lines * ((line_depth + kSplitGroup - 1) / kSplitGroup);
  const bool has_pairs = target == SimdTarget::kSse4 || target == SimdTarget::kAvx2;
  if (!has_pairs || steps < kFewestSteps) return;
  double least = kOfPairs * static_cast<double>(matrices * panels() * steps);
  std::vector<std::int16_t> rows(static_cast<std::size_t>(panel_columns * depth()));
  for (const std::int64_t block : {8, 4, 2}) {
    const auto per_step = 2.0 + 2.0 / static_cast<double>(block);
    std::int64_t extras = 0, all_steps = 0;
    const auto is_too_much = [&] { return extras * kMostExtras > matrices * panels() * steps; };
    for (std::int64_t i = 0; i < matrices * panels() && !is_too_much(); ++i) {
      const std::int64_t matrix = i / panels(), first = i % panels() * panel_columns;
      const std::int64_t count = std::min(panel_columns, columns - first);
      for (std::int64_t c = 0; c < count; ++c) row(matrix * columns + first + c, rows.data() + c * depth());
      const SplitPanel panel = split_panel(rows.data(), count, lines, line_depth, block);
      extras += static_cast<std::int64_t>(panel.extra_steps.size());
      all_steps += steps;
    }
    const double cost = per_step * static_cast<double>(all_steps) + kExtra * static_cast<double>(extras);
    if (is_too_much() || cost >= least) continue;
    least = cost;
    block_steps = block;
  }
  if (block_steps != 0) group = kSplitGroup;
}

void BytePanels::add_split(std::int64_t matrix, std::int64_t index, const std::int16_t* rows) {
  const std::int64_t columns_of_panel = width(index), first = index * panel_columns;
  // In the order of the panel; columns that are not there have weights of 0.
  std::vector<std::int16_t> placed(static_cast<std::size_t>(columns_of_panel * depth()));
  for (std::int64_t c = first; c < std::min(first + panel_columns, columns); ++c) {
    const std::int16_t* from = rows + (c - first) * depth();
    std::copy_n(from, depth(), placed.data() + place_in_panel(c) * depth());
    add_sums(matrix, c, from);
  }
  const SplitPanel panel = split_panel(placed.data(), columns_of_panel, lines, line_depth, block_steps);
  std::copy(panel.values.begin(), panel.values.end(),
            values.begin() + (matrix * padded_columns() + first) * padded_depth());
  extra_steps.insert(extra_steps.end(), panel.extra_steps.begin(), panel.extra_steps.end());
  extra_values.insert(extra_values.end(), panel.extra_values.begin(), panel.extra_values.end());
  extra_begins.push_back(static_cast<std::int64_t>(extra_steps.size()));
  extra_values_begins.push_back(static_cast<std::int64_t>(extra_values.size()));
}

void BytePanels::pack(const std::function<void(std::int64_t, std::int16_t*)>& row, bool has_sums) {
  if (!has_sums) choose_split(row);
  values.resize(static_cast<std::size_t>(matrices * padded_columns() * padded_depth()));
  sums.resize(static_cast<std::size_t>(matrices * columns));
  magnitudes.resize(sums.size());
  zero_points.resize(static_cast<std::size_t>(matrices * panels()));
  has_lowest.resize(zero_points.size());
  if (target == SimdTarget::kAvx512 && !has_sums && columns <= kMostFewColumns && depth() >= kFewestFewProducts) {
    few.resize(static_cast<std::size_t>(matrices * columns * lines * few_line()));
  }
  extra_begins.assign(1, 0);
  extra_values_begins.assign(1, 0);
  std::vector<std::int16_t> rows(static_cast<std::size_t>(panel_columns * depth()));
  for (std::int64_t i = 0; i < matrices * panels(); ++i) {
    const std::int64_t matrix = i / panels(), first = i % panels() * panel_columns;
    const std::int64_t count = std::min(panel_columns, columns - first);
    for (std::int64_t c = 0; c < count; ++c) row(matrix * columns + first + c, rows.data() + c * depth());
    if (block_steps != 0) {
      add_split(matrix, i % panels(), rows.data());
      continue;
    }
    const auto [least, most] = std::minmax_element(rows.begin(), rows.begin() + count * depth());
    const bool fits = depth() == 0 || (*least >= -128 && *most <= 127);
    zero_points[static_cast<std::size_t>(i)] = fits ? 0 : *least < -128 ? -128 - *least : 127 - *most;
    for (std::int64_t c = 0; c < count; ++c) set_column(matrix, first + c, rows.data() + c * depth());
  }
}

// Adds up a column's values as they are stored.
void BytePanels::add_sums(std::int64_t matrix, std::int64_t column, const std::int16_t* from) {
  const std::int32_t added = zero_point(matrix, column / panel_columns);
  std::uint32_t sum = 0;
  std::int64_t magnitude = 0;
  for (std::int64_t k = 0; k < depth(); ++k) {
    magnitude += std::abs(from[k]);
    sum += static_cast<std::uint32_t>(from[k] + added);
    if (from[k] + added == -128) has_lowest[static_cast<std::size_t>(matrix * panels() + column / panel_columns)] = 1;
  }
  sums[static_cast<std::size_t>(matrix * columns + column)] = static_cast<std::int32_t>(sum);
  magnitudes[static_cast<std::size_t>(matrix * columns + column)] = static_cast<float>(magnitude);
}

void BytePanels::set_column(std::int64_t matrix, std::int64_t column, const std::int16_t* from) {
  const std::int64_t index = column / panel_columns, step = width(index) * group;
  add_sums(matrix, column, from);
  std::int8_t* to = values.data() + (matrix * padded_columns() + index * panel_columns) * padded_depth() +
                    place_in_panel(column) * group;
  for (std::int64_t line = 0; line < lines; ++line, to += line_steps() * step) {
    std::int8_t* const in_order =
        few.empty() ? nullptr : few.data() + ((matrix * columns + column) * lines + line) * few_line();
    for (std::int64_t k = 0; k < line_depth; ++k, ++from) {
      const auto value = static_cast<std::int8_t>(*from + zero_point(matrix, index));
      to[k / group * step + k % group] = value;
      if (in_order != nullptr) in_order[k] = value;
    }
  }
}

template <typename T>
ByteScaling byte_scaling(const BytePanels& weights, const std::shared_ptr<const Requantizer>& exact,
                         const std::int64_t* bias, std::int32_t input_zero_point) {
  const std::int64_t channels = weights.matrices * weights.columns;
  const std::int32_t row_zero = zero_in_rows<T>(weights, input_zero_point);
  const std::int32_t row_of_zeros = numeric::wrapping_mul(static_cast<std::int32_t>(weights.depth()), row_zero);
  std::vector<ChannelSums> sums;
  for (std::int64_t i = 0; i < channels; ++i) {
    const auto c = static_cast<std::size_t>(i);
    const auto added = static_cast<std::int32_t>(bias != nullptr ? bias[i] : 0);
    const std::int32_t zero_point =
        weights.zero_point(i / weights.columns, i % weights.columns / weights.panel_columns);
    const std::int32_t start =
        numeric::wrapping_add(numeric::wrapping_sub(added, numeric::wrapping_mul(row_zero, weights.sums[c])),
                              numeric::wrapping_mul(row_of_zeros, zero_point));
    const std::int64_t column = i % weights.columns;
    const std::int64_t slot =
        weights.panel_slot(i / weights.columns, column / weights.panel_columns) + weights.place_in_panel(column);
    sums.push_back(
        {start, 255.0 * static_cast<double>(weights.magnitudes[c]) + std::abs(static_cast<double>(added)), i, slot});
  }
  return make_byte_scaling(exact, sums, weights.slots());
}

template ByteScaling byte_scaling<std::int8_t>(const BytePanels&, const std::shared_ptr<const Requantizer>&,
                                               const std::int64_t*, std::int32_t);
template ByteScaling byte_scaling<std::uint8_t>(const BytePanels&, const std::shared_ptr<const Requantizer>&,
                                                const std::int64_t*, std::int32_t);

}  // namespace reef::kernels
