// SPDX-License-Identifier: Apache-2.0
// A ZIP archive at the end of another file: how TFLite models carry labels and other associated files.
//
// Its directory names places in the whole file, so it cannot just be copied behind a model of another size: the places
// are moved along. Archives of 64-bit size or of several volumes are left alone.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.h"

namespace reef::zip {

// Whether `file` ends with an archive whose directory holds together; its first byte.
struct AppendedArchive {
  bool is_there = false;
  std::size_t start = 0;
};
AppendedArchive find_appended_archive(std::span<const std::uint8_t> file);

// Puts the archive at the end of `from`, if there is one, behind `file`. Returns whether there was.
bool carry_archive(std::span<const std::uint8_t> from, std::vector<std::uint8_t>& file);

}  // namespace reef::zip
