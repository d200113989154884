// SPDX-License-Identifier: Apache-2.0
// An epoch at work. Threads belong to no stage: whoever is free takes the work that is nearest to the end, so that the
// batch somebody waits for is finished first and memory stays small. Reading begins a sample only while fewer than
// `ahead` are on their way, from the file to the user; that is the only limit, so that nothing can stand still but for
// a user who does not take what is ready.
//
// One lock guards who does what; work itself is done without it.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <thread>

#include "base/thread_group.h"
#include "data/flow_plan.h"

namespace reef::data {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kMixupStep = 1 << 20;  // its place among the steps, for random numbers

class Run final : public FlowRun {
 public:
  Run(std::shared_ptr<const FlowPlan> plan, std::vector<std::int64_t> order, std::int64_t epoch);
  ~Run() override;
  Result<std::optional<Batch>> next() override;
  std::vector<StageCounters> counters() const override;
  double idle_with_work() const override;
  // An error if no thread could be started: with fewer than wanted the run takes longer, nothing else.
  Status started() const { return threads_.size() > 0 ? ok_status() : started_; }

 private:
  struct Item {
    std::int64_t position = 0;  // in the epoch's order
    FlowSample sample;
  };
  struct Stage {
    std::string name;
    std::deque<Item> queue;  // of the first stage empty: it takes positions; of the last: see filling_
    int workers = 0;
    StageCounters counters;
  };
  // A batch whose samples arrive in any order.
  struct Filling {
    std::vector<FlowSample> samples;
    std::int64_t missing = 0;
    std::int64_t failed_at = -1;  // the first position that failed
    Status failure;
  };

  std::size_t last() const { return stages_.size() - 1; }
  std::int64_t size() const { return static_cast<std::int64_t>(order_.size()); }
  std::int64_t batch_size(std::int64_t batch) const { return std::min(plan_->batch, size() - batch * plan_->batch); }
  // With the lock held.
  bool has_room() const { return begun_ < delivered_ * plan_->batch + ahead_; }
  bool has_work(std::size_t stage) const;
  bool is_waiting_for_user(std::size_t stage) const;
  void account();
  void work();
  void work_at(std::size_t stage, std::unique_lock<std::mutex>& lock);
  void read_one(std::unique_lock<std::mutex>& lock);
  void run_step(std::size_t stage, std::unique_lock<std::mutex>& lock);
  void finish_batch(std::unique_lock<std::mutex>& lock);
  void pass_on(std::size_t from, Item item);
  void into_batch(Item item, const Status& status);
  Status read(Item& item, bool& is_cached) const;
  VariationKey key(std::int64_t number, int step) const { return {plan_->seed, epoch_, number, step}; }

  const std::shared_ptr<const FlowPlan> plan_;
  std::vector<std::int64_t> order_;
  const std::int64_t epoch_;
  std::int64_t ahead_ = 0, batches_ = 0;
  mutable std::mutex mutex_;
  std::condition_variable work_, ready_;  // for threads; for the user
  std::vector<Stage> stages_;             // read, one for each step, batch
  std::map<std::int64_t, Filling> filling_;
  std::deque<std::int64_t> full_;  // batches to be put together
  std::map<std::int64_t, Result<Batch>> done_;
  std::int64_t begun_ = 0;      // samples that reading has taken up
  std::int64_t delivered_ = 0;  // batches that the user has
  bool is_stopping_ = false, has_failed_ = false;
  int idle_ = 0;  // threads
  double idle_with_work_ = 0;
  Clock::time_point accounted_ = Clock::now();
  Status started_;
  ThreadGroup threads_;
};

Run::Run(std::shared_ptr<const FlowPlan> plan, std::vector<std::int64_t> order, std::int64_t epoch)
    : plan_(std::move(plan)), order_(std::move(order)), epoch_(epoch) {
  if (plan_->drop_last) order_.resize(order_.size() - order_.size() % static_cast<std::size_t>(plan_->batch));
  batches_ = (size() + plan_->batch - 1) / plan_->batch;
  int threads = plan_->threads > 0 ? plan_->threads : static_cast<int>(std::thread::hardware_concurrency());
  threads = static_cast<int>(std::clamp<std::int64_t>(threads, 1, std::max<std::int64_t>(size(), 1)));
  const std::int64_t usual = std::max<std::int64_t>(4 * plan_->batch, 2 * std::int64_t{threads} + plan_->batch);
  ahead_ = std::max(plan_->ahead > 0 ? plan_->ahead : usual, plan_->batch);
  stages_.resize(plan_->steps.size() + 2);
  stages_[0].name = "read";
  for (std::size_t i = 0; i < plan_->steps.size(); ++i) stages_[i + 1].name = plan_->steps[i].name;
  stages_.back().name = plan_->mixup > 0 ? "mixup, batch" : "batch";
  started_ = threads_.start_all(static_cast<std::size_t>(threads), [this](std::size_t) { work(); });
}

Run::~Run() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  work_.notify_all();
  threads_.wait();
}

bool Run::has_work(std::size_t stage) const {
  if (stage == 0) return begun_ < size() && has_room() && !has_failed_;
  return stage == last() ? !full_.empty() : !stages_[stage].queue.empty();
}

// Nothing is before this stage, because the user has not taken what is ready.
bool Run::is_waiting_for_user(std::size_t stage) const {
  if (begun_ >= size() || has_room()) return false;
  for (std::size_t s = 0; s < stage; ++s) {
    if (stages_[s].workers > 0 || (s > 0 && !stages_[s].queue.empty())) return false;
  }
  return true;
}

// Adds the time since the last change to what each stage was doing.
void Run::account() {
  const Clock::time_point now = Clock::now();
  const double seconds = std::chrono::duration<double>(now - accounted_).count();
  accounted_ = now;
  if (delivered_ == batches_ || has_failed_) return;
  bool is_any_work = false, is_more_to_come = begun_ < size();
  for (std::size_t s = 0; s < stages_.size(); ++s) {
    Stage& stage = stages_[s];
    const bool has = has_work(s);
    is_any_work = is_any_work || has;
    is_more_to_come = is_more_to_come || has || stage.workers > 0;
    if (stage.workers > 0 || !is_more_to_come) continue;
    (has                      ? stage.counters.waited_for_thread
     : is_waiting_for_user(s) ? stage.counters.waited_for_room
                              : stage.counters.waited_for_input) += seconds;
  }
  if (is_any_work && idle_ > 0) idle_with_work_ += seconds;
}

void Run::work() {
  std::unique_lock lock(mutex_);
  while (!is_stopping_) {
    std::size_t stage = stages_.size();
    while (stage > 0 && !has_work(stage - 1)) --stage;
    if (stage == 0) {
      account();
      ++idle_;
      work_.wait(lock);
      account();
      --idle_;
      continue;
    }
    account();
    work_at(stage - 1, lock);
    if (idle_ > 0) work_.notify_one();
  }
}

void Run::work_at(std::size_t stage, std::unique_lock<std::mutex>& lock) {
  ++stages_[stage].workers;
  const Clock::time_point start = Clock::now();
  if (stage == 0) {
    read_one(lock);
  } else if (stage == last()) {
    finish_batch(lock);
  } else {
    run_step(stage, lock);
  }
  account();
  Stage& own = stages_[stage];
  --own.workers;
  ++own.counters.items;
  own.counters.busy += std::chrono::duration<double>(Clock::now() - start).count();
}

Status Run::read(Item& item, bool& is_cached) const {
  const std::int64_t number = item.sample.number;
  is_cached = plan_->cache != nullptr && plan_->cache->find(number, item.sample);
  if (is_cached) return ok_status();
  if (const auto* const giver = dynamic_cast<const SampleGiver*>(plan_->store.get()); giver != nullptr) {
    REEF_ASSIGN_OR_RETURN(item.sample, giver->give(number));
    return ok_status();
  }
  REEF_ASSIGN_OR_RETURN(StoredSample stored, plan_->store->stored(number, {}));
  item.sample.file = std::move(stored.picture);
  item.sample.values = std::move(stored.row);
  if (plan_->store->has_truth()) {
    REEF_ASSIGN_OR_RETURN(item.sample.truth, plan_->store->truth(number));
  }
  return ok_status();
}

void Run::read_one(std::unique_lock<std::mutex>& lock) {
  Item item;
  item.position = begun_++;
  item.sample.number = order_[reef::at(item.position)];
  if (has_work(0) && idle_ > 0) work_.notify_one();
  lock.unlock();
  bool is_cached = false;
  const Status status = or_out_of_memory([&] { return read(item, is_cached); });
  lock.lock();
  if (!status.ok()) return into_batch(std::move(item), status);
  pass_on(is_cached ? plan_->cached_steps + 1 : 0, std::move(item));
}

void Run::run_step(std::size_t stage, std::unique_lock<std::mutex>& lock) {
  Item item = std::move(stages_[stage].queue.front());
  stages_[stage].queue.pop_front();
  lock.unlock();
  const Status status = or_out_of_memory(
      [&] { return plan_->steps[stage - 1].run(item.sample, key(item.sample.number, static_cast<int>(stage))); });
  lock.lock();
  if (!status.ok()) return into_batch(std::move(item), status);
  pass_on(stage, std::move(item));
}

void Run::pass_on(std::size_t from, Item item) {
  if (from + 1 < last()) {
    stages_[from + 1].queue.push_back(std::move(item));
    return;
  }
  into_batch(std::move(item), ok_status());
}

void Run::into_batch(Item item, const Status& status) {
  const std::int64_t number = item.position / plan_->batch, row = item.position % plan_->batch;
  const auto [at, is_new] = filling_.try_emplace(number);
  Filling& filling = at->second;
  if (is_new) {
    filling.samples.resize(static_cast<std::size_t>(batch_size(number)));
    filling.missing = batch_size(number);
  }
  if (!status.ok() && (filling.failed_at < 0 || item.position < filling.failed_at)) {
    filling.failed_at = item.position;
    filling.failure = status.in(plan_->store->place_of(item.sample.number, {}));
  }
  filling.samples[reef::at(row)] = std::move(item.sample);
  if (--filling.missing == 0) full_.push_back(number);
}

void Run::finish_batch(std::unique_lock<std::mutex>& lock) {
  const std::int64_t number = full_.front();
  full_.pop_front();
  Filling filling = std::move(filling_.extract(number).mapped());
  lock.unlock();
  const std::int64_t first = filling.samples[0].number;
  Result<Batch> batch = std::move(filling.failure);
  if (filling.failed_at < 0) {
    batch =
        or_out_of_memory([&] { return make_batch(std::move(filling.samples), plan_->mixup, key(first, kMixupStep)); });
  }
  lock.lock();
  done_.emplace(number, std::move(batch));
  ready_.notify_all();
}

Result<std::optional<Batch>> Run::next() {
  std::unique_lock lock(mutex_);
  if (delivered_ == batches_ || has_failed_) return std::optional<Batch>();
  ready_.wait(lock, [&] { return done_.contains(delivered_); });
  account();
  Result<Batch> batch = std::move(done_.extract(delivered_).mapped());
  ++delivered_;
  has_failed_ = !batch.ok();
  work_.notify_all();
  if (!batch.ok()) return batch.status();
  return std::optional<Batch>(std::move(*batch));
}

std::vector<StageCounters> Run::counters() const {
  const std::lock_guard lock(mutex_);
  std::vector<StageCounters> all;
  for (const Stage& stage : stages_) {
    all.push_back(stage.counters);
    all.back().name = stage.name;
  }
  return all;
}

double Run::idle_with_work() const {
  const std::lock_guard lock(mutex_);
  return idle_with_work_;
}

}  // namespace

Result<std::unique_ptr<FlowRun>> FlowPlan::run(std::shared_ptr<const FlowPlan> plan, std::vector<std::int64_t> order,
                                               std::int64_t epoch) {
  REEF_REQUIRE(!order.empty(), "there are no samples: {} are in the data, and none is left of them",
               plan->store->size());
  auto run = std::make_unique<Run>(std::move(plan), std::move(order), epoch);
  REEF_RETURN_IF_ERROR(run->started());
  return std::unique_ptr<FlowRun>(std::move(run));
}

}  // namespace reef::data
