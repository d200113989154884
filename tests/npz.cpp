// SPDX-License-Identifier: Apache-2.0
#include "npz.h"

#include <cstring>
#include <memory>
#include <regex>

#include <stb_image.h>

#include "base/file.h"

namespace reef::testing {
namespace {

constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 28;

class Archive {
 public:
  explicit Archive(Bytes bytes) : bytes_(std::move(bytes)) {}

  // By its entry in the directory at the end of the archive.
  Result<std::vector<std::uint8_t>> file(const std::string& name) const {
    constexpr std::uint32_t kDirectoryEntry = 0x02014b50;
    REEF_ASSIGN_OR_RETURN(std::size_t at, directory());
    while (at + 46 <= bytes_.size() && number(at, 4) == kDirectoryEntry) {
      const std::size_t name_size = number(at + 28, 2);
      REEF_REQUIRE(at + 46 + name_size <= bytes_.size(), "the zip directory is cut off");
      const std::string entry(reinterpret_cast<const char*>(bytes_.data()) + at + 46, name_size);
      if (entry == name) return unpacked(at);
      at += 46 + name_size + number(at + 30, 2) + number(at + 32, 2);
    }
    return invalid_input("the archive has no '{}'", name);
  }

 private:
  std::size_t number(std::size_t at, std::size_t size) const {
    std::size_t value = 0;
    for (std::size_t i = 0; i < size; ++i) value |= std::size_t{bytes_.data()[at + i]} << (8 * i);
    return value;
  }

  Result<std::size_t> directory() const {
    constexpr std::size_t kEndSize = 22, kEnd = 0x06054b50;
    for (std::size_t at = bytes_.size(); at-- > 0;) {
      if (at + kEndSize <= bytes_.size() && number(at, 4) == kEnd) return number(at + 16, 4);
    }
    return invalid_input("this is no zip archive");
  }

  Result<std::vector<std::uint8_t>> unpacked(std::size_t entry) const {
    constexpr std::size_t kStored = 0;
    const std::size_t method = number(entry + 10, 2), packed_size = number(entry + 20, 4),
                      local = number(entry + 42, 4);
    REEF_REQUIRE(local + 30 <= bytes_.size(), "the zip archive is cut off");
    const std::size_t begin = local + 30 + number(local + 26, 2) + number(local + 28, 2);
    REEF_REQUIRE(begin + packed_size <= bytes_.size(), "the zip archive is cut off");
    const std::uint8_t* packed = bytes_.data() + begin;
    if (method == kStored) return std::vector<std::uint8_t>(packed, packed + packed_size);
    // The decoder looks ahead a little; the archive's directory is behind every file.
    constexpr std::size_t kLookAhead = 4;
    REEF_REQUIRE(begin + packed_size + kLookAhead <= bytes_.size(), "the zip archive is cut off");
    int size = 0;
    const std::unique_ptr<char, decltype(&std::free)> data(
        stbi_zlib_decode_noheader_malloc(reinterpret_cast<const char*>(packed),
                                         static_cast<int>(packed_size + kLookAhead), &size),
        &std::free);
    REEF_REQUIRE(data != nullptr, "the zip archive is damaged: {}", stbi_failure_reason());
    return std::vector<std::uint8_t>(data.get(), data.get() + size);
  }

  Bytes bytes_;
};

}  // namespace

Result<ByteArray> load_bytes_from_npz(const std::string& path, const std::string& name) {
  REEF_ASSIGN_OR_RETURN(const Bytes bytes, read_file(path, kMaxBytes));
  REEF_ASSIGN_OR_RETURN(const std::vector<std::uint8_t> file, Archive(bytes).file(name + ".npy"));
  constexpr std::size_t kHeader = 10;
  REEF_REQUIRE(file.size() > kHeader && std::memcmp(file.data(), "\x93NUMPY\x01", 7) == 0, "'{}' is no array", name);
  const std::size_t begin = kHeader + file[8] + 256u * file[9];
  REEF_REQUIRE(begin <= file.size(), "'{}' is cut off", name);
  const std::string header(file.begin() + kHeader, file.begin() + static_cast<std::ptrdiff_t>(begin));
  REEF_REQUIRE(header.find("'|u1'") != std::string::npos && header.find("'fortran_order': False") != std::string::npos,
               "'{}' is no array of bytes: {}", name, header);
  ByteArray array;
  std::int64_t elements = 1;
  const std::string shape = header.substr(header.find('('), header.find(')') - header.find('('));
  static const std::regex kNumber("[0-9]+");
  for (std::sregex_iterator it(shape.begin(), shape.end(), kNumber), end; it != end; ++it) {
    array.shape.push_back(std::stoll(it->str()));
    elements *= array.shape.back();
  }
  array.values.assign(file.begin() + static_cast<std::ptrdiff_t>(begin), file.end());
  REEF_REQUIRE(elements == static_cast<std::int64_t>(array.values.size()), "'{}' is cut off", name);
  return array;
}

}  // namespace reef::testing
