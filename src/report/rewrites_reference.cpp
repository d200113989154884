// SPDX-License-Identifier: Apache-2.0
#include "report/rewrites_reference.h"

#include <fmt/format.h>

#include "passes/chip/rewrite.h"

namespace reef::report {
namespace {

std::string_view safety_text(rewrite::Safety safety) {
  switch (safety) {
    case rewrite::Safety::kExact:
      return "the same bytes";
    case rewrite::Safety::kRounding:
      return "rounding: within a step";
    case rewrite::Safety::kInterface:
      return "the same numbers, other interface";
  }
  return "";
}

}  // namespace

std::string rewrites_reference() {
  std::string text = fmt::format(
      "# Rewrites\n\n"
      "Generated from `src/passes/chip/*.cpp` by `make docs`; a test fails when it is stale.\n\n"
      "Before a model is divided between the chip and the CPU, operators that the chip cannot run are replaced by "
      "ones\n"
      "that it can, where that does not change results by more than rounding. What runs on the chip as it is is not\n"
      "touched, and no replacement is made that would not run there either. Rewrites are made in this order, again "
      "and\n"
      "again until nothing changes; the report lists each one.\n\n"
      "- `--no-rewrites` makes none; `--no-rewrite NAME` leaves one out.\n"
      "- `--rewrite NAME` makes one that is off, and makes it also where results differ by more than {} step of the\n"
      "  output's scale.\n\n"
      "Functions of one 8-bit tensor are replaced by trial: the original and the replacement are run on all 256 "
      "values,\n"
      "and the largest difference is reported. \"The same bytes\" holds for every input.\n\n"
      "| name | what it does | results | on |\n| --- | --- | --- | --- |\n",
      rewrite::kLargestDifference);
  for (const rewrite::RewriteInfo& info : rewrite::rewrites()) {
    text += fmt::format("| `{}` | {} | {} | {} |\n", info.name, info.summary, safety_text(info.safety),
                        info.on_by_default ? "yes" : "when asked for");
  }
  return text;
}

}  // namespace reef::report
