// SPDX-License-Identifier: Apache-2.0
#include "quantize/measure.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>
#include <tuple>
#include <utility>

#include <fmt/format.h>

namespace reef::quantize {
namespace {

template <typename T>
void append(const ops::Tensor& tensor, std::vector<float>& to) {
  const bool has_scale = tensor.quantization != nullptr && tensor.quantization->scale.size() == 1;
  const double scale = has_scale ? tensor.quantization->scale[0] : 1;
  const double zero = has_scale && !tensor.quantization->zero_point.empty()
                          ? static_cast<double>(tensor.quantization->zero_point[0])
                          : 0;
  for (const T v : tensor.values<T>()) to.push_back(static_cast<float>((static_cast<double>(v) - zero) * scale));
}

std::vector<float> real_values(const ops::Tensor& tensor) {
  std::vector<float> result;
  switch (tensor.type) {
    case ir::DataType::kFloat32:
      append<float>(tensor, result);
      break;
    case ir::DataType::kInt8:
      append<std::int8_t>(tensor, result);
      break;
    case ir::DataType::kUInt8:
      append<std::uint8_t>(tensor, result);
      break;
    case ir::DataType::kInt16:
      append<std::int16_t>(tensor, result);
      break;
    case ir::DataType::kInt32:
      append<std::int32_t>(tensor, result);
      break;
    case ir::DataType::kInt64:
      append<std::int64_t>(tensor, result);
      break;
    default:
      break;
  }
  return result;
}

}  // namespace

Result<Outputs> run_outputs(const std::shared_ptr<const ir::Model>& model, const data::SampleSource& source,
                            std::span<const std::int64_t> samples, const RunOptions& options) {
  Outputs outputs(samples.size());
  SampleHooks hooks;
  hooks.use = [&](std::int64_t position, int, const cpu::Interpreter& interpreter) {
    for (int i = 0; i < interpreter.output_count(); ++i) {
      outputs[reef::at(position)].push_back(real_values(interpreter.output(i)));
    }
    return ok_status();
  };
  REEF_RETURN_IF_ERROR(run_samples(model, source, samples, options, hooks));
  return outputs;
}

OutputError compare_outputs(const Outputs& reference, const Outputs& outputs, const std::vector<View>& views) {
  OutputError error;
  if (reference.empty()) return error;
  const auto mean_agreement = [&](ReadAs kind) {
    double sum = 0, count = 0;
    for (const ViewError& view : error.views) {
      if (view.view.read_as != kind || view.agreement < 0) continue;
      sum += view.agreement;
      ++count;
    }
    return count > 0 ? sum / count : -1;
  };
  for (const View& view : views) error.views.push_back(look_at(view, reference, outputs));
  for (const ViewError& view : error.views) {
    if (view.view.is_another) continue;
    error.sqnr_db.push_back(view.sqnr_db);
    error.noise.push_back(view.noise);
  }
  const auto count = static_cast<double>(error.sqnr_db.size());
  for (const double db : error.sqnr_db) error.mean_sqnr_db += db / count;
  error.top1_agreement = mean_agreement(ReadAs::kClasses);
  error.kept_scores = mean_agreement(ReadAs::kScores);
  return error;
}

std::vector<PartError> compare_parts(const Outputs& reference, const Outputs& outputs,
                                     const std::vector<OutputPart>& parts) {
  const auto taken = [](const Outputs& from, const OutputPart& part) {
    const int rank = part.shape.rank();
    const std::int64_t inner = rank == 0 ? 1 : part.shape.product(part.axis + 1, rank);
    const std::int64_t whole = (rank == 0 ? 1 : part.shape[part.axis]) * inner;
    Outputs result(from.size());
    for (std::size_t s = 0; s < from.size(); ++s) {
      const std::vector<float>& values = from[s][part.output];
      std::vector<float>& into = result[s].emplace_back();
      for (std::int64_t at = part.begin * inner; at + part.size * inner <= static_cast<std::int64_t>(values.size());
           at += std::max<std::int64_t>(whole, 1)) {
        into.insert(into.end(), values.begin() + at, values.begin() + at + part.size * inner);
      }
    }
    return result;
  };
  std::vector<PartError> errors;
  for (const OutputPart& part : parts) {
    if (reference.empty() || part.output >= reference[0].size() || part.output >= outputs[0].size()) continue;
    const Outputs a = taken(reference, part), b = taken(outputs, part);
    PartError error{part, 0, 0, 0, false, 0};
    error.sqnr_db = look_at(View{}, a, b).sqnr_db;
    const auto extremes = [](const Outputs& values) {
      double min = std::numeric_limits<double>::infinity(), max = -min;
      for (const auto& sample : values) {
        for (const float v : sample[0]) min = std::min<double>(min, v), max = std::max<double>(max, v);
      }
      return std::pair(min, max);
    };
    const auto [low, high] = extremes(b);
    std::tie(error.min, error.max) = extremes(a);
    error.is_dead = error.min < error.max && low == high;
    error.dead_value = low;
    errors.push_back(std::move(error));
  }
  return errors;
}

// The gain of an output is the logarithm of a ratio of two sums over samples. How far a sample moves it is, to first
// order, the difference of its shares in the two sums; their squares add up to the variance.
Gain gain_of(const OutputError& before, const OutputError& after) {
  Gain gain{after.mean_sqnr_db - before.mean_sqnr_db, 0};
  const std::size_t outputs = std::min(before.noise.size(), after.noise.size());
  if (outputs == 0) return gain;
  std::vector<double> influence(before.noise[0].size(), 0);
  for (std::size_t o = 0; o < outputs; ++o) {
    const double old_sum = std::accumulate(before.noise[o].begin(), before.noise[o].end(), 0.0);
    const double new_sum = std::accumulate(after.noise[o].begin(), after.noise[o].end(), 0.0);
    if (old_sum <= 0 || new_sum <= 0) continue;
    for (std::size_t s = 0; s < influence.size(); ++s) {
      influence[s] += (before.noise[o][s] / old_sum - after.noise[o][s] / new_sum) / static_cast<double>(outputs);
    }
  }
  double variance = 0;
  for (const double i : influence) variance += i * i;
  gain.standard_error = 10 / std::numbers::ln10 * std::sqrt(variance);
  return gain;
}

std::string describe(const OutputError& error) {
  std::string text = fmt::format("{:.1f} dB", error.mean_sqnr_db);
  if (error.top1_agreement >= 0) text += fmt::format(", top-1 agreement {:.1f} %", 100 * error.top1_agreement);
  if (error.kept_scores >= 0) text += fmt::format(", scores kept {:.1f} %", 100 * error.kept_scores);
  return text;
}

}  // namespace reef::quantize
