// SPDX-License-Identifier: Apache-2.0
// reef train: whole models from the user's own pictures. PyTorch trains, in Reef's Python package (reef.train): this
// command checks the words and becomes Python.
#include <cstdlib>
#include <memory>

#include <fmt/format.h>

#include "commands.h"
#include "python_package.h"
#include "usage.h"

namespace reef::app {
namespace {

const PythonStart kStart = {"reef.train", "training needs PyTorch, NumPy and ONNX", "numpy torch onnx",
                            "torch numpy onnx", "reef train ..."};

struct TrainArguments {
  std::string kind;
  std::string data, output, backbone = "mobilenet", checkpoint, head, precision = "auto";
  int size = 0, epochs = 0, qat_epochs = 5, batch = 32, patience = 10, seed = 0, ray_workers = 0;
  double width = 0.5, rate = 2e-3, held_back = 0.2;
  bool no_mirror = false, resume = false, json = false;
};

std::vector<std::string> words_of(const TrainArguments& arguments) {
  const char* const python = std::getenv("REEF_PYTHON");
  std::vector<std::string> words = {python != nullptr && *python != 0 ? python : "python3", "-c", start_program(kStart),
                                    arguments.kind};
  const auto add = [&](const char* option, const auto& value) {
    words.emplace_back(option);
    words.push_back(fmt::format("{}", value));
  };
  const auto add_flag = [&](const char* option, bool is_given) {
    if (is_given) words.emplace_back(option);
  };
  add("--data", arguments.data);
  add("--output", arguments.output);
  add("--backbone", arguments.backbone);
  add("--size", arguments.size);
  add("--width", arguments.width);
  add("--epochs", arguments.epochs);
  add("--qat-epochs", arguments.qat_epochs);
  add("--batch", arguments.batch);
  add("--rate", arguments.rate);
  add("--held-back", arguments.held_back);
  add("--patience", arguments.patience);
  add("--seed", arguments.seed);
  add("--precision", arguments.precision);
  if (!arguments.head.empty()) add("--head", arguments.head);
  if (!arguments.checkpoint.empty()) add("--checkpoint", arguments.checkpoint);
  if (arguments.ray_workers > 0) add("--ray-workers", arguments.ray_workers);
  add_flag("--no-mirror", arguments.no_mirror);
  add_flag("--resume", arguments.resume);
  add_flag("--json", arguments.json);
  return words;
}

Status train(const TrainArguments& arguments) {
  REEF_ASSIGN_OR_RETURN(const PythonPackage package, find_python_package());
  put_in_front("PYTHONPATH", package.folder.string());
  ::setenv("REEF_LIBRARY", package.library.string().c_str(), 1);
  return become(words_of(arguments));
}

void add_options(Command& command, TrainArguments& arguments) {
  command
      .add_option("-o,--output", arguments.output,
                  "Folder for the results: model_int8.tflite, the compiled file, labels.txt, report.json, training.svg")
      .required();
  command.add_option("--backbone", arguments.backbone, "The network that looks at the picture")
      .transform(one_of({"mobilenet", "efficientnet-lite"}))
      .capture_default_str();
  command.add_option("--size", arguments.size, "Pixels a side, a multiple of 16")
      .check(between(16, 512))
      .capture_default_str();
  command.add_option("--width", arguments.width, "Channels of the network, as a factor")
      .check(between(0.1, 4.0))
      .capture_default_str();
  command.add_option("--epochs", arguments.epochs, "How often all pictures are learned from, in float")
      .check(between(1, 100000))
      .capture_default_str();
  command.add_option("--qat-epochs", arguments.qat_epochs, "The same afterwards, in the chip's arithmetic")
      .check(between(0, 100000))
      .capture_default_str();
  command.add_option("--batch", arguments.batch, "Pictures in a step, over all processes")
      .check(between(2, 100000))
      .capture_default_str();
  command.add_option("--rate", arguments.rate, "Largest learning rate").check(between(1e-8, 1.0)).capture_default_str();
  command.add_option("--held-back", arguments.held_back, "Share of the pictures to test with")
      .check(between(0.01, 0.9))
      .capture_default_str();
  command
      .add_option("--patience", arguments.patience, "Epochs without a better score after which training ends; 0: never")
      .check(between(0, 100000))
      .capture_default_str();
  command.add_option("--seed", arguments.seed, "Same seed and pictures, same model").capture_default_str();
  command.add_option(
      "--checkpoint", arguments.checkpoint,
      "Weights to begin with: finished_float.pt of another run, or the word shipped: a backbone of Reef's");
  command
      .add_option("--precision", arguments.precision,
                  "Of the float network: float32, bfloat16 where it will do, float64")
      .transform(one_of({"auto", "full", "mixed", "double"}))
      .capture_default_str();
  command.add_option("--ray-workers", arguments.ray_workers, "Train by so many workers of Ray Train; 0: in one process")
      .check(between(0, 10000))
      .capture_default_str();
  command.add_flag("--no-mirror", arguments.no_mirror,
                   "Do not learn from mirrored pictures, which are other things here");
  command.add_flag("--resume", arguments.resume, "Go on with a run that did not end");
  command.add_flag("--json", arguments.json, "Print the report as JSON");
}

void add_classifier(Command& parent, Action& action) {
  auto arguments = std::make_shared<TrainArguments>();
  arguments->kind = "classifier";
  arguments->size = 96;
  arguments->epochs = 30;
  Command command =
      parent.add_subcommand("classifier", "Says what a picture shows; learns from a folder for each class");
  command.add_option("--data", arguments->data, "Folder that holds a folder of pictures for each class").required();
  add_options(command, *arguments);
  command.footer(
      "PyTorch trains (pip install torch onnx; $REEF_PYTHON says which Python, else python3). Several processes:\n"
      "torchrun -m reef.train classifier ... (docs/train.md). `reef learn` needs neither PyTorch nor many pictures.\n"
      "Example:\n  reef train classifier --data photos -o mine");
  command.callback([arguments, &action] { action = [arguments] { return train(*arguments); }; });
}

void add_detector(Command& parent, Action& action) {
  auto arguments = std::make_shared<TrainArguments>();
  arguments->kind = "detector";
  arguments->size = 128;
  arguments->epochs = 60;
  Command command = parent.add_subcommand("detector", "Finds things in a picture; learns from pictures with boxes");
  command
      .add_option("--data", arguments->data,
                  "Folder with pictures and their boxes: COCO's .json, YOLO's labels/*.txt or Pascal VOC's .xml files")
      .required();
  arguments->head = "yolo";
  command.add_option("--head", arguments->head, "What finds the boxes: a row for each cell, or default boxes")
      .transform(one_of({"yolo", "ssd"}))
      .capture_default_str();
  add_options(command, *arguments);
  command.footer(
      "The form of the boxes is told by the files (docs/train.md). PyTorch trains (pip install torch onnx; "
      "$REEF_PYTHON says "
      "which\nPython, else python3).\nExample:\n  reef train detector --data photos_with_boxes -o mine");
  command.callback([arguments, &action] { action = [arguments] { return train(*arguments); }; });
}

}  // namespace

void add_train(Command& app, Action& action) {
  Command command =
      app.add_subcommand("train", "Train a whole model for the Edge TPU from your own pictures (PyTorch)");
  command.starts_programs();
  command.require_subcommand();
  command.footer(
      "Examples:\n  reef train classifier --data photos -o mine\n"
      "  reef train detector --data photos_with_boxes -o mine");
  add_classifier(command, action);
  add_detector(command, action);
}

}  // namespace reef::app
