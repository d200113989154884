// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"

#include <filesystem>
#include <span>
#include <string_view>

#include <unistd.h>

#include <gtest/gtest.h>

namespace reef {
namespace {

class FileTest : public ::testing::Test {
 protected:
  FileTest() : folder_(std::filesystem::temp_directory_path() / ("reef_file_test_" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~FileTest() override { std::filesystem::remove_all(folder_); }
  std::string path(const char* name) const { return (folder_ / name).string(); }
  std::filesystem::path folder_;
};

TEST_F(FileTest, WhatIsWrittenIsRead) {
  ASSERT_TRUE(write_file(path("a"), std::string_view("hello")).ok());
  const auto read = read_file(path("a"), 5);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(read->data()), read->size()), "hello");
}

TEST_F(FileTest, OverwritingLeavesNoOtherFileBehind) {
  ASSERT_TRUE(write_file(path("a"), std::string_view("old")).ok());
  ASSERT_TRUE(write_file(path("a"), std::string_view("new")).ok());
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
}

std::span<const std::uint8_t> bytes_of(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

TEST_F(FileTest, SeveralFilesAreWrittenTogether) {
  ASSERT_TRUE(write_file(path("a"), std::string_view("old")).ok());
  const FileContent files[] = {{path("a"), bytes_of("1")}, {path("b"), bytes_of("22")}};
  ASSERT_TRUE(write_files(files).ok());
  EXPECT_EQ(read_file(path("a"), 9)->size(), 1u);
  EXPECT_EQ(read_file(path("b"), 9)->size(), 2u);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 2);
}

// The last one is a folder, or in none.
TEST_F(FileTest, IfOneCannotBeWrittenNoneIs) {
  ASSERT_TRUE(write_file(path("a"), std::string_view("old")).ok());
  std::filesystem::create_directories(path("folder"));
  for (const char* last : {"folder", "missing/c"}) {
    const FileContent files[] = {{path("a"), bytes_of("1")}, {path("b"), bytes_of("22")}, {path(last), bytes_of("3")}};
    const Status status = write_files(files);
    EXPECT_NE(status.message().find(path(last)), std::string::npos) << status.message();
    EXPECT_EQ(read_file(path("a"), 9)->size(), 3u);
    EXPECT_FALSE(std::filesystem::exists(path("b")));
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 2) << last;
  }
}

TEST_F(FileTest, FailuresNameTheFile) {
  const auto missing = read_file(path("none"), 10);
  EXPECT_EQ(missing.status().code(), StatusCode::kNotFound);
  EXPECT_NE(missing.status().message().find("none"), std::string::npos);
  EXPECT_FALSE(read_file(folder_.string(), 10).ok());  // a folder
  ASSERT_TRUE(write_file(path("a"), std::string_view("123456")).ok());
  EXPECT_FALSE(read_file(path("a"), 5).ok());  // too large
  EXPECT_FALSE(write_file(path("no/such/folder"), std::string_view("x")).ok());
}

}  // namespace
}  // namespace reef
