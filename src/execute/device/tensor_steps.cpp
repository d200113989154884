// SPDX-License-Identifier: Apache-2.0
// Tensor instructions step by step: whatever nests, clips and operands they have.
#include <algorithm>
#include <cstring>

#include "execute/device/tensor_unit.h"
#include "execute/device/tensor_walk.h"
#include "execute/device/vector_code.h"

namespace reef::device {

struct StepOperands {
  std::array<std::int32_t, 4> x{};  // input elements minus their zero point
  std::array<bool, 4> x_known{};
  bool all_x_known = true;
  const Line* line = nullptr;
  int lane = 0;
  const Line* zero_line = nullptr;
};

namespace {

using isa::TensorOperation;

std::int32_t element(const std::uint8_t* bytes, bool is_16, int index) {
  return is_16 ? bytes[2 * index] | bytes[2 * index + 1] << 8 : bytes[index];
}

bool parameter_is_known(const Line& line, int cell, bool is_16, int index) {
  const int byte = 4 * cell + (is_16 ? 2 : 1) * index;
  return line.is_known(byte) && (!is_16 || line.is_known(byte + 1));
}

// How parameters lie in a cell's word.
struct ParameterPlace {
  std::uint32_t shift = 0, mask = 0xff;
};

// Four cells at a time. The wrapping of unsigned numbers is that of the sums.
using Cells = std::uint32_t __attribute__((vector_size(16)));
using SignedCells = std::int32_t __attribute__((vector_size(16)));

// sums[c] += x * (parameter[c] - zeros[c])
REEF_VECTOR_BODY void multiply_body(const std::uint8_t* line, const std::int32_t* zeros, ParameterPlace place,
                                    std::int32_t x, int width, std::int32_t* sums) {
  for (int c = 0; c < width; c += kCellBlock) {
    Cells words, zero, sum;
    std::memcpy(&words, line + 4 * c, sizeof(words));
    std::memcpy(&zero, zeros + c, sizeof(zero));
    std::memcpy(&sum, sums + c, sizeof(sum));
    sum += (((words >> place.shift) & place.mask) - zero) * static_cast<std::uint32_t>(x);
    std::memcpy(sums + c, &sum, sizeof(sum));
  }
}

REEF_VECTOR_BODY void add_body(const std::uint8_t* line, ParameterPlace place, std::int32_t zero, int width,
                               std::int32_t* sums) {
  for (int c = 0; c < width; c += kCellBlock) {
    Cells words, sum;
    std::memcpy(&words, line + 4 * c, sizeof(words));
    std::memcpy(&sum, sums + c, sizeof(sum));
    sum += ((words >> place.shift) & place.mask) - static_cast<std::uint32_t>(zero);
    std::memcpy(sums + c, &sum, sizeof(sum));
  }
}

REEF_VECTOR_BODY void maximum_body(const std::uint8_t* line, ParameterPlace place, int width, std::int32_t* sums) {
  for (int c = 0; c < width; c += kCellBlock) {
    Cells words;
    SignedCells most;
    std::memcpy(&words, line + 4 * c, sizeof(words));
    std::memcpy(&most, sums + c, sizeof(most));
    const SignedCells numbers = (SignedCells)((words >> place.shift) & place.mask);
    most = numbers > most ? numbers : most;
    std::memcpy(sums + c, &most, sizeof(most));
  }
}

ParameterPlace place_of(bool is_16, int index) {
  return is_16 ? ParameterPlace{16u * static_cast<std::uint32_t>(index), 0xffff}
               : ParameterPlace{8u * static_cast<std::uint32_t>(index), 0xff};
}

// Marks the cells where product `j` is unknown. False: there is none.
bool mark_unknown_products(const TensorOperation& op, const StepOperands& in, const std::int32_t* zeros, int index,
                           std::size_t j, std::int32_t* unknown) {
  bool any = false;
  for (int c = 0; c < op.cells; ++c) {
    // Foreign zero points may be any number: no difference is taken.
    const bool is_zero = element(in.line->bytes.data() + 4 * c, op.param_16, index) == zeros[c];
    const bool w_known = parameter_is_known(*in.line, c, op.param_16, index);
    const bool is_known = (w_known && in.x_known[j]) || (w_known && is_zero) || (in.x_known[j] && in.x[j] == 0);
    if (is_known) continue;
    unknown[c] = 1;
    any = true;
  }
  return any;
}

bool mark_unknown_parameters(const TensorOperation& op, const Line& line, int index, std::int32_t* unknown) {
  bool any = false;
  for (int c = 0; c < op.cells; ++c) {
    if (parameter_is_known(line, c, op.param_16, index)) continue;
    unknown[c] = 1;
    any = true;
  }
  return any;
}

}  // namespace

bool TensorUnit::load_input(StepOperands& operands) const {
  const int size = op.in_16 ? 2 : 1, bytes = op.products * size;
  const std::int64_t address = work.in.address();
  if (!NarrowMemory::holds_bytes(address, bytes)) return fail(fmt::format("reads byte {} of narrow memory", address));
  for (int j = 0; j < op.products; ++j) {
    const auto k = static_cast<std::size_t>(j);
    const std::uint8_t* known = tile.narrow.known() + address + j * size;
    operands.x[k] = element(tile.narrow.bytes() + address, op.in_16, j) - op.in_zero;
    operands.x_known[k] = known[0] != 0 && known[size - 1] != 0;
    operands.all_x_known &= operands.x_known[k];
  }
  return true;
}

bool TensorUnit::load_parameters(StepOperands& operands) const {
  const std::int64_t address = work.param.address();
  operands.line = load_line(address >> 2);
  operands.lane = static_cast<int>(address & 3);
  if (operands.line == nullptr) return false;
  if (!op.has_zero_line) return true;
  operands.zero_line = load_line(op.zero_line + op.zero_line_step * scaling_buffer(run.first.position()));
  return operands.zero_line != nullptr;
}

bool TensorUnit::step(std::int64_t slot) {
  if (opcode == isa::Opcode::kResample) return true;
  StepOperands operands;
  const bool multiplies = opcode == isa::Opcode::kMultiplyAdd;
  if (multiplies && !load_input(operands)) return false;
  if (!load_parameters(operands)) return false;
  std::int32_t* sums = work.sums.data() + slot * work.width;
  const std::uint8_t* line = operands.line->bytes.data();
  CellNumbers zeros;
  if (multiplies && operands.zero_line == nullptr) {
    std::fill_n(zeros.begin(), work.width, op.param_zero);
  } else if (multiplies) {
    std::memcpy(zeros.data(), operands.zero_line->bytes.data(), 4 * static_cast<std::size_t>(work.width));
  }
  const bool all_known = operands.all_x_known && operands.line->known_prefix() >= 4 * op.cells;
  if (!all_known && work.unknown.empty()) work.unknown.resize(work.sums.size());
  std::int32_t* unknown = all_known ? nullptr : work.unknown.data() + slot * work.width;
  bool any_unknown = false;
  // A maximum takes one parameter of each cell.
  const int products = opcode == isa::Opcode::kMaximum ? 1 : op.products;
  for (int j = 0; j < products; ++j) {
    int index = parameter_index(op, operands.lane, j);
    if (opcode == isa::Opcode::kMaximum) index = op.param_16 ? operands.lane >> 1 : operands.lane;
    const ParameterPlace place = place_of(op.param_16, index);
    if (multiplies) {
      const auto k = static_cast<std::size_t>(j);
      for_this_processor<multiply_body>(line, zeros.data(), place, operands.x[k], work.width, sums);
      if (!all_known) any_unknown |= mark_unknown_products(op, operands, zeros.data(), index, k, unknown);
    } else {
      // A sum is of parameters without their zero point; a maximum leaves that to `constant`.
      if (opcode == isa::Opcode::kMaximum) {
        for_this_processor<maximum_body>(line, place, work.width, sums);
      } else {
        for_this_processor<add_body>(line, place, op.param_zero, work.width, sums);
      }
      if (!all_known) any_unknown |= mark_unknown_parameters(op, *operands.line, index, unknown);
    }
  }
  if (any_unknown) note_unknown();
  return true;
}

bool TensorUnit::advance_by_steps(std::int64_t end) {
  if (work.are_stale) {
    work.in.seek(run.first.position());
    work.param.seek(run.first.position());
    work.psum.seek(run.first.position());
    work.are_stale = false;
  }
  const bool has_slots = work.sums.size() > static_cast<std::size_t>(work.width);
  while (!run.first.done() && run.first.position() < end) {
    const std::int64_t slot = has_slots ? slot_at(op, run.first) : 0;
    if (!step(slot)) return false;
    if (isa::ends_result(op, opcode, run.first, work.psum)) {
      const bool is_stored = opcode == isa::Opcode::kResample ? resample() : emit(slot, run.first.position());
      if (!is_stored) return false;
    }
    run.first.advance();
    if (opcode == isa::Opcode::kMultiplyAdd || opcode == isa::Opcode::kResample) work.in.advance();
    if (opcode != isa::Opcode::kResample) work.param.advance();
    work.psum.advance();
  }
  return true;
}

}  // namespace reef::device
