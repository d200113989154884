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

Status write_file(const std::string& path, std::span<const std::uint8_t> data) {
  const std::string aside = fmt::format("{}.part{}", path, ::getpid());
  {
    FileDescriptor file(::open(aside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    if (file.get() < 0) return io_error(path, "create");
    Status status = write_all(file.get(), data, path);
    if (status.ok() && ::fsync(file.get()) != 0 && errno != EINVAL && errno != EROFS) status = io_error(path, "write");
    if (!status.ok()) {
      ::unlink(aside.c_str());
      return status;
    }
  }
  if (::rename(aside.c_str(), path.c_str()) != 0) {
    const Status status = io_error(path, "create");
    ::unlink(aside.c_str());
    return status;
  }
  return ok_status();
}

Status write_file(const std::string& path, std::string_view text) {
  return write_file(path, {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
}

}  // namespace reef
