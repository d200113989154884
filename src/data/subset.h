// SPDX-License-Identifier: Apache-2.0
// Orders of samples and parts of a source: which ones calibrate, which are held back. The same on every machine.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "data/sample_source.h"

namespace reef::data {

std::vector<std::int64_t> in_order(std::int64_t count);
// A permutation of [0, count) that depends on count and seed alone.
std::vector<std::int64_t> shuffled(std::int64_t count, std::uint64_t seed);
// Part `index` of `count`: every count-th of `order`, from number `index` on. Together the parts are the whole.
std::vector<std::int64_t> every_nth(const std::vector<std::int64_t>& order, std::int64_t index, std::int64_t count);

// Some samples of another source, in the order given. Numbers must be in range.
class Subset : public SampleSource {
 public:
  Subset(std::shared_ptr<const SampleSource> source, std::vector<std::int64_t> samples)
      : source_(std::move(source)), samples_(std::move(samples)) {}

  std::int64_t size() const override { return static_cast<std::int64_t>(samples_.size()); }
  Status read(std::int64_t sample, const InputSpec& input, std::span<std::byte> target) const override {
    return source_->read(samples_[at(sample)], input, target);
  }

 private:
  std::shared_ptr<const SampleSource> source_;
  std::vector<std::int64_t> samples_;
};

// Part `held_back` (0 to 1) of the source, chosen by the seed, and the rest; each in the source's order. With two
// samples or more neither is empty unless the share says so.
struct Split {
  std::shared_ptr<const SampleSource> kept, held_back;
};
Split split(const std::shared_ptr<const SampleSource>& source, double held_back, std::uint32_t seed);

}  // namespace reef::data
