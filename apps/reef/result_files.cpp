// SPDX-License-Identifier: Apache-2.0
#include "result_files.h"

#include <filesystem>

#include "base/file.h"
#include "base/output_place.h"

namespace reef::app {
namespace {

namespace fs = std::filesystem;

// out0.bin and so on; layers and memories as .npy with a .json that lists them.
bool is_result_name(const std::string& name) {
  if (name == "layers.json" || name == "dump.json" || name.ends_with(".npy")) return true;
  if (!name.starts_with("out") || !name.ends_with(".bin") || name.size() < 8) return false;
  return name.find_first_not_of("0123456789", 3) == name.size() - 4;
}

}  // namespace

Status ResultFiles::write(const std::string& folder) const {
  if (!folder.empty()) {
    std::error_code error;
    fs::create_directories(folder, error);
    if (error) return make_error(StatusCode::kIoError, "cannot create folder '{}': {}", folder, error.message());
  }
  std::vector<FileContent> contents;
  for (const File& file : files_) contents.push_back({file.path, file.data});
  return write_files(contents);
}

Status check_result_folder(const std::string& folder, const std::vector<std::string>& inputs) {
  if (folder.empty()) return ok_status();
  REEF_RETURN_IF_ERROR(check_output_folder(folder));
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (!is_result_name(it->path().filename().string())) continue;
    for (const std::string& input : inputs) {
      std::error_code missing;
      REEF_REQUIRE(input.empty() || !fs::equivalent(it->path(), input, missing),
                   "a result in '{}' could replace the input '{}'; give another folder", folder, input);
    }
  }
  return ok_status();
}

}  // namespace reef::app
