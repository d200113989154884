// SPDX-License-Identifier: Apache-2.0
// The program under the name of Google's compiler, called as existing scripts call it: Ultralytics' and YOLOv5's
// exporters, onnx conversion tools, Coral's partitioner. Each client does what the published code does with the
// process: how it starts it, which streams it reads, what it takes from them.
#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "command_line.h"
#include "formats/tflite/reader.h"
#include "formats/tflite/writer.h"
#include "quantized_model.h"
#include "zoo.h"

namespace reef::testing {
namespace {

constexpr char kVersionLine[] = "Edge TPU Compiler version 16.0.384591198\n";

std::string content(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

class EdgetpuCompiler : public CommandLine {
 protected:
  EdgetpuCompiler() {
    QuantizedModel model;
    const std::int32_t x = model.conv(model.input({1, 16, 16, 3}), 8, 3, 1, "RELU");
    model.name(x, "features");
    const std::int32_t y = model.softmax(model.fully_connected(model.reshape(model.conv(x, 8, 3), {1, 2048}), 10));
    EXPECT_TRUE(tflite::save_model(model.finish({y}), path("model.tflite")).ok());
    QuantizedModel partly;
    const std::int32_t z = partly.conv(partly.input({1, 16, 16, 3}), 8, 3);
    EXPECT_TRUE(tflite::save_model(partly.finish({partly.dequantize(z)}), path("partly.tflite")).ok());
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  bool exists(const std::string& name) const { return std::filesystem::exists(folder_ / name); }

  struct Streams {
    int exit_code = -1;
    std::string out, err;
  };
  // `command` in the shell, in the test's folder, with the program on the path under both of its names.
  Streams shell(const std::string& command) const {
    const std::string folder = std::filesystem::path(REEF_PROGRAM).parent_path().string();
    const std::string line = "cd " + folder_.string() + " && PATH=" + folder + ":$PATH sh -c '" + command + "' >" +
                             path("stdout") + " 2>" + path("stderr");
    const int status = std::system(line.c_str());
    return {WEXITSTATUS(status), content(path("stdout")), content(path("stderr"))};
  }
  // A Python script, as it stands.
  Streams python(const std::string& script) const {
    EXPECT_TRUE(write_file(path("client.py"), script).ok());
    return shell(std::string(REEF_PYTHON) + " client.py");
  }
};

bool contains(const std::string& text, const std::string& words) { return text.find(words) != std::string::npos; }

TEST_F(EdgetpuCompiler, PrintsWhatGooglesPrints) {
  const Streams streams = shell("edgetpu_compiler model.tflite");
  EXPECT_EQ(streams.exit_code, 0) << streams.err;
  const auto at = streams.out.find(" ms.");
  ASSERT_NE(at, std::string::npos) << streams.out;
  EXPECT_TRUE(streams.out.starts_with(std::string(kVersionLine) +
                                      "Started a compilation timeout timer of 180 seconds.\n\n"
                                      "Model compiled successfully in "))
      << streams.out;
  const std::string rest = streams.out.substr(at);
  EXPECT_TRUE(rest.starts_with(" ms.\n\nInput model: model.tflite\nInput size: ")) << rest;
  EXPECT_TRUE(contains(rest, "KiB\nOutput model: model_edgetpu.tflite\nOutput size: ")) << rest;
  EXPECT_TRUE(contains(rest, "\nOn-chip memory used for caching model parameters: ")) << rest;
  EXPECT_TRUE(contains(rest, "\nOn-chip memory remaining for caching model parameters: ")) << rest;
  EXPECT_TRUE(
      rest.ends_with("\nOff-chip memory used for streaming uncached model parameters: 0.00B\n"
                     "Number of Edge TPU subgraphs: 1\nTotal number of operations: 5\n"
                     "Operation log: model_edgetpu.log\n"
                     "See the operation log file for individual operation details.\n"
                     "Compilation child process completed within timeout period.\nCompilation succeeded! \n"))
      << rest;
  EXPECT_EQ(content(path("model_edgetpu.log")), std::string(kVersionLine) +
                                                    "Input: model.tflite\nOutput: model_edgetpu.tflite\n\n"
                                                    "Operator                       Count      Status\n\n"
                                                    "CONV_2D                        2          Mapped to Edge TPU\n"
                                                    "RESHAPE                        1          Mapped to Edge TPU\n"
                                                    "FULLY_CONNECTED                1          Mapped to Edge TPU\n"
                                                    "SOFTMAX                        1          Mapped to Edge TPU\n");
}

TEST_F(EdgetpuCompiler, ShowsOperationsAndWhatStaysOnTheCpu) {
  const Streams streams = shell("edgetpu_compiler -s --no-rewrites -o . partly.tflite");
  EXPECT_EQ(streams.exit_code, 0) << streams.err;
  EXPECT_TRUE(streams.out.ends_with(
      "Operation log: ./partly_edgetpu.log\n\n"
      "Model successfully compiled but not all operations are supported by the Edge TPU. A percentage of the model "
      "will "
      "instead run on the CPU, which is slower. If possible, consider updating your model to use only operations "
      "supported by the Edge TPU. For details, visit g.co/coral/model-reqs.\n"
      "Number of operations that will run on Edge TPU: 1\nNumber of operations that will run on CPU: 1\n\n"
      "Operator                       Count      Status\n\n"
      "CONV_2D                        1          Mapped to Edge TPU\n"
      "DEQUANTIZE                     1          Operation is working on an unsupported data type\n"
      "Compilation child process completed within timeout period.\nCompilation succeeded! \n"))
      << streams.out;
  EXPECT_TRUE(contains(streams.err, "reef check partly.tflite")) << streams.err;
}

// An operator that the chip runs, and that there is no code for unless rewrites replace it (--no-rewrites).
ir::Model without_code() {
  QuantizedModel model;
  const std::int32_t x = model.conv(model.input({1, 8, 8, 4}), 4, 3);
  // Two results of each channel.
  const std::int32_t y = model.depthwise(x);
  ir::Operator& op = model.last_op();
  const std::int32_t weights = model.weights({1, 3, 3, 8});
  model.tensor(weights).quantization.dimension = 3;
  model.tensor(y).shape = {1, 8, 8, 8};
  op.inputs = {op.inputs[0], weights};
  op.attributes.set("depth_multiplier", std::int64_t{2});
  return model.finish({y});
}

TEST_F(EdgetpuCompiler, WhatThereIsNoCodeForStaysOnTheCpu) {
  ASSERT_TRUE(tflite::save_model(without_code(), path("model.tflite")).ok());
  const Streams streams = shell("edgetpu_compiler --no-rewrites model.tflite");
  EXPECT_EQ(streams.exit_code, 0) << streams.err;
  EXPECT_TRUE(
      contains(streams.err, "1 of them only because Reef has no code for them yet, first op 1 DEPTHWISE_CONV_2D"))
      << streams.err;
  EXPECT_TRUE(contains(content(path("model_edgetpu.log")),
                       "DEPTHWISE_CONV_2D              1          Operation is otherwise supported, but not mapped due "
                       "to some unspecified limitation"));
  EXPECT_EQ(shell("reef run model_edgetpu.tflite --device virtual").exit_code, 0);
}

TEST_F(EdgetpuCompiler, AFileWithoutCodeIsWarnedOfAndRefusedEverywhere) {
  ASSERT_TRUE(tflite::save_model(without_code(), path("model.tflite")).ok());
  const Streams streams = shell("edgetpu_compiler --no-rewrites --no-code=package model.tflite");
  EXPECT_TRUE(contains(streams.err, "WARNING: cannot run on an Edge TPU, no machine code: model_edgetpu.tflite"))
      << streams.err;
  for (const char* command : {"reef run model_edgetpu.tflite --device virtual", "reef disasm model_edgetpu.tflite",
                              "reef retarget --template model_edgetpu.tflite model.tflite --dry-run"}) {
    const Streams refused = shell(command);
    EXPECT_EQ(refused.exit_code, 1) << command;
    EXPECT_TRUE(contains(refused.err, "the package holds no machine code")) << command << "\n" << refused.err;
    EXPECT_TRUE(contains(refused.err, "reef retarget")) << refused.err;
  }
  const Streams shown = shell("reef inspect model_edgetpu.tflite");
  EXPECT_EQ(shown.exit_code, 0) << shown.err;
  EXPECT_TRUE(contains(shown.out, "the package holds no machine code")) << shown.out;
  const Streams json = shell("reef inspect --json model_edgetpu.tflite");
  EXPECT_TRUE(contains(json.out, "\"no_machine_code\"")) << json.out;
  const Streams required = shell("rm model_edgetpu.*; edgetpu_compiler --no-rewrites --no-code=fail model.tflite");
  EXPECT_EQ(required.exit_code, 1);
  EXPECT_TRUE(required.out.ends_with("Compilation failed! \n")) << required.out;
  EXPECT_FALSE(exists("model_edgetpu.tflite") || exists("model_edgetpu.log"));
}

TEST_F(EdgetpuCompiler, OptionsCombineAndTakeValuesInEveryForm) {
  for (const char* options :
       {"-sad", "-da", "-aaa", "-s -d -k 10", "-sk10", "--delegate_search_step=3 -d", "-t 5 -m 13", "-o. -n 1",
        "--num_segments=1", "--min_runtime_version 14", "-i features"}) {
    const Streams streams = shell("rm -f model_edgetpu.*; edgetpu_compiler " + std::string(options) + " model.tflite");
    EXPECT_EQ(streams.exit_code, 0) << options << "\n" << streams.err;
    EXPECT_TRUE(streams.out.ends_with("Compilation succeeded! \n")) << options << "\n" << streams.out;
    EXPECT_TRUE(exists("model_edgetpu.tflite")) << options;
  }
  EXPECT_TRUE(contains(shell("edgetpu_compiler -t 5 model.tflite").out, "timeout timer of 5 seconds."));
  const Streams cut = shell("edgetpu_compiler model.tflite -i features");
  EXPECT_TRUE(contains(cut.out, "Number of operations that will run on Edge TPU: 1\n")) << cut.out;
  const Streams searched = shell("edgetpu_compiler -d -k 10 model.tflite");
  EXPECT_TRUE(contains(searched.out,
                       "Searching for valid delegate with step 10\nTry to compile segment with 5 ops\n"
                       "Started a compilation timeout timer of 180 seconds.\n"))
      << searched.out;
}

TEST_F(EdgetpuCompiler, WhatItWritesIsNotCheckedAgain) {
  ASSERT_EQ(shell("edgetpu_compiler model.tflite").exit_code, 0);
  const Streams again = shell("reef check model_edgetpu.tflite");
  EXPECT_EQ(again.exit_code, 1);
  EXPECT_TRUE(contains(again.err, "compiled already") && contains(again.err, "reef inspect")) << again.err;
}

TEST_F(EdgetpuCompiler, RefusesAsGooglesDoes) {
  EXPECT_TRUE(write_file(path("text.tflite"), std::string_view("not a model at all")).ok());
  const Streams text = shell("edgetpu_compiler text.tflite");
  EXPECT_EQ(text.exit_code, 1);
  EXPECT_EQ(text.out, std::string(kVersionLine) + "Invalid model: text.tflite\nModel could not be parsed\n");
  EXPECT_TRUE(contains(text.err, "reef: text.tflite: ")) << text.err;
  QuantizedModel model;
  const std::int32_t x = model.float_input({1, 8});
  const std::int32_t y = model.op("RELU", {x}, {model.computed_plain({1, 8}, ir::DataType::kFloat32, "y")});
  EXPECT_TRUE(tflite::save_model(model.finish({y}), path("float.tflite")).ok());
  const Streams plain = shell("edgetpu_compiler float.tflite");
  EXPECT_EQ(plain.exit_code, 1);
  EXPECT_EQ(plain.out, std::string(kVersionLine) + "Invalid model: float.tflite\nModel not quantized\n");
  EXPECT_TRUE(contains(plain.err, "reef quantize MODEL --data")) << plain.err;
  EXPECT_EQ(shell("edgetpu_compiler").exit_code, 1);
  EXPECT_EQ(shell("edgetpu_compiler --no_such_option model.tflite").exit_code, 1);
  EXPECT_EQ(shell("reef compile --no_such_option model.tflite").exit_code, 2);
  EXPECT_EQ(shell("reef compile --link carrier_pigeon model.tflite").exit_code, 2);
  for (const char* option : {"--rewrite", "--no-rewrite"}) {
    for (const char* command : {"compile", "check"}) {
      const Streams unknown = shell(fmt::format("reef {} {} no-such model.tflite", command, option));
      EXPECT_EQ(unknown.exit_code, 2);
      EXPECT_TRUE(contains(unknown.err, "there is no rewrite 'no-such'; there are ")) << unknown.err;
    }
  }
  EXPECT_EQ(shell("reef compile --timeout_sec 1e300 model.tflite").exit_code, 2);
  EXPECT_EQ(shell("edgetpu_compiler -o absent model.tflite").exit_code, 1);
  EXPECT_FALSE(exists("model_edgetpu.tflite"));
}

TEST_F(EdgetpuCompiler, HelpAndVersion) {
  const Streams help = shell("edgetpu_compiler -h");
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_TRUE(help.out.starts_with(std::string(kVersionLine) + "Usage:\nedgetpu_compiler [options] model...\n"));
  for (const char* option :
       {"-h,--help", "-v,--version", "-o,--out_dir", "-s,--show_operations", "-m,--min_runtime_version",
        "-i,--intermediate_tensors", "-n,--num_segments", "-d,--search_delegate", "-k,--delegate_search_step",
        "-t,--timeout_sec", "-a,--enable_multiple_subgraphs"}) {
    EXPECT_TRUE(contains(help.out, option)) << option;
  }
  for (const char* option : {"-v", "--version"}) {
    const Streams version = shell(std::string("edgetpu_compiler ") + option);
    EXPECT_EQ(version.exit_code, 0);
    EXPECT_EQ(version.out, kVersionLine);
    EXPECT_TRUE(contains(version.err, "This is Reef ")) << version.err;
  }
}

TEST_F(EdgetpuCompiler, ModelsCompiledTogether) {
  const Streams streams = shell("edgetpu_compiler model.tflite partly.tflite");
  EXPECT_EQ(streams.exit_code, 0) << streams.err;
  EXPECT_TRUE(contains(streams.out, "\nModels compiled successfully in ")) << streams.out;
  EXPECT_LT(streams.out.find("Input model: model.tflite"), streams.out.find("Input model: partly.tflite"));
  EXPECT_TRUE(exists("model_edgetpu.tflite") && exists("partly_edgetpu.log"));
}

TEST_F(EdgetpuCompiler, JsonForReefsOwnUsers) {
  const Streams streams = shell("reef compile --json model.tflite -o .");
  ASSERT_EQ(streams.exit_code, 0) << streams.err;
  const auto json = nlohmann::json::parse(streams.out);
  EXPECT_EQ(json["compatible_with"], "16.0.384591198");
  EXPECT_EQ(json["has_all_code"], true);
  const auto& file = json["files"][0];
  EXPECT_EQ(file["output"], "./model_edgetpu.tflite");
  EXPECT_EQ(file["memory"]["kind"], "estimated");
  EXPECT_EQ(file["check"]["operators_on_edgetpu"], 5);
  EXPECT_EQ(file["edge_tpu_subgraphs"][0]["has_code"], true);
  const Streams refused = shell("reef compile --json absent.tflite");
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_EQ(nlohmann::json::parse(refused.out)["refusals"][0]["kind"], "not_parsed");
}

// ---- Clients ----

// Ultralytics, engine/exporter.py: asks for the version, takes its last word, compiles through the shell, then appends
// a zip archive with metadata to the result.
TEST_F(EdgetpuCompiler, Ultralytics) {
  const Streams streams = python(R"(
import json, subprocess, zipfile
from pathlib import Path
cmd = "edgetpu_compiler --version"
assert subprocess.run(cmd, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, shell=True).returncode == 0
ver = subprocess.run(cmd, shell=True, capture_output=True, check=True).stdout.decode().rsplit(maxsplit=1)[-1]
assert ver == "16.0.384591198", ver
tflite_model = Path("exported model/yolo_full_integer_quant.tflite")
tflite_model.parent.mkdir()
tflite_model.write_bytes(Path("model.tflite").read_bytes())
f = str(tflite_model).replace(".tflite", "_edgetpu.tflite")
cmd = (
    "edgetpu_compiler "
    f'--out_dir "{Path(f).parent}" '
    "--show_operations "
    "--search_delegate "
    "--delegate_search_step 30 "
    "--timeout_sec 180 "
    f'"{tflite_model}"'
)
assert subprocess.run(cmd, shell=True).returncode == 0
with zipfile.ZipFile(f, "a", zipfile.ZIP_DEFLATED) as zf:
    zf.writestr("metadata.json", json.dumps({"task": "detect"}, indent=2))
assert zipfile.ZipFile(f).namelist() == ["metadata.json"]
)");
  EXPECT_EQ(streams.exit_code, 0) << streams.err;
  EXPECT_TRUE(contains(streams.out, "Searching for valid delegate with step 30")) << streams.out;
  EXPECT_TRUE(tflite::load_model(path("exported model/yolo_full_integer_quant_edgetpu.tflite")).ok());
}

// YOLOv5, export.py: no shell, arguments one by one, and a failure raises.
TEST_F(EdgetpuCompiler, YoloV5) {
  const Streams streams = python(R"(
import subprocess
cmd = 'edgetpu_compiler --version'
assert subprocess.run(f'{cmd} > /dev/null 2>&1', shell=True).returncode == 0
assert subprocess.run(cmd, shell=True, capture_output=True, check=True).stdout.decode().split()[-1] == '16.0.384591198'
open('best-int8.tflite', 'wb').write(open('model.tflite', 'rb').read())
subprocess.run(["edgetpu_compiler", "-s", "-d", "-k", "10", "--out_dir", ".", "best-int8.tflite"], check=True)
assert open('best-int8_edgetpu.tflite', 'rb').read()[4:8] == b'TFL3'
)");
  EXPECT_EQ(streams.exit_code, 0) << streams.err;
}

// Conversion tools take all of standard output and show standard error only when the call fails.
TEST_F(EdgetpuCompiler, ConversionTools) {
  const Streams streams = python(R"(
import subprocess
result = subprocess.check_output(['edgetpu_compiler', '-o', '.', '-s', 'model.tflite'], stderr=subprocess.PIPE)
assert result.decode('utf-8').startswith('Edge TPU Compiler version')
try:
    subprocess.check_output(['edgetpu_compiler', '-o', '.', '-s', 'absent.tflite'], stderr=subprocess.PIPE)
    assert False
except subprocess.CalledProcessError as e:
    assert e.stderr.decode('utf-8'), 'an explanation'
)");
  EXPECT_EQ(streams.exit_code, 0) << streams.err;
}

// Benchmarks read figures out of both streams together.
TEST_F(EdgetpuCompiler, ScriptsThatReadTheFigures) {
  const Streams streams = python(R"(
import re, subprocess
r = subprocess.run(['edgetpu_compiler', '-s', '--no-rewrites', 'partly.tflite'], capture_output=True, text=True, timeout=600)
txt = r.stdout + r.stderr
grab = lambda pat: (re.search(pat, txt).group(1) if re.search(pat, txt) else None)
assert re.fullmatch(r'\d+\.\d\d(B|KiB|MiB)', grab(r'On-chip memory used for caching model parameters:\s*(.+)'))
assert re.fullmatch(r'\d+\.\d\d(B|KiB|MiB)', grab(r'On-chip memory remaining[^:]*:\s*(.+)'))
assert grab(r'Off-chip memory used for streaming uncached model parameters:\s*(.+)') == '0.00B'
assert grab(r'Number of operations that will run on Edge TPU:\s*(\d+)') == '1'
assert grab(r'Number of operations that will run on CPU:\s*(\d+)') == '1'
assert re.search(r'(\S+)\s+(\d+)\s+Mapped to Edge TPU', txt).groups() == ('CONV_2D', '1')
)");
  EXPECT_EQ(streams.exit_code, 0) << streams.err;
}

// Coral's libcoral, coral/tools/partitioner: options on both sides of the model, then files by their names.
TEST_F(EdgetpuCompiler, CoralsPartitioner) {
  const Streams streams =
      shell("edgetpu_compiler --search_delegate --out_dir=. --num_segments=2 model.tflite --delegate_search_step=1");
  EXPECT_EQ(streams.exit_code, 0) << streams.err;
  for (const char* name : {"model_segment_0_of_2_edgetpu", "model_segment_1_of_2_edgetpu"}) {
    EXPECT_TRUE(exists(std::string(name) + ".tflite") && exists(std::string(name) + ".log")) << name;
  }
  EXPECT_TRUE(contains(streams.out, "Input model: model_segment_1_of_2.tflite\n")) << streams.out;
}

// ---- Google's own logs ----

// Rows of a log, sorted: their order changes from run to run in Google's.
std::vector<std::string> rows_of(const std::string& log) {
  std::vector<std::string> rows;
  std::istringstream lines(log);
  bool is_table = false;
  for (std::string line; std::getline(lines, line);) {
    if (is_table && !line.empty()) rows.push_back(line);
    is_table |= line.starts_with("Operator ");
  }
  std::sort(rows.begin(), rows.end());
  return rows;
}

// Of version 16, for models of the collection: those with as many operators of each kind.
TEST_F(EdgetpuCompiler, LogsEqualGooglesRowByRow) {
  REEF_SKIP_WITHOUT_ZOO(zoo);
  REEF_SKIP_WITHOUT_TRUTH(truth);
  int compared = 0;
  for (const auto& entry : std::filesystem::directory_iterator(truth + "/logs")) {
    const std::string log = content(entry.path());
    if (!contains(log, kVersionLine)) continue;
    const std::vector<std::string> expected = rows_of(log);
    for (const auto& pair : std::filesystem::directory_iterator(zoo + "/pairs")) {
      const Streams streams = shell("edgetpu_compiler --no-rewrites " + (pair.path() / "source.tflite").string());
      const std::vector<std::string> rows = rows_of(content(path("source_edgetpu.log")));
      const auto kinds = [](const std::vector<std::string>& list) {
        std::map<std::string, int> counts;
        for (const std::string& row : list) counts[row.substr(0, 31)] += std::stoi(row.substr(31, 11));
        return counts;
      };
      if (kinds(rows) != kinds(expected)) continue;
      EXPECT_EQ(rows, expected) << entry.path() << " " << pair.path();
      ++compared;
    }
  }
  EXPECT_GT(compared, 0);
}

}  // namespace
}  // namespace reef::testing
