// SPDX-License-Identifier: Apache-2.0
#include "tensorflow_converter.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

namespace reef::app {
namespace {

namespace fs = std::filesystem;

constexpr int kNoTensorflow = 42;  // exit code of the script below

// Written beside the output and renamed, so that half a file never has its name.
constexpr const char* kScript = R"(
import os, sys
os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
try:
    import tensorflow as tf
except ImportError:
    sys.exit(42)
source, target = sys.argv[1], sys.argv[2]
if os.path.isdir(source):
    converter = tf.lite.TFLiteConverter.from_saved_model(source)
else:
    converter = tf.lite.TFLiteConverter.from_keras_model(tf.keras.models.load_model(source, compile=False))
data = converter.convert()
with open(target + '.part', 'wb') as file:
    file.write(data)
os.replace(target + '.part', target)
print('wrote %s (%d bytes, by TensorFlow %s)' % (target, len(data), tf.__version__))
)";

// Runs a program and waits; its exit code, 127: it could not be started.
int run(const std::vector<std::string>& words) {
  std::fflush(stdout);
  const pid_t child = ::fork();
  if (child < 0) return 127;
  if (child == 0) {
    std::vector<char*> arguments;
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    ::execvp(arguments[0], arguments.data());
    ::_exit(127);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return 127;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 126;
}

}  // namespace

bool is_tensorflow_model(const std::string& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) return true;
  const std::string extension = fs::path(path).extension().string();
  return extension == ".keras" || extension == ".h5" || extension == ".hdf5";
}

Status convert_tensorflow_model(const std::string& path, const std::string& output) {
  std::error_code error;
  if (!fs::exists(path, error))
    return Status(StatusCode::kNotFound, fmt::format("cannot read '{}': there is no such file", path));
  if (fs::is_directory(path, error) && !fs::exists(fs::path(path) / "saved_model.pb", error)) {
    return invalid_input("'{}' is a folder without saved_model.pb; it is no SavedModel", path);
  }
  const char* chosen = std::getenv("REEF_PYTHON");
  const std::string python = chosen != nullptr && *chosen != '\0' ? chosen : "python3";
  const int code = run({python, "-c", kScript, path, output});
  if (code == 0) return ok_status();
  if (code == kNoTensorflow || code == 127) {
    return unsupported(
        "'{}' is TensorFlow's own format, which its own converter reads, but {} has no tensorflow. Install it "
        "(python3 -m venv tf && tf/bin/pip install tensorflow), then: REEF_PYTHON=tf/bin/python reef convert {}",
        path, python, path);
  }
  return invalid_input("TensorFlow's converter could not convert '{}' (exit code {}); its message is above", path,
                       code);
}

}  // namespace reef::app
