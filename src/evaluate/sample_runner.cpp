// SPDX-License-Identifier: Apache-2.0
#include "evaluate/sample_runner.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

#include "execute/cpu/evaluate.h"
#include "execute/device/device.h"
#include "formats/darwinn/reader.h"
#include "runtime/edge_tpu_op.h"

namespace reef::evaluate {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

bool has_edge_tpu_op(const ir::Model& model) {
  for (const ir::Subgraph& graph : model.subgraphs) {
    if (std::any_of(graph.operators.begin(), graph.operators.end(), darwinn::is_edge_tpu_op)) return true;
  }
  return false;
}

Result<std::unique_ptr<cpu::Interpreter>> make_interpreter(const std::shared_ptr<const ir::Model>& model,
                                                           const RunnerOptions& options) {
  cpu::InterpreterOptions settings;
  settings.tflite_release = options.tflite_release;
  settings.float_sums = options.float_sums;
  settings.budget = options.budget;
  if (options.place.device != nullptr) {
    settings.foreign_ops.push_back(runtime::edge_tpu_op(options.place.device));
  } else if (options.place.is_emulated) {
    const device::Options how{.budget = options.budget};
    settings.foreign_ops.push_back(runtime::edge_tpu_op(std::make_shared<device::Device>(how)));
  }
  return cpu::prepared(model, settings);
}

// What the threads share.
struct Work {
  std::mutex lock;
  std::int64_t next = 0, done = 0, all = 0;
  std::int64_t failed = -1;
  Status status;
  double inference_seconds = 0;
};

Status run_one(cpu::Interpreter& interpreter, const ir::Model& model, const data::SampleSource& source,
               std::int64_t sample, double& seconds) {
  for (int i = 0; i < interpreter.input_count(); ++i)
    REEF_RETURN_IF_ERROR(source.read(sample, data::input_spec(model, i), interpreter.input_bytes(i)));
  interpreter.reset_variables();
  const auto start = Clock::now();
  REEF_RETURN_IF_ERROR(interpreter.invoke());
  seconds += seconds_since(start);
  return ok_status();
}

void run_worker(cpu::Interpreter& interpreter, const ir::Model& model, const data::SampleSource& source,
                const RunnerOptions& options, const std::function<Status(std::int64_t, cpu::Interpreter&)>& answer,
                Work& work) {
  double seconds = 0;
  while (true) {
    std::int64_t sample = 0;
    {
      const std::lock_guard guard(work.lock);
      if (work.next >= work.all || work.failed >= 0) break;
      sample = work.next++;
    }
    Status status;
    try {
      status = run_one(interpreter, model, source, sample, seconds);
      if (status.ok()) status = answer(sample, interpreter);
    } catch (const std::bad_alloc&) {
      status = make_error(StatusCode::kResourceExhausted, "out of memory");
    }
    const std::lock_guard guard(work.lock);
    if (!status.ok() && (work.failed < 0 || sample < work.failed)) {
      work.failed = sample;
      work.status = status;
    }
    ++work.done;
    if (options.progress) options.progress(work.done, work.all);
  }
  const std::lock_guard guard(work.lock);
  work.inference_seconds += seconds;
}

}  // namespace

Result<RunnerReport> run_samples(const std::shared_ptr<const ir::Model>& model, const data::SampleSource& source,
                                 const RunnerOptions& options,
                                 const std::function<Status(std::int64_t sample, cpu::Interpreter&)>& answer) {
  REEF_REQUIRE(options.place.has_edge_tpu() || !has_edge_tpu_op(*model),
               "the model is compiled for the Edge TPU: add --device virtual or --device usb to run it");
  const auto start = Clock::now();
  Work work;
  work.all = source.size();
  const auto count = std::clamp<std::int64_t>(options.threads, 1, std::max<std::int64_t>(work.all, 1));
  std::vector<std::unique_ptr<cpu::Interpreter>> interpreters;
  for (std::int64_t i = 0; i < count; ++i) {
    REEF_ASSIGN_OR_RETURN(auto interpreter, make_interpreter(model, options));
    interpreters.push_back(std::move(interpreter));
  }
  std::vector<std::thread> threads;
  for (std::size_t i = 1; i < interpreters.size(); ++i) {
    threads.emplace_back([&, i] { run_worker(*interpreters[i], *model, source, options, answer, work); });
  }
  run_worker(*interpreters[0], *model, source, options, answer, work);
  for (std::thread& thread : threads) thread.join();
  if (work.failed >= 0) return work.status.in(fmt::format("sample {}", work.failed));
  return RunnerReport{seconds_since(start), work.inference_seconds, interpreters[0]->notes()};
}

}  // namespace reef::evaluate
