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

#include "base/at.h"
#include "chip/machine.h"

namespace reef::device {

inline constexpr int kLineBytes = chip::kWideLineBytes;
inline constexpr int kLineWords = kLineBytes / 4;
inline constexpr int kNarrowWords = chip::kNarrowBytes / chip::kNarrowWordBytes;

// A line of wide memory, also on its way over the ring. Nearly always its first bytes are known and the rest is not:
// only their number is kept then, and flags for every byte where it is otherwise.
class Line {
 public:
  using Flags = std::array<std::uint8_t, kLineBytes>;  // 1 where a byte is known, else 0

 private:
  std::uint16_t known_prefix_ = 0;  // beside the bytes that are looked at with it
  bool has_flags_ = false;

 public:
  std::array<std::uint8_t, kLineBytes> bytes{};

  Line() = default;  // nothing is known
  Line(const Line& other) { *this = other; }
  Line& operator=(const Line& other) {
    bytes = other.bytes;
    known_prefix_ = other.known_prefix_;
    has_flags_ = other.has_flags_;
    if (has_flags_) flags_ = other.flags_;
    return *this;
  }

  // So many bytes at the start are known.
  int known_prefix() const { return known_prefix_; }
  bool is_known(int byte) const { return byte < known_prefix_ || (has_flags_ && flags_[at(byte)] != 0); }
  void copy_known(int first, int count, std::uint8_t* to) const {
    if (first + count <= known_prefix_) {
      std::memset(to, 1, static_cast<std::size_t>(count));
    } else {
      for (int i = 0; i < count; ++i) to[i] = is_known(first + i) ? 1 : 0;
    }
  }
  Flags known() const {
    Flags flags;
    copy_known(0, kLineBytes, flags.data());
    return flags;
  }
  void set_known_prefix(int count) {
    known_prefix_ = static_cast<std::uint16_t>(count);
    has_flags_ = false;
  }
  void set_known(const Flags& flags) {
    const auto* unknown = static_cast<const std::uint8_t*>(std::memchr(flags.data(), 0, flags.size()));
    set_known_prefix(unknown == nullptr ? kLineBytes : static_cast<int>(unknown - flags.data()));
    if (unknown == nullptr) return;
    has_flags_ = std::memchr(unknown, 1, flags.size() - known_prefix_) != nullptr;
    if (has_flags_) flags_ = flags;
  }

 private:
  Flags flags_;  // of use if has_flags_
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
    return byte >= 0 && byte <= chip::kNarrowBytes - count;
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
  // All known.
  void set_bytes(std::int64_t first, const std::uint8_t* bytes, std::size_t count) {
    if (count == 4) {  // the most frequent size
      std::memcpy(bytes_.data() + first, bytes, 4);
      std::memcpy(known_.data() + first, &kAllKnown, 4);
      return;
    }
    std::memcpy(bytes_.data() + first, bytes, count);
    std::memset(known_.data() + first, 1, count);
  }
  void set_bytes(std::int64_t first, const std::uint8_t* bytes, const std::uint8_t* known, std::size_t count) {
    std::memcpy(bytes_.data() + first, bytes, count);
    std::memcpy(known_.data() + first, known, count);
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
  const Line& line(std::int64_t index) const { return lines_[at(index)]; }
  Line& line(std::int64_t index) { return lines_[at(index)]; }
  // The first words of a line.
  void set_words(std::int64_t index, const void* data, const std::uint8_t* known, int words) {
    Line& line = lines_[at(index)];
    Line::Flags flags = line.known();
    std::memcpy(line.bytes.data(), data, static_cast<std::size_t>(4 * words));
    std::memcpy(flags.data(), known, static_cast<std::size_t>(4 * words));
    line.set_known(flags);
  }

 private:
  std::vector<Line> lines_;
};

// float32 scales in words 0 to 63 and a second buffer in 64 to 127; int32 biases in 128 to 191 and 192 to 255.
class ScalingMemory {
 public:
  static constexpr int kSteps = 128;  // of 8 bytes
  static bool holds(std::int64_t step) { return step >= 0 && step < kSteps; }
  void set_step(std::int64_t step, const std::uint8_t* bytes, const std::uint8_t* known) {
    std::memcpy(reinterpret_cast<std::uint8_t*>(words_.data()) + 8 * step, bytes, 8);
    for (std::int64_t word = 2 * step; word < 2 * step + 2; ++word, known += 4) {
      std::uint32_t flags;
      std::memcpy(&flags, known, 4);
      std::uint64_t& mask = known_[at(word / chip::kCells)];
      const std::uint64_t bit = std::uint64_t{1} << word % chip::kCells;
      mask = flags == kAllKnown ? mask | bit : mask & ~bit;
    }
  }
  // One number per cell, and which of them are known.
  const float* scales(int buffer) const {
    return reinterpret_cast<const float*>(words_.data()) + chip::kCells * buffer;
  }
  const std::int32_t* biases(int buffer) const { return words_.data() + chip::kCells * (2 + buffer); }
  std::uint64_t known_scales(int buffer) const { return known_[at(buffer)]; }
  std::uint64_t known_biases(int buffer) const { return known_[at(2 + buffer)]; }
  std::uint32_t word(int index) const { return static_cast<std::uint32_t>(words_[at(index)]); }
  bool is_known(int word) const { return (known_[at(word / chip::kCells)] >> word % chip::kCells & 1) != 0; }

 private:
  std::array<std::int32_t, 2 * kSteps> words_{};
  std::array<std::uint64_t, 4> known_{};
};

}  // namespace reef::device
