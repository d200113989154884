// SPDX-License-Identifier: Apache-2.0
// reef models: the small models that come with Reef, so that everything can be tried without a download.
#include <algorithm>
#include <filesystem>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/output_place.h"
#include "base/shell_word.h"
#include "commands.h"
#include "compiler/check_file.h"
#include "compiler/output_check.h"
#include "console.h"
#include "json_output.h"
#include "parts.h"
#include "report/check_report.h"
#include "report/summary.h"
#include "usage.h"

namespace reef::app {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::uint64_t kMaxListBytes = 1 << 20, kMaxFileBytes = 1 << 26;

struct ModelsArguments {
  std::string name, output;
  bool json = false;
};

struct ShippedModel {
  std::string name, file, task, what, accuracy, preprocess, pictures;
};

Result<std::vector<ShippedModel>> shipped_models(const fs::path& folder) {
  REEF_ASSIGN_OR_RETURN(const Bytes file, read_file((folder / "models.json").string(), kMaxListBytes));
  const Json json = Json::parse(file.data(), file.data() + file.size(), nullptr, false);
  REEF_REQUIRE(json.is_object() && json.contains("models"), "{}/models.json is damaged", folder.string());
  std::vector<ShippedModel> models;
  for (const Json& entry : json["models"]) {
    const auto text = [&](const char* key) { return entry.value(key, std::string()); };
    models.push_back({text("name"), text("file"), text("task"), text("what"), text("accuracy"), text("preprocess"),
                      text("pictures")});
  }
  return models;
}

// Predicted time on the chip over USB 3; of float models as they would be once quantized. 0: not known.
double predicted_ms(const fs::path& path) {
  compiler::PlanOptions options;
  options.costs.cache_policy = partition::CachePolicy::kLeastTime;
  options.partition.explain = false;
  const auto checked = compiler::check_file(path.string(), options);
  return checked.ok() ? checked->plan.partition.predicted_us / 1000 : 0;
}

Status print_list(const fs::path& folder, const std::vector<ShippedModel>& models, bool as_json) {
  Json list = Json::array();
  if (!as_json) {
    print_text("{:<16} {:<9} {:<17} {:>9}  {}\n", "name", "task", "accuracy", "chip", "what it does");
  }
  for (const ShippedModel& model : models) {
    const fs::path path = folder / model.file;
    const double ms = predicted_ms(path);
    if (as_json) {
      list.push_back({{"name", model.name},
                      {"file", path.string()},
                      {"task", model.task},
                      {"what", model.what},
                      {"accuracy", model.accuracy},
                      {"preprocess", model.preprocess},
                      {"predicted_ms", ms}});
      continue;
    }
    print_text("{:<16} {:<9} {:<17} {:>6.2f} ms  {}\n", model.name, model.task, model.accuracy, ms, model.what);
  }
  if (as_json) {
    print_json(Json{{"folder", folder.string()}, {"models", list}});
    return ok_status();
  }
  print_text("accuracy: measured on held-back drawings; chip: estimated over USB 3\n");
  print_text("`reef models NAME -o FOLDER` copies one with its labels and pictures. They are in {}\n", folder.string());
  return ok_status();
}

// The model, its labels, its pictures with what is right for them.
std::vector<fs::path> files_of(const fs::path& folder, const ShippedModel& model) {
  std::vector<fs::path> files = {model.file};
  std::error_code error;
  for (const std::string& stem : {fs::path(model.file).stem().string(), std::string("reef_creatures")}) {
    if (!fs::exists(folder / (stem + "_labels.txt"), error)) continue;
    files.emplace_back(stem + "_labels.txt");
    break;
  }
  if (model.pictures.empty()) return files;
  for (fs::directory_iterator it(folder / model.pictures, error), end; !error && it != end; it.increment(error)) {
    if (it->is_regular_file(error)) files.push_back(fs::path(model.pictures) / it->path().filename());
  }
  std::sort(files.begin() + 1, files.end());
  return files;
}

std::string next_command(const ShippedModel& model, const fs::path& to) {
  const std::string file = shell_word((to / model.file).string());
  const bool is_float = !model.preprocess.empty();
  if (!is_float) return fmt::format("reef compile {} -o {}", file, shell_word(to.string()));
  const std::string data = model.pictures.empty() ? "SAMPLES" : shell_word((to / model.pictures).string());
  return fmt::format("reef compile {} --data {} --preprocess {} -o {}", file, data, model.preprocess,
                     shell_word(to.string()));
}

Status copy_model(const fs::path& folder, const ShippedModel& model, const fs::path& to) {
  REEF_RETURN_IF_ERROR(check_output_folder(to.string()));
  const std::vector<fs::path> files = files_of(folder, model);
  std::vector<Bytes> contents;
  std::vector<FileContent> copies;
  std::vector<std::string> sources;
  for (const fs::path& file : files) {
    sources.push_back((folder / file).string());
    REEF_ASSIGN_OR_RETURN(contents.emplace_back(), read_file(sources.back(), kMaxFileBytes));
    std::error_code error;
    fs::create_directories((to / file).parent_path(), error);
  }
  std::vector<std::string> targets;
  for (std::size_t i = 0; i < files.size(); ++i) {
    targets.push_back((to / files[i]).string());
    copies.push_back({targets.back(), contents[i].span()});
  }
  REEF_RETURN_IF_ERROR(compiler::check_files({targets, {}, {}, sources}));
  REEF_RETURN_IF_ERROR(write_files(copies));
  report::Summary summary;
  summary.verdict = fmt::format("{}: {}", model.name, model.what);
  summary.add("accuracy", model.accuracy);
  summary.add("files", fmt::format("{} in {}, first {}", files.size(), to.string(), model.file));
  summary.add("next", next_command(model, to));
  print_exact("{}", report::to_text(summary, has_colour()));
  return ok_status();
}

Status run_models(const ModelsArguments& arguments) {
  REEF_ASSIGN_OR_RETURN(const fs::path folder, find_part(Part::kModels));
  REEF_ASSIGN_OR_RETURN(const std::vector<ShippedModel> models, shipped_models(folder));
  if (arguments.name.empty()) return print_list(folder, models, arguments.json);
  std::vector<std::string> names;
  for (const ShippedModel& model : models) {
    if (model.name == arguments.name) return copy_model(folder, model, arguments.output);
    names.push_back(model.name);
  }
  const std::string near = nearest_word(arguments.name, names);
  return invalid_input("there is no model '{}'{}; `reef models` lists them", arguments.name,
                       near.empty() ? "" : fmt::format(" (did you mean {}?)", near));
}

}  // namespace

void add_models(Command& app, Action& action) {
  auto arguments = std::make_shared<ModelsArguments>();
  arguments->output = ".";
  Command command =
      app.add_subcommand("models", "List the small models that come with Reef, or copy one to start from");
  command.add_option("name", arguments->name, "The model to copy; none: list them");
  command.add_option("-o,--output", arguments->output, "Folder to copy it to")
      .capture_default_str()
      .writes(WritesByDefault::kHere);
  command.add_flag("--json", arguments->json, "Print one JSON object (documented in docs/json.md)");
  command.footer("Example:\n  reef models yolo -o first");
  command.callback([arguments, &action] { action = [arguments] { return run_models(*arguments); }; });
}

}  // namespace reef::app
