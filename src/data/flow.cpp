// SPDX-License-Identifier: Apache-2.0
// The order of an epoch and what is done to a sample; flow_run.cpp has the threads.
#include "data/flow.h"

#include <algorithm>

#include "data/array_sample.h"
#include "data/flow_plan.h"
#include "data/subset.h"

namespace reef::data {
namespace {

Status decode_sample(int channels, FlowSample& sample) {
  if (!sample.file.empty()) {
    REEF_ASSIGN_OR_RETURN(sample.picture, image::decode(sample.file, channels));
    sample.file = {};
    return ok_status();
  }
  const auto layout = picture_array(sample.values);
  if (!layout) return ok_status();  // numbers
  sample.picture = picture_of(sample.values, *layout, 0);
  sample.values = {};
  return ok_status();
}

// A picture from an array keeps its channels; steps work with any number of them.
Status need_picture(const FlowSample& sample, std::string_view what) {
  REEF_REQUIRE(sample.picture.width > 0, "{} needs pictures; this is {}", what,
               sample.file.empty() ? sample.values.describe() : "not decoded yet");
  return ok_status();
}

}  // namespace

Flow::Flow(std::shared_ptr<const SampleStore> store) : plan_(std::make_shared<FlowPlan>()) {
  plan_->store = std::move(store);
}

Flow& Flow::shuffle(std::uint64_t seed) {
  const auto place = static_cast<std::uint64_t>(plan_->ordering.size());
  plan_->ordering.push_back([seed, place](std::vector<std::int64_t> order, std::int64_t epoch) {
    KeyedRandom random({seed, epoch, 0, static_cast<int>(place)});
    const std::vector<std::int64_t> places = shuffled(std::ssize(order), random.next());
    std::vector<std::int64_t> result;
    result.reserve(order.size());
    for (const std::int64_t at : places) result.push_back(order[reef::at(at)]);
    return result;
  });
  return *this;
}

Flow& Flow::shard(std::int64_t index, std::int64_t count) {
  if (count < 1 || index < 0 || index >= count) {
    plan_->fail(invalid_input("there is no part {} of {}: parts are counted from 0", index, count));
    return *this;
  }
  plan_->ordering.push_back(
      [=](const std::vector<std::int64_t>& order, std::int64_t) { return every_nth(order, index, count); });
  return *this;
}

Flow& Flow::take(std::int64_t count) {
  plan_->ordering.push_back([=](std::vector<std::int64_t> order, std::int64_t) {
    order.resize(static_cast<std::size_t>(std::clamp<std::int64_t>(count, 0, std::ssize(order))));
    return order;
  });
  return *this;
}

Flow& Flow::skip(std::int64_t count) {
  plan_->ordering.push_back([=](std::vector<std::int64_t> order, std::int64_t) {
    order.erase(order.begin(), order.begin() + std::clamp<std::int64_t>(count, 0, std::ssize(order)));
    return order;
  });
  return *this;
}

Flow& Flow::decode(int channels) {
  if (plan_->has_decode) plan_->fail(invalid_input("a pipeline decodes once"));
  if (channels != 1 && channels != 3 && channels != 4)
    plan_->fail(invalid_input("a picture cannot be read as {} channels", channels));
  plan_->has_decode = true;
  plan_->steps.push_back(
      {"decode", [=](FlowSample& sample, const VariationKey&) { return decode_sample(channels, sample); }});
  return *this;
}

Flow& Flow::resize(const Resize& how) {
  constexpr int kMostSide = 1 << 14;
  if (how.width < 1 || how.height < 1 || how.width > kMostSide || how.height > kMostSide)
    plan_->fail(
        invalid_input("a picture cannot be made {} x {}; sides go from 1 to {}", how.width, how.height, kMostSide));
  if (!(how.crop > 0 && how.crop <= 1)) plan_->fail(invalid_input("crop {} is no share between 0 and 1", how.crop));
  plan_->steps.push_back({"resize", [=](FlowSample& sample, const VariationKey&) -> Status {
                            REEF_RETURN_IF_ERROR(need_picture(sample, "resize"));
                            return data::resize(how, sample.picture, sample.truth);
                          }});
  return *this;
}

Flow& Flow::vary(const Variation& how) {
  plan_->fail(data::check(how));
  if (how.is_none()) return *this;
  const int place = plan_->variations++;
  plan_->steps.push_back({"vary", [=](FlowSample& sample, VariationKey key) -> Status {
                            REEF_RETURN_IF_ERROR(need_picture(sample, "augmentation"));
                            key.step = place;  // so that other steps before it change nothing
                            return data::vary(how, key, sample.picture, sample.truth);
                          }});
  return *this;
}

Flow& Flow::map(std::string name, std::function<Status(FlowSample&)> function) {
  plan_->steps.push_back({std::move(name), [function = std::move(function)](FlowSample& sample, const VariationKey&) {
                            return function(sample);
                          }});
  return *this;
}

Flow& Flow::cache(std::int64_t most_bytes) {
  if (plan_->cache != nullptr) plan_->fail(invalid_input("a pipeline has one cache"));
  if (plan_->variations > 0)
    plan_->fail(invalid_input("a cache behind augmentation would keep one variation for ever; put it before"));
  plan_->cache = std::make_shared<SampleCache>(most_bytes);
  plan_->cached_steps = plan_->steps.size();
  plan_->steps.push_back({"cache", [cache = plan_->cache](FlowSample& sample, const VariationKey&) {
                            cache->keep(sample);
                            return ok_status();
                          }});
  return *this;
}

Flow& Flow::batch(std::int64_t size, bool drop_last) {
  if (size < 1) plan_->fail(invalid_input("a batch has one sample at least, not {}", size));
  plan_->batch = std::max<std::int64_t>(size, 1);
  plan_->drop_last = drop_last;
  return *this;
}

Flow& Flow::mixup(double alpha) {
  if (!(alpha > 0 && alpha <= 10)) plan_->fail(invalid_input("mixup: alpha lies between 0 and 10, not {}", alpha));
  plan_->mixup = alpha;
  return *this;
}

Flow& Flow::threads(int count) {
  plan_->threads = std::clamp(count, 1, 256);
  return *this;
}

Flow& Flow::ahead(std::int64_t samples) {
  plan_->ahead = samples;
  return *this;
}

Flow& Flow::variation_seed(std::uint64_t seed) {
  plan_->seed = seed;
  return *this;
}

const SampleStore& Flow::store() const { return *plan_->store; }

std::vector<std::int64_t> Flow::order(std::int64_t epoch) const {
  std::vector<std::int64_t> order = in_order(plan_->store->size());
  for (const auto& change : plan_->ordering) order = change(std::move(order), epoch);
  return order;
}

std::int64_t Flow::size() const { return std::ssize(order(0)); }

Result<std::unique_ptr<FlowRun>> Flow::start(std::int64_t epoch) const {
  REEF_RETURN_IF_ERROR(plan_->problem);
  Flow ready = *this;
  if (!plan_->has_decode) {
    // Directly behind the reading.
    ready.plan_ = std::make_shared<FlowPlan>(*plan_);
    Flow decoding(plan_->store);
    decoding.decode(3);
    ready.plan_->steps.insert(ready.plan_->steps.begin(), decoding.plan_->steps[0]);
    if (ready.plan_->cache != nullptr) ++ready.plan_->cached_steps;
  }
  return FlowPlan::run(ready.plan_, order(epoch), epoch);
}

// ---- The cache ----

namespace {

std::int64_t bytes_of(const FlowSample& sample) {
  return static_cast<std::int64_t>(sample.file.size() + sample.picture.samples.size() + sample.values.data.size() +
                                   sizeof(FlowSample) + (sample.truth ? sample.truth->values.size() * 8 : 0));
}

}  // namespace

void SampleCache::keep(const FlowSample& sample) {
  const std::lock_guard lock(mutex_);
  const std::int64_t bytes = bytes_of(sample);
  if (bytes > left_ || samples_.contains(sample.number)) return;
  left_ -= bytes;
  samples_.emplace(sample.number, std::make_shared<const FlowSample>(sample));
}

bool SampleCache::find(std::int64_t number, FlowSample& sample) const {
  std::shared_ptr<const FlowSample> kept;
  {
    const std::lock_guard lock(mutex_);
    const auto found = samples_.find(number);
    if (found == samples_.end()) return false;
    kept = found->second;
  }
  sample = *kept;
  return true;
}

}  // namespace reef::data
