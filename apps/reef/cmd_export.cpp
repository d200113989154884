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
#include "data/preprocess.h"
#include "limit_flags.h"
#include "micro/project.h"
#include "report/micro_report.h"
#include "target_option.h"

namespace reef::app {
namespace {

struct ExportArguments {
  std::string model, folder, labels, preprocess, name;
  TargetFlag target{"micro"};
  bool embeds_model = false;
  LimitFlags limits;
};

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
  return options;
}

Status write_project(const ExportArguments& arguments, const std::vector<micro::ProjectFile>& files) {
  std::vector<std::string> paths;
  for (const micro::ProjectFile& file : files)
    paths.push_back((std::filesystem::path(arguments.folder) / file.path).string());
  std::error_code error;
  std::filesystem::create_directories(arguments.folder, error);
  REEF_REQUIRE(!error, "{} cannot be made: {}", arguments.folder, error.message());
  REEF_RETURN_IF_ERROR(compiler::check_files({paths, {arguments.model}, {}, {arguments.labels}}));
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
  const micro::Target target = *arguments.target.micro();
  REEF_ASSIGN_OR_RETURN(const compiler::MicroCheckedFile checked,
                        compiler::check_for_micro(arguments.model, target, plan, {}));
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
  micro.add_option("-o,--out_dir", arguments->folder, "Folder for the program; made if there is none").required();
  add_target_option(micro, arguments->target, {"micro", "tflm"});
  micro.add_option("--labels", arguments->labels, "A file with one name of a class a line");
  micro.add_option("--preprocess", arguments->preprocess,
                   "How pixels become numbers, if the model does not say it itself: " + data::describe_presets());
  micro.add_option("--name", arguments->name, "Name of the program and of the model's file (default: the model's)");
  micro.add_flag("--embed", arguments->embeds_model, "The program uses the C array instead of the board's file system");
  add_limit_flags(micro, arguments->limits);
  micro.footer("Example:\n  reef export micro mobilenet_v2_edgetpu.tflite --labels labels.txt -o mobilenet_micro");
  micro.callback([arguments, &action] { action = [arguments] { return export_project(*arguments); }; });
}

}  // namespace reef::app
