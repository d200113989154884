// SPDX-License-Identifier: Apache-2.0
#include "report/documents.h"

#include <cmath>
#include <span>
#include <vector>

#include <fmt/format.h>

#include "chip/facts.h"
#include "chip/machine.h"
#include "execute/device/proofs.h"
#include "isa/opcode.h"

namespace reef::report {
namespace {

std::string value_text(double value) {
  if (value >= 1e6 && std::fmod(value, 1e5) == 0) return fmt::format("{:g} million", value / 1e6);
  return fmt::format("{:g}", value);
}

// Whether a public program notices another number; empty: none was tried.
std::string_view proof_text(std::string_view fact) {
  std::string_view text;
  for (std::size_t i = 0; i < device::beliefs().size(); ++i) {
    const device::Notices& notices = device::proofs().beliefs[i];
    if (device::beliefs()[i].fact != fact || notices.tried == 0) continue;
    text = notices.noticed() > 0 ? "yes" : "**unproved**";
  }
  return text;
}

std::string fact_tables() {
  std::string text;
  std::string_view group;
  for (const chip::Fact& fact : chip::facts()) {
    if (fact.group != group) {
      group = fact.group;
      text += fmt::format(
          "\n## {}\n\n| constant | value | what it is | known by | source | needed |\n"
          "| --- | --- | --- | --- | --- | --- |\n",
          group);
    }
    text += fmt::format("| `{}` | {} {} | {} | {} | {} | {} |\n", fact.name, value_text(fact.value), fact.unit,
                        fact.meaning, chip::evidence_name(fact.evidence), fact.source, proof_text(fact.name));
  }
  return text;
}

std::string numbered(std::string_view title, std::string_view explanation, std::span<const std::string_view> names) {
  std::string text = fmt::format("\n## {}\n\n{}\n\n| number | name |\n| --- | --- |\n", title, explanation);
  for (std::size_t i = 0; i < names.size(); ++i) text += fmt::format("| {} | `{}` |\n", i, names[i]);
  return text;
}

constexpr std::string_view kUnitsExplained =
    "Bits of a tile fence's unit mask. Bits 0, 5 and 6 to 9 are known from execution; which of 1 and 2 is which, and "
    "which of 3\nand 4, is not: every program names them together.";

std::vector<std::string_view> unit_names() {
  std::vector<std::string_view> names;
  for (int i = 0; i < chip::kTileUnits; ++i) names.push_back(isa::unit_name(static_cast<isa::Unit>(i)));
  return names;
}

}  // namespace

std::string machine_reference() {
  return "# The machine in numbers\n\n"
         "Generated from `src/chip/facts.def` by `make docs`; a test fails when it is stale. Nothing here was run on a "
         "chip.\n"
         "`docs/hardware/README.md` explains the machine and what the words under \"known by\" mean. \"Needed\" says "
         "whether a public\nprogram stops or gives other outputs with another number ([proofs.md](proofs.md)); "
         "nothing stands there where that\nwas not tried.\n" +
         fact_tables() +
         numbered("Counters of a tile",
                  "Numbered as instructions name them; the order of libedgetpu's `SyncCounter_*` registers (N, E, S, "
                  "W: north, "
                  "east, south, west). `PARTIAL_SUMS` is never used by any program seen.",
                  chip::kTileCounterNames) +
         numbered("Counters of the scalar core",
                  "libedgetpu's registers have the two POP counters before the two INFEED ones; instructions number "
                  "them the "
                  "other\nway round (under the register order a dense network deadlocks). LOOPBACK_POP is libedgetpu's "
                  "SCALAR_INFEED.",
                  chip::kScalarCounterNames) +
         numbered("Units of a tile", kUnitsExplained, unit_names());
}

}  // namespace reef::report
