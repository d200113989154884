// SPDX-License-Identifier: Apache-2.0
#include "tensorflow_converter.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/file.h"
#include "formats/foreign/foreign_file.h"

namespace reef::app {
namespace {

namespace fs = std::filesystem;

constexpr int kNoTensorflow = 42;  // exit code of the script below

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
with open(target, 'wb') as file:
    file.write(data)
with open(target + '.version', 'w') as file:
    file.write(tf.__version__)
)";

// Runs a program, what it prints into a file, and waits; its exit code, 127: it could not be started.
int run(const std::vector<std::string>& words, const std::string& log) {
  std::fflush(stdout);
  const pid_t child = ::fork();
  if (child < 0) return 127;
  if (child == 0) {
    std::vector<char*> arguments;
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    ::signal(SIGPIPE, SIG_DFL);  // what the program ignores, others need not
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    const int file = ::open(log.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
    if (file >= 0) {
      ::dup2(file, STDOUT_FILENO);
      ::dup2(file, STDERR_FILENO);
    }
    ::execvp(arguments[0], arguments.data());
    ::_exit(127);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return 127;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 126;
}

std::string text_of(const std::string& path) {
  const auto file = read_file(path, std::uint64_t{1} << 24);
  return file.ok() ? std::string(reinterpret_cast<const char*>(file->data()), file->size()) : std::string();
}

bool is_keras_name(const std::string& extension) {
  return extension == ".keras" || extension == ".h5" || extension == ".hdf5";
}

// What the name of a Keras model must end with, by its content; empty: it is none.
std::string keras_extension(const std::string& path) {
  const auto file = read_file(path, std::uint64_t{1} << 32);
  if (!file.ok()) return {};
  const formats::ForeignKind kind = formats::recognize_foreign(*file, path).kind;
  if (kind == formats::ForeignKind::kKeras) return ".keras";
  return kind == formats::ForeignKind::kHdf5 ? ".h5" : "";
}

// The last lines, which say what went wrong.
std::string end_of(const std::string& text) {
  constexpr std::size_t kMost = 2000;
  const std::size_t begin = text.size() <= kMost ? 0 : text.find('\n', text.size() - kMost);
  return text.substr(begin == std::string::npos ? 0 : begin);
}

}  // namespace

bool is_tensorflow_model(const std::string& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) return true;
  const std::string extension = fs::path(path).extension().string();
  if (extension == ".onnx" || extension == ".tflite") return false;
  return is_keras_name(extension) || !keras_extension(path).empty();
}

Result<TensorflowConversion> convert_tensorflow_model(const std::string& path) {
  std::error_code error;
  if (!fs::exists(path, error))
    return Status(StatusCode::kNotFound, fmt::format("cannot read '{}': there is no such file", path));
  if (fs::is_directory(path, error) && !fs::exists(fs::path(path) / "saved_model.pb", error)) {
    return invalid_input("'{}' is a folder without saved_model.pb; it is no SavedModel", path);
  }
  const char* chosen = std::getenv("REEF_PYTHON");
  const std::string python = chosen != nullptr && *chosen != '\0' ? chosen : "python3";
  auto folder = TemporaryFolder::make("reef_tensorflow",
                                      {"model.tflite", "model.tflite.version", "log", "source.keras", "source.h5"});
  if (!folder.ok()) return folder.status();
  const std::string log = folder->path() + "/log";
  std::string source = path;
  // Keras goes by the name: a file with another gets one.
  const std::string wanted = is_keras_name(fs::path(path).extension().string()) ? "" : keras_extension(path);
  if (!wanted.empty()) {
    source = folder->path() + "/source" + wanted;
    fs::create_symlink(fs::absolute(path, error), source, error);
    if (error) return make_error(StatusCode::kIoError, "cannot link '{}' to '{}': {}", source, path, error.message());
  }
  TensorflowConversion made(std::move(*folder));
  const int code = run({python, "-c", kScript, source, made.path()}, log);
  if (code == 0) {
    made.set_version(text_of(made.path() + ".version"));
    return made;
  }
  if (code == kNoTensorflow || code == 127) {
    return unsupported(
        "'{}' is TensorFlow's own format, which its own converter reads, but {} has no tensorflow. Install it "
        "(python3 -m venv tf && tf/bin/pip install tensorflow), then: REEF_PYTHON=tf/bin/python reef convert {}",
        path, python, path);
  }
  return invalid_input("TensorFlow's converter could not convert '{}' (exit code {}): {}", path, code,
                       end_of(text_of(log)));
}

}  // namespace reef::app
