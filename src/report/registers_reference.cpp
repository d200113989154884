// SPDX-License-Identifier: Apache-2.0
#include "report/documents.h"

#include <fmt/format.h>

#include "driver/registers.h"

namespace reef::report {
namespace {

std::string bits_text(const driver::Field& field) {
  if (field.bits == 1) return fmt::format("bit {}", field.low);
  return fmt::format("bits {}:{}", field.low + field.bits - 1, field.low);
}

std::string meaning_of(const driver::RegisterInfo& info) {
  std::string text(info.meaning);
  for (const driver::FieldInfo& part : driver::fields()) {
    if (part.field.offset == info.offset) text += fmt::format("<br>{}: {}", bits_text(part.field), part.meaning);
  }
  return text;
}

}  // namespace

std::string registers_reference() {
  std::string text =
      "# Registers\n\n"
      "Generated from `src/driver/registers.def` by `make docs`; a test fails when it is stale. Nothing here was run "
      "on "
      "a chip\nby Reef. `docs/hardware/README.md` says what the words under \"known by\" mean; \"logs of real sticks\" "
      "were published by others\n(edgetpuxray, coral-usb-oxidized), and \"gasket\" is Google's kernel driver for "
      "PCIe.\n\n"
      "Offsets are the same over USB (vendor requests on endpoint 0) and PCIe (BAR 2). Registers below 0x40000 have 32 "
      "bits and\nalways answer, those from 0x40000 on have 64 bits and answer only while the core is out of reset and "
      "has a clock.\n";
  std::string_view group;
  for (const driver::RegisterInfo& info : driver::registers()) {
    if (info.group != group) {
      group = info.group;
      text += fmt::format(
          "\n## {}\n\n| offset | name | what it is | known by | source |\n| --- | --- | --- | --- | --- |\n", group);
    }
    text += fmt::format("| `{:05x}` | `{}` | {} | {} | {} |\n", info.offset, info.name, meaning_of(info),
                        chip::evidence_name(info.evidence), info.source);
  }
  text += "\n## Error bits of hib_error_status\n\n| bit | meaning |\n| --- | --- |\n";
  for (int bit = 0; bit <= 14; ++bit) {
    text += fmt::format("| {} | {} |\n", bit, driver::error_text(std::uint64_t{1} << bit));
  }
  return text;
}

}  // namespace reef::report
