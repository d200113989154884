// SPDX-License-Identifier: Apache-2.0
// Whole-file reading and all-or-nothing writing.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/status.h"

namespace reef {

// Reads a regular file whole. A file larger than `max_bytes` is refused before anything is allocated; a FIFO or a
// device is refused without waiting for it.
Result<Bytes> read_file(const std::string& path, std::uint64_t max_bytes);

// Writes beside `path`, under a name that nobody can guess, and renames over it, so that `path` holds either its old
// content or all of the new one. output_place.h says what may be replaced and what a symbolic link does. The mode of a
// file that is replaced is kept, and its owner where that is allowed; a new file gets what the umask leaves. Any number
// of threads may write to one path: one of them is last.
Status write_file(const std::string& path, std::span<const std::uint8_t> data);
Status write_file(const std::string& path, std::string_view text);

// Several at once: if one cannot be written, all paths hold what they held before. (A process that is killed by SIGKILL
// in between can leave some new and some old, and files ".reef-..." beside them; temporary_name.h.)
struct FileContent {
  std::string path;
  std::span<const std::uint8_t> data;
};
Status write_files(std::span<const FileContent> files);

// The bytes of a text, for FileContent. `text` must outlive the result.
std::span<const std::uint8_t> bytes_of(std::string_view text);

}  // namespace reef
