// SPDX-License-Identifier: Apache-2.0
#include "report/documents.h"

#include <fmt/format.h>

#include "passes/rewrite.h"

namespace reef::report {
namespace {

std::string_view safety_text(passes::Stage stage, passes::Safety safety) {
  switch (safety) {
    case passes::Safety::kExact:
      return "the same bytes";
    case passes::Safety::kRounding:
      return stage == passes::Stage::kFloat ? "rounding of float32" : "rounding: within a step";
    case passes::Safety::kInterface:
      return "the same numbers, other interface";
  }
  return "";
}

std::string table_of(passes::Stage stage) {
  std::string text = "| name | what it does | results | on |\n| --- | --- | --- | --- |\n";
  for (const passes::PassInfo& info : passes::passes_of(stage)) {
    if (info.stage != stage) continue;  // those of stage shape begin the lists of the others
    text += fmt::format("| `{}` | {} | {} | {} |\n", info.name, info.summary, safety_text(stage, info.safety),
                        info.on_by_default ? "yes" : "when asked for");
  }
  return text;
}

}  // namespace

std::string passes_reference() {
  return fmt::format(
      "# Passes\n\n"
      "Generated from `src/passes/passes.def` and the files it names by `make docs`; a test fails when it is stale.\n\n"
      "A pass changes a graph without changing what it computes. The passes of a stage run in the order of its table, "
      "again\n"
      "and again until nothing changes.\n\n"
      "## Looking at passes\n\n"
      "`reef convert`, `reef quantize` and `reef compile` show what passes did to a model:\n\n"
      "- `--explain` lists the passes that changed the graph, how often, and which operators they removed, added or "
      "changed;\n"
      "  with `--json` all changes, else the first eight of each run.\n"
      "- `--stop-after NAME` prints the graph behind a pass, as text (`docs/formats/ir_text.md`), and writes no file: "
      "the graph\n"
      "  behind the pass's first run that changed something, or behind its first run if it found nothing to change.\n"
      "- `--dump NAME` writes the same text beside the output, as `<output>.<name>.txt`.\n\n"
      "Instead of a pass, NAME can be `import`, the model before the first pass, or `simplify`, the model behind the "
      "last\n"
      "float pass. `reef compile` runs passes of both stages; `float/gelu` and `chip/gelu` tell those of one name "
      "apart, "
      "and\n"
      "`gelu` is the one that changes something first.\n\n"
      "## Shape\n\n"
      "These settle sizes and constants. They begin both of the stages below.\n\n"
      "{}\n"
      "## Float\n\n"
      "These make an imported or float model small, channels-last and easy to quantize; [simplify.md](simplify.md)\n"
      "explains how. `reef convert --no-simplify` shows a model without them. \"The same bytes\" holds for float32 and "
      "for\n"
      "integers (a clamp may turn NaN into another value); passes that round touch float32 only.\n\n"
      "{}\n"
      "## Chip\n\n"
      "Before a model is divided between the chip and the CPU, these rewrites replace operators that the chip cannot "
      "run\n"
      "by ones that it can, where that does not change results by more than rounding. What runs on the chip as it is "
      "is not\n"
      "touched, and no replacement is made that would not run there either. The report lists each one.\n\n"
      "- `--no-rewrites` makes none; `--no-rewrite NAME` leaves one out.\n"
      "- `--rewrite NAME` makes one that is off, and makes it also where results differ by more than {} step of the\n"
      "  output's scale.\n\n"
      "Functions of one 8-bit tensor are replaced by trial: the original and the replacement are run on all 256 "
      "values,\n"
      "and the largest difference is reported. \"The same bytes\" holds for every input.\n\n"
      "{}",
      table_of(passes::Stage::kShape), table_of(passes::Stage::kFloat), passes::kLargestDifference,
      table_of(passes::Stage::kChip));
}

}  // namespace reef::report
