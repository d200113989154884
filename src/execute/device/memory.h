// SPDX-License-Identifier: Apache-2.0
// The memories of one tile, with a note of what has been written: reading what nothing wrote is an error on the virtual
// chip, where silicon would compute with whatever is there.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <cstring>
#include <vector>

#include "chip/machine.h"

namespace reef::device {

inline constexpr int kLineBytes = chip::kWideLineBytes;
inline constexpr int kLineWords = kLineBytes / 4;
inline constexpr int kNarrowWords = chip::kNarrowBytes / chip::kNarrowWordBytes;

using Line = std::array<std::uint8_t, kLineBytes>;

class NarrowMemory {
 public:
  NarrowMemory() : bytes_(chip::kNarrowBytes + kLineBytes), written_(kNarrowWords) {}

  static bool holds_word(std::int64_t word) { return word >= 0 && word < kNarrowWords; }
  static bool holds_bytes(std::int64_t byte, std::int64_t count) {
    return byte >= 0 && byte + count <= chip::kNarrowBytes;
  }
  bool is_written(std::int64_t word) const { return written_[static_cast<std::size_t>(word)] != 0; }
  std::uint32_t word(std::int64_t index) const {
    std::uint32_t value;
    std::memcpy(&value, bytes_.data() + 4 * index, 4);
    return value;
  }
  void set_word(std::int64_t index, std::uint32_t value) {
    std::memcpy(bytes_.data() + 4 * index, &value, 4);
    written_[static_cast<std::size_t>(index)] = 1;
  }
  // Bytes need not be aligned to words.
  void set_bytes(std::int64_t first, const std::uint8_t* data, std::int64_t count) {
    std::memcpy(bytes_.data() + first, data, static_cast<std::size_t>(count));
    for (std::int64_t w = first / 4; w <= (first + count - 1) / 4; ++w) written_[static_cast<std::size_t>(w)] = 1;
  }
  const std::uint8_t* data() const { return bytes_.data(); }
  const std::uint8_t* written() const { return written_.data(); }

 private:
  std::vector<std::uint8_t> bytes_;  // some more, so that a whole line may be read at the end
  std::vector<std::uint8_t> written_;
};

class WideMemory {
 public:
  WideMemory() : bytes_(static_cast<std::size_t>(chip::kWideLines) * kLineBytes) {}

  static bool holds(std::int64_t line) { return line >= 0 && line < chip::kWideLines; }
  bool is_written(std::int64_t line) const { return written_[static_cast<std::size_t>(line)]; }
  const std::uint8_t* line(std::int64_t index) const { return bytes_.data() + index * kLineBytes; }
  std::uint8_t* mutable_line(std::int64_t index) {
    written_[static_cast<std::size_t>(index)] = true;
    return bytes_.data() + index * kLineBytes;
  }
  void set_line(std::int64_t index, const Line& line) { std::memcpy(mutable_line(index), line.data(), kLineBytes); }

 private:
  std::vector<std::uint8_t> bytes_;
  std::bitset<chip::kWideLines> written_;
};

// float32 scales in words 0 to 63 and a second buffer in 64 to 127; int32 biases in 128 to 191 and 192 to 255.
class ScalingMemory {
 public:
  static constexpr int kSteps = 256;  // of 8 bytes; 8-bit step addresses reach no further
  static bool holds(std::int64_t step) { return step >= 0 && step < kSteps; }
  void set_step(std::int64_t step, const std::uint8_t* data) { std::memcpy(bytes_.data() + 8 * step, data, 8); }
  float scale(int buffer, int cell) const { return read<float>(256 * buffer + 4 * cell); }
  std::int32_t bias(int buffer, int cell) const { return read<std::int32_t>(512 + 256 * buffer + 4 * cell); }

 private:
  template <typename T>
  T read(int byte) const {
    T value;
    std::memcpy(&value, bytes_.data() + byte, sizeof value);
    return value;
  }
  std::array<std::uint8_t, 8 * kSteps> bytes_{};
};

}  // namespace reef::device
