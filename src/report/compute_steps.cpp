// SPDX-License-Identifier: Apache-2.0
#include "report/compute_steps.h"

#include <algorithm>
#include <bit>

#include "chip/machine.h"
#include "isa/host_queues.h"
#include "isa/movers.h"
#include "isa/program.h"
#include "isa/ring.h"
#include "isa/tensor_op.h"

namespace reef::report {
namespace {

using isa::Instruction;
using isa::Opcode;

struct AddressRange {
  std::int64_t first = 0, last = 0;
};

// Foreign strides may be anything: far beyond every memory, it does not matter how far.
AddressRange range_of(const isa::Nest& nest) {
  constexpr __int128 kFar = std::int64_t{1} << 40;
  __int128 first = nest.base, last = nest.base;
  const auto extend = [&](__int128 distance) { (distance < 0 ? first : last) += distance; };
  for (const isa::Nest::Dim& dim : nest.dims) extend(static_cast<__int128>(dim.stride) * (dim.count - 1));
  extend(nest.buffer_stride);
  return {static_cast<std::int64_t>(std::max(first, -kFar)), static_cast<std::int64_t>(std::min(last, kFar))};
}

ComputeStep step_of(const Instruction& op) {
  namespace t = isa::tensor_op;
  ComputeStep step;
  step.instructions = 1;
  step.opcode = op.opcode();
  step.tiles = op.bits(isa::tile::kTiles);
  step.steps = op.read_nest(t::kLoops).steps().value_or(0);
  step.cells = static_cast<int>(op.bits(t::kCells)) + 1;
  step.in_zero = static_cast<int>(op.bits(t::kInZero));
  step.param_zero = static_cast<int>(op.bits(t::kParamZero));
  step.weights = op.test(t::kStaticParams);
  step.zero_per_cell = op.test(t::kParamZeroLine);
  step.activation = op.test(t::kActivation);
  step.wide_operands = op.test(t::kIn16) || op.test(t::kParam16);
  step.wide_result = op.test(t::kOut16);
  step.scale = op.get_float(t::kScale);
  if (op.opcode() == Opcode::kResample) return step;  // the fields below mean something else there
  step.out_zero = static_cast<int>(op.bits(t::kOutZero));
  step.max = op.get_float(t::kMax);
  step.min = op.get_float(t::kMin);
  step.bias = op.test(t::kBias);
  step.scale_per_cell = op.test(t::kScalePerCell);
  return step;
}

bool same_computation(const ComputeStep& a, const ComputeStep& b) {
  const auto key = [](const ComputeStep& s) {
    return std::tuple(s.opcode, s.cells, s.in_zero, s.param_zero, s.out_zero, std::bit_cast<std::uint32_t>(s.scale),
                      std::bit_cast<std::uint32_t>(s.min), std::bit_cast<std::uint32_t>(s.max), s.weights, s.bias,
                      s.scale_per_cell, s.zero_per_cell, s.activation, s.wide_operands, s.wide_result);
  };
  return key(a) == key(b);
}

class StepFinder {
 public:
  explicit StepFinder(const std::vector<darwinn::CachedPiece>& cached) : cached_(cached) {}

  void visit(const Instruction& instruction, int chunk, int row) {
    if (isa::is_tensor_op(instruction.opcode())) {
      add_tensor_op(instruction, chunk, row);
    } else if (instruction.opcode() == Opcode::kRingSend) {
      add_send(instruction);
    } else if (instruction.opcode() == Opcode::kPop && instruction.bits(isa::host_queues::kPopSource) == 0) {
      add_streamed(instruction);
    }
  }

  std::vector<ComputeStep> take_steps() { return std::move(steps_); }

 private:
  void add_tensor_op(const Instruction& op, int chunk, int row) {
    ComputeStep step = step_of(op);
    step.chunk = chunk;
    step.row = row;
    if (!steps_.empty() && steps_.back().parameters.empty() && same_computation(steps_.back(), step)) {
      ComputeStep& last = steps_.back();
      ++last.instructions;
      last.tiles |= step.tiles;
      last.steps = std::max(last.steps, step.steps);
    } else {
      steps_.push_back(std::move(step));
    }
    if (op.test(isa::tensor_op::kStaticParams)) add_own_lines(op);
  }

  // Weights that stay where they are used: fully-connected layers.
  void add_own_lines(const Instruction& op) {
    const AddressRange quarters = range_of(op.read_nest(isa::tensor_op::kParam));
    for (int tile = 0; tile < chip::kTiles; ++tile) {
      if ((op.bits(isa::tile::kTiles) >> tile & 1) == 0) continue;
      add_lines(ParameterUse::From::kOwnTile, tile, quarters.first / chip::kWideAddressUnitsPerLine,
                quarters.last / chip::kWideAddressUnitsPerLine);
    }
  }

  void add_send(const Instruction& send) {
    const AddressRange lines = range_of(send.read_nest(isa::ring::kSendIn));
    for (int tile = 0; tile < chip::kTiles; ++tile) {
      if (send.bits(isa::tile::kTiles) >> tile & 1) {
        add_lines(ParameterUse::From::kRing, tile, lines.first, lines.last);
      }
    }
  }

  void add_lines(ParameterUse::From from, int tile, std::int64_t first, std::int64_t last) {
    if (steps_.empty() || first < 0 || last >= chip::kWideLines) return;
    for (const darwinn::CachedPiece& piece : cached_) {
      const std::int64_t begin = std::max<std::int64_t>(first, piece.first_line);
      const std::int64_t end = std::min<std::int64_t>(last + 1, piece.first_line + piece.lines);
      if (piece.tile != tile || begin >= end) continue;
      ParameterUse use{from, 0, 0, tile, static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end - begin)};
      const std::uint64_t skipped = static_cast<std::uint64_t>(begin - piece.first_line) * piece.line_bytes;
      use.offset = piece.offset + skipped;
      use.bytes = std::min<std::uint64_t>(use.lines * std::uint64_t{piece.line_bytes}, piece.bytes - skipped);
      steps_.back().parameters.push_back(use);
    }
  }

  void add_streamed(const Instruction& pop) {
    const std::int64_t units = pop.read_nest(isa::host_queues::kPopIn).steps().value_or(0);
    ParameterUse use{ParameterUse::From::kHost, streamed_, 0, -1, 0, 0};
    use.bytes = static_cast<std::uint64_t>(units) * chip::kParameterFifoUnitBytes;
    streamed_ += use.bytes;
    if (!steps_.empty()) steps_.back().parameters.push_back(use);
  }

  const std::vector<darwinn::CachedPiece>& cached_;
  std::uint64_t streamed_ = 0;
  std::vector<ComputeStep> steps_;
};

template <typename Visit>
Status for_each_instruction(const darwinn::Executable& program, Visit visit) {
  for (std::size_t i = 0; i < program.instruction_chunks.size(); ++i) {
    REEF_ASSIGN_OR_RETURN(const isa::Program chunk, isa::decode(program.instruction_chunks[i].bitstream.span()));
    int row = 0;
    for (const Instruction& instruction : chunk) {
      visit(instruction, static_cast<int>(i), row);
      row += instruction.rows();
    }
  }
  return ok_status();
}

}  // namespace

Result<std::vector<ComputeStep>> compute_steps(const darwinn::Executable& program,
                                               const std::vector<darwinn::CachedPiece>& cached) {
  StepFinder finder(cached);
  REEF_RETURN_IF_ERROR(for_each_instruction(
      program, [&](const Instruction& instruction, int chunk, int row) { finder.visit(instruction, chunk, row); }));
  return finder.take_steps();
}

Result<std::vector<LineRun>> scratch_lines(const darwinn::Executable& program) {
  std::vector<bool> written(chip::kWideLines);
  const auto mark = [&written](AddressRange lines) {
    const std::int64_t end = std::min<std::int64_t>(lines.last + 1, chip::kWideLines);
    for (std::int64_t line = std::max<std::int64_t>(lines.first, 0); line < end; ++line) written[line] = true;
  };
  REEF_RETURN_IF_ERROR(for_each_instruction(program, [&](const Instruction& instruction, int, int) {
    const Opcode opcode = instruction.opcode();
    if (opcode == Opcode::kRingReceiveA || opcode == Opcode::kRingReceiveB) {
      mark(range_of(instruction.read_nest(isa::ring::kReceiveOut)));
      if (instruction.test(isa::ring::kHeader)) {
        const std::int64_t lines = instruction.bits(isa::ring::kHeaderLines);
        mark({instruction.bits(isa::ring::kHeaderFirst), instruction.bits(isa::ring::kHeaderLast) + lines});
      }
    } else if (opcode == Opcode::kNarrowToWide) {
      mark(range_of(instruction.read_nest(isa::movers::kToWideOut)));
    } else if (isa::is_tensor_op(opcode) && !instruction.test(isa::tensor_op::kAccumulateInside)) {
      const AddressRange quarters = range_of(instruction.read_nest(isa::tensor_op::kPsum));
      mark({quarters.first / chip::kWideAddressUnitsPerLine, quarters.last / chip::kWideAddressUnitsPerLine});
    }
  }));
  std::vector<LineRun> runs;
  for (std::uint32_t line = 0; line < written.size(); ++line) {
    if (!written[line]) continue;
    if (runs.empty() || runs.back().last + 1 != line) runs.push_back({line, line});
    runs.back().last = line;
  }
  return runs;
}

std::uint32_t longest_free_run(const std::vector<LineRun>& scratch) {
  std::uint32_t longest = 0, next = 0;
  for (const LineRun& run : scratch) {
    longest = std::max(longest, run.first - next);
    next = run.last + 1;
  }
  return std::max(longest, static_cast<std::uint32_t>(chip::kWideLines) - next);
}

}  // namespace reef::report
