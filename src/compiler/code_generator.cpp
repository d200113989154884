// SPDX-License-Identifier: Apache-2.0
#include "compiler/code_generator.h"

#include <algorithm>

#include "base/version.h"
#include "compiler/slicing.h"
#include "emit/package.h"
#include "ir/op.h"
#include "lower/lower.h"
#include "lower/rearrangement_cache.h"
#include "schedule/schedule.h"

namespace reef::compiler {
namespace {

// Of the runtime. Programs for 13 and 14 are those of Google's newest compiler; those for 10 to 12 differ in how they
// compute host addresses (emit/program_writer.h), as Google's for these do. What else a runtime must know, the base
// addresses that the driver fills in among it, is in programs of Google's that say 10 as well.
constexpr int kOldestRuntime = 10, kNewestRuntime = 14;

MemoryUse memory_use(const PartProgram& part, const tiled::TiledProgram& program) {
  MemoryUse use;
  use.next_line = part.room.first_line;
  use.lowest_scratch_line = program.lowest_scratch_line;
  for (const tiled::ParameterChunk& chunk : program.parameters) {
    if (!chunk.is_cached()) continue;
    for (const tiled::ParameterPiece& piece : chunk.at) {
      std::int32_t& next = use.next_line[at(piece.tile)];
      next = std::max(next, piece.line + piece.lines);
      use.cached_bytes += std::int64_t{piece.lines} * chip::kWideLineBytes;
    }
  }
  for (const tiled::Step& step : program.steps) {
    for (const std::int32_t index : step.parameters_used) {
      const tiled::ParameterChunk& chunk = program.chunk(index);
      if (!chunk.is_cached()) use.streamed_bytes += static_cast<std::int64_t>(chunk.bytes.size());
    }
  }
  return use;
}

// Whether what one operator reads and makes is more than all tiles hold: then it need not be tried.
bool is_surely_too_large(const PartProgram& part, std::int64_t narrow_bytes) {
  const ir::Subgraph& graph = part.model.subgraphs[0];
  return std::any_of(part.ops.begin(), part.ops.end(), [&](std::int32_t index) {
    const ir::Operator& op = graph.operators[at(index)];
    std::int64_t bytes = 0;
    const auto add = [&](std::int32_t t) {
      if (t < 0) return;
      const ir::Tensor& tensor = graph.tensors[at(t)];
      const bool is_activation = tensor.shape.rank() == 4 && ir::constant_data(part.model, tensor).empty();
      if (is_activation) bytes += tensor.shape.checked_elements().value_or(0);
    };
    std::for_each(op.outputs.begin(), op.outputs.end(), add);
    if (!op.inputs.empty() && op.type != Op::RESHAPE && op.type != Op::QUANTIZE) add(op.inputs[0]);
    return bytes > chip::kTiles * narrow_bytes;
  });
}

// Whether all parameters can stay on the chip, beside what steps use as scratch.
bool parameters_fit(const PartProgram& part, const tiled::TiledProgram& program) {
  std::vector<std::int64_t> scratch(program.steps.size() + 1, 0);
  for (const tiled::WideObject& object : program.wide) {
    if (object.life.first < 0) continue;
    scratch[at(object.life.first)] += object.lines;
    scratch[static_cast<std::size_t>(object.life.last) + 1] -= object.lines;
  }
  std::int64_t now = 0, most = 0;
  for (const std::int64_t lines : scratch) most = std::max(most, now += lines);
  const std::int64_t end = std::min<std::int64_t>(part.room.end_line, chip::kWideLines - most);
  std::int64_t left = 0, used = 0;
  for (const std::int32_t first : part.room.first_line) left += std::max<std::int64_t>(0, end - first);
  left = std::min(left, part.room.lines);
  if (part.shares_chip) left = std::min(left, part.cached_bytes_max / chip::kWideLineBytes);
  for (const tiled::ParameterChunk& chunk : program.parameters) used += chunk.lines;
  return used <= left;
}

// In slices, where activations do not fit as they are.
Result<tiled::TiledProgram> lower_with(const PartProgram& part, const GenerationOptions& options, bool patches) {
  lower::LowerOptions how{options.level.value_or(part.level), part.refused};
  how.lstm_arguments = options.lstm_arguments;
  how.budget = part.budget;
  how.patches = patches;
  lower::RearrangementCache own;
  how.movements = part.movements != nullptr ? part.movements : &own;
  if (options.slices) {
    how.groups = *options.slices;
    how.hosted = options.hosted;
  }
  const auto lowered = [&] { return lower::lower(part.model, part.ops, part.inputs, part.outputs, how); };
  if (options.slices || !is_surely_too_large(part, options.narrow_bytes)) {
    REEF_ASSIGN_OR_RETURN(tiled::TiledProgram program, lowered());
    if (options.slices || schedule::activation_bytes(program) <= options.narrow_bytes) return program;
    if (patches) {  // they take some memory: slices would cost more than they save
      how.patches = false;
      REEF_ASSIGN_OR_RETURN(tiled::TiledProgram plain, lowered());
      if (schedule::activation_bytes(plain) <= options.narrow_bytes) return plain;
      how.patches = true;
    }
  }
  REEF_ASSIGN_OR_RETURN(SlicePlan plan, choose_slices({part.model, part.ops, part.inputs, part.outputs}, how,
                                                      options.narrow_bytes, part.crowded));
  return plan.program ? Result<tiled::TiledProgram>(std::move(*plan.program)) : lowered();
}

// Several pixels at a time, unless that takes so much memory that something must be sent for it with every inference.
Result<tiled::TiledProgram> lower_to_fit(const PartProgram& part, const GenerationOptions& options) {
  if (options.level.value_or(part.level) < tiled::Level::kFast) return lower_with(part, options, false);
  auto program = lower_with(part, options, true);
  if (program.ok() && parameters_fit(part, *program)) return program;
  return lower_with(part, options, false);
}

}  // namespace

Result<PartCode> generate_part(const PartProgram& part) { return generate_part_with(part, {}); }
Result<darwinn::Package> generate_code(const PartProgram& part) { return generate_code_with(part, {}); }

Result<darwinn::Package> generate_code_with(const PartProgram& part, const GenerationOptions& options) {
  REEF_ASSIGN_OR_RETURN(PartCode code, generate_part_with(part, options));
  return std::move(code.package);
}

Result<PartCode> generate_part_with(const PartProgram& part, const GenerationOptions& options) {
  if (part.min_runtime_version < kOldestRuntime || part.min_runtime_version > kNewestRuntime) {
    return unsupported("code is generated for runtimes {} to {}, not for {}", kOldestRuntime, kNewestRuntime,
                       part.min_runtime_version);
  }
  REEF_ASSIGN_OR_RETURN(tiled::TiledProgram program, lower_to_fit(part, options));
  schedule::ScheduleOptions how;
  how.parameters = options.parameter_places;
  how.narrow_addresses = options.narrow_addresses;
  how.wide_lines = options.wide_lines;
  how.narrow_bytes = options.narrow_bytes;
  how.cache = part.room;
  if (part.shares_chip) how.cache.lines = std::min(how.cache.lines, part.cached_bytes_max / chip::kWideLineBytes);
  schedule::Shortage shortage;
  const Status scheduled = schedule::schedule(program, how, &shortage);
  if (!scheduled.ok() && part.crowded != nullptr) *part.crowded = shortage.op;
  REEF_RETURN_IF_ERROR(scheduled);
  REEF_RETURN_IF_ERROR(part.budget.check("generating code"));
  REEF_ASSIGN_OR_RETURN(emit::EmittedPackage emitted,
                        emit::package(part.model, program,
                                      {part.min_runtime_version, part.caching_token,
                                       options.compiler_version.value_or(fmt::format("reef {}", reef_version()))}));
  PartCode code;
  code.package = std::move(emitted.package);
  code.memory = memory_use(part, program);
  code.program = std::move(program);
  code.step_begins = std::move(emitted.step_begins);
  code.step_rows = std::move(emitted.step_rows);
  return code;
}

}  // namespace reef::compiler
