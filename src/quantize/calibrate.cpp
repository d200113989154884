// SPDX-License-Identifier: Apache-2.0
#include "quantize/calibrate.h"

#include <algorithm>
#include <cmath>

#include "ir/op.h"
#include "quantize/integer_lstm.h"
#include "quantize/masks.h"
#include "quantize/op_rules.h"

namespace reef::quantize {
namespace {

constexpr std::int32_t kMostChannels = 16384;  // statistics per channel only up to here

// What one thread gathers: histograms of all its samples, the rest of the one it is at.
struct Worker {
  std::vector<std::vector<std::byte>> inputs;
  std::vector<SampleStatistics> sample;
  std::vector<Histogram> histograms;
  std::vector<float> memory;

  // softmax_row: see softmax_rows.
  void observe(std::int32_t channels, std::int64_t softmax_row, std::int32_t tensor, const ops::Tensor& value) {
    if (value.type != ir::DataType::kFloat32) return;
    const auto t = static_cast<std::size_t>(tensor);
    std::span<const float> values = value.values<float>();
    if (softmax_row > 0) values = as_softmax_reads(values, softmax_row, memory);
    SampleStatistics& statistics = sample[t];
    statistics.observe(values, channels);
    if (statistics.min > statistics.max) return;
    if (statistics.masked > 0) {
      std::vector<float> counted;
      std::copy_if(values.begin(), values.end(), std::back_inserter(counted), [](float v) { return !is_masked(v); });
      memory = std::move(counted);
      values = memory;
    }
    histograms[t].add(values, std::max(std::abs(statistics.min), std::abs(statistics.max)));
  }

  // The state of an LSTM, in all steps; it counts as that of the variable.
  void observe_cells(const cpu::OpRun& run) {
    std::vector<float> cells = cell_history(run);
    ops::Tensor all = *run.inputs[kLstmCellState];
    all.data = reinterpret_cast<std::byte*>(cells.data());
    all.bytes = cells.size() * sizeof(float);
    observe(0, 0, run.op->inputs[kLstmCellState], all);
  }
};

// Channels of the tensors that layers read or that are parts of residual streams; 0: statistics of each channel are of
// no use.
std::vector<std::int32_t> observed_channels(const ir::Subgraph& graph) {
  std::vector<std::int32_t> result(graph.tensors.size(), 0);
  const auto observe = [&](std::int32_t t) {
    if (t < 0) return;
    const ir::Shape& shape = graph.tensors[at(t)].shape;
    if (shape.rank() >= 2 && shape.last() <= kMostChannels) result[at(t)] = shape.last();
  };
  for (const ir::Operator& op : graph.operators) {
    const OpRule* rule = rule_of(op.type);
    if (rule == nullptr) continue;
    const bool is_layer = rule->kind == RuleKind::kWeighted;
    if (is_layer && static_cast<int>(op.inputs.size()) > rule->input) {
      observe(op.inputs[at(rule->input)]);
    }
    const bool may_be_in_stream =
        is_one_of(op.type, {Op::ADD, Op::SUB, Op::MUL, Op::RELU, Op::LEAKY_RELU, Op::MEAN, Op::GATHER});
    if (!is_layer && !may_be_in_stream) continue;
    std::for_each(op.outputs.begin(), op.outputs.end(), observe);
  }
  return result;
}

// Those whose state is to be observed.
std::vector<bool> operators_with_cells(const ir::Model& model) {
  std::vector<bool> result;
  for (const ir::Operator& op : model.subgraphs[0].operators) {
    const OpRule* rule = rule_of(op.type);
    result.push_back(rule != nullptr && rule->kind == RuleKind::kRecurrent && lstm_problem(model, op).empty());
  }
  return result;
}

}  // namespace

Result<std::vector<Histogram>> observe_samples(const std::shared_ptr<const ir::Model>& model,
                                               const data::SampleSource& source, std::span<const std::int64_t> samples,
                                               const RunOptions& options, const UseOfSample& use) {
  const ir::Subgraph& graph = model->subgraphs[0];
  const std::vector<std::int32_t> channels = observed_channels(graph);
  std::vector<Worker> workers(static_cast<std::size_t>(std::max(options.threads, 1)));
  for (Worker& worker : workers) {
    worker.sample.resize(graph.tensors.size());
    worker.histograms.resize(graph.tensors.size());
  }
  const std::vector<bool> has_cells = operators_with_cells(*model);
  const std::vector<std::int64_t> rows = softmax_rows(*model);
  SampleHooks hooks;
  hooks.observer = [&](int index) -> std::function<Status(const cpu::OpRun&)> {
    Worker& worker = workers[at(index)];
    return [&worker, &channels, &has_cells, &rows](const cpu::OpRun& run) {
      if (run.subgraph != 0) return ok_status();
      if (has_cells[at(run.op_index)]) worker.observe_cells(run);
      for (std::size_t i = 0; i < run.outputs.size(); ++i) {
        if (run.outputs[i] == nullptr) continue;
        const std::int32_t t = run.op->outputs[i];
        worker.observe(channels[at(t)], rows[at(t)], t, *run.outputs[i]);
      }
      return ok_status();
    };
  };
  hooks.inputs_ready = [&](int index, const cpu::Interpreter& interpreter) {
    Worker& worker = workers[at(index)];
    worker.inputs.resize(graph.inputs.size());
    for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
      const ops::Tensor& input = interpreter.input(static_cast<int>(i));
      const auto t = static_cast<std::size_t>(graph.inputs[i]);
      worker.observe(channels[t], rows[t], graph.inputs[i], input);
      worker.inputs[i].assign(input.data, input.data + input.bytes);
    }
  };
  hooks.use = [&](std::int64_t position, int index, const cpu::Interpreter&) -> Status {
    Worker& worker = workers[at(index)];
    use(position, worker.inputs, worker.sample);
    for (SampleStatistics& tensor : worker.sample) tensor.clear();
    return ok_status();
  };
  REEF_RETURN_IF_ERROR(run_samples(model, source, samples, options, hooks));
  std::vector<Histogram> histograms = std::move(workers[0].histograms);
  for (std::size_t i = 1; i < workers.size(); ++i) {
    for (std::size_t t = 0; t < histograms.size(); ++t) histograms[t].merge(workers[i].histograms[t]);
  }
  return histograms;
}

Result<Calibration> calibrate(const std::shared_ptr<const ir::Model>& model, const data::SampleSource& source,
                              std::span<const std::int64_t> samples, const RunOptions& options) {
  Calibration result;
  result.tensors.resize(model->subgraphs[0].tensors.size());
  std::vector<std::vector<std::byte>> previous;
  const auto use = [&](std::int64_t, const std::vector<std::vector<std::byte>>& inputs,
                       const std::vector<SampleStatistics>& tensors) {
    if (inputs == previous) ++result.repeated_samples;
    previous = inputs;
    for (std::size_t t = 0; t < tensors.size(); ++t) result.tensors[t].merge_sample(tensors[t]);
    ++result.samples;
  };
  REEF_ASSIGN_OR_RETURN(std::vector<Histogram> histograms, observe_samples(model, source, samples, options, use));
  for (std::size_t t = 0; t < histograms.size(); ++t) result.tensors[t].histogram = std::move(histograms[t]);
  return result;
}

}  // namespace reef::quantize
