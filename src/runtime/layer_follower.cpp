// SPDX-License-Identifier: Apache-2.0
// Repeats the steps of tensor instructions (execute/device/tensor_unit.cpp) on tags.
#include "runtime/layer_follower.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "execute/device/tensor_plan.h"

namespace reef::runtime {
namespace {

using device::kFillTag;
using device::kNoTag;
using device::NarrowMemory;
using device::WideMemory;

std::int64_t slot_at(const isa::TensorOperation& op, const isa::NestCursor& loops) {
  std::int64_t slot = 0, size = 1;
  for (int d = 0; d < op.loops.dims; ++d) {
    if ((op.reduce_dims >> d & 1) != 0) continue;
    slot += size * loops.index(d);
    size *= op.loops.count[static_cast<std::size_t>(d)];
  }
  return slot;
}

int parameter_index(const isa::TensorOperation& op, int lane, int j) {
  if (op.param_16) return op.products == 1 ? lane >> 1 : j;
  return op.products == 4 ? j : (lane + j) & 3;
}

// Order of host buffers, as in device.cpp.
constexpr std::size_t kParametersBuffer = 0, kFirstLayerBuffer = 2;

}  // namespace

LayerFollower::LayerFollower(const Rules& rules) : rules_(rules) {
  for (const Rule& rule : rules.all()) {
    if (rule.tensor < 0) continue;
    SeenTensor& tensor = tensors_[rule.tensor];
    tensor.values.resize(static_cast<std::size_t>(rule.elements), SeenTensor::kNotSeen);
    if (rule.kind == Rule::Kind::kUnknown && tensor.problem.empty()) tensor.problem = rule.reason;
  }
}

void LayerFollower::begins(const device::Program& program) {
  TagFollower::begins(program);
  is_execution_ = program.type != darwinn::ExecutableType::kParameterCaching;
}

Tag LayerFollower::tag_of_host_byte(const device::Program& /*program*/, std::size_t buffer,
                                    std::uint64_t offset) const {
  if (buffer == kParametersBuffer) return is_execution_ ? rules_.streamed(offset) : rules_.cached(offset);
  return buffer >= kFirstLayerBuffer && is_execution_ ? rules_.input(buffer - kFirstLayerBuffer, offset) : kNoTag;
}

void LayerFollower::started(const device::Tile* tile, int unit, const device::Running& run) {
  TagFollower::started(tile, unit, run);
  if (tile == nullptr || unit != static_cast<int>(isa::Unit::kTensor)) return;
  Work& work = works_[static_cast<std::size_t>(tile->number)];
  work = Work{};
  const auto* op = std::get_if<isa::TensorOperation>(&run.operation->code);
  if (op == nullptr) return;
  static const Rule kNoRule;
  work.rule = is_execution_ ? rules_.rule(run.index) : nullptr;
  if (work.rule == nullptr) work.rule = &kNoRule;
  work.op = op;
  work.opcode = run.operation->opcode;
  work.index = run.index;
  const device::BufferPhases& phases = tile->units[static_cast<std::size_t>(unit)].phases;
  work.loops = isa::NestCursor(op->loops, 0);
  work.in = isa::NestCursor(op->in, phases.first);
  work.param = isa::NestCursor(op->param, phases.second);
  work.psum = isa::NestCursor(op->psum, 0);
  work.out = isa::NestCursor(op->out, phases.out);
  work.scaling_phase = phases.scaling;
  const auto slots = static_cast<std::size_t>(device::slots_of(*op, work.opcode));
  work.cells.resize(slots * static_cast<std::size_t>(op->cells));
  work.missing.assign(slots, op->cells >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << op->cells) - 1);
}

void LayerFollower::object(const Work& work, std::string_view problem) {
  if (work.rule->tensor < 0) return;
  std::string& known = tensors_[work.rule->tensor].problem;
  if (known.empty()) known = fmt::format("{}: {}", program().describe(work.index), problem);
}

void LayerFollower::computed(const device::TensorMove& move) {
  Work& work = works_[static_cast<std::size_t>(move.tile->number)];
  if (work.rule == nullptr) return;
  const isa::TensorOperation& op = *work.op;
  const bool is_resampling = work.opcode == isa::Opcode::kResample;
  const bool reads_input = work.opcode == isa::Opcode::kMultiplyAdd || is_resampling;
  stored_.clear();
  while (!work.loops.done() && work.loops.position() < move.to) {
    const auto slot = static_cast<std::size_t>(work.missing.size() > 1 ? slot_at(op, work.loops) : 0);
    CellState* cells = work.cells.data() + slot * static_cast<std::size_t>(op.cells);
    const bool ends = isa::ends_result(op, work.opcode, work.loops, work.psum);
    step(*move.tile, work, cells, work.missing[slot], ends);
    if (ends) {
      emit(*move.tile, work, cells);
      std::fill_n(cells, op.cells, CellState{});
      work.missing[slot] = op.cells >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << op.cells) - 1;
    }
    work.loops.advance();
    if (reads_input) work.in.advance();
    if (!is_resampling) work.param.advance();
    work.psum.advance();
  }
  keep(*move.tile, work);
}

void LayerFollower::step(const device::Tile& tile, Work& work, CellState* cells, std::uint64_t& missing, bool ends) {
  if (work.rule->kind == Rule::Kind::kUnknown || work.opcode == isa::Opcode::kResample) return;
  const std::int64_t bytes = work.op->products * (work.op->in_16 ? 2 : 1);
  if (!WideMemory::holds(work.param.address() >> 2)) return;
  if (work.opcode == isa::Opcode::kMultiplyAdd && !NarrowMemory::holds_bytes(work.in.address(), bytes)) return;
  if (work.rule->kind == Rule::Kind::kLayer) {
    step_layer(tile, work, cells, missing, ends);
  } else {
    step_by_cell(tile, work, cells);
  }
}

// One product is enough to know what a result is; the last step is checked as well.
void LayerFollower::step_layer(const device::Tile& tile, Work& work, CellState* cells, std::uint64_t& missing,
                               bool ends) {
  const isa::TensorOperation& op = *work.op;
  const Rule& rule = *work.rule;
  const std::uint64_t all = op.cells >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << op.cells) - 1;
  std::uint64_t asked = ends ? all : missing;
  if (asked == 0 || op.in_16 || op.param_16) return;
  const Tag* inputs = narrow(tile) + work.in.address();
  const Tag* weights = line(tile, work.param.address() >> 2);
  const auto lane = static_cast<int>(work.param.address() & 3);
  for (int j = 0; j < op.products; ++j) {
    const std::int32_t place = rule.operands[0].of(inputs[j]);
    if (place < 0) continue;
    for (std::uint64_t rest = asked; rest != 0; rest &= rest - 1) {
      const int c = std::countr_zero(rest);
      const Tag weight = weights[4 * c + parameter_index(op, lane, j)];
      if (!rule.weights.holds(weight)) continue;
      const std::int32_t index = (*rule.weight_places)[weight - rule.weights.base];
      if (index < 0) continue;
      const std::int64_t result = rule.result_of(place, index);
      CellState& cell = cells[c];
      const bool is_new = (missing >> c & 1) != 0;
      missing &= ~(std::uint64_t{1} << c);
      if (is_new) cell.result = result;
      if (result == Rule::kContradiction || result != cell.result) {
        object(work, "an input element is multiplied with a weight that does not belong to it");
        cell.result = Rule::kContradiction;
      }
    }
    if (!ends) asked = missing;
  }
}

void LayerFollower::step_by_cell(const device::Tile& tile, Work& work, CellState* cells) {
  const isa::TensorOperation& op = *work.op;
  const std::int64_t address = work.param.address();
  const auto lane = static_cast<int>(address & 3);
  const Tag* tags = line(tile, address >> 2);
  const std::uint8_t* bytes = tile.wide.line(address >> 2).bytes.data();
  const bool reads_input = work.opcode == isa::Opcode::kMultiplyAdd;
  const int in_bytes = op.in_16 ? 2 : 1, param_bytes = op.param_16 ? 2 : 1;
  for (int j = 0; j < (work.opcode == isa::Opcode::kMaximum ? 1 : op.products); ++j) {
    const Tag input = reads_input ? narrow(tile)[work.in.address() + j * in_bytes] : kNoTag;
    const int index =
        work.opcode == isa::Opcode::kMaximum ? (op.param_16 ? lane >> 1 : lane) : parameter_index(op, lane, j);
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
  for (const Tag tag : {input, parameter}) {
    if (is_zero && parameter <= kFillTag) return;
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
  if (cell.result == Rule::kContradiction) object(work, "what a result is made of belongs to different elements");
  return cell.result < 0 ? kNoTag : rule.base + static_cast<Tag>(cell.result);
}

void LayerFollower::emit(const device::Tile& tile, Work& work, CellState* cells) {
  const isa::TensorOperation& op = *work.op;
  std::array<Tag, 2 * chip::kCells + 4> tags{};
  if (!op.out_16) {
    for (int c = 0; c < op.cells; ++c) tags[static_cast<std::size_t>(c)] = tag_of_result(work, cells[c]);
  }
  if (op.sums_are_results() && WideMemory::holds(work.psum.address() >> 2)) {
    std::fill_n(line(tile, work.psum.address() >> 2), 4 * op.cells, kNoTag);
  }
  const bool is_kept = work.rule->tensor >= 0 && work.rule->kind != Rule::Kind::kUnknown;
  const std::int64_t begin = work.results * op.out_words, end = begin + op.out_words;
  while (!work.out.done() && work.out.position() < end) {
    const auto word = static_cast<std::size_t>(work.out.position() - begin);
    const std::int64_t address = work.out.address();
    if (NarrowMemory::holds_bytes(address, 4)) {
      for (std::size_t k = 0; k < 4; ++k) {
        const Tag tag = tags[4 * word + k];
        narrow(tile)[address + static_cast<std::int64_t>(k)] = tag;
        if (is_kept && tag != kNoTag) stored_.push_back({address + static_cast<std::int64_t>(k), tag});
      }
    }
    work.out.advance();
  }
  ++work.results;
}

// What was stored in this call and is still there.
void LayerFollower::keep(const device::Tile& tile, const Work& work) {
  if (stored_.empty()) return;
  SeenTensor& tensor = tensors_[work.rule->tensor];
  for (const Stored& stored : stored_) {
    if (narrow(tile)[stored.address] != stored.tag || tile.narrow.known()[stored.address] == 0) continue;
    const std::int16_t value = tile.narrow.bytes()[stored.address];
    std::int16_t& known = tensor.values[stored.tag - work.rule->base];
    if (known == SeenTensor::kNotSeen) ++tensor.seen;
    if (known != SeenTensor::kNotSeen && known != value) {
      object(work,
             fmt::format("element {} is computed twice, as {} and as {}", stored.tag - work.rule->base, known, value));
    }
    known = value;
  }
}

}  // namespace reef::runtime
