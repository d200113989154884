// SPDX-License-Identifier: Apache-2.0
#include "base/random_file.h"

#include <cerrno>
#include <cstring>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace reef {
namespace {

Status cannot_read(const std::string& path) {
  const StatusCode code = errno == ENOENT ? StatusCode::kNotFound : StatusCode::kIoError;
  return make_error(code, "cannot read '{}': {}", path, std::strerror(errno));
}

}  // namespace

Result<std::shared_ptr<const RandomFile>> RandomFile::open(const std::string& path) {
  FileDescriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat info {};
  if (fd.get() < 0 || ::fstat(fd.get(), &info) != 0) return cannot_read(path);
  REEF_REQUIRE(S_ISREG(info.st_mode), "'{}' is not a file", path);
  const auto size = static_cast<std::uint64_t>(info.st_size);
  return std::shared_ptr<const RandomFile>(new RandomFile(path, std::move(fd), {}, size));
}

std::shared_ptr<const RandomFile> RandomFile::over(Bytes content, std::string name) {
  const std::uint64_t size = content.size();
  return std::shared_ptr<const RandomFile>(
      new RandomFile(std::move(name), FileDescriptor(-1), std::move(content), size));
}

Status RandomFile::read_at(std::uint64_t at, std::span<std::uint8_t> target) const {
  REEF_REQUIRE(at <= size_ && target.size() <= size_ - at, "'{}' is cut off: bytes {} to {} are needed, it has {}",
               path_, at, at + target.size(), size_);
  if (fd_.get() < 0) {
    if (!target.empty()) std::memcpy(target.data(), content_.data() + at, target.size());
    return ok_status();
  }
  while (!target.empty()) {
    const ssize_t got = ::pread(fd_.get(), target.data(), target.size(), static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return cannot_read(path_);
    REEF_REQUIRE(got > 0, "'{}' became shorter while it was read: byte {} is missing", path_, at);
    target = target.subspan(static_cast<std::size_t>(got));
    at += static_cast<std::uint64_t>(got);
  }
  return ok_status();
}

Result<Bytes> RandomFile::read(std::uint64_t at, std::uint64_t bytes) const {
  REEF_REQUIRE(at <= size_ && bytes <= size_ - at, "'{}' is cut off: {} bytes from byte {} on are needed, it has {}",
               path_, bytes, at, size_);
  if (fd_.get() < 0) return content_.slice(at, bytes);
  std::vector<std::uint8_t> data(bytes);
  REEF_RETURN_IF_ERROR(read_at(at, data));
  return Bytes(std::move(data));
}

}  // namespace reef
