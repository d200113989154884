// SPDX-License-Identifier: Apache-2.0
#include "compiler/output_check.h"

#include <filesystem>
#include <fstream>

#include <unistd.h>

#include <gtest/gtest.h>

namespace reef::compiler {
namespace {

namespace fs = std::filesystem;

class OutputCheck : public ::testing::Test {
 protected:
  OutputCheck() : folder_(fs::temp_directory_path() / ("reef_output_check_test_" + std::to_string(::getpid()))) {
    for (const char* name : {"pictures/cat", "saved/variables"}) fs::create_directories(folder_ / name);
  }
  ~OutputCheck() override { fs::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  void write(const std::string& name, const std::string& content = "x") const {
    std::ofstream(path(name), std::ios::binary) << content;
  }
  fs::path folder_;
};

// A field of a Protocol Buffer that holds bytes.
std::string field(int number, const std::string& content) {
  return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(content.size())} + content;
}
std::string field(int number, int value) { return {static_cast<char>(number << 3), static_cast<char>(value)}; }

// An ONNX model with one constant, whose data is in a file beside it.
std::string model_with_data_in(const std::string& file) {
  constexpr int kFloat = 1, kExternal = 1;
  const std::string location = field(1, std::string("location")) + field(2, file);
  const std::string tensor =
      field(1, 4) + field(2, kFloat) + field(8, std::string("w")) + field(13, location) + field(14, kExternal);
  return field(1, 8) + field(7, field(5, tensor));
}

TEST_F(OutputCheck, ExternalDataOfAModelIsAnInput) {
  write("m.onnx", model_with_data_in("weights.bin"));
  write("weights.bin");
  write("other.bin");
  const Status status = check_files({{path("weights.bin")}, {path("m.onnx")}, {}, {}});
  EXPECT_NE(status.message().find("would replace the input"), std::string::npos) << status.message();
  EXPECT_TRUE(check_files({{path("other.bin")}, {path("m.onnx")}, {}, {}}).ok());
}

TEST_F(OutputCheck, FilesOfASavedModelAreInputs) {
  write("saved/saved_model.pb");
  write("saved/variables/variables.index");
  for (const char* name : {"saved/saved_model.pb", "saved/variables/variables.index"}) {
    EXPECT_FALSE(check_files({{path(name)}, {path("saved")}, {}, {}}).ok()) << name;
  }
  EXPECT_TRUE(check_files({{path("saved/new.tflite")}, {path("saved")}, {}, {}}).ok());
}

// Pictures and what is known of them are; a model in the same folder, made a minute ago, is not.
TEST_F(OutputCheck, OnlyWhatADatasetReadsIsAnInput) {
  for (const char* name : {"pictures/cat/1.JPG", "pictures/cat/1.txt", "pictures/out.tflite", "labels", "truth"}) {
    write(name);
  }
  data::DatasetOptions data;
  data.path = path("pictures");
  data.labels = path("labels");
  data.truth = path("truth");
  for (const char* name : {"pictures/cat/1.JPG", "pictures/cat/1.txt", "labels", "truth"}) {
    EXPECT_FALSE(check_files({{path(name)}, {}, {data}, {}}).ok()) << name;
  }
  EXPECT_TRUE(check_files({{path("pictures/out.tflite"), path("pictures/new.jpg")}, {}, {data}, {}}).ok());
}

}  // namespace
}  // namespace reef::compiler
