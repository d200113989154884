// SPDX-License-Identifier: Apache-2.0
#include "base/output_place.h"

#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <filesystem>
#include <vector>

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/vfs.h>

#include "base/shell_word.h"

namespace reef {
namespace {

constexpr int kMostLinks = 40;  // as Linux

Status refused(const std::string& path, int error) {
  return make_error(error == ENOENT ? StatusCode::kNotFound : StatusCode::kIoError, "cannot create '{}': {}", path,
                    std::strerror(error));
}

std::string_view kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
  if (S_ISFIFO(mode)) return "a FIFO";
  return S_ISSOCK(mode) ? "a socket" : "not a regular file";
}

Status check_kind(const std::string& path, mode_t mode) {
  if (S_ISREG(mode)) return ok_status();
  return make_error(StatusCode::kIoError, "cannot create '{}': it is {}, and Reef replaces nothing but regular files",
                    path, kind_of(mode));
}

struct Split {
  std::string folder, name;
};
Split split(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return {".", path};
  return {slash == 0 ? "/" : path.substr(0, slash), path.substr(slash + 1)};
}

// Opens the folder of `path`, which is relative to `base`, and notes the rest of it.
Status enter_folder(int base, const std::string& path, const std::string& given, OutputPlace& place) {
  const Split parts = split(path);
  const int fd = ::openat(base, parts.folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0 && errno == ENOENT) {
    return make_error(StatusCode::kNotFound,
                      "cannot create '{}': its folder '{}' does not exist; make it first: mkdir -p {}", given,
                      parts.folder, shell_word(parts.folder));
  }
  if (fd < 0) return refused(given, errno);
  place.folder = std::make_shared<const FileDescriptor>(fd);
  struct stat info {};
  if (::fstat(fd, &info) != 0) return refused(given, errno);
  place.folder_identity = {info.st_dev, info.st_ino};
  place.name = parts.name;
  return ok_status();
}

// The rule of protected_symlinks: in a folder where everybody may plant links, only one's own count.
bool is_planted(const OutputPlace& place) {
  struct stat folder {};
  if (::fstat(place.folder->get(), &folder) != 0) return true;
  const bool is_shared = (folder.st_mode & S_ISVTX) != 0 && (folder.st_mode & S_IWOTH) != 0;
  return is_shared && place.info.st_uid != ::geteuid() && place.info.st_uid != folder.st_uid;
}

// Links of /proc, such as /dev/stdout, lead to what is open, whatever name that has or had.
bool is_in_proc(const OutputPlace& place) {
  struct statfs system {};
  return ::fstatfs(place.folder->get(), &system) == 0 && system.f_type == PROC_SUPER_MAGIC;
}

// Where the link at `place` leads.
Status follow(const std::string& given, OutputPlace& place) {
  REEF_REQUIRE(!is_in_proc(place), "cannot create '{}': it stands for an open file; give the name of a file", given);
  REEF_REQUIRE(!is_planted(place),
               "cannot create '{}': '{}' is somebody else's symbolic link in a folder that everybody may write to; "
               "give the file that is meant",
               given, place.name);
  std::array<char, PATH_MAX> target{};
  const ssize_t length = ::readlinkat(place.folder->get(), place.name.c_str(), target.data(), target.size());
  if (length < 0) return refused(given, errno);
  if (static_cast<std::size_t>(length) == target.size()) return refused(given, ENAMETOOLONG);
  const std::shared_ptr<const FileDescriptor> here = place.folder;
  return enter_folder(here->get(), std::string(target.data(), static_cast<std::size_t>(length)), given, place);
}

Status check_rights(const std::string& path, const OutputPlace& place) {
  if (::faccessat(place.folder->get(), ".", W_OK | X_OK, AT_EACCESS) != 0) return refused(path, errno);
  if (!place.exists) return ok_status();
  const bool is_protected = (place.info.st_mode & (S_IWUSR | S_IWGRP | S_IWOTH)) == 0;
  if (!is_protected && ::faccessat(place.folder->get(), place.name.c_str(), W_OK, AT_EACCESS) == 0) return ok_status();
  return make_error(StatusCode::kIoError,
                    "cannot replace '{}': the file is write-protected (mode {:04o}); make it writable first (chmod "
                    "u+w {}), or give another name",
                    path, place.info.st_mode & 07777, shell_word(path));
}

}  // namespace

Result<OutputPlace> find_output_place(const std::string& path) {
  struct stat target {};
  const bool exists = ::stat(path.c_str(), &target) == 0;
  if (exists) REEF_RETURN_IF_ERROR(check_kind(path, target.st_mode));  // also of what has no name, such as a pipe
  if (!exists && errno != ENOENT) return refused(path, errno);
  OutputPlace place;
  REEF_RETURN_IF_ERROR(enter_folder(AT_FDCWD, path, path, place));
  for (int links = 0;; ++links) {
    // A path that ends with a slash names a folder, and this one does not exist.
    if (place.name.empty()) return refused(path, ENOENT);
    place.exists = ::fstatat(place.folder->get(), place.name.c_str(), &place.info, AT_SYMLINK_NOFOLLOW) == 0;
    if (!place.exists && errno != ENOENT) return refused(path, errno);
    if (!place.exists || !S_ISLNK(place.info.st_mode)) break;
    if (links == kMostLinks) return refused(path, ELOOP);
    REEF_RETURN_IF_ERROR(follow(path, place));
  }
  if (place.exists) REEF_RETURN_IF_ERROR(check_kind(path, place.info.st_mode));
  REEF_RETURN_IF_ERROR(check_rights(path, place));
  return place;
}

Status check_outputs(std::span<const std::string> outputs, std::span<const std::string> inputs) {
  std::vector<std::pair<std::string, OutputPlace>> places;
  bool replaces_something = false;
  for (const std::string& path : outputs) {
    if (path.empty()) continue;
    REEF_ASSIGN_OR_RETURN(OutputPlace place, find_output_place(path));
    for (const auto& [other, known] : places) {
      REEF_REQUIRE(!known.is_same(place), "two results would go to one file: '{}' and '{}'; give two names", other,
                   path);
    }
    replaces_something = replaces_something || place.exists;
    place.folder = nullptr;  // hundreds of results must not mean hundreds of open folders
    places.emplace_back(path, std::move(place));
  }
  if (!replaces_something) return ok_status();
  for (const std::string& input : inputs) {
    struct stat info {};
    if (input.empty() || ::stat(input.c_str(), &info) != 0) continue;
    for (const auto& [path, place] : places) {
      if (!place.exists || place.identity() != FileIdentity{info.st_dev, info.st_ino}) continue;
      return invalid_input("the result would replace the input '{}'{}; give another name", input,
                           path == input ? "" : fmt::format(", which '{}' is another name of", path));
    }
  }
  return ok_status();
}

Status check_output_folder(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::path existing = fs::path(path).lexically_normal();
  while (!existing.empty() && !fs::exists(existing, error) && existing.has_relative_path()) {
    existing = existing.parent_path();
  }
  if (existing.empty()) existing = ".";
  REEF_REQUIRE(fs::is_directory(existing, error), "cannot write into '{}': '{}' is not a folder", path,
               existing.string());
  if (::faccessat(AT_FDCWD, existing.c_str(), W_OK | X_OK, AT_EACCESS) == 0) return ok_status();
  return make_error(StatusCode::kIoError, "cannot write into '{}': {}", path, std::strerror(errno));
}

}  // namespace reef
