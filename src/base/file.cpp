// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"

#include <cerrno>
#include <cstring>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace reef {
namespace {

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  ~FileDescriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

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

Status write_new(const FileContent& content, const std::string& aside) {
  struct stat info {};
  if (::stat(content.path.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) {
    errno = EISDIR;
    return io_error(content.path, "create");
  }
  FileDescriptor file(::open(aside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (file.get() < 0) return io_error(content.path, "create");
  REEF_RETURN_IF_ERROR(write_all(file.get(), content.data, content.path));
  if (::fsync(file.get()) != 0 && errno != EINVAL && errno != EROFS) return io_error(content.path, "write");
  return ok_status();
}

// What `path` held is `old` afterwards, if it held something.
Status replace(const std::string& path, const std::string& aside, const std::string& old) {
  ::unlink(old.c_str());
  // A link keeps `path` in place all the time. Not every file system has links.
  const bool is_linked = ::link(path.c_str(), old.c_str()) == 0;
  if (!is_linked && errno != ENOENT && ::rename(path.c_str(), old.c_str()) != 0) return io_error(path, "create");
  if (::rename(aside.c_str(), path.c_str()) == 0) return ok_status();
  const Status status = io_error(path, "create");
  if (!is_linked) ::rename(old.c_str(), path.c_str());  // fails where there was nothing
  return status;
}

}  // namespace

Result<Bytes> read_file(const std::string& path, std::uint64_t max_bytes) {
  FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return io_error(path, "open");
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

Status write_files(std::span<const FileContent> files) {
  const pid_t process = ::getpid();
  const auto aside = [&](const FileContent& file) { return fmt::format("{}.part{}", file.path, process); };
  const auto old = [&](const FileContent& file) { return fmt::format("{}.old{}", file.path, process); };
  std::size_t written = 0, replaced = 0;
  Status status = ok_status();
  for (; written < files.size() && status.ok(); ++written) status = write_new(files[written], aside(files[written]));
  for (; replaced < files.size() && status.ok(); ++replaced) {
    status = replace(files[replaced].path, aside(files[replaced]), old(files[replaced]));
  }
  if (!status.ok()) {
    // The last one of each failed, and left its path as it was.
    for (std::size_t i = 0; i + 1 < replaced; ++i) {
      if (::rename(old(files[i]).c_str(), files[i].path.c_str()) != 0) ::unlink(files[i].path.c_str());
    }
    for (std::size_t i = 0; i < written; ++i) ::unlink(aside(files[i]).c_str());
  }
  for (std::size_t i = 0; i < replaced; ++i) ::unlink(old(files[i]).c_str());
  return status;
}

Status write_file(const std::string& path, std::span<const std::uint8_t> data) {
  const FileContent file{path, data};
  return write_files(std::span(&file, 1));
}

Status write_file(const std::string& path, std::string_view text) {
  return write_file(path, {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
}

}  // namespace reef
