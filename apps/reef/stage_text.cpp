// SPDX-License-Identifier: Apache-2.0
#include "stage_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "compiler/graph_files.h"
#include "ir/describe.h"
#include "isa/disassembler.h"
#include "isa/program.h"
#include "lower/lower.h"
#include "tiled/text.h"

namespace reef::app {
namespace {

std::string names_of(const ir::Model& model, const std::vector<std::int32_t>& tensors) {
  std::vector<std::string> names;
  for (const std::int32_t t : tensors) {
    names.push_back(fmt::format("'{}'", ir::describe_name(model.subgraphs[0].tensors[at(t)].name)));
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string partition_text(const compiler::Plan& plan) {
  const ir::Model& model = *plan.model;
  const auto& operators = model.subgraphs[0].operators;
  std::vector<int> part_of(operators.size(), -1);
  std::string text;
  for (std::size_t p = 0; p < plan.partition.parts.size(); ++p) {
    const partition::Part& part = plan.partition.parts[p];
    text += fmt::format("part {}: {} operators, from {} to {}; {:.1f} us (estimated)\n", p, part.ops.size(),
                        names_of(model, part.inputs), names_of(model, part.outputs), part.cost.total());
    for (const std::int32_t op : part.ops) part_of[at(op)] = static_cast<int>(p);
  }
  for (std::size_t i = 0; i < operators.size(); ++i) {
    text += fmt::format("{:>5} {:<24} {}\n", i, operators[i].type,
                        part_of[i] < 0 ? "CPU" : fmt::format("Edge TPU, part {}", part_of[i]));
  }
  return text;
}

std::string disassembly(const darwinn::Package& package) {
  isa::Listing listing;
  for (const darwinn::Executable& executable : package.executables) {
    for (std::size_t c = 0; c < executable.instruction_chunks.size(); ++c) {
      const auto program = isa::decode(executable.instruction_chunks[c].bitstream.span());
      if (!program.ok()) continue;
      listing.programs.push_back({fmt::format("{} chunk {}", darwinn::name_of(executable.type), c), {}, *program});
    }
  }
  return isa::print_listing(listing);
}

Result<std::string> part_text(const std::string& stage, const compiler::CompileOptions& options,
                              const compiler::CompiledFile& file, const compiler::CompiledOp& op) {
  const ir::Model& model = *file.plan.model;
  if (op.code == nullptr) return fmt::format("no machine code: {}\n", op.why_no_code);
  if (stage == "schedule") return tiled::to_text(model, op.code->program);
  if (stage == "emit") return disassembly(op.code->package);
  lower::LowerOptions how;
  how.level = options.level;
  REEF_ASSIGN_OR_RETURN(const tiled::TiledProgram program,
                        lower::lower(model, op.part.ops, op.part.inputs, op.part.outputs, how));
  return tiled::to_text(model, program);
}

}  // namespace

const std::vector<std::string>& stage_names() {
  static const auto* names = new std::vector<std::string>{"rewrite", "partition", "lower", "schedule", "emit"};
  return *names;
}

bool is_planning(const std::string& stage) { return stage == "rewrite" || stage == "partition"; }

std::string planning_text(const std::string& stage, const compiler::Plan& plan) {
  if (stage == "partition") return partition_text(plan);
  return compiler::model_text(*plan.model);
}

Result<std::string> stage_text(const std::string& stage, const compiler::CompileOptions& options,
                               const compiler::CompiledFile& file) {
  if (is_planning(stage)) return planning_text(stage, file.plan);
  std::string text;
  for (std::size_t i = 0; i < file.ops.size(); ++i) {
    if (file.ops.size() > 1) text += fmt::format("part {}\n", i);
    REEF_ASSIGN_OR_RETURN(const std::string part, part_text(stage, options, file, file.ops[i]));
    text += part;
  }
  return text;
}

}  // namespace reef::app
