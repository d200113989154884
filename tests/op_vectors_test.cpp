// SPDX-License-Identifier: Apache-2.0
// Every op against a real TFLite runtime: replays tests/vectors/*.jsonl, one test per op, on one and on three threads.
// Integers must be equal to the bit, floats within each case's recorded tolerance.
#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "ops/registry.h"
#include "vector_case.h"

namespace reef::testing {
namespace {

constexpr int kMaxFailuresShown = 8;  // per op

std::vector<std::string> vector_files() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(REEF_SOURCE_DIR "/tests/vectors")) {
    if (entry.path().extension() == ".jsonl") files.push_back(entry.path().stem().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

class OpVectors : public ::testing::TestWithParam<std::string> {};

TEST_P(OpVectors, EqualRecordedRuntime) {
  const auto cases = read_vector_file(std::string(REEF_SOURCE_DIR "/tests/vectors/") + GetParam() + ".jsonl");
  ASSERT_TRUE(cases.ok()) << cases.status().message();
  ASSERT_FALSE(cases->empty());
  int failures = 0;
  for (const VectorCase& vector : *cases) {
    for (const int threads : {1, 3}) {
      const Status status = replay(vector, threads);
      // What the runtime refused, we may accept; it only must not crash.
      if (status.ok() || vector.runtime_refused) continue;
      if (++failures <= kMaxFailuresShown) {
        ADD_FAILURE() << vector.name << " on " << threads << " threads: " << status.message();
      }
      break;
    }
  }
  EXPECT_EQ(failures, 0) << "of " << cases->size() << " cases";
}

// Operators that are in no runtime that records vectors. tests/posenet_test.cpp compares poses with published ones,
// tests/landmark_ops_test.cpp and tools/oracle/check_mediapipe.py compare MediaPipe's operators with MediaPipe;
// src/passes/chip/function_groups_test.cpp compares ReefFunction with the operators that it stands for.
const std::set<std::string_view> kComparedElsewhere = {"PosenetDecoderOp", "Landmarks2TransformMatrix",
                                                       "TransformLandmarks", "TransformTensorBilinear", "ReefFunction"};

TEST(OpVectorFiles, EveryOpHasRecordedCases) {
  std::set<std::string_view> names;
  for (const ops::OpDef* op : ops::all_ops()) {
    EXPECT_TRUE(names.insert(op->name).second) << op->name << " is listed twice in ops.def";
    if (kComparedElsewhere.contains(op->name)) continue;
    const auto cases = read_vector_file(REEF_SOURCE_DIR "/tests/vectors/" + std::string(op->name) + ".jsonl");
    EXPECT_TRUE(cases.ok() && !cases->empty()) << op->name << " has no recorded cases";
  }
}

INSTANTIATE_TEST_SUITE_P(All, OpVectors, ::testing::ValuesIn(vector_files()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace reef::testing
