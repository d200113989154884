// SPDX-License-Identifier: Apache-2.0
// A whole PoseNet model with its decoder against the poses that Coral recorded for the same picture: every number of
// the record has six digits, and all of them must be equal.
//
// Coral's test resizes the picture with TFLite's optimized float RESIZE_BILINEAR (half-pixel centers) and cuts off the
// fractions. Ours is the same arithmetic in the same order; TFLite's reference kernel differs by one in 11729 samples.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <memory>
#include <sstream>

#include <gtest/gtest.h>

#include "execute/cpu/interpreter.h"
#include "formats/image/image.h"
#include "formats/tflite/reader.h"
#include "runtime/edge_tpu_op.h"
#include "zoo.h"

namespace reef::testing {
namespace {

struct Tap {
  int low = 0, high = 0;
  float fraction = 0;
};

Tap tap(int target, int source_size, int target_size) {
  const float scale = static_cast<float>(source_size) / static_cast<float>(target_size);
  const float at = (static_cast<float>(target) + 0.5f) * scale - 0.5f;
  const int low = std::max(static_cast<int>(std::floor(at)), 0);
  const int high = std::min(static_cast<int>(std::ceil(at)), source_size - 1);
  return {low, high, at - static_cast<float>(low)};
}

std::vector<std::uint8_t> resize_as_coral(const image::Image& source, int width, int height) {
  std::vector<std::uint8_t> result;
  const auto sample = [&](int y, int x, int c) {
    return static_cast<float>(source.samples[static_cast<std::size_t>((y * source.width + x) * source.channels + c)]);
  };
  for (int y = 0; y < height; ++y) {
    const Tap v = tap(y, source.height, height);
    for (int x = 0; x < width; ++x) {
      const Tap u = tap(x, source.width, width);
      for (int c = 0; c < source.channels; ++c) {
        float sum = 0;
        sum += sample(v.low, u.low, c) * ((1 - v.fraction) * (1 - u.fraction));
        sum += sample(v.low, u.high, c) * ((1 - v.fraction) * u.fraction);
        sum += sample(v.high, u.low, c) * (v.fraction * (1 - u.fraction));
        sum += sample(v.high, u.high, c) * (v.fraction * u.fraction);
        result.push_back(static_cast<std::uint8_t>(sum));
      }
    }
  }
  return result;
}

std::string six_digits(float value) { return fmt::format("{:.6g}", value); }

// The model's outputs in the form of the record.
std::vector<std::string> describe_poses(const cpu::Interpreter& interpreter, int width, int height) {
  const auto points = interpreter.output(0).values<float>();
  const auto point_scores = interpreter.output(1).values<float>();
  const auto scores = interpreter.output(2).values<float>();
  const auto count = static_cast<std::size_t>(interpreter.output(3).values<float>()[0]);
  constexpr std::size_t kKeypoints = 17;
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t k = 0; k < kKeypoints; ++k) {
      const std::size_t at = i * kKeypoints + k;
      lines.push_back(fmt::format("{},{},{},{},{},{}", i, six_digits(scores[i]), k, six_digits(point_scores[at]),
                                  six_digits(points[2 * at + 1] / static_cast<float>(width)),
                                  six_digits(points[2 * at] / static_cast<float>(height))));
    }
  }
  return lines;
}

void expect_recorded_poses(const std::string& zoo, const std::string& model_file, const std::string& record_file,
                           const cpu::InterpreterOptions& options) {
  auto model = tflite::load_model(model_file);
  ASSERT_TRUE(model.ok()) << model.status().message();
  auto interpreter = cpu::Interpreter::create(std::make_shared<const ir::Model>(std::move(model).value()), options);
  ASSERT_TRUE(interpreter.ok()) << interpreter.status().message();
  cpu::Interpreter& posenet = **interpreter;
  const Status prepared = posenet.prepare();
  ASSERT_TRUE(prepared.ok()) << prepared.message();
  const auto picture = image::load(zoo + "/silicon/posenet_test_image.bmp", 3);
  ASSERT_TRUE(picture.ok()) << picture.status().message();
  const int height = posenet.input(0).shape[1], width = posenet.input(0).shape[2];
  const std::vector<std::uint8_t> samples = resize_as_coral(*picture, width, height);
  const std::span<std::byte> input = posenet.input_bytes(0);
  ASSERT_EQ(input.size(), samples.size());
  std::transform(samples.begin(), samples.end(), input.begin(), [](std::uint8_t s) { return std::byte{s}; });
  const Status ran = posenet.invoke();
  ASSERT_TRUE(ran.ok()) << ran.message();

  std::ifstream record(record_file);
  std::string line;
  std::getline(record, line);  // names of the columns
  std::vector<std::string> expected;
  while (std::getline(record, line)) expected.push_back(line);
  ASSERT_EQ(expected.size(), 34u) << "two people of 17 key points";
  EXPECT_EQ(describe_poses(posenet, width, height), expected);
}

TEST(Posenet, DecodesThePosesThatCoralRecordedOnACpu) {
  REEF_SKIP_WITHOUT_ZOO(zoo);
  expect_recorded_poses(zoo, zoo + "/pairs/posenet_481_641/source.tflite",
                        zoo + "/silicon/posenet_481_641_reference.csv", {});
}

// A record of real silicon: Google's binary on the virtual device gives the same numbers.
TEST(Posenet, DecodesThePosesThatCoralRecordedOnAnEdgeTpu) {
  REEF_SKIP_WITHOUT_ZOO(zoo);
  cpu::InterpreterOptions options;
  options.foreign_ops.push_back(runtime::edge_tpu_op(std::make_shared<device::Device>()));
  expect_recorded_poses(zoo, zoo + "/pairs/posenet_481_641/v15_edgetpu.tflite",
                        zoo + "/silicon/posenet_481_641_edgetpu_reference.csv", options);
}

// The same of a larger picture, whose outputs go through the scalar core's memory. (Of the record that a CPU made, one
// of 34 key points is elsewhere: the left ear of the second person. That CPU ran TFLite's optimized kernels.)
TEST(Posenet, DecodesThePosesOfALargePictureThatCoralRecordedOnAnEdgeTpu) {
  REEF_SKIP_WITHOUT_ZOO(zoo);
  REEF_SKIP_WITHOUT_WILD(wild);
  cpu::InterpreterOptions options;
  options.foreign_ops.push_back(runtime::edge_tpu_op(std::make_shared<device::Device>()));
  expect_recorded_poses(zoo, wild + "/posenet_721_1281/compiled_edgetpu.tflite",
                        wild + "/silicon/posenet_721_1281_edgetpu_reference.csv", options);
}

}  // namespace
}  // namespace reef::testing
