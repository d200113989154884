// SPDX-License-Identifier: Apache-2.0
#include "runtime/dealer.h"

#include <atomic>
#include <numeric>
#include <random>
#include <thread>

#include <gtest/gtest.h>

namespace reef::runtime {
namespace {

using Milliseconds = std::chrono::milliseconds;

struct Shares {
  Status status;
  DealerReport report;
  std::vector<int> counted;         // how often each sample was used
  std::vector<std::int64_t> order;  // in which they were used
};

// Runs `compute` for every sample on `devices` devices of two workers each.
Shares run(std::int64_t samples, int devices, std::int64_t window,
           const std::function<Status(int device, std::int64_t sample)>& compute,
           Milliseconds patience = Milliseconds(20)) {
  DealerOptions options;
  options.samples = samples;
  options.window = window;
  options.patience = patience;
  for (int d = 0; d < devices; ++d) {
    options.devices.push_back("usb:" + std::to_string(d));
    options.device_of.insert(options.device_of.end(), {d, d});
  }
  Dealer dealer(options);
  Shares shares;
  shares.counted.resize(static_cast<std::size_t>(samples));
  std::mutex mutex;
  std::vector<std::thread> threads;
  for (int worker = 0; worker < 2 * devices; ++worker) {
    threads.emplace_back([&, worker] {
      while (const auto sample = dealer.take(worker)) {
        const Status status = compute(options.device_of[at(worker)], *sample);
        if (!status.ok()) {
          dealer.fail(worker, *sample, status);
          continue;
        }
        dealer.hand_in(worker, *sample, [&, s = *sample] {
          const std::lock_guard lock(mutex);
          ++shares.counted[at(s)];
          shares.order.push_back(s);
          return ok_status();
        });
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  shares.status = dealer.result();
  shares.report = dealer.report();
  return shares;
}

void expect_each_once(const Shares& shares) {
  EXPECT_TRUE(shares.status.ok()) << shares.status.message();
  for (std::size_t i = 0; i < shares.counted.size(); ++i) EXPECT_EQ(shares.counted[i], 1) << "sample " << i;
  const std::int64_t sum = std::accumulate(shares.report.devices.begin(), shares.report.devices.end(), std::int64_t{0},
                                           [](std::int64_t all, const auto& device) { return all + device.samples; });
  EXPECT_EQ(sum, std::ssize(shares.counted));
}

TEST(Dealer, EverySampleCountsOnce) {
  for (const int devices : {1, 3}) {
    const Shares shares = run(500, devices, 0, [](int, std::int64_t) { return ok_status(); });
    expect_each_once(shares);
    EXPECT_TRUE(shares.report.notes.empty());
  }
}

TEST(Dealer, ResultsAreUsedInOrder) {
  std::atomic<std::int64_t> used{0}, furthest{0};
  const Shares shares = run(300, 4, 16, [&](int device, std::int64_t sample) {
    std::this_thread::sleep_for(std::chrono::microseconds(50 * device));
    std::int64_t before = furthest;
    while (before < sample && !furthest.compare_exchange_weak(before, sample)) {
    }
    return ok_status();
  });
  expect_each_once(shares);
  EXPECT_TRUE(std::is_sorted(shares.order.begin(), shares.order.end()));
}

// Nobody takes sample n + window before sample n was used.
TEST(Dealer, WhoeverUsesResultsSlowsDownThoseWhoCompute) {
  DealerOptions options;
  options.samples = 100;
  options.window = 5;
  options.device_of = {0};
  options.devices = {"usb:0"};
  Dealer dealer(options);
  std::vector<std::int64_t> taken;
  for (int i = 0; i < 5; ++i) taken.push_back(*dealer.take(0));
  std::atomic<bool> has_got{false};
  std::thread sixth([&] {
    taken.push_back(*dealer.take(0));
    has_got = true;
  });
  for (std::int64_t sample = 4; sample > 0; --sample) dealer.hand_in(0, sample, [] { return ok_status(); });
  EXPECT_FALSE(has_got) << "sample 0 is missing, so there is no room";
  dealer.hand_in(0, 0, [] { return ok_status(); });
  sixth.join();
  EXPECT_EQ(taken.back(), 5);
  dealer.give_up(6, invalid_input("enough"));
}

TEST(Dealer, LostDeviceLosesNoSample) {
  for (const std::int64_t window : {0, 8}) {
    std::atomic<int> runs{0};
    const Shares shares = run(200, 4, window, [&](int device, std::int64_t) -> Status {
      if (device == 1 && ++runs > 10) return make_error(StatusCode::kIoError, "it was pulled out");
      std::this_thread::sleep_for(std::chrono::microseconds(100));
      return ok_status();
    });
    expect_each_once(shares);
    EXPECT_TRUE(shares.report.devices[1].is_lost);
    EXPECT_GE(shares.report.devices[1].failures, 2);
    EXPECT_LE(shares.report.devices[1].failures, 4) << "a lost device gets no more";
    ASSERT_FALSE(shares.report.notes.empty());
    EXPECT_NE(shares.report.notes[0].find("usb:1 is lost after"), std::string::npos);
  }
}

TEST(Dealer, AllButOneMayBeLost) {
  const Shares shares = run(100, 4, 8, [&](int device, std::int64_t) -> Status {
    if (device != 2) return make_error(StatusCode::kIoError, "it was pulled out");
    return ok_status();
  });
  expect_each_once(shares);
  EXPECT_EQ(shares.report.devices[2].samples, 100);
}

TEST(Dealer, SampleThatFailsEverywhereEndsTheWork) {
  const Shares shares = run(50, 4, 0, [&](int, std::int64_t sample) -> Status {
    if (sample == 20) return invalid_input("it is too bright");
    return ok_status();
  });
  ASSERT_FALSE(shares.status.ok());
  EXPECT_EQ(shares.status.message(), "sample 20: it is too bright");
  for (const int count : shares.counted) EXPECT_LE(count, 1);
  for (const DeviceShare& device : shares.report.devices) EXPECT_FALSE(device.is_lost) << device.name;
}

// A device that hangs at one sample: another one repeats it, and its own late result does not count.
TEST(Dealer, SlowDeviceDoesNotStopTheOthers) {
  for (const std::int64_t window : {0, 4}) {
    std::mutex mutex;
    std::condition_variable changed;
    bool is_repeated = false;
    const Shares shares = run(60, 3, window, [&](int device, std::int64_t sample) -> Status {
      std::unique_lock lock(mutex);
      if (sample != 30) return ok_status();
      static thread_local int hung = 0;
      if (device == 0 && hung++ == 0 && !is_repeated) {
        changed.wait(lock, [&] { return is_repeated; });
      } else {
        is_repeated = true;
        changed.notify_all();
      }
      return ok_status();
    });
    expect_each_once(shares);
  }
}

TEST(Dealer, WildMixtureCountsEachOnce) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    std::atomic<unsigned> draws{seed * 1000};
    const Shares shares = run(120, 5, seed % 2 == 0 ? 0 : 7, [&](int device, std::int64_t) -> Status {
      std::mt19937 random(draws++);
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 300));
      if (device == 3 && random() % 3 == 0) return make_error(StatusCode::kIoError, "it does not answer");
      return ok_status();
    });
    expect_each_once(shares);
  }
}

TEST(Dealer, PercentilesAreValuesThatOccurred) {
  std::vector<double> values(100);
  std::iota(values.begin(), values.end(), 1);
  EXPECT_EQ(percentile(values, 0.5), 50);
  EXPECT_EQ(percentile(values, 0.99), 99);
  EXPECT_EQ(percentile({7}, 0.99), 7);
}

}  // namespace
}  // namespace reef::runtime
