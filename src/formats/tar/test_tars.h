// SPDX-License-Identifier: Apache-2.0
// Tar archives for tests, header by header, right and wrong ones.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

namespace reef::tar::testing {

// One header with its content, padded to whole blocks.
inline std::vector<std::uint8_t> member(const std::string& name, const std::string& content, char type = '0',
                                        const std::string& link = "") {
  std::vector<std::uint8_t> block(512);
  const auto put = [&](std::size_t at, const std::string& text) {
    std::memcpy(block.data() + at, text.data(), text.size());
  };
  char size[12];
  std::snprintf(size, sizeof(size), "%011zo", type == '1' || type == '2' ? 0 : content.size());
  put(0, name.substr(0, 100));
  put(100, "0000644");
  put(124, size);
  put(136, "00000000000");
  put(148, "        ");
  block[156] = static_cast<std::uint8_t>(type);
  put(157, link);
  put(257, std::string("ustar\0", 6) + "00");
  unsigned sum = 0;
  for (const std::uint8_t byte : block) sum += byte;
  char checksum[8];
  std::snprintf(checksum, sizeof(checksum), "%06o", sum);
  std::memcpy(block.data() + 148, checksum, 7);
  block.insert(block.end(), content.begin(), content.end());
  block.resize((block.size() + 511) / 512 * 512);
  return block;
}

struct File {
  std::string name, content;
};

inline std::vector<std::uint8_t> end() { return std::vector<std::uint8_t>(1024); }

inline std::vector<std::uint8_t> joined(const std::vector<std::vector<std::uint8_t>>& parts) {
  std::vector<std::uint8_t> all;
  for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

inline std::vector<std::uint8_t> archive(const std::vector<File>& files) {
  std::vector<std::vector<std::uint8_t>> parts;
  for (const File& file : files) parts.push_back(member(file.name, file.content));
  parts.push_back(end());
  return joined(parts);
}

}  // namespace reef::tar::testing
