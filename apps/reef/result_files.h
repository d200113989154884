// SPDX-License-Identifier: Apache-2.0
// What `reef run` writes (--out, --trace): collected, then written together, all files or none.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace reef::app {

class ResultFiles {
 public:
  void add(std::string path, std::vector<std::uint8_t> data) { files_.push_back({std::move(path), std::move(data)}); }
  void add(std::string path, std::string_view text) {
    add(std::move(path), std::vector<std::uint8_t>(text.begin(), text.end()));
  }

  // Makes `folder` first, unless it is empty.
  Status write(const std::string& folder) const;

 private:
  struct File {
    std::string path;
    std::vector<std::uint8_t> data;
  };
  std::vector<File> files_;
};

// Before anything runs: `folder` can be made or written to, and no file there that a result may be called as is one of
// `inputs`. An empty name: there is no folder.
Status check_result_folder(const std::string& folder, const std::vector<std::string>& inputs);

}  // namespace reef::app
