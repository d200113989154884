// SPDX-License-Identifier: Apache-2.0
#include "output_name.h"

#include <filesystem>

#include <fmt/format.h>

namespace reef::app {

namespace fs = std::filesystem;

std::string output_file(const std::string& given, const std::string& model, std::string_view ending) {
  std::error_code error;
  if (given.empty() || (!given.ends_with('/') && !fs::is_directory(given, error))) return given;
  fs::path name(model);
  if (!name.has_filename()) name = name.parent_path();  // a folder with a saved model
  return (fs::path(given) / fmt::format("{}{}", name.stem().string(), ending)).string();
}

}  // namespace reef::app
