// SPDX-License-Identifier: Apache-2.0
// Damaged one-op models: bits flipped in the models of tests/vectors. Whole networks mostly fail early when damaged;
// these reach the checks of every single op. Run it in the asan build, with REEF_HOSTILE_OP_FLIPS raised.
#include <cstdlib>
#include <filesystem>
#include <random>

#include <gtest/gtest.h>

#include "hostile.h"
#include "vector_case.h"

namespace reef::testing {
namespace {

constexpr HostileLimits kLimits = {.memory_bytes = std::int64_t{64} << 20, .seconds = 1};

TEST(Hostile, DamagedOpModelsGiveErrorsOrResults) {
  const char* text = std::getenv("REEF_HOSTILE_OP_FLIPS");
  const int flips = text != nullptr ? std::atoi(text) : 3;
  const char* only = std::getenv("REEF_HOSTILE_OP");
  std::mt19937 random(20240229);
  int errors = 0, runs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(REEF_SOURCE_DIR "/tests/vectors")) {
    if (entry.path().extension() != ".jsonl" || (only != nullptr && entry.path().stem() != only)) continue;
    const auto cases = read_vector_file(entry.path().string());
    ASSERT_TRUE(cases.ok()) << cases.status().message();
    for (const VectorCase& vector : *cases) {
      const std::vector<std::uint8_t> whole(vector.model.data(), vector.model.data() + vector.model.size());
      for (int i = 0; i < flips; ++i) {
        std::vector<std::uint8_t> damaged = whole;
        const int bits = 1 + static_cast<int>(random() % 3);
        for (int bit = 0; bit < bits; ++bit) {
          damaged[random() % damaged.size()] ^= static_cast<std::uint8_t>(1U << (random() % 8));
        }
        const Status status = read_and_run(std::move(damaged), kLimits);
        EXPECT_FALSE(!status.ok() && status.message().empty());
        ++(status.ok() ? runs : errors);
      }
    }
  }
  EXPECT_GT(errors, 0);
  EXPECT_GT(runs, 0);
}

}  // namespace
}  // namespace reef::testing
