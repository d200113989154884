// SPDX-License-Identifier: Apache-2.0
#include "quantize/calibrate.h"

#include <algorithm>
#include <cmath>

namespace reef::quantize {
namespace {

constexpr std::int32_t kMostChannels = 16384;  // statistics per channel only up to here

// What one thread gathers: histograms of all its samples, the rest of the one it is at.
struct Worker {
  std::vector<std::vector<std::byte>> inputs;
  std::vector<SampleStatistics> sample;
  std::vector<Histogram> histograms;

  void observe(const ir::Subgraph& graph, std::int32_t tensor, const ops::Tensor& value) {
    if (value.type != ir::DataType::kFloat32) return;
    const auto t = static_cast<std::size_t>(tensor);
    const std::span<const float> values = value.values<float>();
    const ir::Shape& shape = graph.tensors[t].shape;
    const bool by_channel = shape.rank() >= 2 && shape.last() <= kMostChannels;
    SampleStatistics& statistics = sample[t];
    statistics.observe(values, by_channel ? shape.last() : 0);
    if (statistics.not_finite > 0 || statistics.min > statistics.max) return;
    histograms[t].add(values, std::max(std::abs(statistics.min), std::abs(statistics.max)));
  }
};

}  // namespace

Result<Calibration> calibrate(const std::shared_ptr<const ir::Model>& model, const data::SampleSource& source,
                              std::span<const std::int64_t> samples, const RunOptions& options) {
  const ir::Subgraph& graph = model->subgraphs[0];
  Calibration result;
  result.tensors.resize(graph.tensors.size());
  std::vector<Worker> workers(static_cast<std::size_t>(std::max(options.threads, 1)));
  for (Worker& worker : workers) {
    worker.sample.resize(graph.tensors.size());
    worker.histograms.resize(graph.tensors.size());
  }
  SampleHooks hooks;
  hooks.observer = [&](int index) -> std::function<Status(const cpu::OpRun&)> {
    Worker& worker = workers[static_cast<std::size_t>(index)];
    return [&worker, &graph](const cpu::OpRun& run) {
      if (run.subgraph != 0) return ok_status();
      for (std::size_t i = 0; i < run.outputs.size(); ++i) {
        if (run.outputs[i] != nullptr) worker.observe(graph, run.op->outputs[i], *run.outputs[i]);
      }
      return ok_status();
    };
  };
  hooks.inputs_ready = [&](int index, const cpu::Interpreter& interpreter) {
    Worker& worker = workers[static_cast<std::size_t>(index)];
    worker.inputs.resize(graph.inputs.size());
    for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
      const ops::Tensor& input = interpreter.input(static_cast<int>(i));
      worker.observe(graph, graph.inputs[i], input);
      worker.inputs[i].assign(input.data, input.data + input.bytes);
    }
  };
  std::vector<std::vector<std::byte>> previous;
  hooks.use = [&](std::int64_t, int index, const cpu::Interpreter&) -> Status {
    Worker& worker = workers[static_cast<std::size_t>(index)];
    if (worker.inputs == previous) ++result.repeated_samples;
    previous.swap(worker.inputs);
    for (std::size_t t = 0; t < result.tensors.size(); ++t) {
      result.tensors[t].merge_sample(worker.sample[t]);
      worker.sample[t].clear();
    }
    ++result.samples;
    return ok_status();
  };
  REEF_RETURN_IF_ERROR(run_samples(model, source, samples, options, hooks));
  for (const Worker& worker : workers) {
    for (std::size_t t = 0; t < result.tensors.size(); ++t) result.tensors[t].histogram.merge(worker.histograms[t]);
  }
  return result;
}

}  // namespace reef::quantize
