// SPDX-License-Identifier: Apache-2.0
#include "report/documents.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "micro/operators.h"

namespace reef::report {

std::string micro_reference() {
  std::string text = fmt::format(
      "# Operators of TFLite Micro\n\n"
      "Generated from `src/micro/operators.def` by `make docs`; that file is made by `tools/oracle/make_micro_ops.py`, "
      "which\n"
      "runs every recorded one-operator model of `tests/vectors` in {} (and, for Coral's SDK, in the\n"
      "release of July 2022 that it contains, with its CMSIS-NN kernels, under qemu). `docs/micro.md` says what is "
      "made of it.\n\n"
      "Types: those of the operands, then those of the results; `int8+` stands for several in a row; `*` marks what "
      "Coral's\n"
      "release runs, too. Versions: the lowest and highest that were tried and ran. TFLite Micro does not look at "
      "versions.\n\n"
      "| operator | resolver | Coral's SDK | versions | types that ran |\n| --- | --- | --- | --- | --- |\n",
      micro::table_release());
  for (const micro::MicroOp& op : micro::micro_ops()) {
    std::vector<std::string> types;
    for (const micro::AcceptedTypes& row : micro::accepted_types()) {
      if (row.op != op.name) continue;
      types.push_back(fmt::format("`{}`{}", row.types, (row.releases & micro::kCoral) != 0 ? "\\*" : ""));
    }
    const auto versions = micro::tried_versions();
    const auto at = std::find_if(versions.begin(), versions.end(), [&](const auto& row) { return row.op == op.name; });
    text += fmt::format("| {} | `{}` | {} | {} | {} |\n", op.name, op.function,
                        (op.releases & micro::kCoral) == 0  ? "no"
                        : (op.releases & micro::kTflm) == 0 ? "only there"
                                                            : "yes",
                        at == versions.end() ? "not tried" : fmt::format("{}-{}", at->lowest, at->highest),
                        types.empty() ? "not tried" : fmt::format("{}", fmt::join(types, ", ")));
  }
  return text;
}

}  // namespace reef::report
