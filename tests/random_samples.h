// SPDX-License-Identifier: Apache-2.0
// Samples for tests of the quantizer: uniform random numbers, the same for every run and every type of input.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "data/sample_source.h"

namespace reef::testing {

class RandomSamples : public data::SampleSource {
 public:
  RandomSamples(std::int64_t count, float low, float high) : count_(count), low_(low), high_(high) {}
  std::int64_t size() const override { return count_; }
  Status read(std::int64_t sample, const data::InputSpec& input, std::span<std::byte> target) const override {
    std::mt19937 random(static_cast<unsigned>(sample) + 17u + 1000u * static_cast<unsigned>(input.index));
    std::uniform_real_distribution<float> draw(low_, high_);
    for (std::int64_t i = 0; i < input.shape.elements(); ++i) {
      const float v = draw(random);
      if (input.type == ir::DataType::kFloat32) {
        std::memcpy(target.data() + i * 4, &v, 4);
        continue;
      }
      const double q =
          std::round(v / input.quantization.scale[0]) + static_cast<double>(input.quantization.zero_point[0]);
      target[static_cast<std::size_t>(i)] =
          static_cast<std::byte>(static_cast<std::int8_t>(std::clamp(q, -128.0, 127.0)));
    }
    return ok_status();
  }

 private:
  std::int64_t count_;
  float low_, high_;
};

}  // namespace reef::testing
