// SPDX-License-Identifier: Apache-2.0
#include "compiler/code_facts.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <variant>

#include "chip/machine.h"
#include "isa/program.h"

namespace reef::compiler {
namespace {

// Estimates, from simulated times of copies: what each costs besides its words, and what fences around them cost.
constexpr double kCyclesPerRingCopy = 8, kCyclesPerLocalCopy = 4, kCyclesPerRound = 40;

double cycles_of(const tiled::RingCopies& step) {
  double cycles = step.copies.empty() ? 0 : kCyclesPerRound;
  for (const tiled::RingCopy& copy : step.copies) {
    cycles += kCyclesPerRingCopy +
              static_cast<double>(copy.source.words()) * chip::kNarrowWordBytes / chip::kRingBytesPerCycle;
  }
  return cycles;
}

// Cycles of the tile that has most to copy: the tensor unit takes a step for each word and part.
double cycles_of(const tiled::LocalCopies& step) {
  std::array<double, chip::kTiles> cycles{};
  const auto add = [&](tiled::TileMask tiles, double work) {
    for (std::size_t t = 0; t < cycles.size(); ++t) {
      if ((tiles >> t & 1) != 0) cycles[t] += work;
    }
  };
  const auto words = [](const std::vector<tiled::CopyDim>& dims) {
    return std::accumulate(dims.begin(), dims.end(), 1.0, [](double n, const auto& dim) { return n * dim.count; });
  };
  for (const tiled::LocalFill& fill : step.fills) {
    add(fill.tiles, kCyclesPerLocalCopy + words(fill.dims) / chip::kMeshWordsPerCycle);
  }
  for (const auto* round : {&step.first_round, &step.second_round}) {
    for (const tiled::LocalCopy& copy : *round) add(copy.tiles, kCyclesPerLocalCopy + copy.parts * words(copy.dims));
  }
  const double most = *std::max_element(cycles.begin(), cycles.end());
  return most > 0 ? most + kCyclesPerRound : 0;
}

// Cycles of weights that pass by the one tile that computes a dense layer: they do not fit into the tiles that they
// would belong on. A line takes its time on the ring however few of its cells have weights. Shapes let expect that
// weights stay in the tiles, as Google's compiler has it.
double cycles_of_passing_lines(const tiled::TiledProgram& program, const tiled::Step& step) {
  constexpr double kCyclesPerLine = double{chip::kWideLineBytes} / chip::kRingBytesPerCycle;
  const auto is_pixel = [&](std::int32_t t) { return program.tensor(t).height * program.tensor(t).width == 1; };
  const bool is_dense = std::holds_alternative<tiled::Convolution>(step.work) &&
                        std::all_of(step.reads.begin(), step.reads.end(), is_pixel) &&
                        std::all_of(step.writes.begin(), step.writes.end(), is_pixel);
  double cycles = 0;
  for (const std::int32_t index : step.parameters_used) {
    const tiled::ParameterChunk& chunk = program.chunk(index);
    if (is_dense && chunk.is_cached() && chunk.part_lines == 0) cycles += chunk.lines * kCyclesPerLine;
  }
  return cycles;
}

void add_step(const tiled::Step& step, partition::OpInCode& op) {
  if (const auto* ring = std::get_if<tiled::RingCopies>(&step.work)) {
    op.move_cycles += cycles_of(*ring);
  } else if (const auto* local = std::get_if<tiled::LocalCopies>(&step.work)) {
    op.move_cycles += cycles_of(*local);
  } else {
    op.computes = true;
  }
}

void add_transfers(const darwinn::Executable& program, partition::PartInCode& facts) {
  if (!program.dma_hints) return;
  for (const darwinn::DmaHint& hint : program.dma_hints->hints) {
    const auto* transfer = std::get_if<darwinn::DescriptorHint>(&hint.hint);
    if (transfer == nullptr || !transfer->use || transfer->use->base == darwinn::BaseAddress::kParameter) continue;
    (hint.direction == darwinn::Direction::kToHost ? facts.out_bytes : facts.in_bytes) += transfer->size_bytes;
  }
}

}  // namespace

partition::PartInCode facts_of(const PartCode& code, std::span<const std::int32_t> ops) {
  partition::PartInCode facts;
  facts.ops.assign(ops.begin(), ops.end());
  facts.of_op.resize(ops.size());
  const tiled::TiledProgram& program = code.program;
  bool is_first = true;
  for (std::size_t i = 0; i < program.steps.size(); ++i) {
    const tiled::Step& step = program.steps[i];
    const auto at = std::lower_bound(ops.begin(), ops.end(), step.op);
    const bool is_of_op = at != ops.end() && *at == step.op;
    if (!is_of_op) continue;
    if (is_first) facts.first_bytes = code.step_rows[i] * chip::kInstructionRowBytes;
    is_first = false;
    partition::OpInCode& op = facts.of_op[reef::at(at - ops.begin())];
    op.instruction_bytes += (code.step_rows[i + 1] - code.step_rows[i]) * chip::kInstructionRowBytes;
    add_step(step, op);
    op.move_cycles += cycles_of_passing_lines(program, step);
    for (const std::int32_t index : step.parameters_used) {
      const tiled::ParameterChunk& chunk = program.chunk(index);
      if (!chunk.is_cached()) op.streamed_bytes += static_cast<std::int64_t>(chunk.bytes.size());
    }
  }
  for (const tiled::ParameterChunk& chunk : program.parameters) {
    if (chunk.is_cached()) facts.cached_bytes += static_cast<std::int64_t>(chunk.bytes.size());
  }
  for (const darwinn::Executable& executable : code.package.executables) {
    if (executable.type == darwinn::ExecutableType::kParameterCaching) continue;
    for (const darwinn::InstructionChunk& piece : executable.instruction_chunks) {
      facts.piece_bytes.push_back(static_cast<std::int64_t>(piece.bitstream.size()));
    }
    add_transfers(executable, facts);
  }
  facts.cache_used = code.memory ? code.memory->cached_bytes : facts.cached_bytes;
  facts.cache_capacity =
      std::max(facts.cache_used, std::int64_t{chip::kTiles} * program.lowest_scratch_line * chip::kWideLineBytes);
  return facts;
}

}  // namespace reef::compiler
