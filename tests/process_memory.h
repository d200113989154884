// SPDX-License-Identifier: Apache-2.0
// Memory of this process, and of programs that it starts, in MiB (Linux).
#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace reef::testing {

inline double resident_mib() {
  std::ifstream status("/proc/self/statm");
  std::int64_t size = 0, resident = 0;
  status >> size >> resident;
  return static_cast<double>(resident * ::sysconf(_SC_PAGESIZE)) / (1 << 20);
}

// The most it ever was.
inline double most_resident_mib() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

struct ChildOutcome {
  int exit_code = -1;  // -1: it was ended by a signal, or could not be started
  double most_resident_mib = 0;
  std::string text;  // standard output and error together
};

// Runs a program to its end. Its memory alone is counted, whatever other children took.
inline ChildOutcome run_child(const std::vector<std::string>& command) {
  ChildOutcome outcome;
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return outcome;
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(ends[1], STDOUT_FILENO);
    ::dup2(ends[1], STDERR_FILENO);
    ::execv(arguments[0], arguments.data());
    ::_exit(127);
  }
  ::close(ends[1]);
  char chunk[4096];
  for (ssize_t n; (n = ::read(ends[0], chunk, sizeof(chunk))) > 0;) {
    outcome.text.append(chunk, static_cast<std::size_t>(n));
  }
  ::close(ends[0]);
  int status = 0;
  rusage usage{};
  if (child < 0 || ::wait4(child, &status, 0, &usage) != child) return outcome;
  if (WIFEXITED(status)) outcome.exit_code = WEXITSTATUS(status);
  outcome.most_resident_mib = static_cast<double>(usage.ru_maxrss) / 1024;
  return outcome;
}

}  // namespace reef::testing
