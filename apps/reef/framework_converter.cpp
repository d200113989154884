// SPDX-License-Identifier: Apache-2.0
#include "framework_converter.h"

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
#include <fmt/ranges.h>

#include "base/file.h"
#include "formats/foreign/foreign_file.h"

namespace reef::app {
namespace {

namespace fs = std::filesystem;

// Exit codes of the scripts below.
constexpr int kNoFramework = 42, kNoShapes = 43, kNoOperators = 44, kOpenBatch = 45;

// All scripts: source, target without its extension, then the inputs' shapes as NAME=1,2,3. They write who made it to
// TARGET.version, and what they miss to TARGET.missing.
constexpr const char* kCommon = R"(
import os, re, sys
os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
source, target = sys.argv[1], sys.argv[2]
shapes = {name: [int(size) for size in sizes.split(',')]
          for name, _, sizes in (text.rpartition('=') for text in sys.argv[3:])}
def made_by(name):
    with open(target + '.version', 'w') as file:
        file.write(name)
def missing(code, text):
    with open(target + '.missing', 'w') as file:
        file.write(text)
    sys.exit(code)
)";

constexpr const char* kTensorflowScript = R"(
try:
    import tensorflow as tf
except ImportError:
    missing(42, 'tensorflow')
def frozen_function():
    graph_def = tf.compat.v1.GraphDef()
    with open(source, 'rb') as file:
        graph_def.ParseFromString(file.read())
    read = {name.lstrip('^').split(':')[0] for node in graph_def.node for name in node.input}
    inputs = [node.name for node in graph_def.node if node.op == 'Placeholder']
    outputs = [node.name for node in graph_def.node
               if node.name not in read and node.op not in ('Const', 'Placeholder', 'NoOp', 'Assert')]
    for node in graph_def.node:
        sizes = shapes.get(node.name, shapes.get('') if len(inputs) == 1 else None)
        if node.op == 'Placeholder' and sizes:
            node.attr['shape'].shape.CopyFrom(tf.TensorShape(sizes).as_proto())
    function = tf.compat.v1.wrap_function(lambda: tf.compat.v1.import_graph_def(graph_def, name=''), [])
    function = function.prune([name + ':0' for name in inputs], [name + ':0' for name in outputs])
    unknown = [t.name.split(':')[0] for t in function.inputs
               if t.shape.rank is None or any(size is None for size in t.shape[1:])]
    if unknown:
        missing(43, ' '.join(unknown))
    return function
def specification(name, tensor, count, unknown):
    sizes = shapes.get(name, shapes.get('') if count == 1 else None)
    if sizes is None and (tensor.shape.rank is None or any(size is None for size in tensor.shape[1:])):
        unknown.append(name)
    return tf.TensorSpec(sizes or [1] + list(tensor.shape[1:] if tensor.shape.rank else []), tensor.dtype, name)
def saved_function():
    loaded = tf.saved_model.load(source)
    signatures = loaded.signatures
    signature = signatures.get('serving_default') or next(iter(signatures.values()), None)
    if signature is None:
        raise ValueError('the SavedModel has no signature, so nothing says what its inputs are')
    taken, unknown = signature.structured_input_signature[1], []
    fixed = {name: specification(name, tensor, len(taken), unknown) for name, tensor in taken.items()}
    if unknown:
        missing(43, ' '.join(unknown))
    return tf.function(lambda **values: signature(**values)).get_concrete_function(**fixed), loaded
def keras_function():
    model = tf.keras.models.load_model(source, compile=False)
    taken, unknown = model.inputs, []
    fixed = [specification(t.name.split(':')[0], tf.TensorSpec(t.shape, t.dtype), len(taken), unknown) for t in taken]
    if unknown:
        missing(43, ' '.join(unknown))
    function = tf.function(lambda *values: model(values[0] if len(values) == 1 else list(values), training=False))
    return function.get_concrete_function(*fixed), model
# The batch is 1: TensorFlow converts recurrent layers to TFLite operators only where it is known.
if source.endswith('.pb') and not os.path.isdir(source):
    converter = tf.lite.TFLiteConverter.from_concrete_functions([frozen_function()])
else:
    function, owner = saved_function() if os.path.isdir(source) else keras_function()
    converter = tf.lite.TFLiteConverter.from_concrete_functions([function])  # freezes what `owner` holds
try:
    data = converter.convert()
except Exception as error:
    without = re.search(r'TF Select ops: (.*)', str(error)) or re.search(r'Custom ops: (.*)', str(error))
    if 'tensor list ops' in str(error):
        missing(45, '')
    if without is None:
        raise
    missing(44, without[1].strip())
with open(target + '.tflite', 'wb') as file:
    file.write(data)
made_by('TensorFlow ' + tf.__version__)
)";

constexpr const char* kTorchScript = R"(
try:
    import torch, onnx
except ImportError as error:
    missing(42, error.name)
import zipfile
members = zipfile.ZipFile(source).namelist()
if any('/code/' in name for name in members) and any(name.endswith('constants.pkl') for name in members):
    module = torch.jit.load(source, map_location='cpu').eval()
    names = [argument.name for argument in module.forward.schema.arguments[1:] if not argument.has_default_value()]
    if len(names) == 1 and '' in shapes:
        shapes[names[0]] = shapes['']
    unknown = [name for name in names if name not in shapes]
    if unknown:
        missing(43, ' '.join(unknown))
    inputs = tuple(torch.zeros(shapes[name]) for name in names)
    torch.onnx.export(module, inputs, target + '.onnx', input_names=names, dynamo=False)
else:
    try:
        import onnxscript
    except ImportError:
        missing(42, 'onnxscript')
    torch.onnx.export(torch.export.load(source), f=target + '.onnx', dynamo=True, external_data=False)
made_by('PyTorch ' + torch.__version__)
)";

constexpr const char* kUltralyticsScript = R"(
os.environ['YOLO_AUTOINSTALL'] = 'False'
try:
    import ultralytics, onnx
except ImportError as error:
    missing(42, error.name)
sizes = next(iter(shapes.values()))[-2:] if shapes else None
model = ultralytics.YOLO(source)
model.export(format='onnx', simplify=False, **({'imgsz': sizes} if sizes else {}))
made_by('Ultralytics ' + ultralytics.__version__)
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

// The last lines of a program's errors. A Python exception is shortened to itself, without the calls that led to it.
std::string end_of(const std::string& text) {
  constexpr std::size_t kMost = 2000, kMostOfException = 600;
  if (const std::size_t calls = text.rfind("Traceback (most recent call last):"); calls != std::string::npos) {
    std::size_t line = text.find('\n', calls);
    while (line != std::string::npos && line + 1 < text.size() && text[line + 1] == ' ')
      line = text.find('\n', line + 1);
    if (line != std::string::npos && line + 1 < text.size()) return text.substr(line + 1, kMostOfException);
  }
  const std::size_t begin = text.size() <= kMost ? 0 : text.find('\n', text.size() - kMost);
  return text.substr(begin == std::string::npos ? 0 : begin);
}

// How one kind of file is converted.
struct Recipe {
  Framework framework = Framework::kTensorflow;
  const char* extension = "";  // that the framework wants the file's name to have; empty: any
};

std::optional<Recipe> recipe_for(const std::string& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) return Recipe{Framework::kTensorflow, ""};
  const std::string extension = fs::path(path).extension().string();
  if (extension == ".onnx" || extension == ".tflite") return std::nullopt;
  // Keras files are recognized by name even if their content is damaged: Keras explains best what is wrong with them.
  if (extension == ".keras") return Recipe{Framework::kTensorflow, ".keras"};
  if (extension == ".h5" || extension == ".hdf5") return Recipe{Framework::kTensorflow, ".h5"};
  const auto file = read_file(path, std::uint64_t{1} << 32);
  if (!file.ok()) return std::nullopt;
  switch (formats::recognize_foreign(*file, path).kind) {
    case formats::ForeignKind::kKeras:
      return Recipe{Framework::kTensorflow, ".keras"};
    case formats::ForeignKind::kHdf5:
      return Recipe{Framework::kTensorflow, ".h5"};
    case formats::ForeignKind::kFrozenGraph:
      return Recipe{Framework::kTensorflow, ".pb"};
    case formats::ForeignKind::kTorchScript:
      return Recipe{Framework::kTorch, ".pt"};
    case formats::ForeignKind::kTorchExport:
      return Recipe{Framework::kTorch, ".pt2"};
    case formats::ForeignKind::kUltralytics:
      return Recipe{Framework::kUltralytics, ".pt"};
    default:
      return std::nullopt;
  }
}

struct Tool {
  const char* name;      // of the framework
  const char* packages;  // that pip installs
  const char* script;
  const char* result;  // file in the folder
};

Tool tool_of(Framework framework) {
  switch (framework) {
    case Framework::kTensorflow:
      return {"TensorFlow", "tensorflow", kTensorflowScript, "model.tflite"};
    case Framework::kTorch:
      return {"PyTorch", "torch onnx onnxscript", kTorchScript, "model.onnx"};
    case Framework::kUltralytics:
      break;
  }
  // Its exporter writes beside what it reads.
  return {"Ultralytics", "ultralytics onnx", kUltralyticsScript, "source.onnx"};
}

Status refusal(const std::string& path, const Tool& tool, const std::string& python, int code,
               const std::string& folder) {
  std::string missing = text_of(folder + "/model.missing");
  if (code == kNoFramework || code == 127) {
    return unsupported(
        "'{0}' is a format that only {1} reads, but {2} has no {3}. Install it (python3 -m venv tools && "
        "tools/bin/pip install {4}), then: REEF_PYTHON=tools/bin/python reef convert {0}",
        path, tool.name, python, missing.empty() ? std::string(tool.packages) : missing, tool.packages);
  }
  if (code == kNoShapes) {
    std::string options;
    for (std::size_t at = 0; at < missing.size();) {
      const std::size_t end = std::min(missing.find(' ', at), missing.size());
      options += fmt::format(" --input-shape {}:1,3,224,224", missing.substr(at, end - at));
      at = end + 1;
    }
    return invalid_input(
        "'{0}' does not say how large its inputs are; give their sizes (instead of these): "
        "reef convert {0}{1}",
        path, options);
  }
  if (code == kNoOperators) {
    return unsupported(
        "{} has no TFLite operators for {} in '{}'; build the model without these layers, or up to the last layer "
        "before them, and save that",
        tool.name, missing, path);
  }
  if (code == kOpenBatch) {
    return unsupported(
        "'{}' has recurrent layers for a batch of any size, for which {} has no TFLite operators; save the Keras model "
        "itself (model.save('model.keras')), or export it with a batch of 1",
        path, tool.name);
  }
  const std::string log = text_of(folder + "/log");
  const bool is_training = log.find("andom") != std::string::npos && tool.script == kTensorflowScript;
  return invalid_input("{} could not convert '{}' (exit code {}): {}{}", tool.name, path, code, end_of(log),
                       is_training ? "\nThe model holds layers for training only (random flips and the like); build it "
                                     "without them, or save the Keras model itself (model.save('model.keras'))"
                                   : "");
}

}  // namespace

std::optional<Framework> framework_of(const std::string& path) {
  const auto recipe = recipe_for(path);
  return recipe ? std::optional(recipe->framework) : std::nullopt;
}

Result<FrameworkConversion> convert_by_framework(Framework framework, const std::string& path,
                                                 const compiler::InputShapes& shapes) {
  std::error_code error;
  if (!fs::exists(path, error))
    return Status(StatusCode::kNotFound, fmt::format("cannot read '{}': there is no such file", path));
  if (fs::is_directory(path, error) && !fs::exists(fs::path(path) / "saved_model.pb", error)) {
    return invalid_input("'{}' is a folder without saved_model.pb; it is no SavedModel", path);
  }
  const char* chosen = std::getenv("REEF_PYTHON");
  const std::string python = chosen != nullptr && *chosen != '\0' ? chosen : "python3";
  const Tool tool = tool_of(framework);
  auto folder = TemporaryFolder::make(
      "reef_convert", {"model.tflite", "model.onnx", "model.version", "model.missing", "log", "source.keras",
                       "source.h5", "source.pb", "source.pt", "source.pt2", "source.onnx"});
  if (!folder.ok()) return folder.status();
  std::string source = path;
  // Frameworks go by the name, and some write beside what they read: the file gets a name here.
  const auto recipe = recipe_for(path);
  if (recipe && *recipe->extension != '\0') {
    source = folder->path() + "/source" + recipe->extension;
    fs::create_symlink(fs::absolute(path, error), source, error);
    if (error) return make_error(StatusCode::kIoError, "cannot link '{}' to '{}': {}", source, path, error.message());
  }
  const std::string target = folder->path() + "/model";
  std::vector<std::string> words = {python, "-c", std::string(kCommon) + tool.script, source, target};
  for (const auto& [name, sizes] : shapes) words.push_back(fmt::format("{}={}", name, fmt::join(sizes, ",")));
  const int code = run(words, folder->path() + "/log");
  if (code != 0) return refusal(path, tool, python, code, folder->path());
  const std::string maker = text_of(target + ".version");
  FrameworkConversion made(std::move(*folder), tool.result);
  if (!fs::exists(made.path(), error)) {
    return invalid_input("{} made no file of '{}': {}", tool.name, path,
                         end_of(text_of(fs::path(made.path()).parent_path().string() + "/log")));
  }
  made.set_maker(maker);
  return made;
}

}  // namespace reef::app
