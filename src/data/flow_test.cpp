// SPDX-License-Identifier: Apache-2.0
#include "data/flow.h"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <set>

#include <gtest/gtest.h>

namespace reef::data {
namespace {

// Pictures of one colour each, from memory; some may be damaged.
class Pictures : public SampleStore {
 public:
  explicit Pictures(std::int64_t count, std::set<std::int64_t> damaged = {}, int side = 4)
      : count_(count), damaged_(std::move(damaged)), side_(side) {}
  std::int64_t size() const override { return count_; }
  Result<StoredSample> stored(std::int64_t sample, const InputSpec&) const override {
    ++reads;
    std::string file = damaged_.contains(sample) ? "no picture " : fmt::format("P6\n{0} {0}\n255\n", side_);
    for (int i = 0; i < side_ * side_ * 3; ++i) file.push_back(static_cast<char>(sample * 3 + i));
    return StoredSample{Bytes(std::vector<std::uint8_t>(file.begin(), file.end())), {}};
  }
  bool has_truth() const override { return true; }
  Result<Truth> truth(std::int64_t sample) const override {
    return Truth{ir::DataType::kInt64, {}, {static_cast<double>(sample % 3)}};
  }
  bool holds_pictures() const override { return true; }
  std::string describe() const override { return "pictures"; }
  std::string name_of(std::int64_t sample) const override { return fmt::format("picture {}", sample); }

  mutable std::atomic<int> reads{0};

 private:
  const std::int64_t count_;
  const std::set<std::int64_t> damaged_;
  const int side_;
};

std::vector<Batch> all_batches(const Flow& flow, std::int64_t epoch = 0) {
  auto run = flow.start(epoch);
  EXPECT_TRUE(run.ok()) << run.status().message();
  std::vector<Batch> batches;
  while (run.ok()) {
    auto batch = (*run)->next();
    EXPECT_TRUE(batch.ok()) << batch.status().message();
    if (!batch.ok() || !batch->has_value()) break;
    batches.push_back(std::move(**batch));
  }
  return batches;
}

Flow varied(const std::shared_ptr<Pictures>& store) {
  Flow flow(store);
  flow.shuffle(7)
      .resize({.width = 9, .height = 7})
      .vary({.crop = 0.5, .shift = 0.2, .flip = 0.5, .brightness = 0.2, .contrast = 0.3, .saturation = 0.4})
      .resize({.width = 6, .height = 6})
      .batch(5)
      .mixup(0.4);
  return flow;
}

bool is_same(const Batch& a, const Batch& b) {
  return a.samples.shape == b.samples.shape && a.samples.data == b.samples.data && a.numbers == b.numbers &&
         a.mixed_with == b.mixed_with && a.share == b.share;
}

TEST(Flow, BytesDoNotDependOnThreads) {
  const auto store = std::make_shared<Pictures>(23);
  const std::vector<Batch> one = all_batches(varied(store).threads(1));
  ASSERT_EQ(one.size(), 5u);
  EXPECT_EQ(one[0].samples.shape, (std::vector<std::int64_t>{5, 6, 6, 3}));
  EXPECT_EQ(one[4].numbers.size(), 3u);
  for (const int threads : {2, 7}) {
    for (const std::int64_t ahead : {0, 5, 100}) {
      const std::vector<Batch> many = all_batches(varied(store).threads(threads).ahead(ahead));
      ASSERT_EQ(many.size(), one.size());
      for (std::size_t i = 0; i < one.size(); ++i) EXPECT_TRUE(is_same(one[i], many[i])) << i;
    }
  }
}

TEST(Flow, OrderIsAFunctionOfSeedAndEpoch) {
  const auto store = std::make_shared<Pictures>(40);
  const auto order = [&](std::uint64_t seed, std::int64_t epoch) { return Flow(store).shuffle(seed).order(epoch); };
  EXPECT_EQ(order(1, 0), order(1, 0));
  EXPECT_NE(order(1, 0), order(1, 1));
  EXPECT_NE(order(1, 0), order(2, 0));
  // Frozen: files of a training run say "seed 1, epoch 2" and mean this order, whatever the version.
  EXPECT_EQ(Flow(std::make_shared<Pictures>(8)).shuffle(1).order(2),
            (std::vector<std::int64_t>{1, 3, 4, 2, 7, 6, 0, 5}));
}

TEST(Flow, ShardsAreTheWholeAndVariedAlike) {
  const auto store = std::make_shared<Pictures>(10);
  const auto samples_of = [&](std::int64_t index, std::int64_t count) {
    Flow flow(store);
    flow.shuffle(3).shard(index, count).vary({.shift = 0.5, .flip = 0.5, .brightness = 0.5});
    std::map<std::int64_t, Bytes> samples;
    for (const Batch& batch : all_batches(flow)) samples.emplace(batch.numbers[0], batch.samples.data);
    return samples;
  };
  const auto whole = samples_of(0, 1);
  ASSERT_EQ(whole.size(), 10u);
  std::size_t seen = 0;
  for (std::int64_t i = 0; i < 3; ++i) {
    for (const auto& [number, data] : samples_of(i, 3)) {
      EXPECT_EQ(whole.at(number), data) << "sample " << number << " is varied alike in its shard";
      ++seen;
    }
  }
  EXPECT_EQ(seen, 10u);
}

TEST(Flow, EpochsAreVariedAnew) {
  const auto store = std::make_shared<Pictures>(6);
  Flow flow(store);
  flow.vary({.brightness = 0.5}).batch(6);
  EXPECT_NE(all_batches(flow, 0)[0].samples.data, all_batches(flow, 1)[0].samples.data);
  EXPECT_EQ(all_batches(flow, 1)[0].samples.data, all_batches(flow, 1)[0].samples.data);
}

TEST(Flow, CacheChangesNothingButReads) {
  const auto store = std::make_shared<Pictures>(9);
  const auto flow = [&](std::int64_t bytes) {
    Flow result(store);
    result.shuffle(5).resize({.width = 3, .height = 3});
    if (bytes > 0) result.cache(bytes);
    result.vary({.flip = 0.5, .brightness = 0.3}).batch(4);
    return result;
  };
  const std::vector<Batch> plain = all_batches(flow(0), 1);
  const Flow cached = flow(1 << 20), small = flow(700);
  (void)all_batches(cached, 0);
  store->reads = 0;
  const std::vector<Batch> second = all_batches(cached, 1);
  EXPECT_EQ(store->reads, 0);
  (void)all_batches(small, 0);
  const std::vector<Batch> third = all_batches(small, 1);
  EXPECT_GT(store->reads, 0) << "what has no room in the cache is read again";
  for (std::size_t i = 0; i < plain.size(); ++i) {
    EXPECT_TRUE(is_same(plain[i], second[i]));
    EXPECT_TRUE(is_same(plain[i], third[i]));
  }
}

// The first sample hangs in a step: all others that there is room for go past it, to the end.
TEST(Flow, NoStageWaitsForAnother) {
  const auto store = std::make_shared<Pictures>(12);
  std::mutex mutex;
  std::condition_variable changed;
  std::int64_t passed = 0;
  Flow flow(store);
  flow.map("hangs",
           [&](FlowSample& sample) {
             std::unique_lock lock(mutex);
             if (sample.number == 0) changed.wait(lock, [&] { return passed == 7; });
             return ok_status();
           })
      .map("counts",
           [&](FlowSample& sample) {
             const std::lock_guard lock(mutex);
             if (sample.number != 0) ++passed;
             changed.notify_all();
             return ok_status();
           })
      .threads(2)
      .ahead(8);
  const std::vector<Batch> batches = all_batches(flow);
  ASSERT_EQ(batches.size(), 12u);
  for (std::size_t i = 0; i < 12; ++i) EXPECT_EQ(batches[i].numbers[0], static_cast<std::int64_t>(i));
}

TEST(Flow, ReadsNoMoreThanMayBeAhead) {
  const auto store = std::make_shared<Pictures>(100);
  Flow flow(store);
  flow.batch(4).threads(3).ahead(8);
  auto run = flow.start(0);
  ASSERT_TRUE(run.ok());
  for (std::int64_t i = 1; i <= 5; ++i) {
    ASSERT_TRUE((*run)->next().ok());
    EXPECT_LE(store->reads, i * 4 + 8);
  }
}

TEST(Flow, CountersSayWhatStagesDid) {
  const auto store = std::make_shared<Pictures>(10);
  Flow flow(store);
  flow.resize({.width = 2, .height = 2}).batch(3);
  auto run = flow.start(0);
  ASSERT_TRUE(run.ok());
  for (;;) {
    const auto batch = (*run)->next();
    ASSERT_TRUE(batch.ok());
    if (!batch->has_value()) break;
  }
  std::map<std::string, std::int64_t> items;
  for (const StageCounters& stage : (*run)->counters()) items[stage.name] = stage.items;
  EXPECT_EQ(items, (std::map<std::string, std::int64_t>{{"read", 10}, {"decode", 10}, {"resize", 10}, {"batch", 4}}));
}

TEST(Flow, DamagedSampleIsNamedAtItsPlace) {
  const auto store = std::make_shared<Pictures>(12, std::set<std::int64_t>{5, 6, 11});
  for (const int threads : {1, 4}) {
    Flow flow(store);
    flow.batch(4).threads(threads);
    auto run = flow.start(0);
    ASSERT_TRUE(run.ok());
    const auto first = (*run)->next();
    ASSERT_TRUE(first.ok());
    EXPECT_EQ((*first)->numbers.size(), 4u);
    const auto second = (*run)->next();
    ASSERT_FALSE(second.ok());
    EXPECT_NE(second.status().message().find("picture 5: "), std::string::npos) << second.status().message();
    EXPECT_FALSE((*(*run)->next()).has_value()) << "after an error there are no more";
  }
}

TEST(Flow, StepsThatDoNotFitAreRefused) {
  const auto store = std::make_shared<Pictures>(4);
  const auto problem = [](const Flow& flow) {
    const auto run = flow.start(0);
    return run.ok() ? std::string() : run.status().message();
  };
  EXPECT_NE(problem(Flow(store).vary({.flip = 0.5}).cache(100)).find("put it before"), std::string::npos);
  EXPECT_NE(problem(Flow(store).shard(2, 2)).find("no part 2 of 2"), std::string::npos);
  EXPECT_NE(problem(Flow(store).batch(0)).find("one sample at least"), std::string::npos);
  EXPECT_NE(problem(Flow(store).vary({.crop = 0})).find("crop"), std::string::npos);
  EXPECT_NE(problem(Flow(store).resize({.width = 0, .height = 3})).find("cannot be made 0 x 3"), std::string::npos);
  EXPECT_NE(problem(Flow(store).take(0)).find("there are no samples: 4 are in the data"), std::string::npos);
}

TEST(Flow, RunsThatAreDroppedEnd) {
  const auto store = std::make_shared<Pictures>(1000);
  for (int i = 0; i < 20; ++i) {
    Flow flow(store);
    flow.batch(3).threads(4);
    auto run = flow.start(i);
    ASSERT_TRUE(run.ok());
    if (i % 2 == 0) {
      ASSERT_TRUE((*run)->next().ok());
    }
  }
}

// ---- Variation ----

TEST(Variation, BoxesMoveWithPixels) {
  image::Image picture;
  picture.width = picture.height = 8;
  picture.channels = 1;
  picture.samples.assign(64, 0);
  picture.samples[1 * 8 + 6] = 200;  // the pixel at x 6, y 1
  const Truth box{ir::DataType::kFloat64, {1, 5}, {6.5 / 8, 1.5 / 8, 1.0 / 8, 1.0 / 8, 3}};
  int seen = 0;
  for (std::int64_t sample = 0; sample < 50; ++sample) {
    image::Image moved = picture;
    std::optional<Truth> truth = box;
    ASSERT_TRUE(vary({.crop = 0.6, .shift = 0.2, .flip = 0.5}, {1, 0, sample, 0}, moved, truth).ok());
    if (truth->shape[0] == 0) continue;  // it left the picture
    const auto x = static_cast<std::size_t>(truth->values[0] * moved.width),
               y = static_cast<std::size_t>(truth->values[1] * moved.height);
    EXPECT_EQ(moved.samples[y * static_cast<std::size_t>(moved.width) + x], 200) << sample;
    EXPECT_EQ(truth->values[4], 3);
    ++seen;
  }
  EXPECT_GT(seen, 20);
}

TEST(Variation, MasksCannotMoveAlong) {
  image::Image picture;
  picture.width = picture.height = 2;
  picture.channels = 1;
  picture.samples.assign(4, 9);
  std::optional<Truth> mask = Truth{ir::DataType::kUInt8, {2, 2}, {0, 1, 1, 0}};
  EXPECT_FALSE(vary({.flip = 1}, {}, picture, mask).ok());
  EXPECT_TRUE(vary({.brightness = 0.1}, {}, picture, mask).ok());
}

TEST(Variation, BetaHasItsMeanAndSpread) {
  for (const double alpha : {0.1, 0.4, 1.0}) {
    KeyedRandom random({1, 2, 3, 4});
    double sum = 0, squares = 0;
    constexpr int kCount = 20000;
    for (int i = 0; i < kCount; ++i) {
      const double x = random.beta(alpha);
      ASSERT_TRUE(x >= 0 && x <= 1);
      sum += x;
      squares += x * x;
    }
    const double mean = sum / kCount, variance = squares / kCount - mean * mean;
    EXPECT_NEAR(mean, 0.5, 0.02);
    EXPECT_NEAR(variance, 1 / (4 * (2 * alpha + 1)), 0.01);
  }
}

}  // namespace
}  // namespace reef::data
