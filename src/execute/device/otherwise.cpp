// SPDX-License-Identifier: Apache-2.0
// Alternatives of beliefs that show in a decoded program: other loop nests, waits, counters and operands.
#include <algorithm>
#include <utility>

#include "execute/device/beliefs.h"
#include "execute/device/other_chip.h"
#include "execute/device/program.h"
#include "isa/host_queues.h"
#include "isa/movers.h"
#include "isa/scalar.h"
#include "isa/tensor_op.h"

namespace reef::device {
namespace {

using isa::NestShape;

enum class Place : std::uint8_t { kNarrowBytes, kNarrowWords, kWideLines, kWideQuarters, kOther };

// Calls `change(nest, where it points to)` for every nest of an operation that has addresses.
template <typename Change>
void for_each_nest(isa::Operation& operation, const Change& change) {
  if (auto* op = std::get_if<isa::TensorOperation>(&operation.code)) {
    const bool reads_input =
        operation.opcode == isa::Opcode::kMultiplyAdd || operation.opcode == isa::Opcode::kResample;
    if (reads_input) change(op->in, Place::kNarrowBytes);
    if (operation.opcode != isa::Opcode::kResample) change(op->param, Place::kWideQuarters);
    change(op->out, Place::kNarrowBytes);
  } else if (auto* send = std::get_if<isa::RingSend>(&operation.code)) {
    change(send->in, Place::kWideLines);
  } else if (auto* receive = std::get_if<isa::RingReceive>(&operation.code)) {
    change(receive->out, Place::kWideLines);
  } else if (auto* to_wide = std::get_if<isa::NarrowToWide>(&operation.code)) {
    change(to_wide->in, Place::kNarrowWords);
    change(to_wide->out, Place::kWideLines);
  } else if (auto* to_narrow = std::get_if<isa::WideToNarrow>(&operation.code)) {
    change(to_narrow->in, Place::kWideLines);
    change(to_narrow->out, to_narrow->to_scaling ? Place::kOther : Place::kNarrowWords);
  } else if (auto* mesh = std::get_if<isa::Mesh>(&operation.code)) {
    if (mesh->sends) change(mesh->in, Place::kNarrowWords);
    if (mesh->receives) change(mesh->out, Place::kNarrowWords);
  }
}

// Calls `change` for the waits and the loops of every operation that waits for passes.
template <typename Change>
void for_each_wait(isa::Operation& operation, const Change& change) {
  const auto all = [&](std::vector<isa::Wait>& waits) {
    for (isa::Wait& wait : waits) change(wait);
  };
  if (auto* op = std::get_if<isa::TensorOperation>(&operation.code)) all(op->waits);
  if (auto* op = std::get_if<isa::RingSend>(&operation.code)) all(op->waits);
  if (auto* op = std::get_if<isa::RingReceive>(&operation.code)) all(op->waits);
  if (auto* op = std::get_if<isa::NarrowToWide>(&operation.code)) all(op->in_waits), all(op->out_waits);
  if (auto* op = std::get_if<isa::WideToNarrow>(&operation.code)) all(op->in_waits), all(op->out_waits);
  if (auto* op = std::get_if<isa::Mesh>(&operation.code)) all(op->in_waits), all(op->out_waits);
  if (auto* op = std::get_if<isa::Infeed>(&operation.code)) all(op->waits);
  if (auto* op = std::get_if<isa::Pop>(&operation.code)) all(op->waits);
  if (auto* op = std::get_if<isa::Outfeed>(&operation.code)) all(op->waits);
}

// The highest address that a nest reaches, both halves of its double buffer counted.
std::int64_t highest_address(const NestShape& nest) {
  std::int64_t highest = nest.base + std::max<std::int64_t>(nest.buffer_stride, 0);
  for (int k = 0; k < nest.dims; ++k) {
    const auto d = static_cast<std::size_t>(k);
    highest += std::max<std::int64_t>(static_cast<std::int64_t>(nest.stride[d]), 0) * (nest.count[d] - 1);
  }
  return highest;
}

// In the unit of `place`; -1: this memory's size is not doubted.
std::int64_t doubted_size(Belief belief, Place place) {
  constexpr std::int64_t kNarrowBytes = 131'072, kWideLines = 2'048;
  if (belief == Belief::kNarrowSize && place == Place::kNarrowBytes) return kNarrowBytes;
  if (belief == Belief::kNarrowSize && place == Place::kNarrowWords) return kNarrowBytes / chip::kNarrowWordBytes;
  if (belief == Belief::kWideSize && place == Place::kWideLines) return kWideLines;
  if (belief == Belief::kWideSize && place == Place::kWideQuarters) return kWideLines * chip::kWideAddressUnitsPerLine;
  return -1;
}

Status check_fits(Belief belief, const Program& program, std::size_t index, isa::Operation& operation) {
  Status status;
  for_each_nest(operation, [&](NestShape& nest, Place place) {
    const std::int64_t size = doubted_size(belief, place);
    if (size < 0 || highest_address(nest) < size || !status.ok()) return;
    status = invalid_input("{} reaches address {} of a memory that is taken to have {}", program.describe(index),
                           highest_address(nest), size);
  });
  return status;
}

bool scale_addresses(NestShape& nest, std::int64_t times, std::int64_t by) {
  if (nest.dims == 0) return false;
  nest.base = nest.base * times / by;
  nest.buffer_stride = nest.buffer_stride * times / by;
  for (int k = 0; k < nest.dims; ++k) {
    auto& stride = nest.stride[at(k)];
    stride = static_cast<std::uint64_t>(static_cast<std::int64_t>(stride) * times / by);
  }
  return true;
}

Result<bool> clip_dimension_0(const isa::Instruction& instruction, isa::Operation& operation) {
  auto* op = std::get_if<isa::NarrowToWide>(&operation.code);
  if (op == nullptr || op->in.clip_dim == 0 || op->in.clip_inner == 0) return false;
  const isa::NestFields& fields = isa::movers::kToWideIn;
  REEF_ASSIGN_OR_RETURN(op->in, isa::nest_shape(instruction.read_nest(fields), fields.dims, 0));
  return true;
}

bool shorten_clip(NestShape& nest) {
  if (nest.clip_dim == 0 || nest.clip_inner != 0 || nest.clip_steps <= nest.count[0]) return false;
  nest.clip_steps = nest.count[0];
  return true;
}

bool begin_with_second_half(NestShape& nest) {
  if (nest.buffer_stride == 0) return false;
  nest.base += nest.buffer_stride;
  nest.buffer_stride = -nest.buffer_stride;
  return true;
}

bool number_counters_as_registers(isa::Operation& operation) {
  bool changed = false;
  const auto renumber = [&](isa::Wait& wait) {
    if (wait.counter >= 4) return;  // AVDATA_INFEED, PARAMETER_INFEED, AVDATA_POP, PARAMETER_POP
    wait.counter = static_cast<std::uint8_t>(wait.counter ^ 2);
    changed = true;
  };
  if (auto* fence = std::get_if<isa::ScalarFence>(&operation.code)) {
    for (isa::Wait& wait : fence->waits) renumber(wait);
  } else if (!isa::is_tile_instruction(operation.opcode)) {
    for_each_wait(operation, renumber);
  }
  return changed;
}

bool swap_sides(isa::Operation& operation) {
  const auto swapped = [](auto& op) {
    std::swap(op.in_waits, op.out_waits);
    return !op.in_waits.empty() || !op.out_waits.empty();
  };
  if (auto* op = std::get_if<isa::NarrowToWide>(&operation.code)) return swapped(*op);
  if (auto* op = std::get_if<isa::WideToNarrow>(&operation.code)) return swapped(*op);
  if (auto* op = std::get_if<isa::Mesh>(&operation.code)) return swapped(*op);
  return false;
}

bool read_old_resampling(const isa::Instruction& instruction, isa::Operation& operation) {
  auto* op = std::get_if<isa::TensorOperation>(&operation.code);
  if (op == nullptr || operation.opcode != isa::Opcode::kResample) return false;
  namespace r = isa::tensor_op::resample;
  const auto read = [&](const isa::Field& phase, const isa::Field& step, isa::ResampleAxis& axis) {
    const std::uint32_t bits = instruction.bits(phase) | instruction.bits(step) << phase.width;
    axis.phase = static_cast<std::int32_t>(bits & 0xff);
    axis.factor = std::max(static_cast<std::int32_t>(bits >> 8), 1);
  };
  read(r::kXPhase, r::kXStep, op->x);
  read(r::kYPhase, r::kYStep, op->y);
  return true;
}

bool loop_back_if_awaited(const isa::Instruction& instruction, isa::Operation& operation) {
  auto* op = std::get_if<isa::Outfeed>(&operation.code);
  if (op == nullptr || !op->loop_back) return false;
  op->loop_back = instruction.read_watcher(isa::host_queues::kOutfeedWatchers[0]).enabled;
  return true;
}

bool swap_scaling_places(isa::Operation& operation) {
  auto* op = std::get_if<isa::WideToNarrow>(&operation.code);
  if (op == nullptr || !op->to_scaling) return false;
  op->out.base ^= chip::kScalingBiasesWord;
  return true;
}

Result<bool> check_registers(const isa::Instruction& instruction) {
  if (instruction.opcode() != isa::Opcode::kScalar) return false;
  namespace b = isa::bundle;
  for (const isa::Field* field : {&b::kLoadDest, &b::kStoreSource, &b::kAluDest, &b::kAluSource, &b::kMathDest}) {
    REEF_REQUIRE(instruction.bits(*field) < 16, "a bundle names register {}", instruction.bits(*field));
  }
  return true;
}

Result<bool> change(Belief belief, const Program& program, std::size_t index, isa::Operation& operation) {
  const isa::Instruction& instruction = program.instructions[index];
  auto* tensor = std::get_if<isa::TensorOperation>(&operation.code);
  bool changed = false;
  switch (belief) {
    case Belief::kClipTransposed:
      return clip_dimension_0(instruction, operation);
    case Belief::kClipLengthens:
      for_each_nest(operation, [&](NestShape& nest, Place) { changed |= shorten_clip(nest); });
      return changed;
    case Belief::kBufferFirst:
      for_each_nest(operation, [&](NestShape& nest, Place) { changed |= begin_with_second_half(nest); });
      return changed;
    case Belief::kThresholdFirst:
      for_each_wait(operation, [&](isa::Wait& wait) {
        wait.threshold += static_cast<std::int32_t>(wait.increment);
        changed |= wait.increment != 0;
      });
      return changed;
    case Belief::kWaitSides:
      return swap_sides(operation);
    case Belief::kScalarCounterOrder:
      return number_counters_as_registers(operation);
    case Belief::kProductsOf16:
      if (tensor == nullptr || tensor->in_16 == tensor->param_16) return false;
      tensor->products = 1;
      return true;
    case Belief::kQuarterLines:
      if (tensor == nullptr || operation.opcode == isa::Opcode::kResample) return false;
      return scale_addresses(tensor->param, chip::kWideAddressUnitsPerLine, 1);
    case Belief::kResampleStep:
      return read_old_resampling(instruction, operation);
    case Belief::kMoverWords:
      for_each_nest(operation, [&](NestShape& nest, Place place) {
        if (place == Place::kNarrowWords) changed |= scale_addresses(nest, 1, chip::kNarrowWordBytes);
      });
      return changed;
    case Belief::kLoopBackByCounter:
      return loop_back_if_awaited(instruction, operation);
    case Belief::kScalingPlaces:
      return swap_scaling_places(operation);
    case Belief::kNarrowSize:
    case Belief::kWideSize:
      REEF_RETURN_IF_ERROR(check_fits(belief, program, index, operation));
      return true;
    case Belief::kRegisters:
      return check_registers(instruction);
    case Belief::kChunkRows:
      REEF_REQUIRE(program.row_of[index] < chip::kInstructionChunkRows / 2, "a chunk has more than {} rows",
                   program.row_of[index]);
      return true;
    default:
      return false;
  }
}

}  // namespace

Result<bool> take_otherwise(Belief belief, Program& program) { return take_otherwise_from(belief, program, 0); }

Result<bool> take_otherwise_from(Belief belief, Program& program, std::size_t first) {
  bool changed = false;
  for (std::size_t i = first; i < program.operations.size(); ++i) {
    REEF_ASSIGN_OR_RETURN(const bool changes, change(belief, program, i, program.operations[i]));
    changed |= changes;
    const auto* tensor = std::get_if<isa::TensorOperation>(&program.operations[i].code);
    if (!changes || tensor == nullptr) continue;
    program.plans[i] = plan_tensor(*tensor, program.operations[i].opcode, program.steps_to_plan);
  }
  return changed;
}

}  // namespace reef::device
