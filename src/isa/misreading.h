// SPDX-License-Identifier: Apache-2.0
// Chips that understand one thing differently (misreadings.def): a program is changed into one with which our virtual
// chip does what such a chip would do with the program as it is.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "isa/program.h"

namespace reef::isa {

enum class Misreading : std::uint8_t {
#define MISREADING(constant, name, deed, refuted) constant,
#include "isa/misreadings.def"
#undef MISREADING
};

struct MisreadingInfo {
  Misreading misreading;
  std::string_view name, deed, refuted;
};
std::span<const MisreadingInfo> misreadings();

void apply(Misreading misreading, Instruction& instruction);
// The same for the bytes of a program, or of a part of one.
Result<std::vector<std::uint8_t>> apply(Misreading misreading, std::span<const std::uint8_t> bytes);

}  // namespace reef::isa
