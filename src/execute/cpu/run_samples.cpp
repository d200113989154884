// SPDX-License-Identifier: Apache-2.0
// Samples dealt to threads in order, results taken in order: a worker that is done with its sample waits for its turn.
// It cannot wait for ever, as the sample before it is being computed by another worker or was given up with an error.
#include "execute/cpu/run_samples.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>

#include <fmt/format.h>

#include "base/thread_pool.h"
#include "execute/cpu/evaluate.h"

namespace reef::cpu {
namespace {

class Turns {
 public:
  // Calls `use` when all positions before this one are done. False: something failed before.
  template <typename Use>
  bool take(std::int64_t position, const Use& use) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return next_ == position || !failure_.ok(); });
    if (!failure_.ok()) return false;
    failure_ = use();
    ++next_;
    changed_.notify_all();
    return failure_.ok();
  }
  void fail(Status status) {
    const std::lock_guard lock(mutex_);
    if (failure_.ok()) failure_ = std::move(status);
    changed_.notify_all();
  }
  Status result() const { return failure_; }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::int64_t next_ = 0;
  Status failure_;
};

Status fill_inputs(const ir::Model& model, const data::SampleSource& source, std::int64_t sample,
                   Interpreter& interpreter) {
  for (int i = 0; i < interpreter.input_count(); ++i) {
    REEF_RETURN_IF_ERROR(source.read(sample, data::input_spec(model, i), interpreter.input_bytes(i)));
  }
  return ok_status();
}

}  // namespace

Status run_samples(const std::shared_ptr<const ir::Model>& model, const data::SampleSource& source,
                   std::span<const std::int64_t> samples, const RunOptions& options, const SampleHooks& hooks) {
  const auto count = static_cast<std::int64_t>(samples.size());
  const int workers = static_cast<int>(std::clamp<std::int64_t>(options.threads, 1, std::max<std::int64_t>(count, 1)));
  Turns turns;
  std::atomic<std::int64_t> next = 0;
  const auto work = [&](int worker) -> Status {
    InterpreterOptions how;
    how.budget = options.budget;
    if (hooks.observer) how.after_op = hooks.observer(worker);
    REEF_ASSIGN_OR_RETURN(const auto interpreter, prepared(model, how));
    for (std::int64_t i = next++; i < count; i = next++) {
      interpreter->reset_variables();
      const std::int64_t sample = samples[at(i)];
      REEF_RETURN_IF_ERROR(fill_inputs(*model, source, sample, *interpreter).in(fmt::format("sample {}", sample)));
      if (hooks.inputs_ready) hooks.inputs_ready(worker, *interpreter);
      REEF_RETURN_IF_ERROR(interpreter->invoke().in(fmt::format("sample {}", sample)));
      const bool go_on = turns.take(i, [&]() -> Status {
        REEF_RETURN_IF_ERROR(hooks.use(i, worker, *interpreter));
        if (options.progress) options.progress(i + 1, count);
        return ok_status();
      });
      if (!go_on) break;
    }
    return ok_status();
  };
  ThreadPool pool(workers);
  pool.parallel_for(workers, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t worker = begin; worker < end; ++worker) {
      if (Status status = work(static_cast<int>(worker)); !status.ok()) turns.fail(std::move(status));
    }
  });
  return turns.result();
}

}  // namespace reef::cpu
