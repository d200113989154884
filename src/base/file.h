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

// Reads a regular file whole. A file larger than `max_bytes` is refused before anything is allocated.
Result<Bytes> read_file(const std::string& path, std::uint64_t max_bytes);

// Writes beside `path` and renames over it, so that `path` holds either its old content or all of the new one.
Status write_file(const std::string& path, std::span<const std::uint8_t> data);
Status write_file(const std::string& path, std::string_view text);

// Several at once: if one cannot be written, all paths hold what they held before. (A machine that stops in between can
// leave some new and some old, and files "<path>.part..." or "<path>.old..." beside them.)
struct FileContent {
  std::string path;
  std::span<const std::uint8_t> data;
};
Status write_files(std::span<const FileContent> files);

}  // namespace reef
