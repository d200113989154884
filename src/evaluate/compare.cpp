// SPDX-License-Identifier: Apache-2.0
// The driver: which tensors are layers, samples shared out over threads, sums put together, layers ranked.
#include "evaluate/compare.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <mutex>

#include "base/thread_group.h"
#include "evaluate/compare_weights.h"
#include "evaluate/compare_worker.h"
#include "ir/op.h"

namespace reef::evaluate {
namespace {

bool can_be_compared(const ir::Tensor& tensor, const Representable& range) {
  return range.is_quantized || tensor.type == ir::DataType::kFloat32;
}

void add_layer(ComparePlan& plan, LayerPlace place, const TensorMatch& match) {
  const ir::Tensor& tensor = plan.quantized->subgraphs[0].tensors[at(place.tensor)];
  place.original = match.float_of[at(place.tensor)];
  place.range = Representable::of(tensor.type, tensor.quantization);
  if (const auto scaled = match.factors_of.find(place.tensor); scaled != match.factors_of.end())
    place.factors = scaled->second;
  if (place.original < 0 || !can_be_compared(tensor, place.range)) return;
  if (place.op < 0 && !place.range.is_quantized) return;  // a float input is the float model's
  std::int32_t& first = plan.first_layer_of[at(place.original)];
  // A float result that a conversion follows (or an input) counts as what it is converted to.
  const bool is_better =
      first < 0 || (!plan.layers[at(first)].range.is_quantized && place.is_conversion && place.range.is_quantized);
  if (is_better) first = static_cast<std::int32_t>(plan.layers.size());
  if (place.op >= 0) plan.layers_of_op[at(place.op)].push_back(plan.layers.size());
  plan.layers.push_back(place);
}

// Outputs, and of a SOFTMAX also what goes into it: where one class is nearly certain the output hardly moves.
std::vector<std::int32_t> effect_points(const ir::Model& model, const TensorMatch& match) {
  std::vector<std::int32_t> points;
  const ir::Subgraph& graph = model.subgraphs[0];
  for (const std::int32_t output : graph.outputs) {
    const std::int32_t producer = match.uses.producer(output);
    if (producer < 0) continue;
    const ir::Operator& op = graph.operators[at(producer)];
    const bool is_softmax =
        op.type == Op::SOFTMAX && !op.inputs.empty() && op.inputs[0] >= 0 && match.uses.producer(op.inputs[0]) >= 0;
    for (const std::int32_t point : {is_softmax ? op.inputs[0] : output, output}) {
      const ir::Tensor& tensor = graph.tensors[at(point)];
      if (tensor.type == ir::DataType::kFloat32 && std::find(points.begin(), points.end(), point) == points.end())
        points.push_back(point);
    }
  }
  return points;
}

ComparePlan make_plan(const std::shared_ptr<const ir::Model>& float_model,
                      const std::shared_ptr<const ir::Model>& quantized, const TensorMatch& match,
                      ops::TfliteRelease release) {
  ComparePlan plan{float_model, quantized, {}, {}, {}, {}, release, {}};
  const ir::Subgraph& graph = quantized->subgraphs[0];
  plan.layers_of_op.resize(graph.operators.size());
  plan.first_layer_of.assign(float_model->subgraphs[0].tensors.size(), -1);
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    LayerPlace place;
    place.input = static_cast<std::int32_t>(i);
    place.tensor = graph.inputs[i];
    add_layer(plan, place, match);
  }
  for (std::size_t i = 0; i < graph.operators.size(); ++i) {
    for (const std::int32_t output : graph.operators[i].outputs) {
      if (output < 0) continue;
      LayerPlace place;
      place.op = static_cast<std::int32_t>(i);
      place.tensor = output;
      place.is_conversion = is_conversion(graph.operators[i]);
      add_layer(plan, place, match);
    }
  }
  plan.effect_points = effect_points(*float_model, match);
  return plan;
}

// Samples are dealt out to parts whose number does not depend on the threads; each part sums up for itself.
struct Parts {
  std::vector<CompareSums> sums;
  std::vector<Status> statuses;
  std::mutex lock;
  std::size_t next = 0;
  std::int64_t done = 0, all = 0;
};

void run_parts(CompareWorker& worker, const data::SampleSource& source, std::int64_t effect_samples,
               const CompareOptions& options, Parts& parts) {
  const auto step = [&] {
    const std::lock_guard guard(parts.lock);
    ++parts.done;
    if (options.progress) options.progress(parts.done, parts.all);
  };
  while (true) {
    std::size_t part = 0;
    {
      const std::lock_guard guard(parts.lock);
      if (parts.next >= parts.sums.size()) return;
      part = parts.next++;
    }
    for (auto sample = static_cast<std::int64_t>(part); sample < source.size();
         sample += static_cast<std::int64_t>(parts.sums.size())) {
      const Status status =
          or_out_of_memory([&] { return worker.run(source, sample, sample < effect_samples, parts.sums[part], step); });
      if (status.ok()) continue;
      parts.statuses[part] = status.in(fmt::format("sample {}", sample));
      return;
    }
  }
}

Result<CompareSums> run_all(const ComparePlan& plan, const data::SampleSource& source, std::int64_t effect_samples,
                            const CompareOptions& options) {
  constexpr std::int64_t kMostParts = 16;
  Parts parts;
  const auto count = static_cast<std::size_t>(std::clamp<std::int64_t>(source.size(), 1, kMostParts));
  parts.sums.assign(count, plan.empty_sums());
  parts.statuses.resize(count);
  parts.all = 4 * source.size() + effect_samples * static_cast<std::int64_t>(plan.layers.size());
  std::vector<std::unique_ptr<CompareWorker>> workers;
  for (int i = 0; i < std::clamp<int>(options.threads, 1, static_cast<int>(count)); ++i) {
    REEF_ASSIGN_OR_RETURN(auto worker, CompareWorker::create(plan));
    workers.push_back(std::move(worker));
  }
  ThreadGroup threads;
  // Where the system has no more threads, those that there are do all parts.
  for (std::size_t i = 1, is_started = 1; i < workers.size() && is_started != 0; ++i)
    is_started = threads.start([&, i] { run_parts(*workers[i], source, effect_samples, options, parts); });
  run_parts(*workers[0], source, effect_samples, options, parts);
  threads.join();
  for (const Status& status : parts.statuses) REEF_RETURN_IF_ERROR(status);
  for (std::size_t i = 1; i < count; ++i) parts.sums[0].merge(parts.sums[i]);
  return std::move(parts.sums[0]);
}

double effect_of(const std::vector<ErrorSums>& points) {
  double sum = 0;
  int count = 0;
  for (const ErrorSums& point : points) {
    if (point.count == 0) continue;
    sum += point.relative_noise();
    ++count;
  }
  const double mean = count > 0 ? sum / count : 0;
  return std::isfinite(mean) ? mean : std::numeric_limits<double>::max();
}

// Its weights are not the float model's: they carry factors of what it reads or writes.
bool touches_equalized(const ir::Operator& op, const TensorMatch& match) {
  const auto is_scaled = [&](std::int32_t t) { return match.factors_of.contains(t); };
  return std::any_of(op.inputs.begin(), op.inputs.end(), is_scaled) ||
         std::any_of(op.outputs.begin(), op.outputs.end(), is_scaled);
}

bool becomes_output(const ir::Subgraph& graph, std::int32_t tensor) {
  const auto is_output = [&](std::int32_t number) {
    return std::find(graph.outputs.begin(), graph.outputs.end(), number) != graph.outputs.end();
  };
  return is_output(tensor) || std::any_of(graph.operators.begin(), graph.operators.end(), [&](const ir::Operator& op) {
           return is_conversion(op) && op.inputs.size() == 1 && op.inputs[0] == tensor && !op.outputs.empty() &&
                  is_output(op.outputs[0]);
         });
}

LayerReport report_of(const LayerPlace& place, LayerSums& sums, const ComparePlan& plan) {
  const ir::Subgraph& graph = plan.quantized->subgraphs[0];
  const ir::Tensor& tensor = graph.tensors[at(place.tensor)];
  LayerReport layer;
  layer.op = place.op;
  layer.type = place.op < 0 ? "input" : graph.operators[at(place.op)].type;
  layer.name = tensor.name;
  layer.float_name = plan.float_model->subgraphs[0].tensors[at(place.original)].name;
  layer.data_type = tensor.type;
  layer.range = place.range;
  layer.cumulative = sums.cumulative;
  layer.own = sums.own;
  layer.is_conversion = place.is_conversion;
  layer.at_ends =
      sums.cumulative.count > 0 ? static_cast<double>(sums.at_ends) / static_cast<double>(sums.cumulative.count) : 0;
  layer.is_output = becomes_output(graph, place.tensor);
  layer.effect = effect_of(sums.effect);
  layer.values = std::move(sums.values);
  return layer;
}

// Noise at the outputs, as a multiple of their signal, from which on they are lost altogether (-30 dB). Layers that do
// worse (1 / x, 1 / sqrt(x) near 0) or give infinities count as this much: otherwise nothing were left for the others'
// shares, and of two such layers neither could be ranked.
constexpr double kMostEffect = 1e3;

void rank(Comparison& comparison) {
  double all = 0;
  for (LayerReport& layer : comparison.layers) {
    if (!(layer.effect <= kMostEffect)) layer.effect = kMostEffect;
    all += layer.effect;
  }
  for (std::size_t i = 0; i < comparison.layers.size(); ++i) {
    LayerReport& layer = comparison.layers[i];
    layer.share = all > 0 ? layer.effect / all : 0;
    if (layer.own.count > 0) comparison.ranking.push_back(i);
  }
  std::stable_sort(comparison.ranking.begin(), comparison.ranking.end(), [&](std::size_t a, std::size_t b) {
    const LayerReport& first = comparison.layers[a];
    const LayerReport& second = comparison.layers[b];
    if (first.effect != second.effect) return first.effect > second.effect;
    return first.own.relative_noise() > second.own.relative_noise();
  });
}

}  // namespace

Result<Comparison> compare(const std::shared_ptr<const ir::Model>& float_model,
                           const std::shared_ptr<const ir::Model>& quantized, const data::SampleSource& source,
                           const CompareOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  REEF_REQUIRE(source.size() > 0, "there are no samples to compare on");
  Comparison result;
  REEF_ASSIGN_OR_RETURN(result.match, match_tensors(*float_model, *quantized, options.names));
  ComparePlan plan = make_plan(float_model, quantized, result.match, options.tflite_release);
  plan.budget = options.budget;
  REEF_REQUIRE(!plan.layers.empty(),
               "no tensor of the quantized model stands for one of the float model: are they versions of one model?");
  result.samples = source.size();
  result.effect_samples = std::clamp<std::int64_t>(options.effect_samples, 0, source.size());
  REEF_ASSIGN_OR_RETURN(CompareSums sums, run_all(plan, source, result.effect_samples, options));
  for (std::size_t i = 0; i < plan.layers.size(); ++i) {
    LayerReport layer = report_of(plan.layers[i], sums.layers[i], plan);
    if (layer.op >= 0 && !touches_equalized(quantized->subgraphs[0].operators[at(layer.op)], result.match))
      layer.weights = compare_weights(*float_model, *quantized, result.match, layer.op, plan.layers[i].original);
    result.layers.push_back(std::move(layer));
  }
  const ir::Subgraph& graph = quantized->subgraphs[0];
  for (std::size_t i = 0; i < sums.outputs.size(); ++i)
    result.outputs.push_back({graph.tensors[at(graph.outputs[i])].name, sums.outputs[i]});
  for (const std::int32_t point : plan.effect_points)
    result.effect_points.push_back(float_model->subgraphs[0].tensors[at(point)].name);
  rank(result);
  add_advice(*quantized, result);
  add_roles(*quantized, result);
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

}  // namespace reef::evaluate
