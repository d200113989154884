// SPDX-License-Identifier: Apache-2.0
// The chip's registers by name: constants for code, a list for documents, logs and tests. registers.def has them all.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "chip/evidence.h"

namespace reef::driver {

namespace reg {
#define GROUP(title)
#define REGISTER(constant, offset, name, evidence, source, meaning) inline constexpr std::uint32_t constant = offset;
#define FIELD(constant, register, low, bits, meaning)
#include "driver/registers.def"
#undef FIELD
#undef REGISTER
#undef GROUP
}  // namespace reg

// Some bits of a register.
struct Field {
  std::uint32_t offset = 0;  // of the register
  int low = 0, bits = 0;

  constexpr std::uint64_t mask() const {
    return (bits < 64 ? (std::uint64_t{1} << bits) - 1 : ~std::uint64_t{0}) << low;
  }
  constexpr std::uint64_t get(std::uint64_t value) const { return (value & mask()) >> low; }
  constexpr std::uint64_t set(std::uint64_t value, std::uint64_t part) const {
    return (value & ~mask()) | (part << low & mask());
  }
};

namespace field {
#define GROUP(title)
#define REGISTER(constant, offset, name, evidence, source, meaning)
#define FIELD(constant, register, low, bits, meaning) inline constexpr Field constant = {reg::register, low, bits};
#include "driver/registers.def"
#undef FIELD
#undef REGISTER
#undef GROUP
}  // namespace field

// Registers of the core have 64 bits, the others 32.
constexpr int register_bits(std::uint32_t offset) { return offset < 0x40000 ? 32 : 64; }

struct RegisterInfo {
  std::string_view group;
  std::uint32_t offset = 0;
  std::string_view name;
  chip::Evidence evidence = chip::Evidence::kUnknown;
  std::string_view source, meaning;
};
struct FieldInfo {
  Field field;
  std::string_view meaning;
};

// In the order of registers.def; members of a group are consecutive.
std::span<const RegisterInfo> registers();
std::span<const FieldInfo> fields();

// "scu_ctrl_3", or the offset in hexadecimal where it has no name.
std::string register_name(std::uint32_t offset);

// Puts the bits of hib_error_status into words: "page fault, zero-length transfer"; empty for 0.
std::string error_text(std::uint64_t error_status);

// Converts a raw value of field::kTemperature to thousandths of a degree Celsius.
constexpr int millidegrees(std::uint32_t raw) { return (662 - static_cast<int>(raw)) * 250 + 550; }

}  // namespace reef::driver
