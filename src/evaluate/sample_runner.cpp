// SPDX-License-Identifier: Apache-2.0
#include "evaluate/sample_runner.h"

#include <algorithm>
#include <chrono>
#include <mutex>

#include "base/thread_group.h"
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
                                                           const RunnerOptions& options, std::size_t device) {
  cpu::InterpreterOptions settings;
  settings.tflite_release = options.tflite_release;
  settings.float_sums = options.float_sums;
  settings.budget = options.budget;
  if (!options.place.replicas.empty()) {
    settings.foreign_ops.push_back(runtime::edge_tpu_op(options.place.replicas[device]));
  } else if (options.place.device != nullptr) {
    settings.foreign_ops.push_back(runtime::edge_tpu_op(options.place.device));
  } else if (options.place.is_emulated) {
    const device::Options how{.budget = options.budget};
    settings.foreign_ops.push_back(runtime::edge_tpu_op(std::make_shared<device::Device>(how)));
  }
  return cpu::prepared(model, settings);
}

// Seconds that the work took on this thread.
struct Times {
  double fetch = 0, inference = 0, answer = 0;
};

// What the threads share.
struct Work {
  const ir::Model& model;
  const data::SampleSource& source;
  const RunnerOptions& options;
  const std::function<Status(std::int64_t, cpu::Interpreter&)>& answer;
  runtime::Dealer& dealer;
  std::mutex lock;  // of what follows
  Times times;
  std::int64_t done = 0;
};

// Runs `what` and adds its time to `seconds`. No memory is an error, not the end of the program.
template <typename What>
Status timed(double& seconds, const What& what) {
  const auto start = Clock::now();
  Status status = or_out_of_memory(what);
  seconds += seconds_since(start);
  return status;
}

Status fetch(const Work& work, std::int64_t sample, cpu::Interpreter& interpreter) {
  for (int i = 0; i < interpreter.input_count(); ++i)
    REEF_RETURN_IF_ERROR(work.source.read(sample, data::input_spec(work.model, i), interpreter.input_bytes(i)));
  interpreter.reset_variables();
  return ok_status();
}

void run_worker(int worker, cpu::Interpreter& interpreter, Work& work) {
  Times own;
  while (const auto sample = work.dealer.take(worker)) {
    const Status fetched = timed(own.fetch, [&] { return fetch(work, *sample, interpreter); });
    if (!fetched.ok()) {
      work.dealer.give_up(*sample, fetched);
      break;
    }
    const Status ran = timed(own.inference, [&] { return interpreter.invoke(); });
    if (!ran.ok()) {
      work.dealer.fail(worker, *sample, ran);
      continue;
    }
    work.dealer.hand_in(worker, *sample, [&]() -> Status {
      const Status answered = timed(own.answer, [&] { return work.answer(*sample, interpreter); });
      const std::lock_guard guard(work.lock);
      ++work.done;
      if (work.options.progress) work.options.progress(work.done, work.source.size());
      return answered;
    });
  }
  const std::lock_guard guard(work.lock);
  work.times.fetch += own.fetch;
  work.times.inference += own.inference;
  work.times.answer += own.answer;
}

// Which device each of the threads works for: all of them the same unless there are several.
runtime::DealerOptions shares_of(const RunnerOptions& options, std::int64_t samples) {
  runtime::DealerOptions shares;
  shares.samples = samples;
  const runtime::DeviceList& replicas = options.place.replicas;
  const std::size_t devices = std::max<std::size_t>(replicas.size(), 1);
  constexpr std::int64_t kThreadsOfDevice = 2;
  const std::int64_t wanted = replicas.empty()
                                  ? options.threads
                                  : std::max<std::int64_t>(options.threads, kThreadsOfDevice * std::ssize(replicas));
  const auto threads =
      static_cast<std::size_t>(std::clamp<std::int64_t>(wanted, 1, std::max<std::int64_t>(samples, 1)));
  for (std::size_t i = 0; i < threads; ++i) shares.device_of.push_back(static_cast<int>(i % devices));
  for (const auto& device : replicas) shares.devices.push_back(device->selector());
  if (replicas.empty()) shares.devices.push_back(options.place.name);
  return shares;
}

}  // namespace

Result<RunnerReport> run_samples(const std::shared_ptr<const ir::Model>& model, const data::SampleSource& source,
                                 const RunnerOptions& options,
                                 const std::function<Status(std::int64_t sample, cpu::Interpreter&)>& answer) {
  REEF_REQUIRE(options.place.has_edge_tpu() || !has_edge_tpu_op(*model),
               "the model is compiled for the Edge TPU: add --device virtual or --device usb to run it");
  REEF_REQUIRE(options.place.replicas.empty() || has_edge_tpu_op(*model),
               "the model is not compiled for the Edge TPU, so that {} devices have nothing to do: compile it first",
               options.place.replicas.size());
  const auto start = Clock::now();
  const runtime::DealerOptions shares = shares_of(options, source.size());
  std::vector<std::unique_ptr<cpu::Interpreter>> interpreters;
  for (const int device : shares.device_of) {
    REEF_ASSIGN_OR_RETURN(auto interpreter, make_interpreter(model, options, static_cast<std::size_t>(device)));
    interpreters.push_back(std::move(interpreter));
  }
  runtime::Dealer dealer(shares);
  Work work{*model, source, options, answer, dealer, {}, {}, 0};
  ThreadGroup threads;
  // Where the system has no more threads, those that there are do all samples.
  for (std::size_t i = 1, is_started = 1; i < interpreters.size() && is_started != 0; ++i)
    is_started = threads.start([&, i] { run_worker(static_cast<int>(i), *interpreters[i], work); });
  run_worker(0, *interpreters[0], work);
  threads.join();
  REEF_RETURN_IF_ERROR(dealer.result());
  RunnerReport report{seconds_since(start), work.times.inference, work.times.fetch,
                      work.times.answer,    dealer.report(),      interpreters[0]->notes()};
  report.notes.insert(report.notes.end(), report.devices.notes.begin(), report.devices.notes.end());
  return report;
}

}  // namespace reef::evaluate
