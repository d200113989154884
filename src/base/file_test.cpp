// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"

#include <atomic>
#include <csignal>
#include <filesystem>
#include <span>
#include <string_view>
#include <thread>
#include <vector>

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
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

// A FIFO that nobody writes into would be waited for.
TEST_F(FileTest, ReadingAFifoFailsAtOnce) {
  ASSERT_EQ(::mkfifo(path("fifo").c_str(), 0600), 0);
  const auto read = read_file(path("fifo"), 10);
  EXPECT_NE(read.status().message().find("not a regular file"), std::string::npos) << read.status().message();
}

mode_t mode_of(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 ? info.st_mode & 07777 : 0;
}

TEST_F(FileTest, ModesAreKeptAndNewFilesObeyTheUmask) {
  const mode_t before = ::umask(027);
  ASSERT_TRUE(write_file(path("new"), std::string_view("x")).ok());
  EXPECT_EQ(mode_of(path("new")), 0640u);
  for (const mode_t mode : {0600, 0644, 0666, 0755, 0200}) {
    ASSERT_EQ(::chmod(path("new").c_str(), mode), 0);
    ASSERT_TRUE(write_file(path("new"), std::string_view("y")).ok());
    EXPECT_EQ(mode_of(path("new")), mode);
  }
  ::umask(before);
}

TEST_F(FileTest, TheOwnerIsKept) {
  ASSERT_TRUE(write_file(path("a"), std::string_view("x")).ok());
  constexpr uid_t kSomebody = 12345;
  if (::chown(path("a").c_str(), kSomebody, kSomebody) != 0) GTEST_SKIP() << "chown needs root";
  ASSERT_TRUE(write_file(path("a"), std::string_view("y")).ok());
  struct stat info {};
  ASSERT_EQ(::stat(path("a").c_str(), &info), 0);
  EXPECT_EQ(info.st_uid, kSomebody);
}

TEST_F(FileTest, NamesMayBeAsLongAsTheSystemAllows) {
  for (const std::size_t length : {247, 248, 254, 255}) {
    const std::string name(length, 'n');
    for (const char* text : {"new", "over"}) EXPECT_TRUE(write_file(path(name.c_str()), std::string_view(text)).ok());
    EXPECT_EQ(read_file(path(name.c_str()), 9)->size(), 4u);
  }
}

// Links at the names that were used once lead nowhere now.
TEST_F(FileTest, PlantedTemporaryNamesAreNotUsed) {
  ASSERT_TRUE(write_file(path("victim"), std::string_view("precious")).ok());
  for (const char* ending : {".part", ".old", ".tmp"}) {
    std::filesystem::create_symlink("victim", path("out") + ending + std::to_string(::getpid()));
  }
  ASSERT_TRUE(write_file(path("out"), std::string_view("1")).ok());
  ASSERT_TRUE(write_file(path("out"), std::string_view("22")).ok());
  EXPECT_EQ(read_file(path("victim"), 9)->size(), 8u);
  EXPECT_TRUE(std::filesystem::is_regular_file(std::filesystem::symlink_status(path("out"))));
}

TEST_F(FileTest, OnePathTwiceIsRefused) {
  ASSERT_TRUE(write_file(path("a"), std::string_view("old")).ok());
  const FileContent files[] = {{path("a"), bytes_of("1")}, {folder_.string() + "/./a", bytes_of("22")}};
  EXPECT_NE(write_files(files).message().find("one file"), std::string::npos);
  EXPECT_EQ(read_file(path("a"), 9)->size(), 3u);
}

TEST_F(FileTest, ThreadsMayWriteOnePathAtOnce) {
  std::atomic<int> failures = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      const std::string text(static_cast<std::size_t>(1000 * (t + 1)), static_cast<char>('a' + t));
      for (int i = 0; i < 50; ++i) {
        const bool alone = write_file(path("one"), std::string_view(text)).ok();
        const FileContent pair[] = {{path("two"), bytes_of(text)}, {path("three"), bytes_of(text)}};
        failures += !alone + !write_files(pair).ok();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
  for (const char* name : {"one", "two", "three"}) {
    const auto read = read_file(path(name), 10000);
    ASSERT_TRUE(read.ok());
    EXPECT_EQ(read->size(), 1000u * (read->span()[0] - 'a' + 1)) << name;
  }
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 3);
}

TEST_F(FileTest, AFullDiskLeavesTheOldFile) {
  ASSERT_TRUE(write_file(path("a"), std::string_view("old")).ok());
  const pid_t child = ::fork();
  if (child == 0) {  // a limit on files stands for a disk that is full
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{10, 10};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const FileContent files[] = {{path("b"), bytes_of("fits")}, {path("a"), bytes_of("does not fit into ten bytes")}};
    ::_exit(write_files(files).code() == StatusCode::kIoError ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(read_file(path("a"), 9)->size(), 3u);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
}

}  // namespace
}  // namespace reef
