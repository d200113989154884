// SPDX-License-Identifier: Apache-2.0
// From files to files; models of the collection against what ONNX Runtime made of them.
#include "compiler/quantize_driver.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "data/preprocess.h"
#include "formats/tflite/reader.h"
#include "zoo.h"

namespace reef::compiler {
namespace {

std::string output_file() {
  const std::string name = ::testing::UnitTest::GetInstance()->current_test_info()->name();
  return ::testing::TempDir() + "quantize_driver_" + name + ".tflite";
}

QuantizeRequest creatures() {
  QuantizeRequest request;
  request.model = REEF_SOURCE_DIR "/models/reef_creatures_float.tflite";
  request.output = output_file();
  request.data.path = REEF_SOURCE_DIR "/models/images";
  request.data.use = data::Use::kCalibration;
  request.data.preprocess = "unit";
  request.how.automatic_ranges = false;
  std::filesystem::remove(request.output);
  return request;
}

TEST(QuantizeDriver, WritesAModelThatRemembersItsPreprocessing) {
  const QuantizeRequest request = creatures();
  const auto outcome = quantize_file(request);
  ASSERT_TRUE(outcome.ok()) << outcome.status().message();
  const auto model = tflite::load_model(request.output);
  ASSERT_TRUE(model.ok());
  const auto stored = data::stored_preprocess(*model);
  ASSERT_TRUE(stored.ok() && stored->has_value());
  EXPECT_EQ(data::to_string(**stored), outcome->preprocess);
  EXPECT_GT(outcome->result.error->mean_sqnr_db, 25);
}

TEST(QuantizeDriver, WritesNothingWhenItFails) {
  QuantizeRequest request = creatures();
  request.data.path.clear();
  auto outcome = quantize_file(request);
  ASSERT_FALSE(outcome.ok());
  EXPECT_NE(outcome.status().message().find("samples"), std::string::npos) << outcome.status().message();
  request = creatures();
  request.how.full_integer = true;
  request.how.keep_float = {"*"};
  EXPECT_FALSE(quantize_file(request).ok());
  EXPECT_FALSE(std::filesystem::exists(request.output));
}

QuantizeRequest zoo_request(const std::string& zoo, const std::string& folder, const std::string& file,
                            const std::string& data) {
  QuantizeRequest request;
  request.model = zoo + "/" + folder + "/" + file;
  request.output = output_file();
  request.data.path = zoo + "/data/" + data + "_eval.npz";
  request.data.use = data::Use::kCalibration;
  request.data.preprocess = data == "text" ? "" : "mean=127.5,std=127.5";
  request.how.automatic_ranges = false;
  request.how.threads = 2;
  return request;
}

// Every network of the collection becomes integer, all of it, with outputs near the float model's.
TEST(QuantizeZoo, NetworksFromPyTorchBecomeInteger) {
  REEF_SKIP_WITHOUT_ZOO(zoo);
  const struct {
    const char *name, *data;
    double least_db;
  } cases[] = {{"fashion_cnn", "fashion", 33},
               {"cifar_resnet8", "cifar10", 28},
               {"fashion_gru", "fashion", 30},
               {"cifar_unet_denoise", "denoise", 28},
               {"text_bert_tiny", "text", 22}};
  for (const auto& row : cases) {
    QuantizeRequest request = zoo_request(zoo, "onnx", std::string(row.name) + ".onnx", row.data);
    request.how.full_integer = true;
    const auto outcome = quantize_file(request);
    ASSERT_TRUE(outcome.ok()) << row.name << ": " << outcome.status().message();
    EXPECT_EQ(outcome->result.conversions, 0) << row.name;
    EXPECT_GT(outcome->result.error->mean_sqnr_db, row.least_db) << row.name;
  }
}

// ONNX Runtime's quantized networks (QDQ form) become pure int8 with the scales they carry.
TEST(QuantizeZoo, QuantizedByOnnxRuntime) {
  REEF_SKIP_WITHOUT_ZOO(zoo);
  const struct {
    const char *name, *data;
    double least_db;
  } cases[] = {{"fashion_cnn", "fashion", 35}, {"cifar_resnet8", "cifar10", 26}, {"cifar_unet_denoise", "denoise", 27}};
  for (const auto& row : cases) {
    const auto outcome =
        quantize_file(zoo_request(zoo, "onnx_int8_peer", std::string(row.name) + "_ort_minmax.onnx", row.data));
    ASSERT_TRUE(outcome.ok()) << row.name << ": " << outcome.status().message();
    EXPECT_TRUE(outcome->result.float_ops.empty()) << row.name;
    EXPECT_EQ(outcome->result.calibration_samples, 0) << row.name;
    EXPECT_GT(outcome->result.error->mean_sqnr_db, row.least_db) << row.name;
  }
}

}  // namespace
}  // namespace reef::compiler
