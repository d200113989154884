// SPDX-License-Identifier: Apache-2.0
#include "formats/image/image.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <memory>
#include <string_view>

#include "base/file.h"
#include "formats/image/exif.h"
#include "formats/image/webp.h"

#define STB_IMAGE_IMPLEMENTATION
#define STBI_NO_STDIO
#define STBI_MAX_DIMENSIONS 65536
#include <fmt/format.h>
#include <stb_image.h>

namespace reef::image {
namespace {

constexpr std::int64_t kMaxPixels = std::int64_t{1} << 26;

Status check_size(std::int64_t width, std::int64_t height) {
  REEF_REQUIRE(width * height <= kMaxPixels, "a picture of {} x {} pixels is too large; the most is {} megapixels",
               width, height, kMaxPixels >> 20);
  return ok_status();
}

// Whether a Huffman table of a JPEG claims more than 256 codes. stb_image as of 2022, which Debian has, writes past its
// table then. Where decoders may disagree about what a marker is (behind the start of a scan), each place that could be
// one is looked at.
bool has_too_many_codes(std::span<const std::uint8_t> file) {
  constexpr std::uint8_t kTables = 0xc4, kEnd = 0xd9, kScan = 0xda, kQuantization = 0xdb, kComment = 0xfe;
  constexpr std::size_t kMostCodes = 256, kTableHead = 17;
  if (file.size() < 4 || file[0] != 0xff || file[1] != 0xd8) return false;
  bool in_scans = false;
  std::size_t covered = 0;  // the end of what segments in scans claim to hold: an end mark in there may be none
  for (std::size_t i = 2; i + 4 <= file.size();) {
    const std::uint8_t marker = file[i + 1];
    const bool stands_alone = marker == 0 || marker == 1 || marker == 0xff || (marker >= 0xd0 && marker <= kEnd);
    if (file[i] != 0xff || stands_alone) {
      if (in_scans && file[i] == 0xff && marker == kEnd && i >= covered) return false;
      ++i;
      continue;
    }
    const std::size_t end = i + 2 + (std::size_t{file[i + 2]} << 8 | file[i + 3]);
    for (std::size_t at = i + 4; marker == kTables && at < end && at + kTableHead <= file.size();) {
      std::size_t codes = 0;
      for (std::size_t k = 1; k < kTableHead; ++k) codes += file[at + k];
      if (codes > kMostCodes) return true;
      at += kTableHead + codes;
    }
    in_scans = in_scans || marker == kScan;
    if (in_scans) covered = std::max(covered, end);
    const bool is_skipped = (marker >= 0xe0 && marker <= 0xef) || marker == kComment || marker == kQuantization;
    i = is_skipped && !in_scans ? end : i + 2;
  }
  return false;
}

// Says what a file is that stb_image does not know, and what to do about it.
std::string describe_unknown(const Bytes& file) {
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  const auto in_another_format = [](const char* name) {
    return fmt::format("this is {}, which Reef does not read; save it as JPEG or PNG", name);
  };
  const std::string video =
      "this is a video; save some of its frames as pictures: `ffmpeg -i VIDEO -r 1 frame_%04d.jpg` makes one a second";
  if (text.empty()) return "the file is empty";
  if (text.starts_with("version https://git-lfs")) {
    return "this is a Git LFS pointer, not the picture itself: run `git lfs pull`";
  }
  if (text.size() > 12 && text.substr(4, 4) == "ftyp") {
    const std::string_view brand = text.substr(8, 4);
    if (brand == "avif" || brand == "avis") return in_another_format("an AVIF picture");
    if (brand.starts_with("he") || brand == "mif1" || brand == "msf1") return in_another_format("a HEIC picture");
    return video;
  }
  const bool is_avi = text.size() > 12 && text.starts_with("RIFF") && text.substr(8, 4) == "AVI ";
  if (is_avi || text.starts_with("\x1A\x45\xDF\xA3")) return video;
  if (text.starts_with(std::string_view("II*\0", 4)) || text.starts_with(std::string_view("MM\0*", 4))) {
    return in_another_format("a TIFF or raw picture");
  }
  if (text.starts_with("%PDF")) return in_another_format("a PDF document");
  const bool is_text =
      std::all_of(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(text.size(), 512)),
                  [](unsigned char c) { return c >= ' ' || c == '\n' || c == '\r' || c == '\t'; });
  return is_text ? "this is a text, not a picture"
                 : "this is not a picture that can be read (JPEG, PNG, BMP, GIF, WebP)";
}

// Contribution of source samples [first, first + weights.size()) to one output sample; weights sum to 1.
struct Taps {
  int first = 0;
  std::vector<double> weights;
};

std::vector<Taps> triangle_taps(int source_size, int target_size) {
  const double scale = static_cast<double>(source_size) / target_size;
  const double support = std::max(scale, 1.0);
  std::vector<Taps> all(static_cast<std::size_t>(target_size));
  for (int i = 0; i < target_size; ++i) {
    const double center = (i + 0.5) * scale;
    const int first = std::max(0, static_cast<int>(center - support + 0.5));
    const int end = std::min(source_size, static_cast<int>(center + support + 0.5));
    Taps& taps = all[reef::at(i)];
    taps.first = std::min(first, source_size - 1);
    double sum = 0;
    for (int k = taps.first; k < std::max(end, taps.first + 1); ++k) {
      const double weight = std::max(0.0, 1.0 - std::abs((k + 0.5 - center) / support));
      taps.weights.push_back(weight);
      sum += weight;
    }
    for (double& weight : taps.weights)
      weight = sum > 0 ? weight / sum : 1.0 / static_cast<double>(taps.weights.size());
  }
  return all;
}

std::uint8_t to_sample(double value) {
  return static_cast<std::uint8_t>(std::clamp(std::floor(value + 0.5), 0.0, 255.0));
}

// Resamples along one axis of a [outer, size, inner] array.
std::vector<std::uint8_t> resample(const std::vector<std::uint8_t>& source, std::size_t outer, std::size_t size,
                                   std::size_t inner, const std::vector<Taps>& taps) {
  std::vector<std::uint8_t> target(outer * taps.size() * inner);
  for (std::size_t o = 0; o < outer; ++o) {
    for (std::size_t t = 0; t < taps.size(); ++t) {
      for (std::size_t c = 0; c < inner; ++c) {
        double sum = 0;
        for (std::size_t k = 0; k < taps[t].weights.size(); ++k) {
          sum += taps[t].weights[k] * source[(o * size + static_cast<std::size_t>(taps[t].first) + k) * inner + c];
        }
        target[(o * taps.size() + t) * inner + c] = to_sample(sum);
      }
    }
  }
  return target;
}

}  // namespace

Result<Image> decode(const Bytes& file, int channels) {
  REEF_REQUIRE(channels == 1 || channels == 3 || channels == 4, "a picture cannot be read as {} channels", channels);
  REEF_REQUIRE(file.size() <= kMaxFileBytes, "a picture of {} bytes is too large; the most is {}", file.size(),
               kMaxFileBytes);
  if (is_webp(file.span())) return decode_webp(file, channels);
  REEF_REQUIRE(!has_too_many_codes(file.span()), "the picture is damaged: a Huffman table has more than 256 codes");
  Image image;
  int file_channels = 0;
  const int size = static_cast<int>(file.size());
  REEF_REQUIRE(stbi_info_from_memory(file.data(), size, &image.width, &image.height, &file_channels) != 0, "{}",
               describe_unknown(file));
  REEF_RETURN_IF_ERROR(check_size(image.width, image.height));
  const std::unique_ptr<stbi_uc, void (*)(void*)> samples(
      stbi_load_from_memory(file.data(), size, &image.width, &image.height, &file_channels, channels), stbi_image_free);
  REEF_REQUIRE(samples != nullptr, "the picture is damaged: {}", stbi_failure_reason());
  image.channels = channels;
  const auto count = static_cast<std::size_t>(image.width) * static_cast<std::size_t>(image.height) *
                     static_cast<std::size_t>(channels);
  image.samples.assign(samples.get(), samples.get() + count);
  return upright(std::move(image), orientation_of(file.span()));
}

Result<Image> load(const std::string& path, int channels) {
  REEF_ASSIGN_OR_RETURN(const Bytes file, read_file(path, kMaxFileBytes));
  auto image = decode(file, channels);
  if (!image.ok()) return image.status().in(path);
  return image;
}

Status probe(const std::string& path) {
  constexpr std::streamsize kBeginning = 1 << 16, kEnding = 1 << 10;
  std::ifstream stream(path, std::ios::binary);
  std::vector<char> head(kBeginning), tail(kEnding);
  stream.read(head.data(), kBeginning);
  head.resize(static_cast<std::size_t>(stream.gcount()));
  stream.clear();
  stream.seekg(0, std::ios::end);
  const std::streamoff size = stream.tellg();
  stream.seekg(std::max<std::streamoff>(0, size - kEnding));
  stream.read(tail.data(), kEnding);
  const std::string_view begin(head.data(), head.size()), end(tail.data(), static_cast<std::size_t>(stream.gcount()));
  const bool is_jpeg = begin.starts_with("\xFF\xD8\xFF"), is_png = begin.starts_with("\x89PNG\r\n");
  const bool has_end = is_jpeg ? end.find("\xFF\xD9") != end.npos : is_png && end.find("IEND") != end.npos;
  int width = 0, height = 0, channels = 0;
  const auto* bytes = reinterpret_cast<const stbi_uc*>(head.data());
  const bool has_size = stbi_info_from_memory(bytes, static_cast<int>(head.size()), &width, &height, &channels) != 0;
  if (has_end && has_size) return check_size(width, height);
  return load(path, 3).status();
}

Image resize(const Image& source, int width, int height) {
  if (source.width == width && source.height == height) return source;
  Image target;
  target.width = width;
  target.height = height;
  target.channels = source.channels;
  const auto channels = static_cast<std::size_t>(source.channels);
  const std::vector<std::uint8_t> narrow =
      resample(source.samples, static_cast<std::size_t>(source.height), static_cast<std::size_t>(source.width),
               channels, triangle_taps(source.width, width));
  target.samples = resample(narrow, 1, static_cast<std::size_t>(source.height),
                            static_cast<std::size_t>(width) * channels, triangle_taps(source.height, height));
  return target;
}

}  // namespace reef::image
