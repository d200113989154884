// SPDX-License-Identifier: Apache-2.0
#include "report/machine_reference.h"

#include <cmath>
#include <cstdint>

#include <fmt/format.h>

#include "chip/facts.h"
#include "chip/machine.h"

namespace reef::report {
namespace {

std::string value_text(double value) {
  if (value >= 1e6 && std::fmod(value, 1e5) == 0) return fmt::format("{:g} million", value / 1e6);
  return fmt::format("{:g}", value);
}

std::string fact_tables() {
  std::string text;
  std::string_view group;
  for (const chip::Fact& fact : chip::facts()) {
    if (fact.group != group) {
      group = fact.group;
      text += fmt::format(
          "\n## {}\n\n| constant | value | what it is | known by | source |\n| --- | --- | --- | --- | --- |\n", group);
    }
    text += fmt::format("| `{}` | {} {} | {} | {} | {} |\n", fact.name, value_text(fact.value), fact.unit, fact.meaning,
                        chip::evidence_name(fact.evidence), fact.source);
  }
  return text;
}

template <typename Name>
std::string numbered(std::string_view title, std::string_view explanation, int count) {
  std::string text = fmt::format("\n## {}\n\n{}\n\n| number | name |\n| --- | --- |\n", title, explanation);
  for (int i = 0; i < count; ++i) {
    text += fmt::format("| {} | `{}` |\n", i, chip::name(static_cast<Name>(static_cast<std::uint8_t>(i))));
  }
  return text;
}

}  // namespace

std::string machine_reference() {
  return "# The machine in numbers\n\n"
         "Generated from `src/chip/facts.def` by `make docs`; a test fails when it is stale. Nothing here was run on a "
         "chip.\n"
         "`docs/hardware/README.md` explains the machine and what the words under \"known by\" mean.\n" +
         fact_tables() +
         numbered<chip::TileCounter>("Counters of a tile",
                                     "Numbered as instructions name them; the order of libedgetpu's `SyncCounter_*` "
                                     "registers. `PARTIAL_SUMS` is never used by any program seen.",
                                     chip::kTileCounters) +
         numbered<chip::ScalarCounter>(
             "Counters of the scalar core",
             "libedgetpu's registers have the two POP counters before the two INFEED ones; instructions number them "
             "the "
             "other\nway round (decoded: under the register order a dense network deadlocks).",
             chip::kScalarCounters) +
         numbered<chip::TileUnit>(
             "Units of a tile",
             "Bits of a tile fence's unit mask. Bit 0, 5 and 6 to 9 are decoded; which of 1 and 2 is "
             "which, and which of 3 and 4,\nis open: every program names them together.",
             chip::kTileUnits);
}

}  // namespace reef::report
