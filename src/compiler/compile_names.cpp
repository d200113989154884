// SPDX-License-Identifier: Apache-2.0
#include "compiler/compile_names.h"

#include <filesystem>
#include <map>

#include "base/shell_word.h"
#include "compiler/output_check.h"

namespace reef::compiler {
namespace {

namespace fs = std::filesystem;

std::string stem_of(const std::string& path) { return fs::path(path).stem().string(); }

Status check_folder(const CompileOptions& options) {
  std::string folder = output_folder(options);
  while (folder.size() > 1 && folder.ends_with('/')) folder.pop_back();  // "file/" does not exist, "file" does
  std::error_code error;
  if (fs::is_directory(folder, error)) return ok_status();
  REEF_REQUIRE(!fs::exists(folder, error), "-o: {} is not a folder; give one", folder);
  REEF_RETURN_IF_ERROR(check_ending(options.out_dir, Content::kModel));  // a file that would be new
  return invalid_input("-o: the folder {} does not exist; make it first: mkdir -p {}", folder, shell_word(folder));
}

Status check_names(const CompileOptions& options) {
  if (names_a_file(options)) {
    REEF_REQUIRE(options.models.size() == 1 && options.segments == 1,
                 "-o: {} names one file, but several are made: give a folder", options.out_dir);
    return ok_status();
  }
  std::map<std::string, std::string> made_from;
  for (const std::string& path : options.models) {
    const auto [other, is_new] = made_from.emplace(stem_of(path), path);
    REEF_REQUIRE(is_new, "{} and {} would both become {}: rename one, or compile them into different folders",
                 other->second, path, compiled_path(options, other->first));
  }
  return ok_status();
}

}  // namespace

bool names_a_file(const CompileOptions& options) {
  const std::string& out = options.out_dir;
  std::error_code error;
  if (out.empty() || out.ends_with('/') || fs::is_directory(out, error)) return false;
  return out.ends_with(".tflite") || fs::exists(out, error);
}

std::string output_folder(const CompileOptions& options) {
  if (!names_a_file(options)) return options.out_dir.empty() ? "." : options.out_dir;
  const fs::path folder = fs::path(options.out_dir).parent_path();
  return folder.empty() ? "." : folder.string();
}

std::string compiled_path(const CompileOptions& options, const std::string& stem) {
  if (names_a_file(options)) return options.out_dir;
  return (fs::path(options.out_dir) / (stem + "_edgetpu.tflite")).string();
}

std::string log_path(const CompileOptions& options, const std::string& stem) {
  if (names_a_file(options)) return fs::path(options.out_dir).replace_extension(".log").string();
  return (fs::path(options.out_dir) / (stem + "_edgetpu.log")).string();
}

std::string segment_stem(const std::string& stem, std::size_t segment, std::size_t segments) {
  return fmt::format("{}_segment_{}_of_{}", stem, segment, segments);
}

std::vector<std::string> planned_outputs(const CompileOptions& options) {
  std::vector<std::string> outputs;
  const auto add = [&](const std::string& stem) {
    outputs.push_back(compiled_path(options, stem));
    outputs.push_back(log_path(options, stem));
  };
  for (const std::string& path : options.models) {
    const auto segments = static_cast<std::size_t>(options.segments);
    if (segments == 1) add(stem_of(path));
    for (std::size_t i = 0; segments > 1 && i < segments; ++i) add(segment_stem(stem_of(path), i, segments));
  }
  return outputs;
}

Status check_compile_request(const CompileOptions& options) {
  REEF_REQUIRE(options.segments == 1 || options.models.size() == 1, "--num_segments cuts one model: give only one");
  REEF_REQUIRE(options.segments == 1 || options.plan.partition.intermediate_tensors.empty(),
               "--num_segments and --intermediate_tensors both say where to cut: give only one");
  REEF_RETURN_IF_ERROR(check_folder(options));
  REEF_RETURN_IF_ERROR(check_names(options));
  if (!options.write) return ok_status();
  return check_files({planned_outputs(options), options.models, {}, {}});
}

}  // namespace reef::compiler
