// SPDX-License-Identifier: Apache-2.0
// The meaning of every bit of an Edge TPU instruction.
//
// An instruction is one to seventeen rows of 128 bits. Bits are numbered from the least significant bit of the first
// row on: row r, bit b is bit 128*r + b. A Field names a run of these bits. The fields of an opcode cover all its bits
// exactly once (a static_assert beside every table checks it): bits whose purpose nobody knows are fields of kind kRaw,
// so that nothing can be lost between bytes, instructions and text.
//
// Nothing here was tried on a chip: each field says how its meaning is known (Evidence).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "chip/evidence.h"

namespace reef::isa {

enum class Kind : std::uint8_t {
  kUnsigned,
  kSigned,    // two's complement
  kFloat32,   // IEEE binary32, any bit pattern
  kFlag,      // one bit: 1 is "yes"
  kMask,      // bit k selects Field::values[k]
  kTileMask,  // bit k selects tile k: row k / 4, column k % 4
  kEnum,      // value k is Field::values[k]; an empty name is a value without one
  kRaw,       // purpose unknown; kept as it is
};

using chip::Evidence;

// The widest field has 32 bits.
inline constexpr int kMaxFieldWidth = 32;

struct Field {
  std::string_view name;
  std::uint16_t bit = 0;
  std::uint8_t width = 0;
  Kind kind = Kind::kRaw;
  std::string_view unit = {};
  std::string_view meaning = {};
  Evidence evidence = Evidence::kUnknown;
  // Part of a loop nest, watcher or producer of this name: the whole name is then "group.name".
  std::string_view group = {};
  // The field's value in every compiled program studied, where that is not 0. The assembler starts from it.
  std::uint32_t usual = 0;  // as bits
  // The value is the bits plus this: 1 where a field holds a count less one.
  std::uint8_t plus = 0;
  std::span<const std::string_view> values = {};

  constexpr int end() const { return bit + width; }
  constexpr std::uint32_t mask() const { return width >= 32 ? 0xffffffffu : (1u << width) - 1; }
  std::string full_name() const;
};

// Two fields are the same when they are the same bits under the same name.
constexpr bool operator==(const Field& a, const Field& b) {
  return a.bit == b.bit && a.width == b.width && a.name == b.name && a.group == b.group;
}

std::string_view kind_name(Kind kind);

constexpr Field raw(std::string_view name, int bit, int width, std::string_view meaning = {}, std::uint32_t usual = 0) {
  return {.name = name,
          .bit = static_cast<std::uint16_t>(bit),
          .width = static_cast<std::uint8_t>(width),
          .kind = Kind::kRaw,
          .meaning = meaning,
          .evidence = Evidence::kUnknown,
          .usual = usual};
}

}  // namespace reef::isa
