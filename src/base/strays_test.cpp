// SPDX-License-Identifier: Apache-2.0
#include "base/strays.h"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/file_descriptor.h"

namespace reef {
namespace {

namespace fs = std::filesystem;

class Strays : public ::testing::Test {
 protected:
  Strays() : folder_(fs::temp_directory_path() / ("reef_strays_" + std::to_string(::getpid()))) {
    fs::create_directories(folder_);
  }
  ~Strays() override { fs::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }
  void clean() const {
    const FileDescriptor opened(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    remove_strays(opened.get());
  }
  std::string content(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(path(name), std::ios::binary).rdbuf();
    return text.str();
  }

  fs::path folder_;
};

TEST_F(Strays, OfAProcessThatEndedGo) {
  const pid_t child = ::fork();
  if (child == 0) {
    std::ofstream(path(new_temporary_name())) << "half";
    std::ofstream(path(new_name_of_only_copy())) << "old";
    ::kill(::getpid(), SIGKILL);
  }
  ::waitpid(child, nullptr, 0);
  ASSERT_EQ(files(), 2u);
  clean();
  EXPECT_EQ(files(), 1u) << "the only copy of an old file stays";
}

TEST_F(Strays, OfAProcessThatRunsStay) {
  std::ofstream(path(new_temporary_name())) << "ours, in use";
  clean();
  EXPECT_EQ(files(), 1u);
}

TEST_F(Strays, OtherNamesAndFoldersStay) {
  for (const char* name :
       {".reef-", ".reef-0123456789abcdef0123456789abcdef", ".reef-00000001-ffffff-1-0123456789abcdeg",
        ".reef-ffffffff-ffffff-1-0123456789abcdef", ".reef-x", "model.tflite"})
    std::ofstream(path(name)) << name;
  fs::create_directory(path(new_temporary_name()));
  clean();
  EXPECT_EQ(files(), 7u);
}

// Two files that belong together are written again and again by a process that is killed at any moment. Afterwards each
// holds what one writing put there, and the next writing leaves nothing but these two.
TEST_F(Strays, AProcessKilledAtAnyMomentLeavesWholeFiles) {
  const auto numbered = [](char digit) { return std::string(300'000, digit); };
  const auto write_both = [&](char digit) {
    const std::string text = numbered(digit);
    const FileContent both[] = {{path("model"), bytes_of(text)}, {path("labels"), bytes_of(text)}};
    return write_files(both).ok();
  };
  ASSERT_TRUE(write_both('0'));
  const char* const wanted = std::getenv("REEF_KILLS");
  const int kills = wanted == nullptr ? 60 : std::atoi(wanted);
  std::mt19937 random(1);
  for (int i = 0; i < kills; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      for (char digit = '0';; digit = digit == '9' ? '0' : static_cast<char>(digit + 1)) write_both(digit);
    }
    ::usleep(random() % 20'000);
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    for (const char* name : {"model", "labels"}) {
      const std::string text = content(name);
      ASSERT_EQ(text.size(), numbered('0').size()) << name;
      ASSERT_EQ(text.find_first_not_of(text[0]), std::string::npos) << name;
    }
  }
  ASSERT_TRUE(write_both('0'));
  EXPECT_EQ(files(), 2u);
}

}  // namespace
}  // namespace reef
