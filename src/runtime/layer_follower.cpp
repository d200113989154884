// SPDX-License-Identifier: Apache-2.0
// Repeats the steps of tensor instructions (execute/device/tensor_unit.cpp) on tags.
#include "runtime/layer_follower.h"

#include <algorithm>
#include <bit>

#include "execute/device/tensor_plan.h"
#include "host/programs.h"

namespace reef::runtime {
namespace {

using device::kFillTag;
using device::kNoTag;
using device::NarrowMemory;
using device::WideMemory;
using host::BufferIndex;

std::uint64_t all_cells(const isa::TensorOperation& op) {
  return op.cells >= chip::kCells ? ~std::uint64_t{0} : (std::uint64_t{1} << op.cells) - 1;
}

}  // namespace

LayerFollower::LayerFollower(const Rules& rules) : rules_(rules) {
  for (const Rule& rule : rules.all()) {
    if (rule.tensor < 0) continue;
    SeenTensor& tensor = tensors_[rule.tensor];
    tensor.values.resize(static_cast<std::size_t>(rule.elements), SeenTensor::kNotSeen);
    if (rule.kind == Rule::Kind::kUnknown && tensor.problem.empty()) tensor.problem = rule.reason;
  }
}

void LayerFollower::begins(const device::Program& program, const device::Chip& chip) {
  TagFollower::begins(program, chip);
  is_execution_ = program.type != darwinn::ExecutableType::kParameterCaching;
}

Tag LayerFollower::tag_of_host_byte(const device::Program& /*program*/, std::size_t buffer,
                                    std::uint64_t offset) const {
  if (buffer == BufferIndex::kParameters) return is_execution_ ? rules_.streamed(offset) : rules_.cached(offset);
  return buffer >= BufferIndex::kFirstLayer && is_execution_ ? rules_.input(buffer - BufferIndex::kFirstLayer, offset)
                                                             : kNoTag;
}

void LayerFollower::given(const std::vector<std::span<const std::uint8_t>>& inputs) {
  inputs_.clear();
  for (const std::span<const std::uint8_t> input : inputs) inputs_.emplace_back(input.begin(), input.end());
}

void LayerFollower::started(const device::Tile* tile, int unit, const device::Running& run) {
  TagFollower::started(tile, unit, run);
  if (tile == nullptr || unit != static_cast<int>(isa::Unit::kTensor)) return;
  Work& work = works_[reef::at(tile->number)];
  work = Work{device::TensorWalk(*tile, run), nullptr, {}, {}};
  const isa::TensorOperation* op = work.op;
  if (op == nullptr) return;
  static const Rule kNoRule;
  work.rule = is_execution_ ? rules_.rule(run.index) : nullptr;
  if (work.rule == nullptr) work.rule = &kNoRule;
  const auto slots = static_cast<std::size_t>(device::slots_of(*op, work.opcode));
  work.cells.resize(slots * static_cast<std::size_t>(op->cells));
  work.slots.assign(slots, SlotState{all_cells(*op), false, {}});
}

void LayerFollower::leave_out(const Work& work, std::string_view why) {
  if (work.rule->tensor < 0) return;
  std::string& known = tensors_[work.rule->tensor].left_out;
  if (known.empty()) known = fmt::format("{}: {}", program().describe(work.index), why);
}

void LayerFollower::computed(const device::TensorMove& move) {
  Work& work = works_[reef::at(move.tile->number)];
  if (work.rule == nullptr) return;
  const isa::TensorOperation& op = *work.op;
  stored_.clear();
  while (!work.loops.done() && work.loops.position() < move.to) {
    const auto number = static_cast<std::size_t>(work.slots.size() > 1 ? device::slot_at(op, work.loops) : 0);
    CellState* cells = work.cells.data() + number * static_cast<std::size_t>(op.cells);
    SlotState& slot = work.slots[number];
    const bool ends = work.ends_result();
    step(*move.tile, work, cells, slot, ends);
    if (ends) {
      if (work.rule->kind == Rule::Kind::kLayer) finish_layer(work, cells, slot);
      emit(*move.tile, work, cells);
      std::fill_n(cells, op.cells, CellState{});
      slot.missing = all_cells(op);
      slot.is_wrong = false;
      slot.of_constants.clear();
    }
    work.advance();
  }
  keep(*move.tile, work);
}

void LayerFollower::step(const device::Tile& tile, Work& work, CellState* cells, SlotState& slot, bool ends) {
  if (work.rule->kind == Rule::Kind::kUnknown || work.resamples()) return;
  const std::int64_t bytes = work.op->products * (work.op->in_16 ? 2 : 1);
  if (!WideMemory::holds(work.param.address() >> 2)) return;
  if (work.multiplies() && !NarrowMemory::holds_bytes(work.in.address(), bytes)) return;
  if (work.rule->kind == Rule::Kind::kLayer) {
    step_layer(tile, work, cells, slot, ends);
  } else {
    step_by_cell(tile, work, cells);
  }
}

// One product is enough to know what a result is, for each cell; every product of cell 0 and the last one of every cell
// must then agree.
void LayerFollower::step_layer(const device::Tile& tile, Work& work, CellState* cells, SlotState& slot, bool ends) {
  const isa::TensorOperation& op = *work.op;
  if (slot.is_wrong || op.in_16 || op.param_16) return;
  const Tag* inputs = narrow(tile) + work.in.address();
  const Tag* line_tags = line(tile, work.param.address() >> 2);
  const auto lane = static_cast<int>(work.param.address() & 3);
  for (int j = 0; j < op.products; ++j) {
    const Tag* weights = line_tags + device::parameter_index(op, lane, j);
    const std::uint64_t asked = ends ? all_cells(op) : slot.missing;
    if (asked != 0) locate_cells(work, cells, slot, asked, inputs[j], weights);
    check_first_cell(work, cells[0], slot, inputs[j], weights[0]);
  }
}

void LayerFollower::locate_cells(const Work& work, CellState* cells, SlotState& slot, std::uint64_t asked, Tag input,
                                 const Tag* weights) const {
  const Rule& rule = *work.rule;
  const std::int32_t place = rule.operands[0].of(input);
  if (place < 0 && !rule.operands[0].is_constant(input)) return;
  for (std::uint64_t rest = asked; rest != 0; rest &= rest - 1) {
    const int c = std::countr_zero(rest);
    const Tag weight = weights[4 * c];
    if (!rule.weights.holds(weight)) continue;
    const std::int32_t index = (*rule.weight_places)[weight - rule.weights.base];
    if (index < 0) continue;
    CellState& cell = cells[c];
    if (place < 0) {
      if ((slot.missing >> c & 1) != 0) cell.if_constant = rule.result_of_constants(index);
      continue;
    }
    const std::int64_t result = rule.result_of(place, index);
    if ((slot.missing >> c & 1) != 0) cell.result = result;
    slot.missing &= ~(std::uint64_t{1} << c);
    if (result < 0 || result != cell.result) cell.result = Rule::kContradiction;
  }
}

void LayerFollower::check_first_cell(const Work& work, const CellState& cell, SlotState& slot, Tag input,
                                     Tag weight) const {
  const Rule& rule = *work.rule;
  if (!rule.weights.holds(weight)) return;
  const std::int32_t index = (*rule.weight_places)[weight - rule.weights.base];
  if (index < 0) return;
  const std::int32_t place = rule.operands[0].of(input);
  if (place >= 0) {
    slot.is_wrong = cell.result < 0 || rule.result_of(place, index) != cell.result;
  } else if (rule.operands[0].is_constant(input)) {
    slot.of_constants.push_back(index);
  } else {
    slot.is_wrong = true;
  }
}

void LayerFollower::finish_layer(const Work& work, CellState* cells, const SlotState& slot) {
  const int count = work.op->cells;
  const bool are_all_constant = slot.missing == all_cells(*work.op) && !slot.is_wrong;
  if (are_all_constant) {
    for (int c = 0; c < count; ++c) cells[c].result = cells[c].if_constant;
  }
  const Rule& rule = *work.rule;
  const bool is_right = !slot.is_wrong && cells[0].result >= 0 &&
                        std::all_of(slot.of_constants.begin(), slot.of_constants.end(),
                                    [&](std::int32_t index) { return rule.takes_constant(cells[0].result, index); });
  if (is_right) return;
  if (cells[0].result >= 0) leave_out(work, "a result's inputs are not those of one element");
  for (int c = 0; c < count; ++c) cells[c].result = Rule::kOutside;
}

void LayerFollower::step_by_cell(const device::Tile& tile, Work& work, CellState* cells) {
  const isa::TensorOperation& op = *work.op;
  const std::int64_t address = work.param.address();
  const auto lane = static_cast<int>(address & 3);
  const Tag* tags = line(tile, address >> 2);
  const std::uint8_t* bytes = tile.wide.line(address >> 2).bytes.data();
  const bool reads_input = work.multiplies();
  const int in_bytes = op.in_16 ? 2 : 1, param_bytes = op.param_16 ? 2 : 1;
  for (int j = 0; j < (work.opcode == isa::Opcode::kMaximum ? 1 : op.products); ++j) {
    const Tag input = reads_input ? narrow(tile)[work.in.address() + j * in_bytes] : kNoTag;
    const int index =
        work.opcode == isa::Opcode::kMaximum ? (op.param_16 ? lane >> 1 : lane) : device::parameter_index(op, lane, j);
    for (int c = 0; c < op.cells; ++c) {
      const int at = 4 * c + param_bytes * index;
      const int value = op.param_16 ? bytes[at] | bytes[at + 1] << 8 : bytes[at];
      use(work, cells[c], input, tags[at], value == op.param_zero && !op.has_zero_line);
    }
  }
}

// A product of an input byte and a parameter. `is_zero`: the parameter makes it zero whatever the input is.
void LayerFollower::use(const Work& work, CellState& cell, Tag input, Tag parameter, bool is_zero) {
  const Rule& rule = *work.rule;
  if (rule.kind == Rule::Kind::kCopy) {
    if (is_zero) return;
    cell.copied = cell.has_copied ? kNoTag : input;  // two of them: not a copy
    cell.has_copied = true;
    return;
  }
  if (rule.kind == Rule::Kind::kWindow) {
    const std::int32_t place = rule.operands[0].of(parameter);
    if (place >= 0) rule.widen(cell.span, place);
    return;
  }
  if (is_zero && parameter <= kFillTag) return;
  const bool is_constant = std::any_of(rule.operands.begin(), rule.operands.end(),
                                       [&](const OperandPlaces& operand) { return operand.is_constant(input); });
  (is_constant ? cell.has_constant : cell.has_other) = true;
  for (const Tag tag : {input, parameter}) {
    for (const OperandPlaces& operand : rule.operands) {
      const std::int32_t place = operand.of(tag);
      if (place < 0) continue;
      if (cell.result != Rule::kOutside && cell.result != place) cell.result = Rule::kContradiction;
      if (cell.result == Rule::kOutside) cell.result = place;
    }
  }
}

Tag LayerFollower::tag_of_result(const Work& work, CellState& cell) {
  const Rule& rule = *work.rule;
  if (rule.kind == Rule::Kind::kUnknown) return kNoTag;
  if (rule.kind == Rule::Kind::kCopy) return cell.copied;
  if (rule.kind == Rule::Kind::kWindow) cell.result = rule.result_of(cell.span);
  if (cell.result == Rule::kOutside && cell.has_constant && !cell.has_other) return rule.constant_tag();
  if (cell.result == Rule::kContradiction) leave_out(work, "a result's inputs are not those of one element");
  return cell.result < 0 ? kNoTag : rule.base + static_cast<Tag>(cell.result);
}

void LayerFollower::emit(const device::Tile& tile, Work& work, CellState* cells) {
  const isa::TensorOperation& op = *work.op;
  std::array<Tag, 2 * chip::kCells + 4> tags{};
  // Both bytes of a 16-bit result have its tag.
  const int size = op.out_16 ? 2 : 1;
  for (int c = 0; c < op.cells; ++c) std::fill_n(tags.begin() + c * size, size, tag_of_result(work, cells[c]));
  if (op.sums_are_results() && WideMemory::holds(work.psum.address() >> 2)) {
    std::fill_n(line(tile, work.psum.address() >> 2), 4 * op.cells, kNoTag);
  }
  const bool is_kept = work.rule->tensor >= 0 && work.rule->kind != Rule::Kind::kUnknown && !op.out_16;
  work.store_result([&](std::int64_t word, std::int64_t words, std::int64_t address) {
    std::copy_n(tags.begin() + 4 * word, 4 * words, narrow(tile) + address);
    for (std::int64_t k = 0; is_kept && k < 4 * words; ++k) {
      const Tag tag = tags[reef::at(4 * word + k)];
      if (tag != kNoTag) stored_.push_back({address + k, tag});
    }
  });
}

// Keeps the values that were stored in this call and are still there.
void LayerFollower::keep(const device::Tile& tile, const Work& work) {
  if (stored_.empty()) return;
  SeenTensor& tensor = tensors_[work.rule->tensor];
  for (const Stored& stored : stored_) {
    if (narrow(tile)[stored.address] != stored.tag || tile.narrow.known()[stored.address] == 0) continue;
    const std::int16_t value = tile.narrow.bytes()[stored.address];
    if (stored.tag == work.rule->constant_tag()) {
      if (tensor.constant == SeenTensor::kNotSeen) tensor.constant = value;
      if (tensor.constant != value) tensor.constant = SeenTensor::kVaries;
      continue;
    }
    std::int16_t& known = tensor.values[stored.tag - work.rule->base];
    if (known == SeenTensor::kNotSeen) ++tensor.seen;
    if (known != SeenTensor::kNotSeen && known != value) {
      tensor.problem = fmt::format("{} computes its element {} as {}; it has also been computed as {}",
                                   program().describe(work.index), stored.tag - work.rule->base, value, known);
    }
    known = value;
  }
}

}  // namespace reef::runtime
