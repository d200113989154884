// SPDX-License-Identifier: Apache-2.0
#include "compiler/conservative.h"

#include <algorithm>

#include "isa/combination.h"

namespace reef::compiler {
namespace {

// The operator that an instruction of the execution program is for. Moving data in and out is for whoever comes next,
// or came before.
std::int32_t operator_of(const PartCode& code, std::size_t instruction) {
  const auto& begins = code.step_begins;
  const auto after = std::upper_bound(begins.begin(), begins.end(), static_cast<std::int32_t>(instruction));
  const auto step = static_cast<std::size_t>(std::max<std::ptrdiff_t>(after - begins.begin() - 1, 0));
  const auto& steps = code.program.steps;
  for (std::size_t i = step; i < steps.size(); ++i) {
    if (steps[i].op >= 0) return steps[i].op;
  }
  for (std::size_t i = std::min(step, steps.size()); i-- > 0;) {
    if (steps[i].op >= 0) return steps[i].op;
  }
  return -1;
}

std::string sentence_for(const isa::Novelty& novelty) {
  return fmt::format("its code would have {} {}, which no public program of Google's has",
                     isa::info(novelty.opcode).mnemonic, novelty.what);
}

// The first thing that is new, or nothing; all operators that something new is for.
Result<std::string> find_new(const PartCode& code, std::vector<lower::RefusedOp>& refused) {
  std::string first;
  for (const darwinn::Executable& executable : code.package.executables) {
    std::size_t before = 0;  // instructions of earlier chunks
    for (const darwinn::InstructionChunk& chunk : executable.instruction_chunks) {
      REEF_ASSIGN_OR_RETURN(const isa::Program program, isa::decode(chunk.bitstream.span()));
      for (const isa::Novelty& novelty : isa::novelties_of(program)) {
        const std::string sentence = sentence_for(novelty);
        if (first.empty()) first = sentence;
        if (executable.type == darwinn::ExecutableType::kParameterCaching) continue;
        for (const std::size_t index : novelty.instructions) {
          const std::int32_t op = operator_of(code, before + index);
          const bool is_known = std::any_of(refused.begin(), refused.end(),
                                            [&](const lower::RefusedOp& other) { return other.op == op; });
          if (op >= 0 && !is_known) refused.push_back({op, sentence});
        }
      }
      before += program.size();
    }
  }
  return first;
}

}  // namespace

// The choices of Google's compiler are tried first: what they lead to is what there are programs of.
CodeGenerator conservative(CodeGenerator generate) {
  return [generate = std::move(generate)](const PartProgram& part) -> Result<PartCode> {
    std::string why;
    std::vector<lower::RefusedOp> operators;
    for (const tiled::Level level : {tiled::Level::kAsGoogle, tiled::Level::kBetter}) {
      PartProgram other = part;
      other.level = level;
      REEF_ASSIGN_OR_RETURN(PartCode code, generate(other));
      std::vector<lower::RefusedOp> refused;
      REEF_ASSIGN_OR_RETURN(const std::string what, find_new(code, refused));
      if (what.empty()) return code;
      if (why.empty()) {
        why = what;
        operators = std::move(refused);
      }
    }
    if (part.refused != nullptr) part.refused->insert(part.refused->end(), operators.begin(), operators.end());
    return unsupported("--conservative: {}", why);
  };
}

}  // namespace reef::compiler
