// SPDX-License-Identifier: Apache-2.0
#include "python_package.h"

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "console.h"
#include "parts.h"
#include "program_file.h"

namespace reef::app {

namespace fs = std::filesystem;

fs::path program_folder() {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error).parent_path();
}

Result<PythonPackage> find_python_package() {
  REEF_ASSIGN_OR_RETURN(const fs::path python, find_part(Part::kPython));
  REEF_ASSIGN_OR_RETURN(const fs::path library, find_part(Part::kLibrary));
  return PythonPackage{python, library / "libreef.so.0"};
}

void put_in_front(const char* name, const std::string& value) {
  const char* const before = std::getenv(name);
  const std::string all = before != nullptr && *before != 0 ? value + ":" + before : value;
  ::setenv(name, all.c_str(), 1);
}

Status become(std::vector<std::string> words) {
  REEF_ASSIGN_OR_RETURN(const std::string file, find_program(words.front()));
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  flush_output();
  ::signal(SIGPIPE, SIG_DFL);
  ::signal(SIGXFSZ, SIG_DFL);
  ::execv(file.c_str(), pointers.data());
  return make_error(StatusCode::kIoError, "starting {} failed: {}", file, std::strerror(errno));
}

}  // namespace reef::app
