// SPDX-License-Identifier: Apache-2.0
// libreef from outside: through its C header and its C++ wrapper, linked with nothing else of Reef.
#include <filesystem>
#include <fstream>
#include <future>
#include <map>
#include <string>
#include <vector>

#include <unistd.h>

#include <gtest/gtest.h>

#include "reef/reef.h"
#include "reef/reef.hpp"

namespace {

namespace fs = std::filesystem;
const std::string kModels = REEF_SOURCE_DIR "/models/";
const std::string kCreatures = kModels + "reef_creatures_int8.tflite";

class Api : public ::testing::Test {
 protected:
  Api() : folder_(fs::temp_directory_path() / ("reef_api_test_" + std::to_string(::getpid()))) {
    fs::create_directories(folder_);
  }
  ~Api() override { fs::remove_all(folder_); }

  // The files that a compilation of these gives.
  std::vector<std::string> compiled(const std::vector<std::string>& models, int segments = 1) {
    std::vector<const char*> names;
    for (const std::string& model : models) names.push_back(model.c_str());
    reef_compile_options options;
    reef_compile_options_init(&options);
    const std::string folder = folder_.string();
    options.out_dir = folder.c_str();
    options.num_segments = segments;
    EXPECT_EQ(reef_compile(names.data(), names.size(), &options, nullptr), REEF_OK) << reef_error_message();
    std::vector<std::string> files;
    for (const std::string& model : models) {
      const std::string stem = fs::path(model).stem().string();
      for (int i = 0; i < segments; ++i) {
        const std::string part =
            segments == 1 ? "" : "_segment_" + std::to_string(i) + "_of_" + std::to_string(segments);
        files.push_back((folder_ / (stem + part + "_edgetpu.tflite")).string());
      }
    }
    return files;
  }
  fs::path folder_;
};

std::string device_number(std::size_t i) {
  std::string selector = ":";
  selector += std::to_string(i);
  return selector;
}

std::vector<std::uint8_t> picture(const std::string& name, int side) {
  const auto image = reef::Image::load(kModels + name, 3, side, side);
  EXPECT_TRUE(image) << image.error().message;
  return {image->samples().begin(), image->samples().end()};
}

// The first output for this input.
std::vector<std::uint8_t> result_of(reef::Interpreter& interpreter, const std::vector<std::uint8_t>& input) {
  const auto target = interpreter.input(0).data<std::uint8_t>();
  EXPECT_EQ(target.size(), input.size());
  std::copy(input.begin(), input.end(), target.begin());
  const reef::Error error = interpreter.invoke();
  EXPECT_FALSE(error) << error.message;
  const auto output = interpreter.output(0).data<std::uint8_t>();
  return {output.begin(), output.end()};
}

TEST_F(Api, RunsAModelOnTheCpu) {
  const auto model = reef::Model::load(kCreatures);
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_FALSE(model->needs_edge_tpu());
  EXPECT_EQ(model->ops().front(), "QUANTIZE");
  auto interpreter = reef::Interpreter::create(*model, {.profile = true});
  ASSERT_TRUE(interpreter) << interpreter.error().message;
  EXPECT_EQ(interpreter->input(0).dims().size(), 4u);
  EXPECT_EQ(interpreter->input(0).type(), REEF_UINT8);
  const auto scores = result_of(*interpreter, picture("images/crab_1.jpg", 96));
  ASSERT_EQ(scores.size(), 8u);
  EXPECT_EQ(std::max_element(scores.begin(), scores.end()) - scores.begin(), 1) << "a crab";
  EXPECT_NEAR(interpreter->output(0).real(1), 1.0, 0.01);
  EXPECT_GE(interpreter->profile().size(), 20u);
  EXPECT_FALSE(interpreter->device()) << "nothing of it runs on an Edge TPU";
}

TEST_F(Api, TensorsInsideAreKeptWhereThatIsAskedFor) {
  const auto model = reef::Model::load(kCreatures);
  const auto crab = picture("images/crab_1.jpg", 96);
  const int inner = reef_model_op_output(model->c(), 0, 0);
  EXPECT_EQ(reef_model_op_input(model->c(), 0, 0), reef_model_input(model->c(), 0));
  EXPECT_EQ(reef_model_op_input(model->c(), 0, 9), -2);
  auto plain = reef::Interpreter::create(*model),
       keeping = reef::Interpreter::create(*model, {.preserve_all_tensors = true});
  ASSERT_TRUE(plain && keeping);
  EXPECT_EQ(result_of(*plain, crab), result_of(*keeping, crab));
  EXPECT_EQ(plain->tensor(static_cast<std::size_t>(inner)).c().data, nullptr) << "its memory holds others by now";
  const reef_tensor quantized = keeping->tensor(static_cast<std::size_t>(inner)).c();
  ASSERT_NE(quantized.data, nullptr);
  ASSERT_EQ(quantized.bytes, crab.size());
  // QUANTIZE of uint8 to int8 with the same scale.
  for (std::size_t i = 0; i < crab.size(); i += 97) {
    ASSERT_EQ(static_cast<const std::int8_t*>(quantized.data)[i], crab[i] - 128) << i;
  }
  reef_tensor beyond;
  EXPECT_EQ(reef_interpreter_tensor(keeping->c(), 10'000, &beyond), REEF_INVALID_INPUT);
}

TEST_F(Api, RunsACompiledModelOnTheDeviceThatIsAskedFor) {
  const std::string file = compiled({kCreatures})[0];
  const auto model = reef::Model::load(file);
  ASSERT_TRUE(model);
  EXPECT_TRUE(model->needs_edge_tpu());
  auto on_cpu = reef::Interpreter::create(*model, {.device = "cpu"});
  ASSERT_FALSE(on_cpu);
  EXPECT_NE(on_cpu.error().message.find("is compiled for the Edge TPU"), std::string::npos);
  const auto input = picture("images/turtle_1.jpg", 96);
  auto plain = reef::Interpreter::create(*reef::Model::load(kCreatures));
  const auto right = result_of(*plain, input);
  for (const char* device : {":0", "usb:1", "pci:0"}) {
    auto interpreter = reef::Interpreter::create(*model, {.device = device});
    ASSERT_TRUE(interpreter) << interpreter.error().message;
    const auto scores = result_of(*interpreter, input);
    for (std::size_t i = 0; i < right.size(); ++i) EXPECT_NEAR(scores[i], right[i], 3) << device;
    EXPECT_GE(interpreter->device()->runs, 1);
    EXPECT_EQ(std::string(interpreter->device()->selector), std::string(device) == ":0" ? "usb:0" : device);
  }
  EXPECT_EQ(reef::Interpreter::create(*model, {.device = "usb:9"}).error().code, REEF_NOT_FOUND);
}

TEST_F(Api, ModelsCompiledTogetherStayOnTheDevice) {
  const auto files = compiled({kCreatures, kModels + "reef_segmenter_int8.tflite"});
  ASSERT_EQ(reef_devices_set("usb"), REEF_OK);
  auto first = reef::Interpreter::create(*reef::Model::load(files[0]));
  auto second = reef::Interpreter::create(*reef::Model::load(files[1]));
  for (int i = 0; i < 3; ++i) {
    ASSERT_FALSE(first->invoke());
    ASSERT_FALSE(second->invoke());
  }
  EXPECT_EQ(first->device()->runs, 6);
  EXPECT_EQ(first->device()->parameter_loads, 2) << "each brings its parameters once";
  ASSERT_EQ(reef_devices_set("usb,usb,pci,pci"), REEF_OK);
}

TEST_F(Api, SegmentsInAPipelineGiveWhatTheWholeModelGives) {
  const auto files = compiled({kCreatures}, 3);
  std::vector<reef::Interpreter> segments;
  for (std::size_t i = 0; i < files.size(); ++i) {
    auto segment = reef::Interpreter::create(*reef::Model::load(files[i]), {.device = device_number(i)});
    ASSERT_TRUE(segment) << segment.error().message;
    segments.push_back(std::move(segment).value());
  }
  // The segments one after the other, by hand.
  const std::vector<std::string> names = {"crab_1.jpg", "fish_1.jpg", "turtle_2.jpg", "shell_1.jpg", "crab_2.bmp"};
  std::vector<std::vector<std::uint8_t>> right;
  for (const std::string& name : names) {
    std::vector<std::uint8_t> data = picture("images/" + name, 96);
    for (reef::Interpreter& segment : segments) data = result_of(segment, data);
    right.push_back(data);
  }
  const reef::Tensor input = segments[0].input(0);
  auto pipeline = reef::Pipeline::create(std::move(segments));
  ASSERT_TRUE(pipeline) << pipeline.error().message;
  EXPECT_FALSE(pipeline->set_queue_sizes(1, 0));
  EXPECT_EQ(reef_interpreter_prepare(pipeline->segments()[0].c()), REEF_INVALID_INPUT) << "it belongs to the pipeline";
  auto pushed = std::async(std::launch::async, [&] {
    for (const std::string& name : names) {
      const auto pixels = picture("images/" + name, 96);
      reef_tensor tensor = input.c();
      tensor.data = const_cast<std::uint8_t*>(pixels.data());
      if (pipeline->push({tensor})) return false;
    }
    return !pipeline->close();
  });
  for (const auto& expected : right) {
    auto results = pipeline->pop();
    ASSERT_TRUE(results && results->has_value()) << results.error().message;
    const auto data = (**results)[0].data<std::uint8_t>();
    EXPECT_EQ(std::vector<std::uint8_t>(data.begin(), data.end()), expected);
  }
  EXPECT_FALSE(pipeline->pop().value().has_value());
  EXPECT_TRUE(pushed.get());
}

TEST_F(Api, EightThreadsShareAModel) {
  const auto model = reef::Model::load(compiled({kCreatures})[0]);
  const auto input = picture("images/crab_1.jpg", 96);
  auto interpreter = reef::Interpreter::create(*model);
  const auto right = result_of(*interpreter, input);
  std::vector<std::future<bool>> threads;
  for (int t = 0; t < 8; ++t) {
    threads.push_back(std::async(std::launch::async, [&, t] {
      auto own = reef::Interpreter::create(*model, {.device = device_number(static_cast<std::size_t>(t % 4))});
      bool is_right = own.ok();
      for (int i = 0; is_right && i < 3; ++i) is_right = result_of(*own, input) == right;
      return is_right;
    }));
  }
  for (auto& thread : threads) EXPECT_TRUE(thread.get());
}

TEST_F(Api, OneInterpreterInTwoThreadsIsAnErrorNotACrash) {
  auto interpreter = reef::Interpreter::create(*reef::Model::load(kCreatures));
  std::vector<std::future<int>> threads;
  for (int t = 0; t < 8; ++t) {
    threads.push_back(std::async(std::launch::async, [&] {
      int refused = 0;
      for (int i = 0; i < 30; ++i) {
        const reef::Error error = interpreter->invoke();
        if (error && error.message.find("in use by another thread") == std::string::npos) return -1000;
        refused += error ? 1 : 0;
      }
      return refused;
    }));
  }
  for (auto& thread : threads) EXPECT_GE(thread.get(), 0);
}

TEST_F(Api, ResizesInputs) {
  auto interpreter = reef::Interpreter::create(*reef::Model::load(kModels + "reef_creatures_float.tflite"));
  ASSERT_TRUE(interpreter);
  ASSERT_FALSE(interpreter->resize_input(0, {2, 96, 96, 3}));
  EXPECT_EQ(interpreter->invoke().code, REEF_INVALID_INPUT) << "not prepared";
  EXPECT_EQ(interpreter->output(0).data<float>().size(), 0u);
  ASSERT_FALSE(interpreter->prepare());
  EXPECT_EQ(interpreter->input(0).data<float>().size(), 2u * 96 * 96 * 3);
  EXPECT_FALSE(interpreter->invoke());
  EXPECT_EQ(interpreter->output(0).data<float>().size(), 16u);
  EXPECT_TRUE(interpreter->resize_input(0, {-1}));
  EXPECT_TRUE(interpreter->resize_input(7, {1}));
}

TEST_F(Api, WrongUseIsAnErrorWithASentence) {
  EXPECT_EQ(reef_model_load(nullptr, nullptr), REEF_INVALID_INPUT);
  EXPECT_STREQ(reef_error_message(), "the argument 'path' is NULL");
  const auto missing = reef::Model::load("nowhere.tflite");
  EXPECT_FALSE(missing);
  EXPECT_NE(missing.error().message.find("nowhere.tflite"), std::string::npos);
  EXPECT_FALSE(reef::Model::read("TFL3", 4));
  EXPECT_EQ(reef_interpreter_invoke(nullptr), REEF_INVALID_INPUT);
  EXPECT_EQ(reef_interpreter_input_count(nullptr), 0u);
  EXPECT_EQ(reef_model_op(nullptr, 0), nullptr);
  reef_model_free(nullptr);
  reef_interpreter_free(nullptr);
  reef_pipeline_free(nullptr);
  reef_image_free(nullptr);
  ASSERT_EQ(reef_devices_set("none"), REEF_OK);
  EXPECT_EQ(reef_device_count(), 0u);
  EXPECT_EQ(reef_device_find("", nullptr), REEF_INVALID_INPUT);
  std::size_t i = 0;
  EXPECT_EQ(reef_device_find("", &i), REEF_NOT_FOUND);
  EXPECT_EQ(reef_devices_set("tpu"), REEF_INVALID_INPUT);
  ASSERT_EQ(reef_devices_set("usb,usb,pci,pci"), REEF_OK);
}

TEST_F(Api, DamagedModelsAreErrors) {
  std::ifstream file(kCreatures, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  for (std::size_t size = 0; size < bytes.size(); size += bytes.size() / 37) {
    EXPECT_FALSE(reef::Model::read(bytes.data(), size)) << size;
  }
}

TEST_F(Api, CompilesAndTellsOfProgress) {
  std::vector<double> told;
  reef_compile_options options;
  reef_compile_options_init(&options);
  const std::string folder = folder_.string();
  options.out_dir = folder.c_str();
  options.progress_user = &told;
  options.progress = [](void* user, const char*, const char*, double done) {
    static_cast<std::vector<double>*>(user)->push_back(done);
  };
  const char* const models[] = {kCreatures.c_str()};
  char* json = nullptr;
  ASSERT_EQ(reef_compile(models, 1, &options, &json), REEF_OK) << reef_error_message();
  EXPECT_NE(std::string(json).find("\"compiled\": true"), std::string::npos);
  reef_string_free(json);
  EXPECT_TRUE(std::is_sorted(told.begin(), told.end()));
  EXPECT_EQ(told.back(), 1.0);
  const std::string floats = kModels + "reef_creatures_float.tflite";
  const char* const wrong[] = {floats.c_str()};
  EXPECT_EQ(reef_compile(wrong, 1, &options, &json), REEF_INVALID_INPUT);
  EXPECT_NE(std::string(json).find("\"not_quantized\""), std::string::npos);
  reef_string_free(json);
  char* text = nullptr;
  ASSERT_EQ(reef_check(kCreatures.c_str(), nullptr, nullptr, &text), REEF_OK) << reef_error_message();
  EXPECT_NE(std::string(text).find("24 of 24 operators run on the Edge TPU"), std::string::npos) << text;
  reef_string_free(text);
}

TEST_F(Api, CompilesAFloatModelInOneCall) {
  reef::CompileOptions options;
  options.out_dir = folder_.string();
  options.data = kModels + "images";
  options.preprocess = "unit";
  options.quantize.calibration = "minmax";
  const auto report = reef::compile({kModels + "reef_creatures_float.tflite"}, options);
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_NE(report->find("\"quantized\""), std::string::npos);
  EXPECT_TRUE(reef::Model::load((folder_ / "reef_creatures_float_int8_edgetpu.tflite").string()).ok());
  EXPECT_TRUE(std::filesystem::exists(folder_ / "reef_creatures_float_int8.tflite"));
  options.quantize.mode = "dynamic";
  const auto refused = reef::compile({kModels + "reef_creatures_float.tflite"}, options);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("int8 only"), std::string::npos) << refused.error().message;
}

TEST_F(Api, ResultsDoNotReplaceInputs) {
  namespace fs = std::filesystem;
  const fs::path model = folder_ / "m.tflite", link = folder_ / "link.tflite";
  fs::copy_file(kCreatures, model);
  fs::create_symlink(model, link);
  const auto size = fs::file_size(model);
  for (const fs::path& output : {model, link, folder_ / ".." / folder_.filename() / "m.tflite"}) {
    EXPECT_NE(reef_convert(model.c_str(), output.c_str(), nullptr, nullptr), REEF_OK) << output;
    EXPECT_NE(std::string(reef_error_message()).find("would replace the input"), std::string::npos);
    reef_quantize_options quantize;
    reef_quantize_options_init(&quantize);
    quantize.mode = "float16";
    EXPECT_NE(reef_quantize(model.c_str(), output.c_str(), &quantize, nullptr), REEF_OK) << output;
    reef_compile_options compile;
    reef_compile_options_init(&compile);
    compile.out_dir = output.c_str();
    const char* const models[] = {model.c_str()};
    EXPECT_NE(reef_compile(models, 1, &compile, nullptr), REEF_OK) << output;
    EXPECT_EQ(fs::file_size(model), size);
  }
  EXPECT_EQ(reef_convert(model.c_str(), (folder_ / "new.tflite").c_str(), nullptr, nullptr), REEF_OK);
}

TEST_F(Api, ConvertsAModelThatCarriesScalesToIntegers) {
  const std::string model = REEF_SOURCE_DIR "/tests/onnx_exports/test_quantized_conv/model.onnx";
  const std::string output = (folder_ / "converted.tflite").string();
  reef_convert_options options;
  reef_convert_options_init(&options);
  const auto input_type = [&] {
    char* json = nullptr;
    EXPECT_EQ(reef_convert(model.c_str(), output.c_str(), &options, &json), REEF_OK) << reef_error_message();
    const std::string text = json != nullptr ? json : "";
    reef_string_free(json);
    const std::size_t at = text.find("\"type\": \"");
    return at == std::string::npos ? text : text.substr(at + 9, text.find('"', at + 9) - at - 9);
  };
  EXPECT_EQ(input_type(), "int8");
  options.io = "uint8";
  EXPECT_EQ(input_type(), "uint8");
  options.keep_qdq = 1;
  EXPECT_EQ(input_type(), "float32");
  options.io = "int3";
  EXPECT_EQ(reef_convert(model.c_str(), output.c_str(), &options, nullptr), REEF_INVALID_INPUT);
  options.io = "int8";
  options.input_values = "nothing:1";
  EXPECT_EQ(reef_convert(model.c_str(), output.c_str(), &options, nullptr), REEF_INVALID_INPUT);
  EXPECT_NE(std::string(reef_error_message()).find("no such input"), std::string::npos) << reef_error_message();
}

}  // namespace
