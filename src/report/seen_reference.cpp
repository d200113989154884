// SPDX-License-Identifier: Apache-2.0
#include "report/documents.h"

#include <fmt/format.h>

#include "isa/seen.h"

namespace reef::report {
namespace {

constexpr std::string_view kHead = R"(# What public programs contain

Generated from `src/isa/seen.def`; do not edit. `tools/count_seen.cpp` counted {files} different compiled files with {programs}
programs and {instructions} instructions: a field and value that is here has been executed by the virtual device in
programs that Google's compilers made; one that is not here has not. `reef inspect --unknown FILE` compares a file with this table.

Fields that are not listed have their usual value (0 unless [isa.md](isa.md) says otherwise) in every instruction counted. Left
out are floats and masks of tiles, which may be anything, and sequence numbers. Of addresses, distances and counts, and of
fields with more than 24 values, the range is given. Numbers after a value: instructions, and files in which it occurs. Masks
and raw bits are hexadecimal.
)";

std::string rows_of(const isa::SeenTable& table, const isa::SeenOpcode& opcode) {
  std::string text;
  for (const isa::SeenField& field : table.fields) {
    if (field.opcode != opcode.opcode) continue;
    text += fmt::format("| `{}` | {} |\n", field.field->full_name(), isa::describe_seen(*field.field, &field));
  }
  return text;
}

}  // namespace

std::string seen_reference() {
  const isa::SeenTable& table = isa::seen_table();
  std::string text = fmt::format(fmt::runtime(kHead), fmt::arg("files", table.files),
                                 fmt::arg("programs", table.programs), fmt::arg("instructions", table.instructions));
  for (const isa::SeenOpcode& opcode : table.opcodes) {
    text += fmt::format("\n## {}\n\n{} instructions in {} files.\n", isa::info(opcode.opcode).mnemonic,
                        opcode.instructions, opcode.files);
    const std::string rows = rows_of(table, opcode);
    if (!rows.empty()) text += "\n| field | values |\n| --- | --- |\n" + rows;
  }
  return text;
}

}  // namespace reef::report
