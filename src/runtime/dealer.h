// SPDX-License-Identifier: Apache-2.0
// Shares samples out to several devices, so that every one counts once, whatever becomes of the devices.
//
// A worker (a thread with an interpreter) belongs to a device; several may belong to one, so that the host prepares a
// sample while the device works on another. Workers take samples one by one: a slow device takes fewer. A sample that
// failed on a device goes to another one. A device that fails twice in a row is lost and gets no more. Where nothing
// else is left to do, or everybody waits for one sample, a free worker repeats what a slow device has been at for long;
// whoever is first counts. A sample that fails on all devices
// that are left ends the work with its error.
//
// With `window`, results are used in the order of samples, and nobody is further ahead than that: whoever uses them
// slows down those who compute.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/status.h"

namespace reef::runtime {

struct DealerOptions {
  std::int64_t samples = 0;
  std::vector<int> device_of;        // of each worker
  std::vector<std::string> devices;  // names
  std::int64_t window = 0;           // 0: results are used at once, in any order
  // A sample is repeated elsewhere after so many times the median of the samples so far, but not before `patience`.
  double slow_factor = 4;
  std::chrono::milliseconds patience{1000};
};

struct DeviceShare {
  std::string name;
  std::int64_t samples = 0;  // whose results counted
  std::int64_t failures = 0;
  std::int64_t repeated = 0;  // results that came too late
  bool is_lost = false;
  double busy = 0;  // seconds, measured, of all its workers together
  double waited_for_samples = 0, waited_for_room = 0;
  std::string problem;  // the last failure
};

struct DealerReport {
  std::vector<DeviceShare> devices;
  std::vector<double> latencies;   // seconds, measured, from take to hand_in, of the results that counted
  std::vector<std::string> notes;  // what a person should know: lost devices, repeated samples
};
// The latency that so much of the samples (0 to 1) stay below; `sorted` is not empty.
double percentile(const std::vector<double>& sorted, double share);

class Dealer {
 public:
  explicit Dealer(DealerOptions options);

  // The next sample for a worker; nothing: it has no more to do. Waits where others may yet fail, or there is no room.
  std::optional<std::int64_t> take(int worker);
  // The worker has a result. `use` is called once for each sample: at once in this thread, or, with a window, in the
  // order of samples by whichever thread brings the one that was missing, one at a time. Its error ends the work.
  void hand_in(int worker, std::int64_t sample, std::function<Status()> use);
  // The device could not.
  void fail(int worker, std::int64_t sample, const Status& status);
  // The sample itself cannot be had: it ends the work. Of several the error with the lowest number is kept.
  void give_up(std::int64_t sample, const Status& status);

  std::int64_t done() const;
  Status result() const;        // after all workers have ended
  DealerReport report() const;  // the same

 private:
  using Clock = std::chrono::steady_clock;
  struct Attempt {
    int worker = 0;
    Clock::time_point start;
  };

  int device(int worker) const { return options_.device_of[at(worker)]; }
  DeviceShare& share(int worker) { return report_.devices[at(device(worker))]; }
  // All with the lock held.
  bool is_over() const;
  int live_devices() const;
  std::optional<std::int64_t> next_for(int worker);
  std::optional<std::int64_t> slow_one(int worker, Clock::time_point now) const;
  std::chrono::duration<double> slow_limit() const;
  double end_attempt(int worker, std::int64_t sample);
  void use_in_order(std::unique_lock<std::mutex>& lock);
  void note_failure(std::int64_t sample, const Status& status);

  const DealerOptions options_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::int64_t next_ = 0;           // the first that nobody has taken
  std::deque<std::int64_t> again_;  // that failed somewhere
  std::map<std::int64_t, std::vector<Attempt>> running_;
  std::map<std::int64_t, std::set<int>> failed_on_;        // devices
  std::set<std::int64_t> answered_;                        // beyond first_missing_
  std::int64_t first_missing_ = 0;                         // all before it are answered
  std::map<std::int64_t, std::function<Status()>> ready_;  // to be used in order
  std::int64_t next_used_ = 0, used_ = 0;
  bool is_using_ = false;
  std::vector<int> strikes_;  // of devices: failures in a row
  std::int64_t failed_sample_ = -1;
  Status failure_;
  DealerReport report_;
};

}  // namespace reef::runtime
