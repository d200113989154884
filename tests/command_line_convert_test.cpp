// SPDX-License-Identifier: Apache-2.0
// reef convert on the own formats of TensorFlow, PyTorch and Ultralytics. What is made is compared with the framework
// itself where it is installed (in the Python that $REEF_PYTHON names, or python3); elsewhere the refusal is tested
// alone.
#include <cstdlib>
#include <fstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "command_line.h"

namespace reef::testing {
namespace {

namespace fs = std::filesystem;

std::vector<float> floats(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<float> values;
  for (float value; file.read(reinterpret_cast<char*>(&value), sizeof value);) values.push_back(value);
  return values;
}

class ConvertFrameworks : public CommandLine {
 protected:
  // Runs a Python script in the test's folder; false: it failed.
  bool python(const std::string& interpreter, const std::string& script) const {
    std::ofstream(folder_ / "script.py") << script;
    const std::string command = fmt::format("cd '{}' && {} script.py > python.log 2>&1", folder_.string(), interpreter);
    return std::system(command.c_str()) == 0;
  }
  // All of them, separated by spaces.
  bool has_packages(const std::string& interpreter, const std::string& names) const {
    return python(interpreter, fmt::format("import importlib.util, sys\n"
                                           "sys.exit(any(importlib.util.find_spec(n) is None for n in '{}'.split()))",
                                           names));
  }
  // Converts and runs on x.bin; what comes out is in y.bin.
  void expect_computes_the_same(const std::string& name, const std::string& options, const std::string& maker) {
    const std::string target = written(name + ".tflite");
    const Outcome converted = reef(fmt::format("convert '{}' -o '{}' {}", written(name), target, options));
    ASSERT_EQ(converted.exit_code, 0) << converted.text;
    EXPECT_NE(converted.text.find("converted by " + maker), std::string::npos) << converted.text;
    const Outcome ran = reef(fmt::format("run '{}' --in '{}' --out '{}'", target, written("x.bin"), written("out")));
    ASSERT_EQ(ran.exit_code, 0) << ran.text;
    const std::vector<float> wanted = floats(folder_ / "y.bin"), got = floats(folder_ / "out" / "out0.bin");
    ASSERT_FALSE(wanted.empty());
    ASSERT_EQ(got.size(), wanted.size());
    for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], 1e-4);
  }
  std::string written(const std::string& name) const { return (folder_ / name).string(); }
};

std::string chosen_interpreter() {
  const char* chosen = std::getenv("REEF_PYTHON");
  return chosen != nullptr && *chosen != '\0' ? chosen : "python3";
}

// A model, the folder and files TensorFlow keeps it in, an input and TensorFlow's output for it.
constexpr const char* kMakeModels = R"(
import os
os.environ['TF_CPP_MIN_LOG_LEVEL'] = '3'
import numpy as np, tensorflow as tf
tf.keras.utils.set_random_seed(1)
layers = tf.keras.layers
model = tf.keras.Sequential([layers.Input((8, 8, 3), batch_size=1), layers.Conv2D(4, 3, activation='relu'),
                             layers.DepthwiseConv2D(3, padding='same'), layers.GlobalAveragePooling2D(),
                             layers.Dense(5, activation='softmax')])
model.save('model.keras')
model.export('saved', verbose=False)
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2
called = tf.function(model).get_concrete_function(tf.TensorSpec((1, 8, 8, 3), tf.float32))
frozen = convert_variables_to_constants_v2(called).graph.as_graph_def()
open('frozen.pb', 'wb').write(frozen.SerializeToString())
x = np.random.default_rng(1).uniform(-1, 1, (1, 8, 8, 3)).astype(np.float32)
x.tofile('x.bin')
model(x).numpy().tofile('y.bin')
)";

TEST_F(ConvertFrameworks, KerasFilesAndSavedModelsComputeWhatTensorflowDoes) {
  const std::string interpreter = chosen_interpreter();
  if (!has_packages(interpreter, "tensorflow")) {
    GTEST_SKIP() << interpreter << " has no tensorflow; REEF_PYTHON names one that has";
  }
  ASSERT_TRUE(python(interpreter, kMakeModels));
  for (const char* name : {"model.keras", "saved", "frozen.pb"}) {
    const std::string target = written(std::string(name) + ".tflite");
    const Outcome converted = reef(fmt::format("convert '{}' -o '{}'", written(name), target));
    ASSERT_EQ(converted.exit_code, 0) << converted.text;
    EXPECT_NE(converted.text.find("converted by TensorFlow 2."), std::string::npos) << converted.text;
    EXPECT_NE(converted.text.find("1 CONV_2D"), std::string::npos) << converted.text;
    EXPECT_EQ(converted.text.find("Captures"), std::string::npos) << "TensorFlow's own words are not wanted";
    const Outcome ran = reef(fmt::format("run '{}' --in '{}' --out '{}'", target, written("x.bin"), written("out")));
    ASSERT_EQ(ran.exit_code, 0) << ran.text;
    const std::vector<float> wanted = floats(folder_ / "y.bin"), got = floats(folder_ / "out" / "out0.bin");
    ASSERT_EQ(wanted.size(), 5u);
    ASSERT_EQ(got.size(), wanted.size());
    for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], 1e-5);
  }
  std::ofstream(folder_ / "broken.keras") << "no model";
  const Outcome broken = reef(fmt::format("convert '{}' -o '{}'", written("broken.keras"), written("broken.tflite")));
  EXPECT_EQ(broken.exit_code, 1);
  EXPECT_NE(broken.text.find("could not convert"), std::string::npos) << broken.text;
  EXPECT_FALSE(fs::exists(folder_ / "broken.tflite"));
}

// Batches of any size, as Keras makes them where nobody says otherwise.
constexpr const char* kMakeRecurrentModels = R"(
import os
os.environ['TF_CPP_MIN_LOG_LEVEL'] = '3'
import numpy as np, tensorflow as tf
tf.keras.utils.set_random_seed(1)
layers = tf.keras.layers
model = tf.keras.Sequential([layers.Input((7, 3)), layers.LSTM(4, return_sequences=True), layers.GRU(5), layers.Dense(2)])
model.save('recurrent.keras')
model.export('recurrent', verbose=False)
x = np.random.default_rng(1).uniform(-1, 1, (1, 7, 3)).astype(np.float32)
x.tofile('x.bin')
model(x).numpy().tofile('y.bin')
tf.keras.Sequential([layers.Input((4, 8, 8, 3)), layers.Conv3D(2, 3), layers.MaxPooling3D((1, 2, 2))]).save('video.keras')
)";

TEST_F(ConvertFrameworks, RecurrentKerasModelsWithAnOpenBatchComputeWhatTensorflowDoes) {
  const std::string interpreter = chosen_interpreter();
  if (!has_packages(interpreter, "tensorflow")) {
    GTEST_SKIP() << interpreter << " has no tensorflow; REEF_PYTHON names one that has";
  }
  ASSERT_TRUE(python(interpreter, kMakeRecurrentModels));
  expect_computes_the_same("recurrent.keras", "", "TensorFlow 2.");
  const Outcome saved = reef(fmt::format("convert '{}' -o '{}'", written("recurrent"), written("saved.tflite")));
  EXPECT_EQ(saved.exit_code, 1);
  EXPECT_NE(saved.text.find("export it with a batch of 1"), std::string::npos) << saved.text;
  const Outcome video = reef(fmt::format("convert '{}' -o '{}'", written("video.keras"), written("video.tflite")));
  EXPECT_EQ(video.exit_code, 1);
  EXPECT_NE(video.text.find("has no TFLite operators for MaxPool3D"), std::string::npos) << video.text;
  EXPECT_LT(video.text.size(), 600u) << "TensorFlow's own words are not wanted";
}

TEST_F(ConvertFrameworks, WithoutTensorflowTheRefusalSaysHowToInstallIt) {
  // A Python that sees no installed packages.
  std::ofstream(folder_ / "bare_python") << "#!/bin/sh\nexec python3 -I -S \"$@\"\n";
  fs::permissions(folder_ / "bare_python", fs::perms::owner_all);
  std::ofstream(folder_ / "model.keras") << "anything";
  for (const std::string& interpreter : {written("bare_python"), std::string("/nowhere/python")}) {
    ::setenv("REEF_PYTHON", interpreter.c_str(), 1);
    const Outcome outcome = reef(fmt::format("convert '{}' -o '{}'", written("model.keras"), written("out.tflite")));
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_NE(outcome.text.find("has no tensorflow. Install it"), std::string::npos) << outcome.text;
    EXPECT_NE(outcome.text.find("a format that only TensorFlow reads"), std::string::npos) << outcome.text;
    EXPECT_NE(outcome.text.find("pip install tensorflow"), std::string::npos) << outcome.text;
    EXPECT_FALSE(fs::exists(folder_ / "out.tflite"));
  }
  ::unsetenv("REEF_PYTHON");
}

TEST_F(ConvertFrameworks, AFolderThatIsNoSavedModelIsNamed) {
  const Outcome outcome = reef(fmt::format("convert '{}'", folder_.string()));
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_NE(outcome.text.find("without saved_model.pb"), std::string::npos) << outcome.text;
}

// Inputs and outputs of Reef's models are channels-last.
constexpr const char* kMakeTorchModels = R"(
import numpy as np, torch
torch.manual_seed(1)
nn = torch.nn
net = nn.Sequential(nn.Conv2d(3, 6, 3, padding=1), nn.BatchNorm2d(6), nn.SiLU(), nn.Conv2d(6, 8, 3, stride=2),
                    nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 5)).eval()
x = torch.rand(1, 3, 12, 10)
torch.jit.script(net).save('net.pt')
torch.export.save(torch.export.export(net, (x,)), 'net.pt2')
x.numpy().transpose(0, 2, 3, 1).tofile('x.bin')
net(x).detach().numpy().tofile('y.bin')
)";

TEST_F(ConvertFrameworks, TorchScriptAndExportedProgramsComputeWhatPytorchDoes) {
  const std::string interpreter = chosen_interpreter();
  if (!has_packages(interpreter, "torch onnx onnxscript")) {
    GTEST_SKIP() << interpreter << " has no torch, onnx and onnxscript; REEF_PYTHON names one that has";
  }
  ASSERT_TRUE(python(interpreter, kMakeTorchModels));
  expect_computes_the_same("net.pt", "--input-shape 1,3,12,10", "PyTorch ");
  expect_computes_the_same("net.pt2", "", "PyTorch ");
  const Outcome open = reef(fmt::format("convert '{}' -o '{}'", written("net.pt"), written("open.tflite")));
  EXPECT_EQ(open.exit_code, 1);
  EXPECT_NE(open.text.find("does not say how large its inputs are"), std::string::npos) << open.text;
  EXPECT_NE(open.text.find("--input-shape input:1,3,224,224"), std::string::npos) << open.text;
}

TEST_F(ConvertFrameworks, CheckpointsOfUltralyticsGoThroughItsExporter) {
  const std::string interpreter = chosen_interpreter();
  if (!has_packages(interpreter, "ultralytics onnx")) {
    GTEST_SKIP() << interpreter << " has no ultralytics and onnx; REEF_PYTHON names one that has";
  }
  ASSERT_TRUE(python(interpreter, "import ultralytics\nultralytics.YOLO('yolov8n.yaml').save('yolo.pt')"));
  const Outcome outcome =
      reef(fmt::format("convert '{}' -o '{}' --input-shape 1,3,64,96", written("yolo.pt"), written("yolo.tflite")));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.text;
  EXPECT_NE(outcome.text.find("converted by Ultralytics "), std::string::npos) << outcome.text;
  EXPECT_NE(outcome.text.find("float32[1, 64, 96, 3]"), std::string::npos) << outcome.text;
  EXPECT_FALSE(fs::exists(folder_ / "yolo.onnx")) << "nothing is left beside the checkpoint";
}

}  // namespace
}  // namespace reef::testing
