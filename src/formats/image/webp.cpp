// SPDX-License-Identifier: Apache-2.0
#include "formats/image/webp.h"

#include <dlfcn.h>

#include <cstring>

namespace reef::image {
namespace {

constexpr std::int64_t kMaxPixels = std::int64_t{1} << 26;

// libwebp's functions, as its public header has declared them since 2010.
struct Library {
  int (*size_of)(const std::uint8_t* data, std::size_t bytes, int* width, int* height) = nullptr;
  std::uint8_t* (*decode)(const std::uint8_t* data, std::size_t bytes, std::uint8_t* target, std::size_t target_bytes,
                          int row_bytes) = nullptr;
  bool is_there() const { return size_of != nullptr && decode != nullptr; }
};

const Library& library() {
  static const Library found = [] {
    Library functions;
    for (const char* name : {"libwebp.so.7", "libwebp.so.6", "libwebp.so"}) {
      void* const handle = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);  // stays loaded
      if (handle == nullptr) continue;
      functions.size_of = reinterpret_cast<decltype(functions.size_of)>(::dlsym(handle, "WebPGetInfo"));
      functions.decode = reinterpret_cast<decltype(functions.decode)>(::dlsym(handle, "WebPDecodeRGBAInto"));
      break;
    }
    return functions;
  }();
  return found;
}

// As stb_image weighs colours.
std::uint8_t brightness(const std::uint8_t* rgb) {
  return static_cast<std::uint8_t>((rgb[0] * 77 + rgb[1] * 150 + rgb[2] * 29) >> 8);
}

std::uint32_t little_endian(const std::uint8_t* bytes) {
  return static_cast<std::uint32_t>(bytes[0] | bytes[1] << 8 | bytes[2] << 16) | static_cast<std::uint32_t>(bytes[3])
                                                                                     << 24;
}

// The first frame of an animation as a file of its own; empty if `file` is no animation. A file is RIFF, its size,
// WEBP, and chunks: name, size, content padded to even length. A frame is a chunk ANMF: 16 bytes, then chunks with its
// picture. Transparency, in a chunk of its own, is left out. Source: the WebP container specification.
Bytes first_frame(std::span<const std::uint8_t> file) {
  constexpr std::size_t kFileHeader = 12, kChunkHeader = 8, kFrameHeader = 16;
  bool is_in_frame = false;
  for (std::size_t at = kFileHeader; at + kChunkHeader <= file.size();) {
    const std::uint8_t* const chunk = file.data() + at;
    const std::size_t size = little_endian(chunk + 4);
    if (!is_in_frame && std::memcmp(chunk, "ANMF", 4) == 0) {
      is_in_frame = true;
      at += kChunkHeader + kFrameHeader;
      continue;
    }
    if (size > file.size() - at - kChunkHeader) return {};
    const std::size_t whole = kChunkHeader + size + size % 2;
    if (is_in_frame && (std::memcmp(chunk, "VP8 ", 4) == 0 || std::memcmp(chunk, "VP8L", 4) == 0)) {
      std::vector<std::uint8_t> frame = {'R', 'I', 'F', 'F', 0, 0, 0, 0, 'W', 'E', 'B', 'P'};
      frame.insert(frame.end(), chunk, chunk + kChunkHeader + size);
      frame.resize(kFileHeader + whole);
      for (std::size_t i = 0; i < 4; ++i) frame[4 + i] = static_cast<std::uint8_t>((frame.size() - 8) >> (8 * i));
      return Bytes(std::move(frame));
    }
    at += whole;
  }
  return {};
}

}  // namespace

bool is_webp(std::span<const std::uint8_t> file) {
  return file.size() >= 12 && std::memcmp(file.data(), "RIFF", 4) == 0 && std::memcmp(file.data() + 8, "WEBP", 4) == 0;
}

Result<Image> decode_webp(const Bytes& given, int channels) {
  const Library& webp = library();
  const Bytes frame = first_frame(given.span());
  const Bytes& file = frame.size() > 0 ? frame : given;
  REEF_REQUIRE(
      webp.is_there(),
      "this is a WebP picture, and libwebp, which reads them, is not installed (Debian: apt install libwebp7)");
  Image image;
  REEF_REQUIRE(
      webp.size_of(file.data(), file.size(), &image.width, &image.height) != 0 && image.width > 0 && image.height > 0,
      "the WebP picture is damaged");
  const std::int64_t pixels = std::int64_t{image.width} * image.height;
  REEF_REQUIRE(pixels <= kMaxPixels, "a picture of {} x {} pixels is too large; the most is {} megapixels", image.width,
               image.height, kMaxPixels >> 20);
  std::vector<std::uint8_t> rgba(static_cast<std::size_t>(pixels) * 4);
  REEF_REQUIRE(webp.decode(file.data(), file.size(), rgba.data(), rgba.size(), image.width * 4) != nullptr,
               "the WebP picture is damaged");
  image.channels = channels;
  if (channels == 4) {
    image.samples = std::move(rgba);
    return image;
  }
  image.samples.reserve(static_cast<std::size_t>(pixels * channels));
  for (std::size_t i = 0; i < rgba.size(); i += 4) {
    if (channels == 1) {
      image.samples.push_back(brightness(rgba.data() + i));
    } else {
      image.samples.insert(image.samples.end(), rgba.data() + i, rgba.data() + i + 3);
    }
  }
  return image;
}

}  // namespace reef::image
