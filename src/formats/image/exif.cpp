// SPDX-License-Identifier: Apache-2.0
// Layout: JPEG's segments are FF, a marker, and a big-endian length that includes itself. Exif is an APP1 segment (E1)
// that begins with "Exif\0\0" and holds a TIFF file: byte order, 42, offset of a directory of 12-byte entries.
// Source: CIPA DC-008 (Exif 2.32), sections 4.5 and 4.6.
#include "formats/image/exif.h"

#include <cstring>
#include <string_view>

namespace reef::image {
namespace {

using File = std::span<const std::uint8_t>;

// Zero where the file ends before `at + bytes`.
std::uint32_t number(File file, std::size_t at, int bytes, bool is_big_endian) {
  if (at > file.size() || file.size() - at < static_cast<std::size_t>(bytes)) return 0;
  std::uint32_t value = 0;
  for (int i = 0; i < bytes; ++i) {
    value = value << 8 | file[at + static_cast<std::size_t>(is_big_endian ? i : bytes - 1 - i)];
  }
  return value;
}

int orientation_in_tiff(File tiff) {
  constexpr std::uint32_t kBigEndian = 0x4D4D, kLittleEndian = 0x4949, kOrientation = 0x0112, kShort = 3;
  const std::uint32_t order = number(tiff, 0, 2, true);
  if (order != kBigEndian && order != kLittleEndian) return 1;
  const bool big = order == kBigEndian;
  const std::size_t directory = number(tiff, 4, 4, big);
  const std::uint32_t entries = number(tiff, directory, 2, big);
  for (std::size_t i = 0; i < entries; ++i) {
    const std::size_t entry = directory + 2 + 12 * i;
    if (entry >= tiff.size()) return 1;
    if (number(tiff, entry, 2, big) != kOrientation || number(tiff, entry + 2, 2, big) != kShort) continue;
    const std::uint32_t value = number(tiff, entry + 8, 2, big);
    return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
}

}  // namespace

int orientation_of(File file) {
  constexpr std::uint32_t kStart = 0xFFD8, kApp1 = 0xFFE1, kScan = 0xFFDA;
  constexpr std::string_view kExif("Exif\0\0", 6);
  if (number(file, 0, 2, true) != kStart) return 1;
  for (std::size_t at = 2; at + 4 <= file.size();) {
    const std::uint32_t marker = number(file, at, 2, true);
    const std::size_t length = number(file, at + 2, 2, true);
    if (marker < 0xFF00 || marker == kScan || length < 2 || length > file.size() - at - 2) return 1;
    const File segment = file.subspan(at + 4, length - 2);
    if (marker == kApp1 && segment.size() > kExif.size() &&
        std::memcmp(segment.data(), kExif.data(), kExif.size()) == 0) {
      return orientation_in_tiff(segment.subspan(kExif.size()));
    }
    at += 2 + length;
  }
  return 1;
}

Image upright(Image image, int orientation) {
  if (orientation <= 1 || orientation > 8) return image;
  // 5 to 8 exchange rows and columns. Then columns run backwards in 2, 3, 6, 7, rows in 3, 4, 7, 8.
  const bool swaps = orientation >= 5;
  const bool mirrors = orientation == 2 || orientation == 3 || orientation == 6 || orientation == 7;
  const bool flips = orientation == 3 || orientation == 4 || orientation == 7 || orientation == 8;
  Image result;
  result.width = swaps ? image.height : image.width;
  result.height = swaps ? image.width : image.height;
  result.channels = image.channels;
  result.samples.resize(image.samples.size());
  const auto channels = static_cast<std::size_t>(image.channels);
  std::uint8_t* to = result.samples.data();
  for (int y = 0; y < result.height; ++y) {
    for (int x = 0; x < result.width; ++x, to += channels) {
      const int across = mirrors ? result.width - 1 - x : x, down = flips ? result.height - 1 - y : y;
      const auto column = static_cast<std::size_t>(swaps ? down : across),
                 row = static_cast<std::size_t>(swaps ? across : down);
      std::memcpy(to, image.samples.data() + (row * static_cast<std::size_t>(image.width) + column) * channels,
                  channels);
    }
  }
  return result;
}

}  // namespace reef::image
