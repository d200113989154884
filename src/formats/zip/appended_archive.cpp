// SPDX-License-Identifier: Apache-2.0
#include "formats/zip/appended_archive.h"

#include <algorithm>
#include <optional>

namespace reef::zip {
namespace {

// Layout of the end record, of a directory entry, and of a file's own header (PKWARE's APPNOTE.TXT, 4.3).
constexpr std::uint32_t kEndMark = 0x06054b50, kEntryMark = 0x02014b50, kHeaderMark = 0x04034b50;
constexpr std::size_t kAppendedEndBytes = 22, kAppendedEntryBytes = 46;
constexpr std::size_t kEndDisk = 4, kEndEntries = 10, kEndDirectoryBytes = 12, kEndDirectoryStart = 16,
                      kEndComment = 20;
constexpr std::size_t kEntryName = 28, kEntryExtra = 30, kEntryComment = 32, kEntryHeaderStart = 42;
constexpr std::size_t kMaxComment = 65535;

std::uint32_t number(std::span<const std::uint8_t> file, std::size_t at, int bytes) {
  std::uint32_t value = 0;
  for (int i = 0; i < bytes; ++i) value |= std::uint32_t{file[at + static_cast<std::size_t>(i)]} << (8 * i);
  return value;
}

void put(std::vector<std::uint8_t>& file, std::size_t at, std::uint32_t value) {
  for (int i = 0; i < 4; ++i) file[at + static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(value >> (8 * i));
}

std::optional<std::size_t> find_end(std::span<const std::uint8_t> file) {
  if (file.size() < kAppendedEndBytes) return std::nullopt;
  const std::size_t last = file.size() - kAppendedEndBytes;
  const std::size_t first = last > kMaxComment ? last - kMaxComment : 0;
  for (std::size_t at = last + 1; at-- > first;) {
    if (number(file, at, 4) == kEndMark && number(file, at + kEndComment, 2) == last - at) return at;
  }
  return std::nullopt;
}

struct AppendedDirectory {
  std::size_t end = 0;               // the end record
  std::size_t first_header = 0;      // of all files: where the archive starts
  std::vector<std::size_t> entries;  // in the directory
};

std::optional<AppendedDirectory> read_directory(std::span<const std::uint8_t> file) {
  const auto end = find_end(file);
  if (!end || number(file, *end + kEndDisk, 4) != 0) return std::nullopt;
  AppendedDirectory directory;
  directory.end = *end;
  std::size_t at = number(file, *end + kEndDirectoryStart, 4);
  directory.first_header = at;
  if (at > *end || number(file, *end + kEndDirectoryBytes, 4) != *end - at) return std::nullopt;
  const std::uint32_t count = number(file, *end + kEndEntries, 2);
  for (std::uint32_t i = 0; i < count; ++i) {
    if (*end - at < kAppendedEntryBytes || number(file, at, 4) != kEntryMark) return std::nullopt;
    const std::size_t header = number(file, at + kEntryHeaderStart, 4);
    if (header > *end - 4 || number(file, header, 4) != kHeaderMark) return std::nullopt;
    directory.first_header = std::min(directory.first_header, header);
    directory.entries.push_back(at);
    const std::size_t length = kAppendedEntryBytes + number(file, at + kEntryName, 2) +
                               number(file, at + kEntryExtra, 2) + number(file, at + kEntryComment, 2);
    if (length > *end - at) return std::nullopt;
    at += length;
  }
  return at == *end ? std::optional(directory) : std::nullopt;
}

}  // namespace

AppendedArchive find_appended_archive(std::span<const std::uint8_t> file) {
  const auto directory = read_directory(file);
  if (!directory) return {};
  return {true, directory->first_header};
}

bool carry_archive(std::span<const std::uint8_t> from, std::vector<std::uint8_t>& file) {
  const auto directory = read_directory(from);
  if (!directory || file.size() + from.size() > UINT32_MAX) return false;
  const std::size_t start = directory->first_header, new_start = file.size();
  file.insert(file.end(), from.begin() + static_cast<std::ptrdiff_t>(start), from.end());
  const auto moved = [&](std::size_t place) { return static_cast<std::uint32_t>(place - start + new_start); };
  for (const std::size_t entry : directory->entries) {
    put(file, moved(entry) + kEntryHeaderStart, moved(number(from, entry + kEntryHeaderStart, 4)));
  }
  put(file, moved(directory->end) + kEndDirectoryStart, moved(number(from, directory->end + kEndDirectoryStart, 4)));
  return true;
}

}  // namespace reef::zip
