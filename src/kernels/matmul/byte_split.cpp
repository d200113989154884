// SPDX-License-Identifier: Apache-2.0
#include "kernels/matmul/byte_split.h"

#include <algorithm>

namespace reef::kernels {
namespace {

constexpr int kMostOfOneSign = 128;

// Chooses the weights of one column that are added up in 16 bits, one sign after the other. Steps with the smallest
// come first; those that do not fit any more are left out (0). A weight of 128 does not fit into a byte.
void keep_what_fits(const std::int16_t* weights, std::int64_t count, int sign, std::int8_t* kept) {
  struct Step {
    std::int64_t first;
    int total;
  };
  std::vector<Step> steps;
  for (std::int64_t first = 0; first < count; first += kSplitGroup) {
    Step step{first, 0};
    for (std::int64_t i = first; i < std::min(first + kSplitGroup, count); ++i) {
      const int magnitude = sign * weights[i];
      step.total += magnitude == kMostOfOneSign ? 2 * kMostOfOneSign : std::max(magnitude, 0);
    }
    steps.push_back(step);
  }
  std::stable_sort(steps.begin(), steps.end(), [](const Step& a, const Step& b) { return a.total < b.total; });
  int total = 0;
  for (const Step& step : steps) {
    total += step.total;
    if (total > kMostOfOneSign) return;
    for (std::int64_t i = step.first; i < std::min(step.first + kSplitGroup, count); ++i) {
      if (sign * weights[i] > 0) kept[i] = static_cast<std::int8_t>(weights[i]);
    }
  }
}

// The weights of a column's block that are added up in 16 bits; 0 for the others.
void split_block(const std::int16_t* weights, std::int64_t count, std::int8_t* kept) {
  int positive = 0, negative = 0, largest = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    positive += std::max<int>(weights[i], 0);
    negative += std::min<int>(weights[i], 0);
    largest = std::max<int>(largest, weights[i]);
  }
  if (positive <= kMostOfOneSign && negative >= -kMostOfOneSign && largest < kMostOfOneSign) {
    for (std::int64_t i = 0; i < count; ++i) kept[i] = static_cast<std::int8_t>(weights[i]);
    return;
  }
  keep_what_fits(weights, count, 1, kept);
  keep_what_fits(weights, count, -1, kept);
}

// As much of two weights as one instruction adds exactly; returns whether nothing is left of them.
bool take_pair(std::int16_t* left, std::int8_t* to) {
  const int first = std::clamp<int>(left[0], -128, 127);
  const int second = std::clamp<int>(left[1], std::max(-kMostOfOneSign - std::min(first, 0), -128),
                                     std::min(kMostOfOneSign - std::max(first, 0), 127));
  to[0] = static_cast<std::int8_t>(first);
  to[1] = static_cast<std::int8_t>(second);
  left[0] = static_cast<std::int16_t>(left[0] - first);
  left[1] = static_cast<std::int16_t>(left[1] - second);
  return left[0] == 0 && left[1] == 0;
}

}  // namespace

SplitPanel split_panel(const std::int16_t* weights, std::int64_t columns, std::int64_t lines, std::int64_t line_depth,
                       std::int64_t block_steps) {
  const std::int64_t steps = (line_depth + kSplitGroup - 1) / kSplitGroup, block = block_steps * kSplitGroup;
  const std::int64_t padded = steps * kSplitGroup, step_bytes = columns * kSplitGroup;
  SplitPanel result;
  result.values.resize(static_cast<std::size_t>(lines * steps * step_bytes));
  std::vector<std::int8_t> kept(static_cast<std::size_t>(columns * padded));
  std::vector<std::int16_t> left(kept.size());  // [step][column][4]
  for (std::int64_t line = 0; line < lines; ++line) {
    std::fill(kept.begin(), kept.end(), std::int8_t{0});
    std::fill(left.begin(), left.end(), std::int16_t{0});
    std::vector<bool> has_more(static_cast<std::size_t>(steps));
    for (std::int64_t column = 0; column < columns; ++column) {
      const std::int16_t* from = weights + (column * lines + line) * line_depth;
      std::int8_t* const to = kept.data() + column * padded;
      for (std::int64_t k = 0; k < line_depth; k += block)
        split_block(from + k, std::min(block, line_depth - k), to + k);
      for (std::int64_t k = 0; k < line_depth; ++k) {
        const std::int64_t step = k / kSplitGroup, at = step * step_bytes + column * kSplitGroup + k % kSplitGroup;
        result.values[static_cast<std::size_t>(line * steps * step_bytes + at)] = to[k];
        left[static_cast<std::size_t>(at)] = static_cast<std::int16_t>(from[k] - to[k]);
        if (from[k] != to[k]) has_more[static_cast<std::size_t>(step)] = true;
      }
    }
    for (std::int64_t step = 0; step < steps; ++step) {
      for (bool more = has_more[static_cast<std::size_t>(step)]; more;) {
        const std::size_t begin = result.extra_values.size();
        result.extra_values.resize(begin + static_cast<std::size_t>(step_bytes));
        result.extra_steps.push_back({static_cast<std::int32_t>(line), static_cast<std::int32_t>(step)});
        more = false;
        for (std::int64_t i = 0; i < step_bytes; i += 2) {
          more = !take_pair(left.data() + step * step_bytes + i,
                            result.extra_values.data() + begin + static_cast<std::size_t>(i)) ||
                 more;
        }
      }
    }
  }
  return result;
}

}  // namespace reef::kernels
