// SPDX-License-Identifier: Apache-2.0
// What a confined process can and cannot do, tried by a child process that does it; and that every command still can do
// its work. command_line.h runs all commands of all tests with a folder for temporary files of their own, so that a
// result that an option does not declare (Option::writes) cannot be written.
#include <cerrno>
#include <fstream>
#include <functional>
#include <thread>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "../apps/reef/sandbox.h"
#include "command_line.h"

namespace reef::testing {
namespace {

namespace fs = std::filesystem;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kHasSanitizer = true;
#else
constexpr bool kHasSanitizer = false;
#endif

class Sandbox : public CommandLine {
 protected:
  void SetUp() override {
    if (kHasSanitizer) GTEST_SKIP() << "a build with a sanitizer does not confine itself";
    if (::syscall(444, nullptr, 0, 1) < 1) GTEST_SKIP() << "this kernel has no Landlock";
    for (const char* folder : {"results", "elsewhere", "temporary"}) fs::create_directories(folder_ / folder);
  }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  // What `attempt` returns in a process that may write to results/ only: 0, or the error number it met.
  int confined(const std::function<int()>& attempt) const {
    const pid_t child = ::fork();
    if (child == 0) {
      ::setenv("TMPDIR", path("temporary").c_str(), 1);
      ::setenv("REEF_SANDBOX", "require", 1);
      const Status status = app::enter_sandbox({path("results/model.tflite"), path("results/new/deep")});
      ::_exit(status.ok() ? attempt() : 255);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  static int opens(const std::string& file, int flags) {
    const int descriptor = ::open(file.c_str(), flags | O_CLOEXEC, 0600);
    return descriptor >= 0 ? 0 : errno;
  }
};

TEST_F(Sandbox, FilesAreWrittenWhereResultsGoAndNowhereElse) {
  std::ofstream(path("elsewhere/old")) << "old";
  const int create = O_WRONLY | O_CREAT;
  EXPECT_EQ(confined([&] { return opens(path("results/model.tflite"), create); }), 0);
  EXPECT_EQ(confined([&] { return opens(path("temporary/x"), create); }), 0);
  EXPECT_EQ(confined([&] { return ::mkdir(path("results/new").c_str(), 0700) == 0 ? 0 : errno; }), 0);
  EXPECT_EQ(confined([&] { return opens("/dev/null", O_WRONLY); }), 0);
  EXPECT_EQ(confined([&] { return opens(path("elsewhere/new"), create); }), EACCES);
  EXPECT_EQ(confined([&] { return opens(path("elsewhere/old"), O_WRONLY); }), EACCES);
  EXPECT_EQ(confined([&] { return opens(path("elsewhere/old"), O_RDWR); }), EACCES);
  EXPECT_EQ(confined([&] { return ::unlink(path("elsewhere/old").c_str()) == 0 ? 0 : errno; }), EACCES);
  EXPECT_EQ(
      confined([&] { return ::rename(path("elsewhere/old").c_str(), path("results/o").c_str()) == 0 ? 0 : errno; }),
      EACCES);
  EXPECT_EQ(confined([&] { return opens(path("elsewhere/old"), O_RDONLY); }), 0) << "reading is not limited";
}

// A link in the folder of results does not lead out of it, unless the command line named it.
TEST_F(Sandbox, LinksDoNotLeadOut) {
  fs::create_symlink(path("elsewhere/target"), path("results/link"));
  EXPECT_EQ(confined([&] { return opens(path("results/link"), O_WRONLY | O_CREAT); }), EACCES);
}

TEST_F(Sandbox, ProgramsTheNetworkAndOtherProcessesAreOutOfReach) {
  EXPECT_EQ(confined([] {
              char name[] = "/bin/true";
              char* arguments[] = {name, nullptr};
              ::execv(name, arguments);
              return errno;
            }),
            EACCES);
  const auto opens_socket = [](int family) { return ::socket(family, SOCK_STREAM, 0) >= 0 ? 0 : errno; };
  EXPECT_EQ(confined([&] { return opens_socket(AF_INET); }), EACCES);
  EXPECT_EQ(confined([&] { return opens_socket(AF_INET6); }), EACCES);
  EXPECT_EQ(confined([&] { return opens_socket(AF_UNIX); }), 0);
  EXPECT_EQ(confined([&] { return ::socket(AF_NETLINK, SOCK_RAW, 15) >= 0 ? 0 : errno; }), 0) << "libusb needs it";
  EXPECT_EQ(confined([] { return ::syscall(SYS_ptrace, 0, 0, 0, 0) == 0 ? 0 : errno; }), EACCES);
  EXPECT_EQ(confined([] { return ::syscall(425, 8, nullptr) >= 0 ? 0 : errno; }), EACCES) << "io_uring";
}

TEST_F(Sandbox, MemoryIsNotBothWrittenAndExecuted) {
  constexpr std::size_t kBytes = 4096;
  const auto map = [](int protection) {
    return ::mmap(nullptr, kBytes, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  };
  EXPECT_EQ(confined([&] { return map(PROT_READ | PROT_WRITE | PROT_EXEC) == MAP_FAILED ? errno : 0; }), EACCES);
  EXPECT_EQ(confined([&] {
              void* const memory = map(PROT_READ | PROT_WRITE);
              return ::mprotect(memory, kBytes, PROT_READ | PROT_EXEC) == 0 ? 0 : errno;
            }),
            EACCES);
  EXPECT_EQ(confined([&] { return map(PROT_READ | PROT_WRITE) == MAP_FAILED ? errno : 0; }), 0);
}

TEST_F(Sandbox, ThreadsStartAndAreConfinedToo) {
  EXPECT_EQ(confined([&] {
              int result = -1;
              std::thread([&] { result = opens(path("elsewhere/new"), O_WRONLY | O_CREAT); }).join();
              return result;
            }),
            EACCES);
}

// The program as a user starts it.
TEST_F(Sandbox, TheVariableIsUnderstoodOrRefused) {
  const auto with = [&](const std::string& value) {
    return reef("inspect " + path("elsewhere/nothing.tflite"), "REEF_SANDBOX=" + value);
  };
  for (const char* value : {"off", "on", "require", "''"}) {
    const Outcome outcome = with(value);
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_NE(outcome.text.find("nothing.tflite"), std::string::npos) << value << ": " << outcome.text;
  }
  const Outcome wrong = with("of");
  EXPECT_EQ(wrong.exit_code, 1);
  EXPECT_NE(wrong.text.find("REEF_SANDBOX=of is not understood; it may be on, off or require"), std::string::npos)
      << wrong.text;
}

}  // namespace
}  // namespace reef::testing
