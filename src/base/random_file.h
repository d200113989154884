// SPDX-License-Identifier: Apache-2.0
// A file of any size, read in places: for sets of samples that do not fit into memory. Any number of threads may read
// at once. A file that becomes shorter meanwhile gives an error, not a signal, which a mapped file would.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/bytes.h"
#include "base/file_descriptor.h"
#include "base/status.h"

namespace reef {

class RandomFile {
 public:
  // Regular files only; a FIFO or a device is refused without waiting for it.
  static Result<std::shared_ptr<const RandomFile>> open(const std::string& path);
  // The same over bytes in memory.
  static std::shared_ptr<const RandomFile> over(Bytes content, std::string name);

  std::uint64_t size() const { return size_; }
  const std::string& path() const { return path_; }

  // Fills `target` from byte `at` on. An error if the file ends before.
  Status read_at(std::uint64_t at, std::span<std::uint8_t> target) const;
  // The range must lie within size(): it is checked before memory is taken.
  Result<Bytes> read(std::uint64_t at, std::uint64_t bytes) const;

 private:
  RandomFile(std::string path, FileDescriptor fd, Bytes content, std::uint64_t size)
      : path_(std::move(path)), fd_(std::move(fd)), content_(std::move(content)), size_(size) {}

  std::string path_;
  FileDescriptor fd_;  // negative: the content is in memory
  Bytes content_;
  std::uint64_t size_ = 0;
};

}  // namespace reef
