// SPDX-License-Identifier: Apache-2.0
// Pictures: decode (JPEG, PNG, BMP, and what else stb_image reads; WebP by libwebp where that is installed), resize,
// write as PNG. JPEGs are turned upright as their Exif data says; of animations the first frame is taken.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"

namespace reef::image {

// 8-bit samples, rows top to bottom, channels interleaved.
struct Image {
  int width = 0;
  int height = 0;
  int channels = 0;  // 1 grey, 3 RGB, 4 RGBA
  std::vector<std::uint8_t> samples;
};

inline constexpr std::uint64_t kMaxFileBytes = std::uint64_t{1} << 28;  // of a picture

// Decodes to `channels` (1, 3 or 4) channels, converting as needed. Refuses more than 2^26 pixels.
Result<Image> decode(const Bytes& file, int channels);
Result<Image> load(const std::string& path, int channels);

// Whether load() would take the file. Looks at its beginning and end, and decodes it only where these leave a doubt;
// damage in the middle of a file is not always found.
Status probe(const std::string& path);

// Triangle (bilinear) filter whose support grows when shrinking, so that no pixel is skipped: what Pillow calls
// BILINEAR. Equal results on every machine: plain double arithmetic in a fixed order. Sizes must be at least 1.
Image resize(const Image& source, int width, int height);

// 1 grey, 3 RGB, 4 RGBA.
Result<std::vector<std::uint8_t>> encode_png(const Image& image);
Status save_png(const Image& image, const std::string& path);

}  // namespace reef::image
