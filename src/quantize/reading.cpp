// SPDX-License-Identifier: Apache-2.0
#include "quantize/reading.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>
#include <numeric>
#include <set>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "ops/registry.h"
#include "quantize/graph_constants.h"

namespace reef::quantize {
namespace {

constexpr double kBestDb = 120;                // equal outputs would be infinitely good
constexpr double kThresholds[] = {0.25, 0.5};  // at which scores are read: detectors' usual one, and that of masks
constexpr double kLogitThresholds[] = {-1.0986122886681098, 0};  // the same in front of a sigmoid
constexpr std::int64_t kMostClasses = 100'000;                   // a longer row is no list of classes
constexpr double kClearDb = 20;                                  // a view above may lose some of it if others gain
constexpr double kChance = 1.2;               // standard errors: a single sample that changes is chance
constexpr double kNoticedDb = 0.5;            // smaller losses of one view do not matter
constexpr double kLeastAgreement = 0.8;       // of classes
constexpr double kLeastKept = 0.5;            // of scores
constexpr double kEnoughAsked = 8;            // fewer rows or scores say nothing
constexpr std::int64_t kMostSelected = 1000;  // rows that are matched with each other
constexpr double kSmallShift = 0.1;           // of a score or probability, which changes no decision
constexpr double kSmallMisread = 0.02;        // mean error of scores that are looked at, below which none matters
constexpr std::size_t kOneIn = 256;           // of a sample's scores, the largest are looked at whatever they are

// The operator that makes the values of an output, in front of operators that only move them.
const ir::Operator* maker_of(const ir::Model& model, const ir::Uses& index, std::int32_t t) {
  for (int depth = 0; depth < 8; ++depth) {
    const std::int32_t producer = index.producer(t);
    if (producer < 0) return nullptr;
    const ir::Operator& op = model.subgraphs[0].operators[reef::at(producer)];
    const bool only_moves = ops::has_same_bytes(op);
    if (!only_moves || op.inputs.empty() || op.inputs[0] < 0) return &op;
    t = op.inputs[0];
  }
  return nullptr;
}

bool lies_between_0_and_1(const Outputs& reference, std::size_t output) {
  return std::all_of(reference.begin(), reference.end(), [&](const auto& sample) {
    return std::all_of(sample[output].begin(), sample[output].end(), [](float v) { return v >= 0 && v <= 1; });
  });
}

// Whether one element of a row stands out, as that of a class does. The largest of a thousand coordinates (landmarks of
// a face) is hardly larger than the next, and which of them it is says nothing: of rows of random numbers, the lead is
// some 10 % of the way from the mean to the largest, of coordinates below 1 %.
bool has_clear_largest(const Outputs& reference, std::size_t output) {
  constexpr double kLead = 0.01;
  std::size_t clear = 0, rows = 0;
  for (const auto& sample : reference) {
    std::vector<float> row = sample[output];
    if (row.size() < 2) continue;
    const double mean = std::accumulate(row.begin(), row.end(), 0.0) / static_cast<double>(row.size());
    std::nth_element(row.begin(), row.begin() + 1, row.end(), std::greater<>());
    if (!(row[0] > mean)) continue;  // all are the same
    ++rows;
    clear += row[0] - row[1] >= kLead * (row[0] - mean) ? 1 : 0;
  }
  return 2 * clear >= rows;
}

// Whether an output looks like a detector's scores in front of a sigmoid: many values, nearly all of them clearly below
// 0, and a few above. It is a guess: such a view may veto a change, but no output is given up by it.
bool looks_like_logits(const Outputs& reference, std::size_t output) {
  constexpr std::size_t kFewest = 64;                           // of a sample
  constexpr double kClearlyNo = -4, kMeanNo = -2, kRare = 0.1;  // sigmoid(-4) is 0.018
  double count = 0, sum = 0, above = 0, likely = 0, least = 0;
  for (const auto& sample : reference) {
    if (sample[output].size() < kFewest) return false;
    for (const float v : sample[output]) {
      if (!std::isfinite(v)) return false;
      ++count;
      sum += v;
      above += v > kLogitThresholds[0] ? 1 : 0;
      likely += v > kLogitThresholds[1] ? 1 : 0;
      least = std::min<double>(least, v);
    }
  }
  return likely > 0 && above < kRare * count && sum < kMeanNo * count && least < kClearlyNo;
}

// Whether an output's elements stand in an order that a selection of the largest gave them.
bool is_selected(const ir::Model& model, const ir::Uses& index, std::int32_t output) {
  std::vector<std::int32_t> open = {output};
  std::set<std::int32_t> seen;
  while (!open.empty()) {
    const std::int32_t producer = index.producer(open.back());
    open.pop_back();
    if (producer < 0 || !seen.insert(producer).second) continue;
    const ir::Operator& op = model.subgraphs[0].operators[reef::at(producer)];
    if (op.type == Op::TOPK_V2) return true;
    for (const std::int32_t t : op.inputs) {
      if (t >= 0) open.push_back(t);
    }
  }
  return false;
}

// Rows of `values` in the order in which they are most like those of `like`; greedily, which is enough where most rows
// have one that is far nearer than all others.
std::vector<float> matched(const std::vector<float>& like, const std::vector<float>& values, std::int64_t row) {
  const auto size = static_cast<std::size_t>(row);
  const std::size_t rows = std::min(like.size(), values.size()) / size;
  std::vector<float> result = values;
  std::vector<bool> used(rows, false);
  for (std::size_t r = 0; r < rows; ++r) {
    double nearest = std::numeric_limits<double>::infinity();
    std::size_t best = r;
    for (std::size_t candidate = 0; candidate < rows; ++candidate) {
      if (used[candidate]) continue;
      double distance = 0;
      for (std::size_t i = 0; i < size && distance < nearest; ++i) {
        const double difference = static_cast<double>(like[r * size + i]) - values[candidate * size + i];
        distance += difference * difference;
      }
      if (distance < nearest) nearest = distance, best = candidate;
    }
    used[best] = true;
    std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(best * size), size,
                result.begin() + static_cast<std::ptrdiff_t>(r * size));
  }
  return result;
}

void count_same_classes(const View& view, const std::vector<float>& a, const std::vector<float>& b, double& agreed,
                        double& asked) {
  const auto row = static_cast<std::size_t>(view.row);
  const std::size_t size = std::min(a.size(), b.size());
  for (std::size_t at = 0; at + row <= size; at += row) {
    const auto largest = [&](const std::vector<float>& values) {
      const auto begin = values.begin() + static_cast<std::ptrdiff_t>(at);
      return std::max_element(begin, begin + static_cast<std::ptrdiff_t>(row)) - begin;
    };
    agreed += largest(a) == largest(b) ? 1 : 0;
    ++asked;
  }
}

void count_same_scores(std::span<const double> thresholds, const std::vector<float>& a, const std::vector<float>& b,
                       double& agreed, double& asked) {
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    for (const double threshold : thresholds) {
      const bool in_a = a[i] > threshold, in_b = b[i] > threshold;
      agreed += in_a && in_b ? 1 : 0;
      asked += in_a || in_b ? 1 : 0;
    }
  }
}

// What a score says: the share from 0 to 1 that a user takes it for.
double as_share(const View& view, float value) {
  return view.read_as == ReadAs::kLogits ? 1 / (1 + std::exp(-static_cast<double>(value))) : value;
}

// Power of the error of the scores that somebody may look at, in the one or the other model, and how many they are.
std::pair<double, double> misread_scores(const View& view, const std::vector<float>& a, const std::vector<float>& b) {
  if (a.empty() || a.size() != b.size()) return {0, 0};
  std::vector<float> largest = a;
  const auto place = largest.begin() + static_cast<std::ptrdiff_t>(a.size() / kOneIn);
  std::nth_element(largest.begin(), place, largest.end(), std::greater<>());
  const double least = std::min(as_share(view, *place), kThresholds[0]);
  double power = 0, count = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double of_a = as_share(view, a[i]), of_b = std::isfinite(b[i]) ? as_share(view, b[i]) : -1;
    if (of_a < least && of_b < least) continue;
    power += (of_a - of_b) * (of_a - of_b);
    ++count;
  }
  return {power, count};
}

double sum(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

// Standard error of the difference of two ratios sum(x) / sum(y), taken from how far each sample moves it.
double error_of_difference(const ViewError& before, const ViewError& after) {
  const double asked_before = sum(before.asked), asked_after = sum(after.asked);
  double variance = 0;
  for (std::size_t s = 0; s < std::min(before.agreed.size(), after.agreed.size()); ++s) {
    const double moved = (after.agreed[s] - after.agreement * after.asked[s]) / asked_after -
                         (before.agreed[s] - before.agreement * before.asked[s]) / asked_before;
    variance += moved * moved;
  }
  return std::sqrt(variance);
}

// Likewise of the difference in dB of two powers, each a sum over samples.
double error_of_db(const std::vector<double>& before, const std::vector<double>& after) {
  const double old_sum = sum(before), new_sum = sum(after);
  if (old_sum <= 0 || new_sum <= 0) return 0;
  double variance = 0;
  for (std::size_t s = 0; s < std::min(before.size(), after.size()); ++s) {
    const double moved = before[s] / old_sum - after[s] / new_sum;
    variance += moved * moved;
  }
  return 10 / std::numbers::ln10 * std::sqrt(variance);
}

// Why the scores that are looked at are worse, in words; empty: they are not, or by chance, or by too little.
std::string why_misread(const ViewError& before, const ViewError& after) {
  const double old_power = sum(before.misread), new_power = sum(after.misread);
  const double old_count = sum(before.read), new_count = sum(after.read);
  if (old_count <= 0 || new_count <= 0) return {};
  const double old_error = std::sqrt(old_power / old_count), new_error = std::sqrt(new_power / new_count);
  if (new_error < kSmallMisread || new_power <= old_power) return {};
  const double loss = old_power > 0 ? 10 * std::log10(new_power / old_power) : kBestDb;
  if (loss <= std::max(kNoticedDb, error_of_db(before.misread, after.misread))) return {};
  return fmt::format("output {}: its largest scores are off by {:.3f}, by {:.3f} before", after.view.output, new_error,
                     old_error);
}

// Scores or probabilities that are off by so little that no decision changes.
bool is_hardly_shifted(const ViewError& error) {
  const bool is_share = error.view.read_as == ReadAs::kScores || error.view.is_another;
  return is_share && error.largest_error < kSmallShift;
}

}  // namespace

std::vector<View> views_of(const ir::Model& model, const Outputs& reference) {
  const ir::Subgraph& graph = model.subgraphs[0];
  const ir::Uses index(model);
  std::vector<View> views;
  for (std::size_t o = 0; o < graph.outputs.size(); ++o) {
    View view;
    view.output = o;
    const ir::Shape& shape = graph.tensors[reef::at(graph.outputs[o])].shape;
    const ir::Operator* maker = maker_of(model, index, graph.outputs[o]);
    const std::int64_t elements = reference.empty() ? 0 : static_cast<std::int64_t>(reference[0][o].size());
    const std::int64_t last = shape.rank() > 0 ? shape[shape.rank() - 1] : 1;
    const bool is_probabilities = maker != nullptr && (maker->type == Op::SOFTMAX || maker->type == Op::LOG_SOFTMAX);
    const bool has_rows = last >= 2 && last <= kMostClasses && elements % last == 0;
    if (has_rows && (is_probabilities || (elements == last && has_clear_largest(reference, o)))) {
      view.read_as = ReadAs::kClasses;
      view.row = last;
    } else if (elements >= 1 && lies_between_0_and_1(reference, o)) {
      view.read_as = ReadAs::kScores;
    } else if (!reference.empty() && looks_like_logits(reference, o)) {
      view.read_as = ReadAs::kLogits;
    }
    if (last >= 1 && elements % last == 0 && elements / last > 1 && elements / last <= kMostSelected &&
        is_selected(model, index, graph.outputs[o])) {
      view.selected_row = last;
      // Which of the boxes that nobody looks at are among the selected is chance.
      view.is_read = view.read_as != ReadAs::kNumbers;
    }
    views.push_back(view);
  }
  return views;
}

ViewError look_at(const View& view, const Outputs& reference, const Outputs& outputs) {
  ViewError error;
  error.view = view;
  double total = 0, squares = 0, noise = 0, count = 0;
  for (std::size_t s = 0; s < reference.size(); ++s) {
    const std::vector<float>& a = reference[s][view.output];
    const std::vector<float> b =
        view.selected_row > 0 ? matched(a, outputs[s][view.output], view.selected_row) : outputs[s][view.output];
    const double before = noise;
    for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
      total += a[i];
      squares += static_cast<double>(a[i]) * a[i];
      const double difference = std::isfinite(b[i]) ? static_cast<double>(a[i]) - b[i] : 1e6;
      noise += difference * difference;
      error.largest_error = std::max(error.largest_error, std::abs(difference));
      ++count;
    }
    error.noise.push_back(noise - before);
    double agreed = 0, asked = 0;
    if (view.read_as == ReadAs::kClasses) count_same_classes(view, a, b, agreed, asked);
    if (view.read_as == ReadAs::kScores) count_same_scores(kThresholds, a, b, agreed, asked);
    if (view.read_as == ReadAs::kLogits) count_same_scores(kLogitThresholds, a, b, agreed, asked);
    if (view.read_as == ReadAs::kScores || view.read_as == ReadAs::kLogits) {
      const auto [power, looked_at] = misread_scores(view, a, b);
      error.misread.push_back(power);
      error.read.push_back(looked_at);
    }
    error.agreed.push_back(agreed);
    error.asked.push_back(asked);
  }
  if (const double asked = sum(error.asked); asked > 0) error.agreement = sum(error.agreed) / asked;
  const double signal = count > 0 ? squares - total * total / count : 0;
  error.sqnr_db = count == 0 || noise <= 0 ? kBestDb
                  : signal <= 0            ? -kBestDb
                                           : std::clamp(10 * std::log10(signal / noise), -kBestDb, kBestDb);
  return error;
}

std::string why_worse(const std::vector<ViewError>& before, const std::vector<ViewError>& after) {
  for (std::size_t i = 0; i < std::min(before.size(), after.size()); ++i) {
    const ViewError &a = before[i], &b = after[i];
    if (!a.view.is_read) continue;
    if (a.agreement >= 0 && b.agreement >= 0 && b.agreement < a.agreement &&
        a.agreement - b.agreement > kChance * error_of_difference(a, b)) {
      return fmt::format("output {}: {:.1f} % of {} are the same, {:.1f} % before", a.view.output, 100 * b.agreement,
                         a.view.read_as == ReadAs::kClasses ? "classes" : "scores", 100 * a.agreement);
    }
    if (std::string why = why_misread(a, b); !why.empty()) return why;
    const double loss = a.sqnr_db - b.sqnr_db;
    if (b.sqnr_db < kClearDb && loss > std::max(kNoticedDb, error_of_db(a.noise, b.noise))) {
      return fmt::format("output {}: {:.1f} dB, {:.1f} dB before", a.view.output, b.sqnr_db, a.sqnr_db);
    }
  }
  return {};
}

std::string why_useless(const ViewError& error) {
  const bool says_something = error.agreement >= 0 && sum(error.asked) >= kEnoughAsked;
  if (says_something && error.view.read_as == ReadAs::kClasses && error.agreement < kLeastAgreement) {
    return fmt::format("only {:.0f} % of its classes are the float model's", 100 * error.agreement);
  }
  if (says_something && error.view.read_as == ReadAs::kScores && error.agreement < kLeastKept) {
    return fmt::format("only {:.0f} % of its scores above a threshold are the float model's", 100 * error.agreement);
  }
  if (is_hardly_shifted(error)) return {};
  if (error.sqnr_db < kUsableDb) return fmt::format("{:.1f} dB", error.sqnr_db);
  return {};
}

double missing_db(const std::vector<ViewError>& errors, double goal) {
  double missing = 0;
  for (const ViewError& error : errors) {
    if (!error.view.is_read) continue;
    const bool is_useless = !why_useless(error).empty();
    if (!is_useless && (is_hardly_shifted(error) || error.sqnr_db >= goal)) continue;
    // Classes or scores that are lost at a good distance count as one dB.
    missing += std::max(is_useless ? 1.0 : 0.0, goal - error.sqnr_db);
  }
  return missing;
}

}  // namespace reef::quantize
