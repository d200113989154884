// SPDX-License-Identifier: Apache-2.0
// The memories of one tile. Every byte has a flag: whether its value is known, or comes from memory that nothing wrote.
//
// Programs move and even compute with bytes that nothing wrote, and throw the results away (a tile that takes no part
// follows the others; cells beyond the last channel work along). So the flag travels with the data, and only an
// unknown byte in an output tensor is an error (see Chip). On silicon it would be whatever was there before.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

#include "chip/machine.h"

namespace reef::device {

inline constexpr int kLineBytes = chip::kWideLineBytes;
inline constexpr int kLineWords = kLineBytes / 4;
inline constexpr int kNarrowWords = chip::kNarrowBytes / chip::kNarrowWordBytes;

// A line of wide memory, also on its way over the ring. known[i] is 1 where bytes[i] is known, else 0.
struct Line {
  std::array<std::uint8_t, kLineBytes> bytes{};
  std::array<std::uint8_t, kLineBytes> known{};
};

// Four bytes and their flags, on their way over the mesh.
struct Word {
  std::uint32_t value = 0;
  std::uint32_t known = 0;  // a byte for each, 1 or 0
};
inline constexpr std::uint32_t kAllKnown = 0x01010101u;

class NarrowMemory {
 public:
  // Some more, so that whole words and lines may be read at the end.
  NarrowMemory() : bytes_(chip::kNarrowBytes + kLineBytes), known_(chip::kNarrowBytes + kLineBytes) {}

  static bool holds_word(std::int64_t word) { return word >= 0 && word < kNarrowWords; }
  static bool holds_bytes(std::int64_t byte, std::int64_t count) {
    return byte >= 0 && byte + count <= chip::kNarrowBytes;
  }
  Word word(std::int64_t index) const {
    Word word;
    std::memcpy(&word.value, bytes_.data() + 4 * index, 4);
    std::memcpy(&word.known, known_.data() + 4 * index, 4);
    return word;
  }
  void set_word(std::int64_t index, Word word) {
    std::memcpy(bytes_.data() + 4 * index, &word.value, 4);
    std::memcpy(known_.data() + 4 * index, &word.known, 4);
  }
  // Four bytes at any address.
  void set_bytes(std::int64_t first, const std::uint8_t* bytes, std::uint32_t known) {
    std::memcpy(bytes_.data() + first, bytes, 4);
    std::memcpy(known_.data() + first, &known, 4);
  }
  const std::uint8_t* bytes() const { return bytes_.data(); }
  const std::uint8_t* known() const { return known_.data(); }

 private:
  std::vector<std::uint8_t> bytes_, known_;
};

class WideMemory {
 public:
  WideMemory() : lines_(chip::kWideLines) {}

  static bool holds(std::int64_t line) { return line >= 0 && line < chip::kWideLines; }
  const Line& line(std::int64_t index) const { return lines_[static_cast<std::size_t>(index)]; }
  // So many bytes at the start of the line are known.
  int known_bytes(std::int64_t index) const { return known_bytes_[static_cast<std::size_t>(index)]; }
  void set_line(std::int64_t index, const Line& line) {
    lines_[static_cast<std::size_t>(index)] = line;
    note_known(index);
  }
  void set_words(std::int64_t index, const void* data, const std::uint8_t* known, int words) {
    Line& line = lines_[static_cast<std::size_t>(index)];
    std::memcpy(line.bytes.data(), data, static_cast<std::size_t>(4 * words));
    std::memcpy(line.known.data(), known, static_cast<std::size_t>(4 * words));
    note_known(index);
  }

 private:
  void note_known(std::int64_t index) {
    const auto& known = lines_[static_cast<std::size_t>(index)].known;
    const auto* unknown = static_cast<const std::uint8_t*>(std::memchr(known.data(), 0, known.size()));
    known_bytes_[static_cast<std::size_t>(index)] = static_cast<std::uint16_t>(
        unknown == nullptr ? known.size() : static_cast<std::size_t>(unknown - known.data()));
  }

  std::vector<Line> lines_;
  std::array<std::uint16_t, chip::kWideLines> known_bytes_{};
};

// float32 scales in words 0 to 63 and a second buffer in 64 to 127; int32 biases in 128 to 191 and 192 to 255.
class ScalingMemory {
 public:
  static constexpr int kSteps = 256;  // of 8 bytes
  static bool holds(std::int64_t step) { return step >= 0 && step < kSteps; }
  void set_step(std::int64_t step, const std::uint8_t* bytes, const std::uint8_t* known) {
    std::memcpy(bytes_.data() + 8 * step, bytes, 8);
    std::memcpy(known_.data() + 8 * step, known, 8);
  }
  float scale(int buffer, int cell) const { return read<float>(256 * buffer + 4 * cell); }
  std::int32_t bias(int buffer, int cell) const { return read<std::int32_t>(512 + 256 * buffer + 4 * cell); }
  bool scale_is_known(int buffer, int cell) const { return is_known(256 * buffer + 4 * cell); }
  bool bias_is_known(int buffer, int cell) const { return is_known(512 + 256 * buffer + 4 * cell); }

 private:
  template <typename T>
  T read(int byte) const {
    T value;
    std::memcpy(&value, bytes_.data() + byte, sizeof value);
    return value;
  }
  bool is_known(int byte) const {
    std::uint32_t known;
    std::memcpy(&known, known_.data() + byte, 4);
    return known == kAllKnown;
  }
  std::array<std::uint8_t, 8 * kSteps> bytes_{}, known_{};
};

}  // namespace reef::device
