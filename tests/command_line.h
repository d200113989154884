// SPDX-License-Identifier: Apache-2.0
// Calls the program as a user does, and gives tests a folder of their own.
#pragma once

#include <array>
#include <cstdio>
#include <filesystem>
#include <string>

#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace reef::testing {

struct Outcome {
  int exit_code = -1;
  std::string text;  // standard output and error together
};

// A folder for the program's temporary files. Tests keep theirs elsewhere: the program may write to its own at any
// time, but to no other folder that its command line does not name (apps/reef/sandbox.h).
inline const std::string& temporary_folder_of_program() {
  struct Folder {
    Folder() { std::filesystem::create_directories(path); }
    ~Folder() { std::filesystem::remove_all(path); }
    std::string path =
        (std::filesystem::temp_directory_path() / ("reef_program_" + std::to_string(::getpid()))).string();
  };
  static const Folder folder;
  return folder.path;
}

// `environment`: "NAME=value", as a shell takes it.
inline Outcome reef(const std::string& arguments, const std::string& environment = "") {
  Outcome outcome;
  std::FILE* pipe = ::popen(
      fmt::format("TMPDIR='{}' {} {} {} 2>&1", temporary_folder_of_program(), environment, REEF_PROGRAM, arguments)
          .c_str(),
      "r");
  if (pipe == nullptr) return outcome;
  std::array<char, 4096> chunk{};
  for (std::size_t n; (n = std::fread(chunk.data(), 1, chunk.size(), pipe)) > 0;) outcome.text.append(chunk.data(), n);
  outcome.exit_code = WEXITSTATUS(::pclose(pipe));
  return outcome;
}

class CommandLine : public ::testing::Test {
 protected:
  CommandLine() : folder_(std::filesystem::temp_directory_path() / ("reef_cli_test_" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~CommandLine() override { std::filesystem::remove_all(folder_); }
  std::filesystem::path folder_;
};

}  // namespace reef::testing
