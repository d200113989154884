// SPDX-License-Identifier: Apache-2.0
#include "base/temporary_name.h"

#include <csignal>
#include <filesystem>
#include <set>
#include <string>
#include <thread>

#include <fcntl.h>
#include <sys/wait.h>

#include <gtest/gtest.h>

#include "base/file.h"

namespace reef {
namespace {

namespace fs = std::filesystem;

class TemporaryNameTest : public ::testing::Test {
 protected:
  TemporaryNameTest() : folder_(fs::temp_directory_path() / ("reef_temporary_test_" + std::to_string(::getpid()))) {
    fs::create_directories(folder_);
    opened_ = std::make_shared<const FileDescriptor>(::open(folder_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  }
  ~TemporaryNameTest() override { fs::remove_all(folder_); }
  void touch(const TemporaryName& name) const {
    ::close(::openat(name.folder(), name.name(), O_CREAT | O_EXCL | O_WRONLY, 0600));
  }
  std::ptrdiff_t files() const { return std::distance(fs::directory_iterator(folder_), {}); }

  fs::path folder_;
  std::shared_ptr<const FileDescriptor> opened_;
};

TEST_F(TemporaryNameTest, NamesDifferAndAreRemoved) {
  std::set<std::string> seen;
  {
    std::vector<TemporaryName> names;
    for (int i = 0; i < 200; ++i) {
      names.push_back(TemporaryName::drawn_in(opened_));
      EXPECT_TRUE(seen.insert(names.back().name()).second);
      EXPECT_LE(std::string(names.back().name()).size(), 63u);
      touch(names.back());
    }
    EXPECT_EQ(files(), 200);
    names.front().give_away();
  }
  EXPECT_EQ(files(), 1);
}

// In a child, which a signal ends at a moment of the test's choice.
template <typename Work>
int signal_that_ends(const Work& work) {
  const pid_t child = ::fork();
  if (child == 0) {
    install_interrupt_cleanup();
    work();
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

TEST_F(TemporaryNameTest, SignalsRemoveWhatIsListedAndEndTheProcess) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    EXPECT_EQ(signal_that_ends([&] {
                const TemporaryName name = TemporaryName::drawn_in(opened_);
                touch(name);
                ::raise(signal);
              }),
              signal);
    EXPECT_EQ(files(), 0);
  }
}

TEST_F(TemporaryNameTest, SignalsWaitForWhatMustNotBeInterrupted) {
  EXPECT_EQ(signal_that_ends([&] {
              const SignalsWait moment;
              ::raise(SIGTERM);
              (void)write_file((folder_ / "made_after_the_signal").string(), std::string_view("x"));
            }),
            SIGTERM);
  EXPECT_TRUE(fs::exists(folder_ / "made_after_the_signal"));
  EXPECT_EQ(files(), 1);
}

TEST_F(TemporaryNameTest, IgnoredSignalsStayIgnored) {
  EXPECT_EQ(signal_that_ends([] {
              ::signal(SIGHUP, SIG_IGN);
              install_interrupt_cleanup();
              ::raise(SIGHUP);
            }),
            0);
}

// Signals at random moments while several threads write pairs of files: no strays, and pairs that belong together.
TEST_F(TemporaryNameTest, SignalsAtAnyMomentLeaveNoStrays) {
  for (int round = 0; round < 40; ++round) {
    const pid_t child = ::fork();
    if (child == 0) {
      install_interrupt_cleanup();
      const auto write_pairs = [&](int thread) {
        for (int i = 0;; ++i) {
          const std::string text = std::to_string(i), stem = (folder_ / std::to_string(thread)).string();
          const auto* data = reinterpret_cast<const std::uint8_t*>(text.data());
          const FileContent pair[] = {{stem + ".a", {data, text.size()}}, {stem + ".b", {data, text.size()}}};
          if (!write_files(pair).ok()) ::_exit(1);
        }
      };
      std::thread other(write_pairs, 1);
      write_pairs(0);
    }
    ::usleep(static_cast<useconds_t>(2000 + 379 * round));
    ::kill(child, round % 2 == 0 ? SIGINT : SIGTERM);
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status));
    for (const auto& entry : fs::directory_iterator(folder_)) {
      const std::string name = entry.path().filename().string();
      EXPECT_NE(name[0], '.') << name;
      const std::string other = (folder_ / (name.substr(0, 2) + (name.back() == 'a' ? "b" : "a"))).string();
      const auto a = read_file(entry.path().string(), 99), b = read_file(other, 99);
      ASSERT_TRUE(a.ok() && b.ok()) << name;
      EXPECT_TRUE(std::equal(a->span().begin(), a->span().end(), b->span().begin(), b->span().end())) << name;
    }
  }
}

TEST_F(TemporaryNameTest, FoldersGoWithWhatTheyHold) {
  std::string path;
  {
    auto made = TemporaryFolder::make("reef_test", {"log"});
    ASSERT_TRUE(made.ok());
    const TemporaryFolder folder = std::move(*made);
    path = folder.path();
    ASSERT_TRUE(write_file(path + "/unknown", std::string_view("x")).ok());
  }
  EXPECT_FALSE(fs::exists(path));
  const std::string note = (folder_ / "note").string();
  EXPECT_EQ(signal_that_ends([&] {
              auto folder = TemporaryFolder::make("reef_test", {"log", "model.tflite"});
              (void)write_file(note, std::string_view(folder->path()));
              (void)write_file(folder->path() + "/log", std::string_view("x"));
              ::raise(SIGINT);
            }),
            SIGINT);
  const auto text = read_file(note, 999);
  ASSERT_TRUE(text.ok());
  EXPECT_FALSE(fs::exists(std::string(reinterpret_cast<const char*>(text->data()), text->size())));
}

}  // namespace
}  // namespace reef
