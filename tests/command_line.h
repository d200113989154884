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

inline Outcome reef(const std::string& arguments) {
  Outcome outcome;
  std::FILE* pipe = ::popen(fmt::format("{} {} 2>&1", REEF_PROGRAM, arguments).c_str(), "r");
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
