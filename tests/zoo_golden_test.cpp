// SPDX-License-Identifier: Apache-2.0
// Whole networks against outputs recorded from TFLite 2.9.1's reference kernels (golden.json of the model collection):
// the SHA-256 of every output must be the recorded one. Also: the planned arena stays close to its lower bound.
#include <cstring>
#include <memory>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/sha256.h"
#include "execute/cpu/interpreter.h"
#include "formats/tflite/reader.h"
#include "vector_case.h"
#include "zoo.h"

namespace reef::testing {
namespace {

constexpr std::uint32_t kFirstSeed = 12345;  // of golden.json's generator; input i takes kFirstSeed + i
// Its recorded output is uninitialized memory in part and differs from one run of that runtime to the next
// (docs/numerics.md), so nothing can be compared with it.
constexpr std::string_view kUndefinedRecording = "tflite/tflite_micro/dtln_noise_suppression.tflite";
constexpr double kMaxArenaRatio = 1.2;  // arena bytes / largest live set

std::string digest_of(const ops::Tensor& tensor) {
  return sha256_hex({reinterpret_cast<const std::uint8_t*>(tensor.data), tensor.bytes});
}

Status run_golden(const std::string& path, const nlohmann::json& recorded, int threads) {
  REEF_ASSIGN_OR_RETURN(ir::Model model, tflite::load_model(path));
  cpu::InterpreterOptions options;
  options.threads = threads;
  options.tflite_release = ops::TfliteRelease::k2_9;  // golden.json's
  REEF_ASSIGN_OR_RETURN(auto interpreter,
                        cpu::Interpreter::create(std::make_shared<const ir::Model>(std::move(model)), options));
  REEF_RETURN_IF_ERROR(interpreter->prepare());
  for (int i = 0; i < interpreter->input_count(); ++i) {
    const std::span<std::byte> target = interpreter->input_bytes(i);
    const auto data = lcg_fill(interpreter->input(i).type, interpreter->input(i).elements(),
                               kFirstSeed + static_cast<std::uint32_t>(i));
    REEF_REQUIRE(data.size() == target.size(), "input {} takes {} bytes", i, target.size());
    std::copy(data.begin(), data.end(), target.begin());
  }
  REEF_RETURN_IF_ERROR(interpreter->invoke());
  for (int i = 0; i < interpreter->output_count(); ++i) {
    const std::string want = recorded.at("outputs").at(static_cast<std::size_t>(i)).at("sha256").get<std::string>();
    REEF_REQUIRE(digest_of(interpreter->output(i)) == want, "output {} ('{}') differs", i, interpreter->output(i).name);
  }
  const cpu::MemoryReport memory = interpreter->memory();
  REEF_REQUIRE(
      static_cast<double>(memory.arena_bytes) <= kMaxArenaRatio * static_cast<double>(memory.largest_live_set_bytes),
      "the arena takes {} bytes for a largest live set of {}", memory.arena_bytes, memory.largest_live_set_bytes);
  return ok_status();
}

TEST(ZooGolden, EveryRecordedModelGivesTheRecordedOutputs) {
  REEF_SKIP_WITHOUT_ZOO(zoo);
  const auto file = read_file(zoo + "/golden.json", 1 << 28);
  ASSERT_TRUE(file.ok()) << file.status().message();
  const auto golden = nlohmann::json::parse(file->data(), file->data() + file->size(), nullptr, false);
  ASSERT_TRUE(golden.contains("models"));
  int passed = 0, left_out = 0;
  for (const auto& [path, recorded] : golden.at("models").items()) {
    if (path == kUndefinedRecording) {
      const Status status = run_golden(zoo + "/" + path, recorded, 2);
      EXPECT_NE(status.message().find("differs"), std::string::npos) << "it should run: " << status.message();
      ++left_out;
      continue;
    }
    const Status status = run_golden(zoo + "/" + path, recorded, 2);
    EXPECT_TRUE(status.ok()) << path << ": " << status.message();
    passed += status.ok();
  }
  EXPECT_EQ(left_out, 1);
  std::printf("%d of %zu recorded models are equal, 1 left out\n", passed, golden.at("models").size());
}

}  // namespace
}  // namespace reef::testing
