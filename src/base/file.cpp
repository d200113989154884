// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"

#include <cerrno>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file_descriptor.h"
#include "base/output_place.h"
#include "base/strays.h"
#include "base/temporary_name.h"

namespace reef {
namespace {

Status io_error(const std::string& path, std::string_view action) {
  const StatusCode code = errno == ENOENT ? StatusCode::kNotFound : StatusCode::kIoError;
  return make_error(code, "cannot {} '{}': {}", action, path, std::strerror(errno));
}

Status write_all(int fd, std::span<const std::uint8_t> data, const std::string& path) {
  while (!data.empty()) {
    const ssize_t written = ::write(fd, data.data(), data.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return io_error(path, "write");
    }
    data = data.subspan(static_cast<std::size_t>(written));
  }
  return ok_status();
}

// A file on its way to its place.
struct NewFile {
  NewFile(const FileContent& what, OutputPlace where)
      : content(&what), place(std::move(where)), fresh(TemporaryName::drawn_in(place.folder)) {}

  const FileContent* content;
  OutputPlace place;
  TemporaryName fresh;               // the new content, until it has its name
  std::optional<TemporaryName> old;  // what the place held, until all files have theirs
};

// New files get what the umask leaves, others what they had.
Status set_mode(int fd, const NewFile& file) {
  if (!file.place.exists) return ok_status();
  const struct stat& old = file.place.info;
  const bool has_other_owner = old.st_uid != ::geteuid() || old.st_gid != ::getegid();
  if (has_other_owner && ::fchown(fd, old.st_uid, old.st_gid) != 0 && errno != EPERM && errno != EINVAL) {
    return io_error(file.content->path, "create");
  }
  // File systems without modes refuse this.
  if (::fchmod(fd, old.st_mode & 07777) != 0 && errno != EPERM) return io_error(file.content->path, "create");
  return ok_status();
}

FileDescriptor open_new(const NewFile& file) {
  const SignalsWait until_it_is_made;
  const mode_t mode = file.place.exists ? 0600 : 0666;
  const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  return FileDescriptor(::openat(file.fresh.folder(), file.fresh.name(), flags, mode));
}

Status write_new(const NewFile& file) {
  const std::string& path = file.content->path;
  const FileDescriptor made = open_new(file);
  if (made.get() < 0) return io_error(path, "create");
  REEF_RETURN_IF_ERROR(write_all(made.get(), file.content->data, path));
  REEF_RETURN_IF_ERROR(set_mode(made.get(), file));
  if (::fsync(made.get()) != 0 && errno != EINVAL && errno != EROFS) return io_error(path, "write");
  return ok_status();
}

// Keeps what is at the place under another name, if there is something.
Status keep_old(NewFile& file) {
  const int folder = file.place.folder->get();
  const char* const name = file.place.name.c_str();
  file.old.emplace(TemporaryName::drawn_in(file.place.folder));
  // A link keeps the file in place all the time. Not every file system has links.
  if (::linkat(folder, name, folder, file.old->name(), 0) == 0 || errno == ENOENT) return ok_status();
  file.old.emplace(TemporaryName(file.place.folder, new_name_of_only_copy()));
  if (::renameat(folder, name, folder, file.old->name()) == 0 || errno == ENOENT) return ok_status();
  return io_error(file.content->path, "create");
}

Status put_into_place(NewFile& file, bool is_alone) {
  if (!is_alone) REEF_RETURN_IF_ERROR(keep_old(file));
  const int folder = file.place.folder->get();
  if (::renameat(folder, file.fresh.name(), folder, file.place.name.c_str()) != 0) {
    return io_error(file.content->path, "create");
  }
  file.fresh.give_away();
  return ok_status();
}

// The place holds again what it held; `is_new`: the new file is there.
void take_back(NewFile& file, bool is_new) {
  if (!file.old) return;
  const int folder = file.place.folder->get();
  const char* const name = file.place.name.c_str();
  if (::renameat(folder, file.old->name(), folder, name) != 0 && is_new) ::unlinkat(folder, name, 0);
}

// Why there is no such file, where its name tells: an address, a home folder in quotes, a path of Windows.
Status not_opened(const std::string& path) {
  const bool is_absent = errno == ENOENT;
  const Status status = io_error(path, "open");
  if (!is_absent) return status;
  std::string_view why;
  if (path.find("://") != std::string::npos) {
    why = "it is an address, and Reef reads files: download it first";
  } else if (path.starts_with("~")) {
    why = "the shell leaves ~ as it is inside quotes; write $HOME instead";
  } else if (path.find('\\') != std::string::npos) {
    why = "it looks like a path of Windows; write it with /, under WSL C:\\ is /mnt/c/";
  }
  return why.empty() ? status : make_error(status.code(), "{} ({})", status.message(), why);
}

}  // namespace

Result<Bytes> read_file(const std::string& path, std::uint64_t max_bytes) {
  // Opening a FIFO would wait for somebody who writes into it.
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (file.get() < 0) return not_opened(path);
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) return io_error(path, "read");
  if (!S_ISREG(info.st_mode)) return invalid_input("'{}' is not a regular file", path);
  const auto size = static_cast<std::uint64_t>(info.st_size);
  if (size > max_bytes) {
    return invalid_input("'{}' has {} bytes; at most {} bytes can be read", path, size, max_bytes);
  }
  std::vector<std::uint8_t> data(size);
  std::size_t filled = 0;
  while (filled < data.size()) {
    const ssize_t got = ::read(file.get(), data.data() + filled, data.size() - filled);
    if (got < 0) {
      if (errno == EINTR) continue;
      return io_error(path, "read");
    }
    if (got == 0) break;
    filled += static_cast<std::size_t>(got);
  }
  if (filled != data.size()) return invalid_input("'{}' shrank while it was being read", path);
  return Bytes(std::move(data));
}

Status write_files(std::span<const FileContent> contents) {
  std::vector<std::string> paths;
  for (const FileContent& content : contents) paths.push_back(content.path);
  REEF_RETURN_IF_ERROR(check_outputs(paths, {}));
  std::vector<NewFile> files;
  std::map<FileIdentity, std::shared_ptr<const FileDescriptor>> folders;  // open once each
  for (const FileContent& content : contents) {
    REEF_ASSIGN_OR_RETURN(OutputPlace place, find_output_place(content.path));
    place.folder = folders.emplace(place.folder_identity, place.folder).first->second;
    files.emplace_back(content, std::move(place));
  }
  for (const NewFile& file : files) REEF_RETURN_IF_ERROR(write_new(file));
  const SignalsWait until_all_have_their_names;
  for (std::size_t i = 0; i < files.size(); ++i) {
    const Status status = put_into_place(files[i], files.size() == 1);
    if (status.ok()) continue;
    take_back(files[i], false);
    while (i-- > 0) take_back(files[i], true);
    return status;
  }
  files.clear();  // before signals may end the process: old contents have names that are removed here
  for (const auto& [identity, folder] : folders) remove_strays(folder->get());
  return ok_status();
}

Status write_file(const std::string& path, std::span<const std::uint8_t> data) {
  const FileContent file{path, data};
  return write_files(std::span(&file, 1));
}

Status write_file(const std::string& path, std::string_view text) { return write_file(path, bytes_of(text)); }

std::span<const std::uint8_t> bytes_of(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

}  // namespace reef
