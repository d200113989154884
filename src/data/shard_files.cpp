// SPDX-License-Identifier: Apache-2.0
#include "data/shard_files.h"

#include <algorithm>
#include <charconv>
#include <filesystem>

#include <fnmatch.h>

#include "data/input_names.h"
#include "formats/tar/tar.h"
#include "formats/tfrecord/records.h"
#include "formats/zip/gzip.h"

namespace reef::data {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostShards = 1 << 20;
constexpr std::uint64_t kMostUnpacked = std::uint64_t{1} << 34;

bool exists(const std::string& path) {
  std::error_code error;
  return fs::exists(path, error);
}

// Commas between files, but not those within braces: "{a,b}.tar" is one word.
std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words(1);
  int depth = 0;
  for (const char c : text) {
    depth += c == '{' ? 1 : c == '}' ? -1 : 0;
    if (c == ',' && depth <= 0) {
      words.emplace_back();
    } else {
      words.back() += c;
    }
  }
  return words;
}

// "007" to "012", with the zeros of the first.
Result<std::vector<std::string>> numbers_between(std::string_view first, std::string_view last) {
  std::size_t from = 0, to = 0;
  const auto [a, error_a] = std::from_chars(first.data(), first.data() + first.size(), from);
  const auto [b, error_b] = std::from_chars(last.data(), last.data() + last.size(), to);
  REEF_REQUIRE(error_a == std::errc() && error_b == std::errc() && a == first.data() + first.size() &&
                   b == last.data() + last.size() && from <= to && to - from < kMostShards,
               "'{{{}..{}}}' is no row of numbers", first, last);
  std::vector<std::string> numbers;
  for (std::size_t i = from; i <= to; ++i) numbers.push_back(fmt::format("{:0{}}", i, first.size()));
  return numbers;
}

// Braces into words, from left to right. At most one level deep.
Status expand_braces(const std::string& word, std::vector<std::string>& words) {
  const std::size_t open = word.find('{'), close = word.find('}', open == std::string::npos ? 0 : open);
  if (open == std::string::npos || close == std::string::npos) {
    REEF_REQUIRE(words.size() < kMostShards, "the pattern names more than {} files", kMostShards);
    words.push_back(word);
    return ok_status();
  }
  const std::string inside = word.substr(open + 1, close - open - 1);
  std::vector<std::string> parts;
  if (const std::size_t dots = inside.find(".."); dots != std::string::npos) {
    REEF_ASSIGN_OR_RETURN(
        parts, numbers_between(std::string_view(inside).substr(0, dots), std::string_view(inside).substr(dots + 2)));
  } else {
    parts = words_of(inside);
  }
  for (const std::string& part : parts)
    REEF_RETURN_IF_ERROR(expand_braces(word.substr(0, open) + part + word.substr(close + 1), words));
  return ok_status();
}

Result<std::vector<std::string>> files_like(const std::string& pattern) {
  const fs::path path(pattern);
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  const std::string last = path.filename().string();
  std::vector<std::string> files;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (::fnmatch(last.c_str(), it->path().filename().c_str(), FNM_PERIOD) != 0) continue;
    files.push_back(path.has_parent_path() ? it->path().string() : it->path().filename().string());
  }
  if (error) return make_error(StatusCode::kNotFound, "cannot read folder '{}': {}", folder.string(), error.message());
  if (files.empty()) return make_error(StatusCode::kNotFound, "no file is called like '{}'", pattern);
  std::sort(files.begin(), files.end());
  return files;
}

// The shards in a folder, if it holds them and no pictures beside them.
std::vector<std::string> shards_in(const std::string& folder) {
  std::vector<std::string> shards;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (it->is_directory(error) || is_picture_name(name)) return {};
    if (is_shard_name(name)) shards.push_back(it->path().string());
  }
  std::sort(shards.begin(), shards.end());
  return shards;
}

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

// By the first bytes; by the name where there are none, and for packed files.
Result<SampleFiles::Kind> kind_of(const std::string& path) {
  using Kind = SampleFiles::Kind;
  REEF_ASSIGN_OR_RETURN(const auto file, RandomFile::open(path));
  std::vector<std::uint8_t> start(std::min<std::uint64_t>(file->size(), 512));
  REEF_RETURN_IF_ERROR(file->read_at(0, start));
  const std::string name = lower(fs::path(path).filename().string());
  const bool is_packed = zip::is_gzip(start);
  if (start.empty() || is_packed) {
    const bool is_tar = has(name, ".tar") || name.ends_with(".tgz");
    return is_tar ? Kind::kTar : is_shard_name(name) || is_packed ? Kind::kRecords : Kind::kArrays;
  }
  const std::string_view text(reinterpret_cast<const char*>(start.data()), start.size());
  if (text.starts_with("PK") || text.starts_with("\x93NUMPY")) return Kind::kArrays;
  if (text.size() >= 263 && text.substr(257, 5) == "ustar") return Kind::kTar;
  if (text.size() >= 12) {
    std::uint32_t crc = 0;
    for (std::size_t i = 12; i-- > 8;) crc = crc << 8 | start[i];
    if (tfrecord::masked_crc32c(std::span(start).first(8)) == crc) return Kind::kRecords;
  }
  // Damaged ones, and old archives without a magic number, are for their readers to judge.
  if (name.ends_with(".tar")) return Kind::kTar;
  return is_shard_name(name) ? Kind::kRecords : Kind::kArrays;
}

}  // namespace

bool is_shard_name(std::string_view name) {
  std::string text = lower(std::string(name.substr(name.rfind('/') + 1)));
  for (const std::string_view packed : {".gz", ".zlib"}) {
    if (text.ends_with(packed)) text.erase(text.size() - packed.size());
  }
  for (const std::string_view ending : {".tar", ".tgz", ".tfrecord", ".tfrecords", ".tfrec", ".record", ".records"}) {
    if (text.ends_with(ending)) return true;
  }
  return has(text, ".tfrecord-") || has(text, ".tfrec-") || has(text, ".record-");
}

bool is_picture_name(std::string_view name) {
  const std::string text = lower(std::string(name));
  for (const std::string_view ending : {".jpg", ".jpeg", ".png", ".bmp", ".gif", ".tga", ".ppm", ".pgm", ".webp"}) {
    if (text.ends_with(ending)) return true;
  }
  return false;
}

bool begins_as_picture(std::span<const std::uint8_t> start) {
  const std::string_view text(reinterpret_cast<const char*>(start.data()), std::min<std::size_t>(start.size(), 16));
  const bool is_pnm = text.size() > 2 && text[0] == 'P' && (text[1] == '5' || text[1] == '6') &&
                      (text[2] == '\n' || text[2] == ' ' || text[2] == '\r' || text[2] == '\t');
  return is_pnm || text.starts_with("\xFF\xD8\xFF") || text.starts_with("\x89PNG\r\n") || text.starts_with("GIF8") ||
         text.starts_with("BM") || (text.starts_with("RIFF") && text.substr(8, 4) == "WEBP");
}

Result<SampleFiles> find_sample_files(const std::string& path) {
  using Kind = SampleFiles::Kind;
  SampleFiles found;
  REEF_REQUIRE(path.find("://") == std::string::npos,
               "'{}' is no file on this machine; Reef does not fetch data, so copy it here first", path);
  std::error_code error;
  if (fs::is_directory(path, error)) {
    found.files = shards_in(path);
    if (found.files.empty()) return SampleFiles{Kind::kFolder, {}};
  } else if (exists(path)) {
    found.files = {path};
  } else {
    std::vector<std::string> words;
    for (const std::string& word : words_of(path)) REEF_RETURN_IF_ERROR(expand_braces(word, words));
    for (const std::string& word : words) {
      const bool is_pattern = !exists(word) && word.find_first_of("*?[") != std::string::npos;
      if (!is_pattern) {
        found.files.push_back(word);
        continue;
      }
      REEF_ASSIGN_OR_RETURN(const std::vector<std::string> files, files_like(word));
      found.files.insert(found.files.end(), files.begin(), files.end());
    }
  }
  for (std::size_t i = 0; i < found.files.size(); ++i) {
    REEF_ASSIGN_OR_RETURN(const Kind kind, kind_of(found.files[i]));
    REEF_REQUIRE(i == 0 || kind == found.kind, "'{}' and '{}' are files of different kinds; a set has one",
                 found.files[0], found.files[i]);
    found.kind = kind;
  }
  REEF_REQUIRE(found.kind != Kind::kArrays || found.files.size() == 1,
               "{} files with arrays are given; several files make a set only as TFRecord or tar shards",
               found.files.size());
  return found;
}

Result<std::shared_ptr<const RandomFile>> open_shard(const std::string& path, const Budget& budget,
                                                     BudgetedBytes& memory) {
  REEF_ASSIGN_OR_RETURN(std::shared_ptr<const RandomFile> file, RandomFile::open(path));
  std::array<std::uint8_t, 2> start{};
  if (file->size() < start.size()) return file;
  REEF_RETURN_IF_ERROR(file->read_at(0, start));
  if (!zip::is_gzip(start)) return file;
  REEF_ASSIGN_OR_RETURN(const Bytes packed, file->read(0, file->size()));
  auto unpacked = zip::unpack_gzip(packed, kMostUnpacked, budget, memory);
  if (!unpacked.ok()) return unpacked.status().in(fmt::format("'{}'", path));
  return RandomFile::over(std::move(*unpacked), path);
}

}  // namespace reef::data
