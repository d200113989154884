// SPDX-License-Identifier: Apache-2.0
// Standard output and standard error of the program: everything that it prints goes through here.
//
// What people read is made printable (base/printable.h): names from files and models cannot control the terminal. What
// programs read (JSON, listings) goes out to the byte. A standard output that cannot be written to (a full disk, a
// closed pipe) ends the command with exit code 1 and a message. Messages that cannot be written to standard error are
// lost, and nothing else happens.
#pragma once

#include <exception>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "base/printable.h"

namespace reef::app {

// Thrown where standard output fails; main reports it.
class OutputFailed : public std::exception {
 public:
  explicit OutputFailed(int error);
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  std::string message_;
};

void write_output(std::string_view text);
void write_message(std::string_view text);

// For people.
template <typename... Args>
void print_text(fmt::format_string<Args...> format, Args&&... args) {
  write_output(printable_text(fmt::format(format, std::forward<Args>(args)...)));
}
template <typename... Args>
void print_error(fmt::format_string<Args...> format, Args&&... args) {
  write_message(printable_text(fmt::format(format, std::forward<Args>(args)...)));
}
// For programs, and for reports that are printable already.
template <typename... Args>
void print_exact(fmt::format_string<Args...> format, Args&&... args) {
  write_output(fmt::format(format, std::forward<Args>(args)...));
}

// Whether standard output is a terminal that wants colours (NO_COLOR: none).
bool has_colour();

// Once, before anything is opened: SIGPIPE and SIGXFSZ become errors of the call that fails; SIGINT, SIGTERM and SIGHUP
// remove temporary files (base/temporary_name.h); the numbers 0 to 2 are taken, so that no file of ours gets one of
// them and what is printed.
void prepare_process();

// What was printed is out; throws OutputFailed if not.
void flush_output();

}  // namespace reef::app
