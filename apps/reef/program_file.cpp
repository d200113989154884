// SPDX-License-Identifier: Apache-2.0
#include "program_file.h"

#include <elf.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

namespace reef::app {
namespace {

constexpr int kMostInterpreters = 4;  // as the kernel: a script whose interpreter is a script, and so on

bool is_executable(const std::string& path) {
  struct stat about {};
  return ::stat(path.c_str(), &about) == 0 && S_ISREG(about.st_mode) && ::access(path.c_str(), X_OK) == 0;
}

// Has it a loader? The file's own header and table of segments say so.
Status check_elf(const std::string& file, std::ifstream& stream) {
  Elf64_Ehdr own{}, header{};
  std::ifstream self("/proc/self/exe", std::ios::binary);
  self.read(reinterpret_cast<char*>(&own), sizeof own);
  stream.seekg(0);
  stream.read(reinterpret_cast<char*>(&header), sizeof header);
  if (!stream || header.e_ident[EI_CLASS] != own.e_ident[EI_CLASS] || header.e_machine != own.e_machine) {
    return unsupported("{} is for another kind of machine than reef: virtual devices cannot be put into it", file);
  }
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment{};
    stream.seekg(static_cast<std::streamoff>(header.e_phoff + std::uint64_t{i} * header.e_phentsize));
    stream.read(reinterpret_cast<char*>(&segment), sizeof segment);
    if (stream && segment.p_type == PT_INTERP) return ok_status();
  }
  return unsupported(
      "{} is statically linked: virtual devices come as libraries, which nobody would load into it. Link it "
      "dynamically, with libusb as a shared library",
      file);
}

}  // namespace

Result<std::string> find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) {
    if (is_executable(name)) return name;
    return make_error(StatusCode::kNotFound, "{} is not a program that can be started", name);
  }
  const char* const path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "/usr/bin:/bin");
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string file = (folder.empty() ? "." : folder) + "/" + name;
    if (is_executable(file)) return file;
  }
  return make_error(StatusCode::kNotFound, "there is no program '{}' in the folders of PATH", name);
}

Status check_can_be_preloaded(const std::string& file) {
  std::string current = file;
  for (int i = 0; i < kMostInterpreters; ++i) {
    struct stat about {};
    if (::stat(current.c_str(), &about) == 0 && (about.st_mode & (S_ISUID | S_ISGID)) != 0 && ::geteuid() != 0) {
      return unsupported("{} runs with other rights than yours (setuid): the system loads no other libraries into it",
                         current);
    }
    std::ifstream stream(current, std::ios::binary);
    std::array<char, 4> start{};
    if (!stream.read(start.data(), start.size())) return ok_status();  // whoever starts it will say what is wrong
    if (std::memcmp(start.data(), ELFMAG, SELFMAG) == 0) return check_elf(current, stream);
    if (start[0] != '#' || start[1] != '!') return ok_status();
    stream.seekg(2);
    std::string line;
    std::getline(stream, line);
    std::istringstream words(line);
    if (!(words >> current)) return ok_status();
  }
  return ok_status();
}

}  // namespace reef::app
