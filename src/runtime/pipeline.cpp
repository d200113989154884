// SPDX-License-Identifier: Apache-2.0
#include "runtime/pipeline.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <limits>
#include <mutex>
#include <set>

#include "base/thread_group.h"

namespace reef::runtime {
namespace {

using Clock = std::chrono::steady_clock;

const PipelineTensor* find(const PipelineTensors& tensors, std::string_view name) {
  const auto found =
      std::find_if(tensors.begin(), tensors.end(), [&](const PipelineTensor& tensor) { return tensor.name == name; });
  return found == tensors.end() ? nullptr : &*found;
}

Status fill_inputs(cpu::Interpreter& interpreter, const PipelineTensors& tensors) {
  for (int i = 0; i < interpreter.input_count(); ++i) {
    const ops::Tensor& input = interpreter.input(i);
    const PipelineTensor* const given = find(tensors, input.name);
    REEF_REQUIRE(given != nullptr, "there is no tensor for input '{}'", input.name);
    const std::span<std::byte> target = interpreter.input_bytes(i);
    REEF_REQUIRE(given->type == input.type && given->data.size() == target.size(),
                 "input '{}' is {} of {} bytes, but {} of {} bytes is given", input.name, ir::type_name(input.type),
                 target.size(), ir::type_name(given->type), given->data.size());
    if (!target.empty()) std::memcpy(target.data(), given->data.data(), target.size());
  }
  return ok_status();
}

void add_outputs(const cpu::Interpreter& interpreter, PipelineTensors& tensors) {
  for (int i = 0; i < interpreter.output_count(); ++i) {
    const ops::Tensor& output = interpreter.output(i);
    tensors.push_back({std::string(output.name), output.type, output.shape, {output.data, output.data + output.bytes}});
  }
}

}  // namespace

// One lock for all queues: sets of tensors pass rarely beside the time that segments compute.
class Pipeline::Impl {
 public:
  Impl(std::vector<cpu::Interpreter*> segments, std::size_t queue_size)
      : segments_(std::move(segments)),
        limits_(segments_.size() + 1, queue_size),
        queues_(segments_.size() + 1),
        ended_(segments_.size() + 1),
        stats_(segments_.size()) {}

  ~Impl() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    threads_.wait();
  }

  // Finds the names that segments after each one still take; only the last one's outputs are left in the end.
  Status link() {
    wanted_.resize(segments_.size());
    std::set<std::string, std::less<>> later;
    for (std::size_t s = segments_.size(); s-- > 0;) {
      wanted_[s] = later;
      for (int i = 0; i < segments_[s]->input_count(); ++i) later.emplace(segments_[s]->input(i).name);
    }
    for (std::size_t s = 0; s + 1 < segments_.size(); ++s) {
      bool is_used = false;
      for (int i = 0; i < segments_[s]->output_count(); ++i) {
        is_used = is_used || wanted_[s].contains(segments_[s]->output(i).name);
      }
      REEF_REQUIRE(is_used,
                   "no segment takes an output of segment {} ('{}'); are these segments of one model, in order?", s,
                   segments_[s]->output_count() > 0 ? segments_[s]->output(0).name : "none");
    }
    return ok_status();
  }

  Status start() {
    return threads_.start_all(segments_.size(), [this](std::size_t s) { work(s); });
  }

  Status push(PipelineTensors tensors) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !failure_.ok() || ended_[0] || queues_[0].size() < limits_[0]; });
    REEF_RETURN_IF_ERROR(failure_);
    REEF_REQUIRE(!ended_[0], "the pipeline is closed");
    queues_[0].push_back(std::move(tensors));
    changed_.notify_all();
    return ok_status();
  }

  void close() {
    const std::lock_guard lock(mutex_);
    ended_[0] = true;
    changed_.notify_all();
  }

  Result<std::optional<PipelineTensors>> pop() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !failure_.ok() || !queues_.back().empty() || ended_.back(); });
    if (!queues_.back().empty()) {
      std::optional<PipelineTensors> result = std::move(queues_.back().front());
      queues_.back().pop_front();
      changed_.notify_all();
      return result;
    }
    REEF_RETURN_IF_ERROR(failure_);
    return std::optional<PipelineTensors>();
  }

  void set_limit(std::size_t queue, std::size_t limit) {
    const std::lock_guard lock(mutex_);
    limits_[queue] = limit > 0 ? limit : std::numeric_limits<std::size_t>::max();
    changed_.notify_all();
  }
  std::size_t last_queue() const { return queues_.size() - 1; }

  std::vector<SegmentStats> stats() const {
    const std::lock_guard lock(mutex_);
    return stats_;
  }

 private:
  void work(std::size_t s) {
    for (;;) {
      PipelineTensors tensors;
      if (!take(s, tensors)) return;
      const auto start = Clock::now();
      const Status status = or_out_of_memory([&] { return run(s, tensors); });
      const double ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
      std::unique_lock lock(mutex_);
      stats_[s] = {stats_[s].runs + 1, stats_[s].total_ms + ms};
      if (!status.ok()) {
        if (failure_.ok()) failure_ = status.in(fmt::format("segment {}", s));
        changed_.notify_all();
        return;
      }
      changed_.wait(lock, [&] { return stopping_ || !failure_.ok() || queues_[s + 1].size() < limits_[s + 1]; });
      if (stopping_) return;
      queues_[s + 1].push_back(std::move(tensors));
      changed_.notify_all();
    }
  }

  // False: there will be no more.
  bool take(std::size_t s, PipelineTensors& tensors) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return stopping_ || !failure_.ok() || !queues_[s].empty() || ended_[s]; });
    if (stopping_ || !failure_.ok() || queues_[s].empty()) {
      ended_[s + 1] = true;
      changed_.notify_all();
      return false;
    }
    tensors = std::move(queues_[s].front());
    queues_[s].pop_front();
    changed_.notify_all();
    return true;
  }

  Status run(std::size_t s, PipelineTensors& tensors) {
    REEF_RETURN_IF_ERROR(fill_inputs(*segments_[s], tensors));
    REEF_RETURN_IF_ERROR(segments_[s]->invoke());
    std::erase_if(tensors, [&](const PipelineTensor& tensor) { return !wanted_[s].contains(tensor.name); });
    add_outputs(*segments_[s], tensors);
    return ok_status();
  }

  const std::vector<cpu::Interpreter*> segments_;
  std::vector<std::size_t> limits_;  // of each queue
  std::vector<std::set<std::string, std::less<>>> wanted_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::deque<PipelineTensors>> queues_;  // before each segment, and behind the last
  std::vector<bool> ended_;                          // nothing more comes into that queue
  std::vector<SegmentStats> stats_;
  Status failure_;
  bool stopping_ = false;
  ThreadGroup threads_;
};

Pipeline::Pipeline(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Pipeline::~Pipeline() = default;

Result<std::unique_ptr<Pipeline>> Pipeline::create(std::vector<cpu::Interpreter*> segments, std::size_t queue_size) {
  REEF_REQUIRE(!segments.empty() && queue_size > 0, "a pipeline has one segment at least, and queues of one place");
  for (std::size_t i = 0; i < segments.size(); ++i) {
    REEF_REQUIRE(std::find(segments.begin(), segments.begin() + static_cast<std::ptrdiff_t>(i), segments[i]) ==
                     segments.begin() + static_cast<std::ptrdiff_t>(i),
                 "segment {} is given twice; each needs an interpreter of its own", i);
  }
  auto impl = std::make_unique<Impl>(std::move(segments), queue_size);
  REEF_RETURN_IF_ERROR(impl->link());
  REEF_RETURN_IF_ERROR(impl->start());
  return std::unique_ptr<Pipeline>(new Pipeline(std::move(impl)));
}

Status Pipeline::push(PipelineTensors inputs) { return impl_->push(std::move(inputs)); }
void Pipeline::close() { impl_->close(); }
void Pipeline::set_input_limit(std::size_t limit) { impl_->set_limit(0, limit); }
void Pipeline::set_output_limit(std::size_t limit) { impl_->set_limit(impl_->last_queue(), limit); }
Result<std::optional<PipelineTensors>> Pipeline::pop() { return impl_->pop(); }
std::vector<SegmentStats> Pipeline::stats() const { return impl_->stats(); }

}  // namespace reef::runtime
