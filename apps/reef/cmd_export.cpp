// SPDX-License-Identifier: Apache-2.0
// reef export micro: a folder with a program for a microcontroller that runs a model.
#include <filesystem>
#include <memory>

#include "base/file.h"
#include "base/output_place.h"
#include "commands.h"
#include "compiler/micro_check.h"
#include "compiler/output_check.h"
#include "console.h"
#include "data/labels.h"
#include "data/picture.h"
#include "data/preprocess.h"
#include "limit_flags.h"
#include "micro/project.h"
#include "report/micro_report.h"
#include "target_option.h"

namespace reef::app {
namespace {

struct ExportArguments {
  std::string model, folder, labels, preprocess, name, sample;
  TargetFlag target{"micro", {}, {}};
  bool embeds_model = false;
  LimitFlags limits;
};

// The picture of --sample at the input's size, in the colours that the program takes.
Result<std::vector<std::uint8_t>> sample_pixels(const std::string& path, const ir::Model& model,
                                                const data::Preprocess& preprocess) {
  const std::optional<micro::ProgramPicture> wanted = micro::picture_of_program(model, preprocess);
  REEF_REQUIRE(wanted.has_value(), "--sample is a picture, and the model takes none: leave it out");
  const ir::Shape shape = {1, wanted->input.height, wanted->input.width, wanted->channels};
  const data::InputSpec bytes{0, "picture", ir::DataType::kUInt8, shape, {}};
  data::Preprocess placed;  // where the picture lies is part of the program's, colours are not
  placed.pixels_are_codes = true;
  placed.fit = preprocess.fit;
  placed.crop = preprocess.crop;
  placed.pad = preprocess.pad;
  placed.layout = data::Layout::kNhwc;
  REEF_ASSIGN_OR_RETURN(const image::Image picture, image::load(path, wanted->channels));
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(shape.elements()));
  REEF_RETURN_IF_ERROR(data::store_picture(picture, placed, bytes, std::as_writable_bytes(std::span(pixels))).in(path));
  return pixels;
}

Result<micro::ProjectOptions> project_options(const ExportArguments& arguments, const ir::Model& model) {
  micro::ProjectOptions options;
  const std::string stem = std::filesystem::path(arguments.model).stem().string();
  options.name = micro::project_name(arguments.name.empty() ? stem : arguments.name);
  options.embeds_model = arguments.embeds_model;
  if (!arguments.labels.empty()) {
    REEF_ASSIGN_OR_RETURN(options.labels, data::load_class_names(arguments.labels));
  }
  REEF_ASSIGN_OR_RETURN(const data::ChosenPreprocess chosen, data::choose_preprocess(arguments.preprocess, model, 0));
  options.preprocess = chosen.preprocess;
  print_text("Preprocessing: {} ({})\n", data::to_string(chosen.preprocess), chosen.origin);
  if (arguments.target.micro() == micro::Target::kMicro && options.preprocess.fit == data::Fit::kCrop) {
    print_text("Note: the camera's whole picture is scaled to the input's size; the crop is left out.\n");
  }
  if (!arguments.sample.empty()) {
    REEF_REQUIRE(arguments.target.micro() == micro::Target::kTflm,
                 "--sample is for --target tflm: programs for Coral's board look through its camera");
    REEF_ASSIGN_OR_RETURN(options.sample, sample_pixels(arguments.sample, model, options.preprocess));
  }
  return options;
}

Status write_project(const ExportArguments& arguments, const std::vector<micro::ProjectFile>& files) {
  std::vector<std::string> paths;
  for (const micro::ProjectFile& file : files)
    paths.push_back((std::filesystem::path(arguments.folder) / file.path).string());
  std::error_code error;
  std::filesystem::create_directories(arguments.folder, error);
  REEF_REQUIRE(!error, "{} cannot be made: {}", arguments.folder, error.message());
  REEF_RETURN_IF_ERROR(compiler::check_files({paths, {arguments.model}, {}, {arguments.labels, arguments.sample}}));
  std::vector<FileContent> contents;
  for (std::size_t i = 0; i < files.size(); ++i) contents.push_back({paths[i], files[i].content.span()});
  REEF_RETURN_IF_ERROR(write_files(contents));
  for (const std::string& path : paths) print_text("{}\n", path);
  return ok_status();
}

Status export_project(const ExportArguments& arguments) {
  REEF_RETURN_IF_ERROR(check_output_folder(arguments.folder));
  compiler::PlanOptions plan;
  plan.budget = budget_of(arguments.limits);
  plan.rewrites.none = true;  // the file is exported as it is
  REEF_ASSIGN_OR_RETURN(micro::AssessOptions board, board_of(arguments.target));
  board.embeds_model = arguments.embeds_model;
  REEF_ASSIGN_OR_RETURN(const compiler::MicroCheckedFile checked,
                        compiler::check_for_micro(arguments.model, board, plan, {}));
  REEF_REQUIRE(!checked.file.empty(),
               "{} is not compiled for the Edge TPU: `reef compile --target micro {}` does that, "
               "and `--target tflm` exports it for TFLite Micro alone",
               arguments.model, arguments.model);
  if (!checked.assessment.is_accepted()) {
    return invalid_input("{}: {}", arguments.model, report::micro_refusal(*checked.model, checked.assessment));
  }
  REEF_ASSIGN_OR_RETURN(const micro::ProjectOptions options, project_options(arguments, *checked.model));
  REEF_ASSIGN_OR_RETURN(const std::vector<micro::ProjectFile> files,
                        micro::project_files(*checked.model, checked.file, checked.assessment, options));
  return write_project(arguments, files);
}

}  // namespace

void add_export(Command& app, Action& action) {
  auto arguments = std::make_shared<ExportArguments>();
  Command command = app.add_subcommand("export", "Write a program that runs a model elsewhere");
  command.require_subcommand();
  Command micro = command.add_subcommand(
      "micro",
      "A folder for Coral's Micro SDK, or for TFLite Micro: main.cc, the model as file and C array, CMake lines");
  micro.add_option("model", arguments->model, "A compiled model (*_edgetpu.tflite); with --target tflm any .tflite")
      .required();
  micro.add_option("-o,--out_dir", arguments->folder, "Folder for the program; made if there is none")
      .required()
      .writes();
  add_target_option(micro, arguments->target, {"micro", "tflm"});
  add_board_options(micro, arguments->target);
  micro.add_option("--labels", arguments->labels, "A file with one name of a class a line");
  micro
      .add_option("--preprocess", arguments->preprocess,
                  "How pixels become numbers, if the model does not say it itself: " + data::describe_presets())
      .option_text("PRESET");
  micro.add_option("--sample", arguments->sample,
                   "With --target tflm: a picture that the program looks at until a camera gives others");
  micro.add_option("--name", arguments->name, "Name of the program and of the model's file (default: the model's)");
  micro.add_flag("--embed", arguments->embeds_model, "The program uses the C array instead of the board's file system");
  add_limit_flags(micro, arguments->limits);
  command.footer("Example:\n  reef export micro mobilenet_v2_edgetpu.tflite -o mobilenet_micro");
  micro.footer(
      "Examples:\n  reef export micro mobilenet_v2_edgetpu.tflite --labels labels.txt -o mobilenet_micro\n"
      "  reef export micro --target tflm --ram 256K models/reef_creatures_int8.tflite -o creatures \\\n"
      "    --sample fish.png");
  micro.callback([arguments, &action] { action = [arguments] { return export_project(*arguments); }; });
}

}  // namespace reef::app
