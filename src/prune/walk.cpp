// SPDX-License-Identifier: Apache-2.0
#include "prune/walk.h"

#include <algorithm>
#include <memory>
#include <mutex>

#include <fmt/format.h>

#include "base/thread_pool.h"
#include "execute/cpu/evaluate.h"
#include "ir/excerpt.h"

namespace reef::prune {
namespace {

std::vector<std::size_t> last_uses(const ir::Model& model) {
  const ir::Subgraph& graph = model.subgraphs[0];
  std::vector<std::size_t> last(graph.tensors.size(), 0);
  for (std::size_t i = 0; i < graph.operators.size(); ++i) {
    for (const std::int32_t t : graph.operators[i].inputs) {
      if (t >= 0) last[at(t)] = i;
    }
  }
  for (const std::int32_t t : graph.outputs) last[at(t)] = graph.operators.size();
  return last;
}

// Operands that are computed, each once.
std::vector<std::int32_t> computed_inputs(const ir::Model& model, const ir::Operator& op) {
  std::vector<std::int32_t> result;
  for (const std::int32_t t : op.inputs) {
    if (t < 0 || std::find(result.begin(), result.end(), t) != result.end()) continue;
    const ir::Tensor& tensor = model.subgraphs[0].tensors[at(t)];
    if (!ir::is_constant(model, tensor) && !tensor.is_variable) result.push_back(t);
  }
  return result;
}

}  // namespace

Walk::Walk(const ir::Model& model, int threads, Budget budget)
    : model_(model), threads_(std::max(threads, 1)), budget_(std::move(budget)), last_use_(last_uses(model)) {
  values_.resize(model.subgraphs[0].tensors.size());
}

Status Walk::start(const data::SampleSource& source, std::span<const std::int64_t> samples) {
  const ir::Subgraph& graph = model_.subgraphs[0];
  count_ = samples.size();
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    const data::InputSpec spec = data::input_spec(model_, static_cast<int>(i));
    const std::optional<std::int64_t> bytes = ir::byte_size(spec.shape, spec.type);
    REEF_REQUIRE(bytes, "the size of input '{}' is not known: give it with --input-shape", spec.name);
    auto& values = values_[at(graph.inputs[i])];
    values.assign(count_, std::vector<std::uint8_t>(static_cast<std::size_t>(*bytes)));
    for (std::size_t s = 0; s < count_; ++s) {
      REEF_RETURN_IF_ERROR(source.read(samples[s], spec, std::as_writable_bytes(std::span(values[s])))
                               .in(fmt::format("sample {}", samples[s])));
    }
  }
  return ok_status();
}

Status Walk::step(std::size_t number) {
  REEF_RETURN_IF_ERROR(budget_.check("pruning"));
  const ir::Operator& op = model_.subgraphs[0].operators[number];
  const std::vector<std::int32_t> inputs = computed_inputs(model_, op);
  const auto one = std::make_shared<const ir::Model>(ir::excerpt(model_, {&op, 1}, op.outputs, 0, inputs));
  for (const std::int32_t t : op.outputs) values_[at(t)].resize(count_);
  const auto workers = static_cast<std::size_t>(std::min<std::size_t>(static_cast<std::size_t>(threads_), count_));
  std::mutex mutex;
  Status failure;
  ThreadPool pool(static_cast<int>(workers));
  pool.parallel_for(static_cast<std::int64_t>(workers), 1, [&](std::int64_t begin, std::int64_t end) {
    for (auto worker = static_cast<std::size_t>(begin); worker < static_cast<std::size_t>(end); ++worker) {
      const auto work = [&]() -> Status {
        cpu::InterpreterOptions how;
        how.budget = budget_;
        REEF_ASSIGN_OR_RETURN(const auto interpreter, cpu::prepared(one, how));
        std::vector<std::vector<std::uint8_t>> given(inputs.size());
        for (std::size_t s = worker; s < count_; s += workers) {
          interpreter->reset_variables();
          for (std::size_t i = 0; i < inputs.size(); ++i) given[i] = values_[at(inputs[i])][s];
          REEF_ASSIGN_OR_RETURN(std::vector<cpu::Value> results, cpu::run_once(*interpreter, given));
          for (std::size_t o = 0; o < op.outputs.size(); ++o) {
            values_[at(op.outputs[o])][s] = std::move(results[o].bytes);
          }
        }
        return ok_status();
      };
      if (Status status = work(); !status.ok()) {
        const std::lock_guard lock(mutex);
        if (failure.ok()) failure = std::move(status);
      }
    }
  });
  return failure.in(fmt::format("op {} {}", number, op.type));
}

void Walk::forget_behind(std::size_t op) {
  for (std::size_t t = 0; t < values_.size(); ++t) {
    if (last_use_[t] <= op && !values_[t].empty()) {
      values_[t].clear();
      values_[t].shrink_to_fit();
    }
  }
}

std::span<const float> Walk::values(std::int32_t tensor, std::size_t sample) const {
  const auto& of_tensor = values_[at(tensor)];
  if (of_tensor.empty()) return {};
  const std::vector<std::uint8_t>& bytes = of_tensor[sample];
  return {reinterpret_cast<const float*>(bytes.data()), bytes.size() / sizeof(float)};
}

double walk_bytes(const ir::Model& model, std::size_t samples) {
  const ir::Subgraph& graph = model.subgraphs[0];
  const std::vector<std::size_t> last = last_uses(model);
  const auto bytes_of = [&](std::int32_t t) {
    const ir::Tensor& tensor = graph.tensors[at(t)];
    return static_cast<double>(ir::byte_size(tensor.shape, tensor.type).value_or(0));
  };
  double live = 0, peak = 0;
  for (const std::int32_t t : graph.inputs) live += bytes_of(t);
  std::vector<bool> is_live(graph.tensors.size(), false);
  for (const std::int32_t t : graph.inputs) is_live[at(t)] = true;
  for (std::size_t i = 0; i < graph.operators.size(); ++i) {
    for (const std::int32_t t : graph.operators[i].outputs) {
      live += bytes_of(t);
      is_live[at(t)] = true;
    }
    peak = std::max(peak, live);
    for (std::size_t t = 0; t < last.size(); ++t) {
      if (is_live[t] && last[t] <= i) {
        live -= bytes_of(static_cast<std::int32_t>(t));
        is_live[t] = false;
      }
    }
  }
  return peak * static_cast<double>(samples);
}

}  // namespace reef::prune
