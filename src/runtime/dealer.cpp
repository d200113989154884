// SPDX-License-Identifier: Apache-2.0
#include "runtime/dealer.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace reef::runtime {
namespace {

constexpr int kStrikes = 2;  // failures in a row after which a device is lost
constexpr std::size_t kFewestForMedian = 3;

using Seconds = std::chrono::duration<double>;

}  // namespace

double percentile(const std::vector<double>& sorted, double share) {
  const double at = std::ceil(share * static_cast<double>(sorted.size())) - 1;
  return sorted[static_cast<std::size_t>(std::clamp(at, 0.0, static_cast<double>(sorted.size()) - 1))];
}

Dealer::Dealer(DealerOptions options) : options_(std::move(options)), strikes_(options_.devices.size()) {
  for (const std::string& name : options_.devices) report_.devices.emplace_back().name = name;
}

bool Dealer::is_over() const { return !failure_.ok() || first_missing_ == options_.samples; }

int Dealer::live_devices() const {
  return static_cast<int>(
      std::count_if(report_.devices.begin(), report_.devices.end(), [](const auto& d) { return !d.is_lost; }));
}

Seconds Dealer::slow_limit() const {
  std::vector<double> known = report_.latencies;
  const auto middle = known.begin() + static_cast<std::ptrdiff_t>(known.size() / 2);
  std::nth_element(known.begin(), middle, known.end());
  return std::max<Seconds>(Seconds(*middle * options_.slow_factor), options_.patience);
}

// What another device has been at for so long that this one had better repeat it.
std::optional<std::int64_t> Dealer::slow_one(int worker, Clock::time_point now) const {
  if (report_.latencies.size() < kFewestForMedian) return std::nullopt;
  const Seconds limit = slow_limit();
  for (const auto& [sample, attempts] : running_) {
    const auto failed = failed_on_.find(sample);
    if (failed != failed_on_.end() && failed->second.contains(device(worker))) continue;
    const bool is_own = std::any_of(attempts.begin(), attempts.end(),
                                    [&](const Attempt& each) { return device(each.worker) == device(worker); });
    if (!is_own && attempts.size() == 1 && now - attempts[0].start >= limit) return sample;
  }
  return std::nullopt;
}

std::optional<std::int64_t> Dealer::next_for(int worker) {
  for (auto at = again_.begin(); at != again_.end(); ++at) {
    if (failed_on_[*at].contains(device(worker))) continue;
    const std::int64_t sample = *at;
    again_.erase(at);
    return sample;
  }
  const bool has_room = options_.window == 0 || next_ < next_used_ + options_.window;
  if (next_ < options_.samples && has_room) return next_++;
  return slow_one(worker, Clock::now());
}

std::optional<std::int64_t> Dealer::take(int worker) {
  std::unique_lock lock(mutex_);
  while (!is_over() && !share(worker).is_lost) {
    if (const auto sample = next_for(worker)) {
      running_[*sample].push_back({worker, Clock::now()});
      return sample;
    }
    const bool wants_room = next_ < options_.samples;
    const Clock::time_point start = Clock::now();
    changed_.wait_for(lock, std::max(options_.patience / 4, std::chrono::milliseconds(1)));
    const double waited = Seconds(Clock::now() - start).count();
    (wants_room ? share(worker).waited_for_room : share(worker).waited_for_samples) += waited;
  }
  return std::nullopt;
}

// Seconds that it took.
double Dealer::end_attempt(int worker, std::int64_t sample) {
  const auto at = running_.find(sample);
  const auto attempt =
      std::find_if(at->second.begin(), at->second.end(), [&](const Attempt& each) { return each.worker == worker; });
  const double seconds = Seconds(Clock::now() - attempt->start).count();
  at->second.erase(attempt);
  if (at->second.empty()) running_.erase(at);
  share(worker).busy += seconds;
  return seconds;
}

void Dealer::hand_in(int worker, std::int64_t sample, std::function<Status()> use) {
  std::unique_lock lock(mutex_);
  const double seconds = end_attempt(worker, sample);
  strikes_[reef::at(device(worker))] = 0;
  if (sample < first_missing_ || answered_.contains(sample)) {
    ++share(worker).repeated;
    return;
  }
  std::erase(again_, sample);  // another device failed at it meanwhile
  answered_.insert(sample);
  ++share(worker).samples;
  report_.latencies.push_back(seconds);
  if (options_.window == 0) {
    // The sample counts as answered already, so that nobody repeats it; the work is not over before it was used.
    lock.unlock();
    const Status status = use();
    lock.lock();
    ++used_;
    if (!status.ok()) note_failure(sample, status);
  } else {
    ready_.emplace(sample, std::move(use));
    if (!is_using_) use_in_order(lock);
  }
  while (answered_.erase(first_missing_) > 0) ++first_missing_;
  changed_.notify_all();
}

// One thread at a time; those that bring results meanwhile leave them to it.
void Dealer::use_in_order(std::unique_lock<std::mutex>& lock) {
  is_using_ = true;
  for (auto at = ready_.find(next_used_); at != ready_.end() && failure_.ok(); at = ready_.find(next_used_)) {
    const std::function<Status()> use = std::move(at->second);
    ready_.erase(at);
    lock.unlock();
    const Status status = use();
    lock.lock();
    if (!status.ok()) note_failure(next_used_, status);
    ++next_used_;
    ++used_;
    changed_.notify_all();
  }
  is_using_ = false;
}

void Dealer::fail(int worker, std::int64_t sample, const Status& status) {
  const std::lock_guard lock(mutex_);
  end_attempt(worker, sample);
  DeviceShare& own = share(worker);
  ++own.failures;
  own.problem = status.message();
  const bool is_answered = sample < first_missing_ || answered_.contains(sample);
  if (!is_answered) {
    std::set<int>& tried = failed_on_[sample];
    tried.insert(device(worker));
    const bool is_tried_everywhere = [&] {
      for (std::size_t d = 0; d < report_.devices.size(); ++d) {
        if (!report_.devices[d].is_lost && !tried.contains(static_cast<int>(d))) return false;
      }
      return true;
    }();
    const bool is_running = running_.contains(sample);  // on another device
    if (!is_running && is_tried_everywhere) {
      note_failure(sample, status);
    } else if (!is_running && std::find(again_.begin(), again_.end(), sample) == again_.end()) {
      again_.push_back(sample);
    }
  }
  int& strikes = strikes_[reef::at(device(worker))];
  if (++strikes >= kStrikes && !own.is_lost && live_devices() > 1) {
    own.is_lost = true;
    report_.notes.push_back(fmt::format("{} is lost after {} failures in a row, its samples go to the others: {}",
                                        own.name, strikes, own.problem));
    // Samples that were tried on all others have nobody left.
    for (const std::int64_t each : std::vector<std::int64_t>(again_.begin(), again_.end())) {
      const std::set<int>& tried = failed_on_[each];
      bool is_left = false;
      for (std::size_t d = 0; d < report_.devices.size(); ++d)
        is_left = is_left || (!report_.devices[d].is_lost && !tried.contains(static_cast<int>(d)));
      if (!is_left) note_failure(each, status);
    }
  }
  changed_.notify_all();
}

void Dealer::give_up(std::int64_t sample, const Status& status) {
  const std::lock_guard lock(mutex_);
  note_failure(sample, status);
  changed_.notify_all();
}

void Dealer::note_failure(std::int64_t sample, const Status& status) {
  if (failed_sample_ >= 0 && failed_sample_ <= sample) return;
  failed_sample_ = sample;
  failure_ = status.in(fmt::format("sample {}", sample));
}

std::int64_t Dealer::done() const {
  const std::lock_guard lock(mutex_);
  return used_;
}

Status Dealer::result() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

DealerReport Dealer::report() const {
  const std::lock_guard lock(mutex_);
  DealerReport report = report_;
  for (const DeviceShare& device : report.devices) {
    if (device.repeated > 0)
      report.notes.push_back(
          fmt::format("{} was slow: {} of its samples were repeated elsewhere", device.name, device.repeated));
    if (device.failures > 0 && !device.is_lost)
      report.notes.push_back(fmt::format("{} failed {} time{}, its samples were repeated: {}", device.name,
                                         device.failures, device.failures == 1 ? "" : "s", device.problem));
  }
  return report;
}

}  // namespace reef::runtime
