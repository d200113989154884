// SPDX-License-Identifier: Apache-2.0
// What people get wrong, and what Reef answers: the cause, and what to do. Each must name the thing at fault and lead
// on.
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/file.h"
#include "command_line.h"

namespace reef::testing {
namespace {

namespace fs = std::filesystem;

const std::string kModels = REEF_SOURCE_DIR "/models/";

struct Mistake {
  const char* what;
  std::string command;  // INT8, FLOAT, ONNX, DETECTOR, PICTURE, IMAGES, FOLDER stand for files
  int exit_code;
  std::vector<std::string> answer;
};

const std::vector<Mistake>& mistakes() {
  static const std::vector<Mistake> list = {
      {"a command misspelt", "comple INT8", 2, {"there is no command 'comple'", "did you mean `reef compile`?"}},
      {"a command in other English", "quantise FLOAT", 2, {"did you mean `reef quantize`?"}},
      {"a command of another program", "predict INT8", 2, {"did you mean `reef run`?"}},
      {"a shell for Coral's programs", "shell", 2, {"did you mean `reef exec`?"}},
      {"no command", "", 2, {"a command is missing", "compile", "`reef --help`"}},
      {"no model", "run", 2, {"'model' is missing", "reef run --help"}},
      {"a model that is not there", "run FOLDER/absent.tflite", 1, {"absent.tflite", "No such file"}},
      {"a text as a model", "check FOLDER/text.tflite", 1, {"text.tflite"}},
      {"an empty file as a model", "run FOLDER/empty.tflite", 1, {"empty.tflite"}},
      {"a folder as a model", "run FOLDER", 1, {"FOLDER"}},
      {"an option of another program",
       "quantize FLOAT --images IMAGES -o FOLDER/o.tflite",
       2,
       {"did you mean --data?"}},
      {"one letter too many in an option", "run INT8 --imagee PICTURE", 2, {"did you mean --image?"}},
      {"a minus for an underscore", "compile INT8 --out-dir FOLDER", 2, {"did you mean --out_dir?"}},
      {"activations of 16 bits",
       "compile FOLDER/wide.tflite -o FOLDER",
       1,
       {"16 bits (int16x8)", "for CPUs", "--data"}},
      {"a float model without samples", "compile FLOAT -o FOLDER", 1, {"float", "--data"}},
      {"an ONNX model without samples",
       "compile ONNX -o FOLDER",
       1,
       {"is a float model", "give typical samples with --data"}},
      {"samples that are not there", "compile FLOAT --data FOLDER/nothing -o FOLDER", 1, {"FOLDER/nothing"}},
      {"a folder without pictures", "quantize FLOAT --data FOLDER/hollow -o FOLDER/o.tflite", 1, {"holds no pictures"}},
      {"nothing but damaged pictures", "quantize FLOAT --data FOLDER/damaged -o FOLDER/o.tflite", 1, {"bad.jpg"}},
      {"anchors that are no sizes", "run DETECTOR --image PICTURE --anchors 1,2,3", 2, {"each anchor has two"}},
      {"anchors by another name", "run DETECTOR --image PICTURE --anchors yolov9", 2, {"yolov5, yolov7"}},
      {"a command misspelt, for a program", "comple INT8 --json", 2, {"\"error\"", "did you mean `reef compile`?"}},
      {"a preset misspelt", "eval INT8 --data IMAGES --preprocess imagnet --metric top1", 1, {"imagnet", "imagenet"}},
      {"the result over the model", "quantize FLOAT --data IMAGES -o FLOAT", 1, {"would replace the input"}},
      {"a result in a folder that is not there", "compile INT8 -o FOLDER/none/x.tflite", 1, {"mkdir -p"}},
      {"no name for the result", "quantize FLOAT --data IMAGES", 2, {"--output", "is missing"}},
      {"a goal that is none", "tune FLOAT --data IMAGES -o FOLDER/t --goal fast", 1, {"is no goal", "latency<5ms"}},
      {"an integer model tuned", "tune INT8 --data IMAGES -o FOLDER/t", 1, {"give the float model"}},
      {"tuned by an empty folder", "tune FLOAT --data FOLDER/hollow -o FOLDER/t", 1, {"holds no pictures"}},
      {"tuned into the samples", "tune FLOAT --data IMAGES -o IMAGES", 1, {"holds the samples"}},
      {"a shard beyond the last",
       "quantize FLOAT --data IMAGES --shard 2/2 --partial FOLDER/p",
       2,
       {"'2/2' is no part", "0/4 is the first of four"}},
      {"a sweep without a cluster",
       "prune FLOAT --data IMAGES -o FOLDER/o.tflite --sweep params=0.5",
       1,
       {"--cluster"}},
      {"pruning without a goal", "prune FLOAT --data IMAGES -o FOLDER/o.tflite", 1, {"there is no goal", "--params"}},
      {"two goals", "prune FLOAT --data IMAGES -o FOLDER/o.tflite --params 0.5 --fit", 1, {"more than one goal"}},
      {"a time without a number", "prune FLOAT --data IMAGES -o FOLDER/o.tflite --latency fast", 1, {"such as 5ms"}},
      {"an integer model pruned",
       "prune INT8 --data IMAGES -o FOLDER/o.tflite --params 0.5",
       1,
       {"give the float model"}},
      {"pruned by an empty folder", "prune FLOAT --data FOLDER/hollow --params 0.5", 1, {"holds no pictures"}},
      {"an integer model quantized", "quantize INT8 --data IMAGES -o FOLDER/o.tflite", 1, {"quantized"}},
      {"a HEIC picture of a phone",
       "run INT8 --image FOLDER/phone.heic",
       1,
       {"HEIC picture", "save it as JPEG or PNG"}},
      {"an empty picture", "run INT8 --image FOLDER/empty.tflite", 1, {"the file is empty"}},
      {"training without PyTorch",
       "train classifier --data IMAGES -o FOLDER/t",
       1,
       {"training needs PyTorch", "pip install"}},
      {"a picture that is not there", "run INT8 --image FOLDER/absent.jpg", 1, {"absent.jpg"}},
      {"a text as a picture", "run INT8 --image FOLDER/text.tflite", 1, {"not a picture"}},
      {"labels that are not there", "run INT8 --image PICTURE --labels FOLDER/absent.txt", 1, {"absent.txt"}},
      {"drawing without a picture", "run DETECTOR --draw FOLDER/o.png", 1, {"--draw needs --image"}},
      {"drawing a JPEG", "run DETECTOR --image PICTURE --draw FOLDER/o.jpg", 1, {"ends with .png"}},
      {"drawing what a classifier sees", "run INT8 --image PICTURE --draw FOLDER/o.png", 1, {"finds no places"}},
      {"a device that does not exist", "run INT8 --device gpu", 2, {"'gpu' is no device", "virtual"}},
      {"a simulated link on the CPU", "run INT8 --link usb3", 1, {"--device virtual"}},
      {"a link by half its name", "check INT8 --link rpi4", 2, {"there is no link 'rpi4'", "usb3-rpi4"}},
      {"a runtime that is too old", "compile INT8 -m 9", 2, {"allowed: 10 to 14"}},
      {"a level that does not exist", "compile INT8 -O3", 2, {"'3' is not allowed"}},
      {"accuracy without labels",
       "eval INT8 --data FOLDER/pictures --metric top1",
       1,
       {"does not say what is right", "--truth"}},
      {"a metric by another name", "eval INT8 --data IMAGES --metric accuracy", 2, {"top1, top5, map50"}},
      {"the wrong number of sizes", "check ONNX --input-shape 1,3,32", 1, {"has 4 dimensions"}},
      {"raw data of the wrong size", "run INT8 --in FOLDER/text.tflite", 1, {"bytes, but input"}},
      {"a checkpoint of PyTorch", "compile FOLDER/weights.pt --data IMAGES", 1, {"weights.pt"}},
      {"a Keras file", "check FOLDER/model.h5", 1, {"model.h5", "Keras"}},
      {"a model name misspelt", "models yol", 1, {"did you mean yolo?"}},
      {"a shell that is not served", "completion tcsh", 2, {"allowed: bash, zsh, fish"}},
      {"a page that does not exist", "man nonsense", 1, {"there is no such command"}},
      {"a program that does not exist", "exec -- no_such_program_at_all", 1, {"no_such_program_at_all"}},
      {"two answers at once", "inspect INT8 --json --text", 2, {"do not go together"}},
      {"one file for verify", "verify INT8", 2, {"'compiled' is missing"}},
      {"the same model twice", "compare FLOAT FLOAT --data IMAGES", 1, {"both models are the same file"}},
      {"the picture in the place of the model",
       "run PICTURE --image INT8",
       1,
       {"it is a picture", "the model comes first"}},
      {"the picture without its option",
       "run INT8 PICTURE",
       2,
       {"too many arguments", "did you mean --image PICTURE?"}},
      {"the pictures without their option", "quantize FLOAT IMAGES", 2, {"did you mean --data IMAGES?"}},
      {"the pictures as a second model", "compile FLOAT IMAGES", 1, {"a folder of pictures", "--data"}},
      {"a folder as the picture", "run INT8 --image IMAGES", 1, {"--image takes one picture", "reef eval"}},
      {"an address as the picture", "run INT8 --image http://a.b/c.jpg", 1, {"is an address", "save the picture"}},
      {"one picture as samples", "compile FLOAT --data PICTURE", 1, {"is one picture", "give the folder"}},
      {"a video as samples", "compile FLOAT --data FOLDER/videos/clip.mp4", 1, {"this is a video", "ffmpeg"}},
      {"a folder of videos", "compile FLOAT --data FOLDER/videos", 1, {"holds no pictures", "videos", "ffmpeg"}},
      {"a zip of pictures", "compile FLOAT --data FOLDER/pictures.zip", 1, {"zip archive without arrays", "unpack it"}},
      {"a model for a Hailo chip", "check FOLDER/model.hef", 1, {"Hailo chip", "cannot be turned back"}},
      {"a TensorRT engine", "compile FOLDER/model.engine", 1, {"TensorRT engine", "cannot be turned back"}},
      {"a model for a Rockchip NPU", "check FOLDER/model.rknn", 1, {"Rockchip NPU", "cannot be turned back"}},
      {"a model for an OAK camera", "check FOLDER/model.blob", 1, {"Myriad chip", "cannot be turned back"}},
      {"a Core ML model", "check FOLDER/model.mlmodel", 1, {"Core ML model", "that it was made from"}},
      {"weights of Darknet", "check FOLDER/yolov4-tiny.weights", 1, {"weights of Darknet", "convert them"}},
      {"an ONNX file that Git LFS did not fetch", "check FOLDER/pointer.onnx", 1, {"Git LFS pointer", "git lfs pull"}},
      {"a web page saved as a model", "check FOLDER/page.tflite", 1, {"web page", "download the raw file"}},
      {"a picture that Git LFS did not fetch", "run INT8 --image FOLDER/pointer.jpg", 1, {"Git LFS pointer"}},
      {"a model as the labels",
       "run INT8 --image PICTURE --labels INT8",
       1,
       {"is no text file", "one name in each line"}},
      {"too few labels",
       "run INT8 --image PICTURE --labels FOLDER/few.txt --top 1",
       0,
       {"names 3 classes, but the model has 8"}},
      {"labels without the background",
       "run INT8 --image PICTURE --labels FOLDER/seven.txt --top 1",
       0,
       {"background"}},
      {"several inputs and a folder",
       "quantize INPUTS --data IMAGES -o FOLDER/o.tflite",
       1,
       {"2 inputs", "numpy.savez("}},
      {"a batch of four and pictures",
       "compile ONNX --input-shape 4,3,32,32 --data IMAGES -o FOLDER/o.tflite",
       1,
       {"4 pictures at a time"}},
      {"a TFLite model under an ONNX name",
       "convert ONNX -o FOLDER/o.onnx",
       1,
       {"what is written there is a TFLite model", "o.tflite"}},
      {"an int8 model under an ONNX name",
       "quantize ONNX --data IMAGES -o FOLDER/o.onnx",
       1,
       {"what is written there is a TFLite model", "o.tflite"}},
      {"a pruned model under an ONNX name",
       "prune ONNX --data IMAGES --params 0.5 -o FOLDER/o.Onnx",
       1,
       {"what is written there is a TFLite model", "o.tflite"}},
      {"a learned model under a checkpoint's name",
       "learn imprint FLOAT --data IMAGES -o FOLDER/o.pt",
       1,
       {"a PyTorch file", "o.tflite"}},
      {"a compiled model under an ONNX name",
       "compile INT8 -o FOLDER/o.onnx",
       1,
       {"what is written there is a TFLite model", "o.tflite"}},
      {"a report under a model's name",
       "compare FLOAT INT8 --data IMAGES -o FOLDER/report.tflite",
       1,
       {"what is written there is a page", "report.html"}},
      {"a compiled model quantized",
       "quantize COMPILED --data IMAGES -o FOLDER/o.tflite",
       1,
       {"compiled", "give the float model"}},
      {"a compiled model compiled", "compile COMPILED -o FOLDER", 1, {"compiled already"}},
      {"a compiled model checked", "check COMPILED", 1, {"compiled already", "`reef run "}},
      {"a comparison the wrong way round",
       "compare INT8 FLOAT --data IMAGES",
       1,
       {"the float model comes first", "reef compare FLOAT INT8"}},
      {"a verification the wrong way round",
       "verify COMPILED INT8",
       1,
       {"the source comes first", "reef verify INT8 COMPILED"}},
      {"a detector measured as a classifier",
       "eval DETECTOR --data IMAGES --labels LABELS --metric top1",
       1,
       {"finds things in pictures", "--metric map50"}},
      {"boxes that nobody gave",
       "eval DETECTOR --data FOLDER/pictures --metric map50",
       1,
       {"'class cx cy w h'", "labels"}},
      {"no metric", "eval INT8 --data IMAGES", 2, {"'--metric' is missing", "one of top1, top5, map50"}},
      {"a hyphen in a metric", "eval INT8 --data IMAGES --metric top-1", 2, {"did you mean top1?"}},
      {"half the name of a link", "check INT8 --link rpi5", 2, {"did you mean usb3-rpi5?"}},
      {"a stick that is not plugged in", "run INT8 --device usb", 1, {"no Edge TPU 'usb'", "--device virtual"}},
      {"two pictures", "run INT8 --image PICTURE PICTURE", 2, {"one picture at a time"}},
      {"the same option twice", "run INT8 --image PICTURE --image PICTURE", 2, {"can be given only once"}},
      {"labels as JSON", "run INT8 --image PICTURE --labels FOLDER/labels.json", 1, {"is JSON", "one in each line"}},
      {"labels as YAML", "run INT8 --image PICTURE --labels FOLDER/data.yaml", 1, {"is YAML", "one in each line"}},
      {"annotations of COCO",
       "eval DETECTOR --data FOLDER/pictures --truth FOLDER/labels.json --metric map50",
       1,
       {"is JSON", "'class cx cy w h'"}},
      {"a data set's description as the data",
       "compile FLOAT --data FOLDER/data.yaml",
       1,
       {"data set of Ultralytics", "give the folder"}},
      {"a variable that is not set", "run INT8 --image ''", 2, {"--image is empty", "not set"}},
      {"a variable that is not set, with an equals sign", "compile FLOAT --data=", 2, {"--data"}},
      {"an address as the model", "check https://a.b/c.tflite", 1, {"is an address", "download it"}},
      {"a home folder in quotes", "check '~/model.tflite'", 1, {"leaves ~", "$HOME"}},
      {"a path of Windows", "check 'C:\\models\\a.tflite'", 1, {"path of Windows"}},
      {"a part of learn misspelt", "learn softmx FLOAT", 2, {"no command 'softmx'", "did you mean softmax?"}},
      {"a part of train misspelt", "train classifer --data IMAGES", 2, {"did you mean classifier?"}},
      {"a program without the two hyphens", "exec python3 -c pass", 2, {"put -- before the program"}},
      {"sizes with an x", "check ONNX --input-shape input:1x3x32x32", 1, {"with commas"}},
      {"one size for all", "check ONNX --input-shape 32", 1, {"has 4 dimensions", "all are wanted"}},
      {"a share in percent", "prune FLOAT --data IMAGES --params 50", 2, {"50 % is 0.5"}},
      {"a share with the sign", "prune FLOAT --data IMAGES --params 50%", 2, {"50 % is 0.5"}},
      {"a loss of one", "prune FLOAT --data IMAGES --drop 1", 1, {"is that 1%?"}},
      {"a score in percent", "run DETECTOR --image PICTURE --min-score 25", 2, {"25 % is 0.25"}},
      {"threads below none", "run INT8 --threads -1", 2, {"allowed: 1 to 256"}},
      {"an option's value left out", "compile FLOAT --data", 2, {"--data needs a value"}},
      {"calibration data by another name",
       "quantize FLOAT --calib IMAGES -o FOLDER/o.tflite",
       2,
       {"did you mean --data?"}},
      {"an integer type by another name", "compile FLOAT --int8 -o FOLDER", 2, {"did you mean --data?"}},
      {"the size by Ultralytics' name", "compile ONNX --imgsz 320", 2, {"did you mean --input-shape?"}},
      {"more segments than operators", "compile INT8 --num_segments 99 -o FOLDER", 1, {"only 24 operators"}},
      {"a plain model audited", "audit INT8", 1, {"compile it first: reef compile"}},
      {"a plain model disassembled", "disasm INT8", 1, {"no Edge TPU op"}},
      {"two models that do not follow each other",
       "learn join INT8 FLOAT -o FOLDER/o.tflite",
       1,
       {"do not belong together"}},
      {"an OpenVINO model", "check FOLDER/model.xml", 1, {"OpenVINO model", "made from"}},
      {"a program as the model", "check FOLDER/train.py", 1, {"named as a program", "export"}},
      {"weights alone", "convert FOLDER/weights.safetensors", 1, {"safetensors", "no network"}},
  };
  return list;
}

class Mistakes : public CommandLine {
 protected:
  Mistakes() {
    for (const char* folder : {"hollow", "damaged", "pictures", "videos"}) fs::create_directories(folder_ / folder);
    const auto write = [&](const char* name, std::string_view text) {
      EXPECT_TRUE(write_file((folder_ / name).string(), text).ok());
    };
    write("text.tflite", "this is not a model, it is a text that somebody has called one");
    write("empty.tflite", "");
    write("damaged/bad.jpg", "\xFF\xD8\xFF no picture at all");
    write("weights.pt", "\x80\x02 not a zip, an old checkpoint");
    write("phone.heic", std::string_view("\0\0\0\x18"
                                         "ftypheic\0\0\0\0mif1heic",
                                         24));
    write("model.h5", std::string_view("\x89HDF\r\n\x1a\n----------------", 24));
    write("videos/clip.mp4", std::string_view("\0\0\0\x18"
                                              "ftypisom\0\0\2\0isom",
                                              20));
    write("pictures.zip", std::string_view("PK\x05\x06\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 22));
    const std::string pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a21\nsize 12345\n";
    for (const char* name : {"pointer.onnx", "pointer.jpg"}) write(name, pointer);
    write("page.tflite", "<!DOCTYPE html>\n<html><head><title>Not the file</title></head></html>");
    for (const char* name :
         {"model.hef", "model.engine", "model.rknn", "model.blob", "model.mlmodel", "yolov4-tiny.weights"}) {
      write(name, "\x02\x01 bytes of a format that only its own tools read");
    }
    write("labels.json", "{\"images\": [], \"annotations\": []}");
    write("data.yaml", "path: .\ntrain: images\nnames: [crab, fish]\n");
    write("model.xml", "<?xml version=\"1.0\"?><net name=\"m\" version=\"11\"></net>");
    write("train.py", "import torch\n");
    write("weights.safetensors", std::string_view("\x14\0\0\0\0\0\0\0{\"a\":{\"dtype\":\"F32\"}}", 29));
    write("few.txt", "coral\r\ncrab\r\nfish\r\n");
    write("seven.txt", "1\n2\n3\n4\n5\n6\n7\n");
    fs::copy_file(kModels + "images/crab_1.jpg", folder_ / "pictures" / "photo.jpg");
  }
  // A script that starts Python without the packages of this machine.
  std::string bare_python() const {
    const fs::path script = folder_ / "bare_python";
    EXPECT_TRUE(write_file(script.string(), "#!/bin/sh\nexec python3 -S -E \"$@\"\n").ok());
    fs::permissions(script, fs::perms::owner_all);
    return script.string();
  }
  std::string filled(std::string text) const {
    const std::vector<std::pair<std::string, std::string>> places = {
        {"COMPILED", (folder_ / "reef_creatures_int8_edgetpu.tflite").string()},
        {"LABELS", kModels + "reef_creatures_labels.txt"},
        {"INT8", kModels + "reef_creatures_int8.tflite"},
        {"FLOAT", kModels + "reef_creatures_float.tflite"},
        {"ONNX", kModels + "cifar_resnet8.onnx"},
        {"INPUTS", REEF_SOURCE_DIR "/tests/onnx_exports/test_convolutions_over_three_axes/model.onnx"},
        {"DETECTOR", kModels + "reef_detector_int8.tflite"},
        {"PICTURE", kModels + "images/crab_1.jpg"},
        {"IMAGES", kModels + "images"},
        {"FOLDER", folder_.string()}};
    for (const auto& [word, path] : places) {
      for (std::size_t at = 0; (at = text.find(word, at)) != std::string::npos; at += path.size()) {
        text.replace(at, word.size(), path);
      }
    }
    return text;
  }
};

TEST_F(Mistakes, AreAnsweredWithCauseAndWayOut) {
  EXPECT_GE(mistakes().size(), 130u);
  ASSERT_EQ(reef(filled("compile INT8 --quiet -o FOLDER")).exit_code, 0);
  const Outcome wide = reef(filled("quantize FLOAT --data IMAGES --mode int16x8 --held-back 0 -o FOLDER/wide.tflite"));
  ASSERT_EQ(wide.exit_code, 0) << wide.text;
  EXPECT_NE(wide.text.find("for the Edge TPU: the same without --mode"), std::string::npos) << wide.text;
  for (const Mistake& mistake : mistakes()) {
    // A Python without packages, whatever this machine has.
    const bool needs_python = mistake.command.starts_with("train");
    if (needs_python) ::setenv("REEF_PYTHON", bare_python().c_str(), 1);
    const Outcome outcome = reef(filled(mistake.command));
    if (needs_python) ::unsetenv("REEF_PYTHON");
    EXPECT_EQ(outcome.exit_code, mistake.exit_code) << mistake.what << ": " << mistake.command << "\n" << outcome.text;
    for (const std::string& part : mistake.answer) {
      EXPECT_NE(outcome.text.find(filled(part)), std::string::npos)
          << mistake.what << ": " << mistake.command << "\nlacks: " << part << "\n"
          << outcome.text;
    }
    EXPECT_LT(std::count(outcome.text.begin(), outcome.text.end(), '\n'), 12) << mistake.what << outcome.text;
  }
}

// Under --json the answer is an object, on standard output, with the same exit code.
TEST_F(Mistakes, AreObjectsUnderJson) {
  for (const std::string& command : {std::string("check FOLDER/absent.tflite --json"),
                                     std::string("run INT8 --json --threads 0"), std::string("eval --json INT8")}) {
    const Outcome outcome = reef(filled(command) + " 2>/dev/null");
    EXPECT_NE(outcome.exit_code, 0);
    EXPECT_EQ(outcome.text.rfind("{\n  \"schema_version\": 1,\n  \"error\"", 0), 0u) << outcome.text;
    EXPECT_NE(outcome.text.find("\"exit_code\": " + std::to_string(outcome.exit_code)), std::string::npos);
  }
}

}  // namespace
}  // namespace reef::testing
