// SPDX-License-Identifier: Apache-2.0
#include "driver/holders.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <fmt/format.h>

namespace reef::driver {
namespace {

bool is_number(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

}  // namespace

std::string holders_of(const std::string& proc, const std::string& file) {
  namespace fs = std::filesystem;
  std::string text;
  std::error_code error;
  const std::string own = fmt::format("{}", ::getpid());
  for (fs::directory_iterator process(proc, error), end; !error && process != end; process.increment(error)) {
    const std::string number = process->path().filename().string();
    if (!is_number(number) || number == own) continue;
    std::error_code unreadable;  // of processes of others
    for (fs::directory_iterator open(process->path() / "fd", unreadable); !unreadable && open != end;
         open.increment(unreadable)) {
      std::error_code ignored;
      if (fs::read_symlink(open->path(), ignored).string() != file) continue;
      std::string name = "unknown";
      std::ifstream comm(process->path() / "comm");
      std::getline(comm, name);
      text += fmt::format("{}{} (process {})", text.empty() ? "" : ", ", name, number);
      break;
    }
  }
  return text;
}

}  // namespace reef::driver
