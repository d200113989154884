// SPDX-License-Identifier: Apache-2.0
#include "driver/registers.h"

#include <array>
#include <vector>

#include <fmt/format.h>

namespace reef::driver {
namespace {

std::vector<RegisterInfo> list_registers() {
  std::vector<RegisterInfo> list;
  std::string_view group;
#define GROUP(title) group = title;
#define REGISTER(constant, offset, name, evidence, source, meaning) \
  list.push_back({group, offset, name, chip::Evidence::evidence, source, meaning});
#define FIELD(constant, register, low, bits, meaning)
#include "driver/registers.def"
#undef FIELD
#undef REGISTER
#undef GROUP
  return list;
}

std::vector<FieldInfo> list_fields() {
  std::vector<FieldInfo> list;
#define GROUP(title)
#define REGISTER(constant, offset, name, evidence, source, meaning)
#define FIELD(constant, register, low, bits, meaning) list.push_back({field::constant, meaning});
#include "driver/registers.def"
#undef FIELD
#undef REGISTER
#undef GROUP
  return list;
}

// By bit, as libedgetpu names them.
constexpr std::array<std::string_view, 15> kErrorBits = {"page fault on a transfer to the chip",
                                                         "page fault in the extended page table",
                                                         "parity error of a register",
                                                         "AXI write error",
                                                         "AXI read error",
                                                         "bad configuration of the instruction queue",
                                                         "bad configuration of the input queue",
                                                         "bad configuration of the parameter queue",
                                                         "bad configuration of the output queue",
                                                         "invalid entry in the instruction queue",
                                                         "invalid entry in the input queue",
                                                         "invalid entry in the parameter queue",
                                                         "invalid entry in the output queue",
                                                         "transfer of no bytes",
                                                         "memory error that cannot be corrected"};

}  // namespace

std::span<const RegisterInfo> registers() {
  static const std::vector<RegisterInfo> list = list_registers();
  return list;
}

std::span<const FieldInfo> fields() {
  static const std::vector<FieldInfo> list = list_fields();
  return list;
}

std::string register_name(std::uint32_t offset) {
  for (const RegisterInfo& info : registers()) {
    if (info.offset == offset) return std::string(info.name);
  }
  return fmt::format("{:#x}", offset);
}

std::string error_text(std::uint64_t error_status) {
  std::string text;
  for (std::size_t bit = 0; bit < 64; ++bit) {
    if ((error_status >> bit & 1) == 0) continue;
    if (!text.empty()) text += ", ";
    text += bit < kErrorBits.size() ? std::string(kErrorBits[bit]) : fmt::format("unknown error bit {}", bit);
  }
  return text;
}

}  // namespace reef::driver
