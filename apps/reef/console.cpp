// SPDX-License-Identifier: Apache-2.0
#include "console.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>

#include <fcntl.h>
#include <unistd.h>

#include "base/temporary_name.h"

namespace reef::app {

OutputFailed::OutputFailed(int error)
    : message_(fmt::format("cannot write to standard output: {}; the result is not complete",
                           error == 0 ? "unknown error" : std::strerror(error))) {}

void write_output(std::string_view text) {
  errno = 0;
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) throw OutputFailed(errno);
}

void write_message(std::string_view text) { (void)std::fwrite(text.data(), 1, text.size(), stderr); }

bool has_colour() { return ::isatty(STDOUT_FILENO) == 1 && std::getenv("NO_COLOR") == nullptr; }

void prepare_process() {
  // Standard output that is closed stays one that cannot be written to; input that is closed stays empty.
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
    const int opened = ::open("/dev/null", O_RDONLY);
    if (opened >= 0 && opened != fd) ::dup2(opened, fd);
    if (opened >= 0 && opened != fd) ::close(opened);
  }
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGXFSZ, SIG_IGN);
  install_interrupt_cleanup();
}

void flush_output() {
  errno = 0;
  std::cout.flush();
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0 || !std::cout) throw OutputFailed(errno);
}

}  // namespace reef::app
