// SPDX-License-Identifier: Apache-2.0
// What a mistyped command line and a file that is no model are answered with.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/file.h"
#include "command_line.h"
#include "formats/zip/archive.h"

namespace reef::testing {
namespace {

using Usage = CommandLine;

const std::string kModel = REEF_SOURCE_DIR "/models/reef_creatures_int8.tflite";

void expect_answer(const std::string& arguments, int exit_code, const std::vector<std::string>& parts) {
  const Outcome outcome = reef(arguments);
  EXPECT_EQ(outcome.exit_code, exit_code) << arguments << "\n" << outcome.text;
  for (const std::string& part : parts) {
    EXPECT_NE(outcome.text.find(part), std::string::npos) << arguments << "\nlacks: " << part << "\n" << outcome.text;
  }
  for (const char* internal : {"value in {", "FAILED", "not in range", "Could not convert", "The following argument"}) {
    EXPECT_EQ(outcome.text.find(internal), std::string::npos) << arguments << "\n" << outcome.text;
  }
}

TEST_F(Usage, EnumeratedOptionsSayWhatIsAllowed) {
  expect_answer("compile -O3 " + kModel, 2, {"reef compile: -O: '3' is not allowed; allowed: 0, 1, 2\n"});
  expect_answer("compile --no-code cpus " + kModel, 2, {"allowed: cpu, fail, package (did you mean cpu?)"});
  expect_answer("compile --dump lowr " + kModel, 2, {"'lowr' is not allowed", "did you mean lower?"});
  expect_answer("compile --stop-after all " + kModel, 2,
                {"allowed: import, simplify, rewrite, partition, lower, schedule, emit, fixed-shapes"});
  expect_answer("compile --stop-after chip/gellu " + kModel, 2, {"did you mean chip/gelu?"});
  expect_answer("convert --stop-after transpose " + kModel, 2, {"did you mean transposes?"});
  expect_answer("quantize " + kModel, 2, {"--output"});
  expect_answer("quantize --mode int4 " + kModel + " -o x.tflite", 2, {"'int4' is not allowed", "int16x8"});
  expect_answer("quantize --io int16 " + kModel + " -o x.tflite", 2, {"allowed: float32, int8, uint8"});
  expect_answer("quantize --calibration kl " + kModel + " -o x.tflite", 2, {"minmax", "entropy"});
  expect_answer("run --device gpu " + kModel, 2, {"--device: 'gpu' is no device", "cpu, virtual, auto, usb"});
  expect_answer("run --tflite 2.8 " + kModel, 2, {"allowed: 2.9, current"});
  expect_answer("eval --metric top3 --data x " + kModel, 2, {"allowed: top1, top5, map50, psnr, miou"});
  expect_answer("verify --against cpu a b", 2, {"allowed: chip, tflite"});
  expect_answer("check --link rpi " + kModel, 2, {"there is no link 'rpi'"});
  expect_answer("check --choose last " + kModel, 2, {"--choose last", "'first' or 'best'"});
}

TEST_F(Usage, NumbersSayTheirRange) {
  expect_answer("run --threads 0 " + kModel, 2, {"--threads: 0 is out of range; allowed: 1 to 256"});
  expect_answer("run --threads many " + kModel, 2, {"'many' is no number"});
  expect_answer("run --top -1 " + kModel, 2, {"--top"});
  expect_answer("run --seed x " + kModel, 2, {"--seed", "no number"});
  expect_answer("run --mean-std 3 " + kModel, 2, {"--mean-std"});
  expect_answer("compile -m 9 " + kModel, 2, {"9 is out of range; allowed: 10 to 14"});
}

TEST_F(Usage, UnknownOptionsSayWhatWasMeant) {
  expect_answer("quantize " + kModel + " --images pictures -o x.tflite", 2, {"'--images'", "did you mean --data?"});
  expect_answer("run " + kModel + " --images a.jpg", 2, {"'--images'", "did you mean --image?"});
  expect_answer("compile --out-dir x " + kModel, 2, {"'--out-dir'", "did you mean --out_dir?"});
  expect_answer("compile --min-runtime-version 13 " + kModel, 2, {"did you mean --min_runtime_version?"});
  expect_answer("compile --show-operations " + kModel, 2, {"did you mean --show_operations?"});
  expect_answer("verify --labels x a b", 2, {"there is no option '--labels'", "reef run", "have it"});
  expect_answer("learn split --extracter x " + kModel, 2, {"reef learn split", "did you mean --extractor?"});
}

TEST_F(Usage, ArgumentsAreNamedInTheOrderTyped) {
  expect_answer("inspect " + kModel + " first second third", 2, {"too many arguments: 'first', 'second', 'third'"});
  expect_answer("inspect " + kModel + " --one --two", 2, {"'--one', '--two'"});
}

TEST_F(Usage, WhatIsMissingIsNamed) {
  expect_answer("run", 2, {"reef run: 'model' is missing", "reef run --help"});
  expect_answer("run " + kModel + " --in", 2, {"--in needs a value"});
  expect_answer("", 2, {"a command is missing", "check", "quantize"});
  expect_answer("learn", 2, {"reef learn: a command is missing; there are imprint, softmax, split, join"});
  expect_answer("inspect " + kModel + " --json --text", 2, {"--text and --json do not go together"});
}

TEST_F(Usage, HelpIsACommand) {
  EXPECT_EQ(reef("help").text, reef("--help").text);
  EXPECT_EQ(reef("help run").text, reef("run --help").text);
  EXPECT_EQ(reef("help learn split").text, reef("learn split --help").text);
  EXPECT_EQ(reef("help").exit_code, 0);
  expect_answer("help compil", 2, {"there is no command 'compil'; did you mean `reef compile`?"});
  expect_answer("quantise x", 2, {"did you mean `reef quantize`?"});
}

// An ONNX file with one Relu, whose input is [batch, 3, height, width]; Protocol Buffers by hand.
std::string field(int number, const std::string& bytes) {
  return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(bytes.size())} + bytes;
}
std::string number_field(int number, int value) { return {static_cast<char>(number << 3), static_cast<char>(value)}; }
std::string value_info(const std::string& name) {
  std::string shape;
  shape += field(1, field(2, "batch")) + field(1, number_field(1, 3)) + field(1, field(2, "height"));
  shape += field(1, field(2, "width"));
  return field(1, name) + field(2, field(1, number_field(1, 1) + field(2, shape)));
}
std::string open_onnx() {
  const std::string node = field(1, "x") + field(2, "y") + field(4, "Relu");
  const std::string graph = field(1, node) + field(2, "g") + field(11, value_info("x")) + field(12, value_info("y"));
  return number_field(1, 8) + field(7, graph) + field(8, number_field(2, 13));
}

TEST_F(Usage, EveryCommandThatReadsModelsTakesOpenSizes) {
  const std::string path = (folder_ / "open.onnx").string();
  ASSERT_TRUE(write_file(path, std::string_view(open_onnx())).ok());
  const std::string out = (folder_ / "o.tflite").string();
  for (const std::string& command : std::vector<std::string>{
           "check ", "run ", "inspect --text ", "convert -o " + out + " ", "eval --metric top1 --data x ",
           "learn split --extractor a --head b ", "compare --data x ", "quantize --mode float16 -o " + out + " "}) {
    const std::string second = command.starts_with("compare") ? " " + kModel : "";
    expect_answer(command + path + second, 1, {"size 2 is open ('height')", "--input-shape x:1,3,HEIGHT,WIDTH"});
    const Outcome fixed = reef(command + path + second + " --input-shape x:1,3,8,8");
    EXPECT_EQ(fixed.text.find("is open"), std::string::npos) << command << fixed.text;
    EXPECT_EQ(fixed.text.find("no option"), std::string::npos) << command << fixed.text;
  }
  EXPECT_EQ(reef("check " + path + " --input-shape 1,3,8,8").exit_code, 0);  // its only input needs no name
  EXPECT_EQ(reef("run " + path + " --input-shape 1,3,8,8").exit_code, 0);
  expect_answer("check " + path + " --input-shape z:1,3,8,8", 1, {"no such input"});
  expect_answer("check " + path + " --input-shape x:1,3,8", 1, {"has 4 dimensions"});
}

TEST_F(Usage, TfliteInputsAreResizedWhereAModelIsRead) {
  const Outcome larger = reef("check --json " + kModel + " --input-shape 1,192,192,3");
  const std::string out = (folder_ / "large.tflite").string();
  expect_answer("convert " + kModel + " -o " + out + " --input-shape 1,96,96,3", 0, {"[1, 96, 96, 3]"});
  expect_answer("convert " + kModel + " -o " + out + " --input-shape 1,96,96", 1, {"has 4 dimensions"});
  expect_answer("convert " + kModel + " -o " + out + " --input-shape other:1,96,96,3", 1, {"names 'other'"});
  expect_answer("convert " + kModel + " -o " + out + " --unroll", 1, {"is a TFLite model", "--unroll"});
  (void)larger;
}

// ---- Files that are no models ----

class ForeignFiles : public CommandLine {
 protected:
  std::string file(const std::string& name, const std::string& content) {
    const std::string path = (folder_ / name).string();
    EXPECT_TRUE(write_file(path, std::string_view(content)).ok());
    return path;
  }
  std::string archive(const std::string& name, const std::vector<std::pair<std::string, std::string>>& members) {
    std::vector<zip::NewMember> list;
    for (const auto& [member, data] : members) {
      list.push_back({member, {reinterpret_cast<const std::uint8_t*>(data.data()), data.size()}});
    }
    const auto bytes = zip::write_archive(list, /*deflate=*/true);
    EXPECT_TRUE(bytes.ok());
    return file(name, {bytes->begin(), bytes->end()});
  }
};

TEST_F(ForeignFiles, PytorchIsConvertedOrExported) {
  const std::string plain = archive("net.pt", {{"net/data.pkl", "\x80\x02}q"}, {"net/version", "3"}});
  for (const char* command : {"convert", "check", "run", "inspect", "quantize -o x.tflite", "compile"}) {
    expect_answer(fmt::format("{} {}", command, plain), 1, {"PyTorch", "torch.onnx.export", "net.onnx"});
  }
  const std::string script =
      archive("s.pt", {{"s/data.pkl", "x"}, {"s/code/__torch__/net.py", "x"}, {"s/constants.pkl", "x"}});
  expect_answer("check " + script, 1, {"TorchScript", "reef convert " + script + " -o s.tflite --input-shape"});
  const std::string exported = archive("p.pt2", {{"p/archive_format", "pt2"}, {"p/models/model.json", "{}"}});
  expect_answer("check " + exported, 1, {"torch.export", "reef convert " + exported + " -o p.tflite"});
  const std::string yolo = archive("y.pt", {{"y/data.pkl", "cultralytics.nn.tasks\nDetectionModel"}});
  expect_answer("check " + yolo, 1, {"Ultralytics", "reef convert " + yolo + " -o y.tflite"});
  expect_answer("convert " + file("old.pth", "\x80\x02\x8a\nl\xfc\x9c"), 1, {"PyTorch"});
}

TEST_F(ForeignFiles, TensorflowIsConverted) {
  const std::string keras = archive("k.bin", {{"config.json", "{}"}, {"model.weights.h5", "x"}});
  expect_answer("check " + keras, 1, {"a Keras model", "reef convert " + keras + " -o k.tflite"});
  const Outcome tried = reef("convert " + keras + " -o " + (folder_ / "k.tflite").string());
  EXPECT_EQ(tried.exit_code, 1);  // by TensorFlow, which is not there or cannot read it
  EXPECT_NE(tried.text.find("TensorFlow"), std::string::npos) << tried.text;
  EXPECT_EQ(tried.text.find("reef convert " + keras + " -o k.tflite` makes"), std::string::npos) << tried.text;
  const std::string hdf5 = file("w.model", "\x89HDF\r\n\x1a\n and so on");
  expect_answer("check " + hdf5, 1, {"HDF5", "reef convert " + hdf5});
  const std::string graph = file("frozen.pb", std::string("\x0a\x12\x0a\x05input\x12\x0bPlaceholder*", 21) + "rest");
  expect_answer("check " + graph, 1, {"frozen graph", "reef convert " + graph + " -o frozen.tflite"});
  std::filesystem::create_directory(folder_ / "saved");
  const std::string inside = file("saved/saved_model.pb", std::string("\x08\x01\x12\x05hello", 8));
  expect_answer("check " + (folder_ / "saved").string(), 1,
                {"SavedModel", "reef convert " + (folder_ / "saved").string()});
  expect_answer("check " + inside, 1, {"SavedModel", "reef convert " + (folder_ / "saved").string()});
  expect_answer("check " + folder_.string(), 1, {"it is a folder"});
}

TEST_F(ForeignFiles, ModelsAreTakenOutOfBundles) {
  const auto model = read_file(kModel, std::uint64_t{1} << 28);
  ASSERT_TRUE(model.ok());
  const std::string content(reinterpret_cast<const char*>(model->data()), model->size());
  const std::string one = archive("one.task", {{"labels.txt", "cat"}, {"net.tflite", content}});
  expect_answer("check " + one, 0, {"operators run on the Edge TPU"});
  const std::string two = archive("two.task", {{"detector.tflite", "x"}, {"landmarks.tflite", content}});
  expect_answer("check " + two, 1, {"2 models, detector.tflite, landmarks.tflite", "'" + two + ":detector.tflite'"});
  expect_answer("check " + two + ":landmarks.tflite", 0, {"operators run on the Edge TPU"});
  expect_answer("check " + two + ":other.tflite", 1, {"holds no 'other.tflite'"});
  expect_answer("check " + two + ":detector.tflite", 1, {"detector.tflite"});
  const std::string onnx = archive("o.zip", {{"net.onnx", "x"}});
  expect_answer("check " + onnx, 1, {"unzip " + onnx + " net.onnx"});
  expect_answer("check " + archive("data.npz", {{"x.npy", "x"}}), 1, {".npz", "--data"});
}

TEST_F(ForeignFiles, NamesDoNotDecideAlone) {
  const Outcome copied = reef("inspect " + kModel);
  EXPECT_EQ(copied.exit_code, 0);
  std::filesystem::copy_file(kModel, folder_ / "model.onnx");
  expect_answer("convert " + (folder_ / "model.onnx").string(), 1, {"it is a TFLite model", ".tflite"});
  expect_answer("check " + file("m.tflite", std::string("\x08\x08\x12\x07pytorch", 11)), 1, {"ONNX", ".onnx"});
  expect_answer("check " + file("m.onnx", "version https://git-lfs.github.com/spec/v1\noid"), 1, {"git lfs pull"});
}

}  // namespace
}  // namespace reef::testing
