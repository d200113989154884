// SPDX-License-Identifier: Apache-2.0
#include "report/documents.h"

#include <fmt/format.h>

#include "execute/device/proofs.h"

namespace reef::report {
namespace {

using device::Notices;

constexpr std::string_view kProofsIntroduction = R"(# What public programs prove

Generated from `src/execute/device/beliefs.def` and `proofs.def` by `make docs`; do not edit.

The virtual device was built from what public programs show; nothing of it was tried on silicon. This page says how much of it
those programs need. `tools/doubt_device.cpp` lets the device take the alternative of one belief at a time, or read one field of
one opcode as if it had its usual value everywhere, and runs each program twice, with pseudo-random inputs. A program **notices**
if it ends in an error (a standstill, an address outside of a memory, an output made of memory that nothing wrote) or gives other
outputs. Where the source of a file is known, other tests show that its outputs are those of the source (`reef verify`): other
outputs are then wrong ones. Where it is not, they only show that the program depends on the belief.

What nothing notices is **unproved**: the programs would be the same if the chip behaved otherwise. Each is a candidate for a test
program on real silicon. What is noticed can still be wrong in a way that no program shows, and rules of rounding are shared with
the evaluation of the sources: `Posenet.*` compares those with poses that were recorded from a real Edge TPU.

{files} files were run, {sources} of them with a source, the smallest first; a doubt that {enough} files had noticed was not tried on
further ones, and the {added} largest files were tried only with what no other file had noticed. To repeat: `ninja -C build
doubt_device && build/doubt_device -o src/execute/device/proofs.def FOLDER...` (`--add` for the largest), then `make docs`. The source of a number in `src/chip/facts.def` begins with "unproved" if no program notices it; a test compares.

## Beliefs

| what the device believes | what is tried instead | files | stop | wrong outputs | other outputs | |
| --- | --- | --- | --- | --- | --- | --- |
)";

constexpr std::string_view kFieldsExplained = R"(
## Fields

Fields of instructions, each taken to have its usual value ([isa.md](isa.md)) in all instructions of a file. Only files in which it has
another value somewhere are run. Fields that have their usual value in every file are not listed: nothing can be said of them.

| opcode | field | files | stop | wrong outputs | other outputs | |
| --- | --- | --- | --- | --- | --- | --- |
)";

std::string counts(const Notices& notices) {
  const std::string_view mark = notices.noticed() > 0 ? "" : notices.tried > 0 ? "**unproved**" : "not tried";
  return fmt::format("{} | {} | {} | {} | {}", notices.tried, notices.stopped, notices.wrong, notices.other, mark);
}

std::string introduction(const device::Proofs& proofs) {
  std::string text(kProofsIntroduction);
  const auto replace = [&](std::string_view mark, int number) {
    text.replace(text.find(mark), mark.size(), fmt::format("{}", number));
  };
  replace("{files}", proofs.files);
  replace("{sources}", proofs.sources);
  replace("{enough}", proofs.enough);
  replace("{added}", proofs.added);
  return text;
}

}  // namespace

std::string proofs_reference() {
  const device::Proofs& proofs = device::proofs();
  std::string text = introduction(proofs);
  std::string_view group;
  for (std::size_t i = 0; i < device::beliefs().size(); ++i) {
    const device::BeliefInfo& info = device::beliefs()[i];
    if (info.group != group) text += fmt::format("| **{}** | | | | | | |\n", info.group);
    group = info.group;
    text += fmt::format("| {} | {} | {} |\n", info.statement, info.alternative, counts(proofs.beliefs[i]));
  }
  text += kFieldsExplained;
  for (const device::FieldProof& proof : proofs.fields) {
    text += fmt::format("| `{}` | `{}` | {} |\n", isa::info(proof.opcode).mnemonic, proof.field->full_name(),
                        counts(proof.notices));
  }
  return text;
}

}  // namespace reef::report
