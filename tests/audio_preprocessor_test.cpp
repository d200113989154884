// SPDX-License-Identifier: Apache-2.0
// TFLite-Micro's audio preprocessor, a whole model of its signal ops, against what TFLite-Micro itself computes
// (tflite-micro 0.dev20261023182759 for Python): the SHA-256 of the features of six frames in a row, quiet to loud.
#include <memory>

#include <gtest/gtest.h>

#include "base/sha256.h"
#include "execute/cpu/interpreter.h"
#include "formats/tflite/reader.h"
#include "vector_case.h"
#include "zoo.h"

namespace reef::testing {
namespace {

constexpr std::uint32_t kFirstSeed = 12345;
constexpr int kShifts[] = {6, 4, 5, 2, 3, 0};  // how much quieter than full scale each frame is, in bits

Result<std::string> digest_of_features(const std::string& path) {
  REEF_ASSIGN_OR_RETURN(ir::Model model, tflite::load_model(path));
  REEF_ASSIGN_OR_RETURN(auto interpreter,
                        cpu::Interpreter::create(std::make_shared<const ir::Model>(std::move(model)), {}));
  REEF_RETURN_IF_ERROR(interpreter->prepare());
  std::vector<std::uint8_t> features;
  for (std::uint32_t n = 0; n < std::size(kShifts); ++n) {
    const auto noise = lcg_fill(ir::DataType::kInt16, interpreter->input(0).elements(), kFirstSeed + n);
    const std::span<std::byte> input = interpreter->input_bytes(0);
    REEF_REQUIRE(input.size() == noise.size(), "the input takes {} bytes", input.size());
    for (std::size_t i = 0; i < noise.size(); i += 2) {
      const auto sample =
          static_cast<std::int16_t>(std::to_integer<int>(noise[i]) | std::to_integer<int>(noise[i + 1]) << 8);
      const int quieter = sample >> kShifts[n];
      input[i] = static_cast<std::byte>(quieter & 0xFF);
      input[i + 1] = static_cast<std::byte>((quieter >> 8) & 0xFF);
    }
    REEF_RETURN_IF_ERROR(interpreter->invoke());
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(interpreter->output(0).data);
    features.insert(features.end(), bytes, bytes + interpreter->output(0).bytes);
  }
  return sha256_hex({features.data(), features.size()});
}

TEST(AudioPreprocessor, GivesTheFeaturesOfTfliteMicro) {
  REEF_SKIP_WITHOUT_ZOO(zoo);
  const auto int8 = digest_of_features(zoo + "/tflite/tflite_micro/audio_preprocessor_int8.tflite");
  ASSERT_TRUE(int8.ok()) << int8.status().message();
  EXPECT_EQ(*int8, "02f97e1561a465a156a5f9855accd8dd6f98a4f1cc686568fd94620132c966f3");
  const auto real = digest_of_features(zoo + "/tflite/tflite_micro/audio_preprocessor_float.tflite");
  ASSERT_TRUE(real.ok()) << real.status().message();
  EXPECT_EQ(*real, "aad003b725cbd770b78f655ad5317e25e0a899d8764c730a048c57fbdae5223c");
}

}  // namespace
}  // namespace reef::testing
