// SPDX-License-Identifier: Apache-2.0
// Damaged models: every file cut short at many places, and random bits flipped. The shipped models always; the
// collection's where it is present. Counts are modest by default; REEF_HOSTILE_FLIPS and REEF_HOSTILE_CUTS (per file)
// raise them, best in the asan build.
#include <chrono>
#include <cstdlib>
#include <random>

#include <gtest/gtest.h>

#include "base/file.h"
#include "hostile.h"
#include "trials.h"
#include "zoo.h"

namespace reef::testing {
namespace {

std::vector<std::uint8_t> bytes_of(const std::string& path) {
  const auto file = read_file(path, 1 << 30);
  EXPECT_TRUE(file.ok()) << path;
  return {file->data(), file->data() + file->size()};
}

std::vector<std::string> files_to_damage() {
  std::vector<std::string> files = tflite_files(REEF_SOURCE_DIR "/models");
  if (const std::string zoo = zoo_folder(); !zoo.empty()) {
    const auto more = tflite_files(zoo);
    files.insert(files.end(), more.begin(), more.end());
  }
  return files;
}

TEST(Hostile, TruncatedFilesGiveErrors) {
  const int cuts = number_from_environment("REEF_HOSTILE_CUTS", 64);
  int errors = 0, runs = 0;
  for (const std::string& path : files_to_damage()) {
    const std::vector<std::uint8_t> whole = bytes_of(path);
    for (int i = 0; i < cuts; ++i) {
      const auto size =
          static_cast<std::ptrdiff_t>(whole.size() * static_cast<std::size_t>(i) / static_cast<std::size_t>(cuts));
      const Status status = read_and_run({whole.begin(), whole.begin() + size}, {});
      EXPECT_FALSE(!status.ok() && status.message().empty());
      ++(status.ok() ? runs : errors);
    }
  }
  // A FlatBuffers file has its root table near the front but data up to the end: hardly a cut survives.
  std::printf("truncated: %d errors, %d runs\n", errors, runs);
  EXPECT_GT(errors, runs);
}

TEST(Hostile, FlippedBitsGiveErrorsOrRuns) {
  const std::vector<std::string> files = files_to_damage();
  const int flips = number_from_environment("REEF_HOSTILE_FLIPS", 300);
  std::mt19937 random(20240229);
  int errors = 0, runs = 0;
  double slowest = 0;
  for (int i = 0; i < flips; ++i) {
    const std::string& path = files[random() % files.size()];
    std::vector<std::uint8_t> damaged = bytes_of(path);
    const int bits = 1 << (random() % 6);
    for (int k = 0; k < bits; ++k) {
      // Half of the flips go to the last 4 KiB or the first, where structure is; weights make up the rest.
      const std::size_t window = random() % 2 ? std::min<std::size_t>(damaged.size(), 4096) : damaged.size();
      const std::size_t start = random() % 2 ? 0 : damaged.size() - window;
      damaged[start + random() % window] ^= static_cast<std::uint8_t>(1u << (random() % 8));
    }
    SCOPED_TRACE(path);
    const auto begin = std::chrono::steady_clock::now();
    ++(read_and_run(std::move(damaged), {}).ok() ? runs : errors);
    slowest = std::max(slowest, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  std::printf("flipped: %d errors, %d runs, slowest %.2f s\n", errors, runs, slowest);
  EXPECT_GT(errors, 0);
  EXPECT_LT(slowest, 30) << "seconds, with a limit of 2 s for each of prepare and invoke";
}

}  // namespace
}  // namespace reef::testing
