// SPDX-License-Identifier: Apache-2.0
// Repeats the steps of tensor ops on tags (execute/device/tensor_steps.cpp does them on bytes). The device has checked
// every address that an op uses before it tells of the step.
#include "retarget/trace_recorder.h"

#include <algorithm>
#include <bit>
#include <set>

#include "host/programs.h"

namespace reef::retarget {
namespace {

using device::NarrowMemory;
using device::WideMemory;
using host::BufferIndex;

constexpr int kHalfBytes = 4 * chip::kCells;                      // of one of the two buffers of biases, or of scales
constexpr std::uint64_t kMaxFirstSteps = std::uint64_t{1} << 20;  // longer sums do not occur
constexpr Tag kMixed = ~Tag{0};                                   // of a cell that takes more than one byte

// Number of the result that the step belongs to: only 0, 1 and "another" (2) are told apart.
int result_number(const isa::TensorOperation& op, const isa::NestCursor& loops, const isa::NestCursor& psum) {
  if (op.group_level >= 0) return static_cast<int>(std::min<std::int64_t>(psum.pass(op.group_level), 2));
  int number = 0;
  bool is_lowest = true;
  for (int k = 0; k < op.loops.dims; ++k) {
    if ((op.reduce_dims >> k & 1) != 0 || op.loops.count[reef::at(k)] == 1) continue;
    if (loops.index(k) > 1 || (loops.index(k) == 1 && !is_lowest)) return 2;
    if (loops.index(k) == 1) number = 1;
    is_lowest = false;
  }
  return number;
}

std::array<Sources*, 5> operands_of(TensorOpTrace& trace) {
  return {&trace.input, &trace.parameters, &trace.biases, &trace.multipliers, &trace.zero_points};
}

void find_unread_fills(const device::Program& program, Trace& trace) {
  std::set<std::uint32_t> read;
  for (TensorOpTrace& op : trace.tensor_ops) {
    for (const Sources* sources : operands_of(op)) read.insert(sources->fills.begin(), sources->fills.end());
  }
  for (const OutputTrace& output : trace.outputs) read.insert(output.sources.fills.begin(), output.sources.fills.end());
  for (std::size_t i = 0; i < program.operations.size(); ++i) {
    const auto* mesh = std::get_if<isa::Mesh>(&program.operations[i].code);
    const auto index = static_cast<std::uint32_t>(i);
    if (mesh != nullptr && mesh->fills && read.count(index) == 0) trace.unread_fills.push_back(index);
  }
}

}  // namespace

TraceRecorder::TraceRecorder() {
  for (auto& recorded : recorded_by_) recorded.resize(4 * chip::kWideLines);
}

Trace TraceRecorder::take_trace(const darwinn::Executable& execution) {
  Trace trace;
  for (auto& [instruction, op] : traces_) {
    for (Sources* sources : operands_of(op)) sources->finish();
    trace.tensor_ops.push_back(std::move(op));
  }
  const std::size_t first = BufferIndex::kFirstLayer + execution.input_layers.size();
  for (std::size_t i = 0; i < execution.output_layers.size(); ++i) {
    OutputTrace output{execution.output_layers[i].name, written(first + i), {}};
    for (const Tag tag : output.bytes) output.sources.add(tag);
    output.sources.finish();
    trace.outputs.push_back(std::move(output));
  }
  find_unread_fills(program(), trace);
  return trace;
}

void TraceRecorder::begins(const device::Program& program, const device::Chip& chip) {
  TagFollower::begins(program, chip);
  is_execution_ = program.type != darwinn::ExecutableType::kParameterCaching;
  works_ = {};
  first_passes_.assign(program.operations.size(), {});
  traces_.clear();
  in_core_.clear();
}

Tag TraceRecorder::tag_of_host_byte(const device::Program& /*program*/, std::size_t buffer,
                                    std::uint64_t offset) const {
  if (buffer == BufferIndex::kParameters) {
    return make_tag(is_execution_ ? Origin::kStreamed : Origin::kCached, static_cast<std::uint32_t>(offset));
  }
  if (buffer < BufferIndex::kFirstLayer) return device::kNoTag;
  return make_tag(Origin::kInput, static_cast<std::uint32_t>(buffer - BufferIndex::kFirstLayer));
}

// Old compilers let the scalar core compute a softmax: it sends one byte for each that it took, in their order.
void TraceRecorder::taken_by_core(std::span<const Tag> word) {
  in_core_.insert(in_core_.end(), word.begin(), word.end());
}

std::vector<Tag> TraceRecorder::tags_from_core(std::size_t bytes) {
  const auto taken = static_cast<std::ptrdiff_t>(std::min(bytes, in_core_.size()));
  std::vector<Tag> tags(in_core_.begin(), in_core_.begin() + taken);
  in_core_.erase(in_core_.begin(), in_core_.begin() + taken);
  tags.resize(bytes, device::kNoTag);
  return tags;
}

void TraceRecorder::handed_out(std::size_t index, std::uint32_t tiles) {
  FirstPass& pass = first_passes_[index];
  if (pass.tiles == 0) pass = {tiles, tiles};
}

void TraceRecorder::started(const device::Tile* tile, int unit, const device::Running& run) {
  TagFollower::started(tile, unit, run);
  if (tile == nullptr || unit != static_cast<int>(isa::Unit::kTensor)) return;
  Work& work = work_of(*tile);
  work = Work{device::TensorWalk(*tile, run), ++runs_};
  if (work.op == nullptr) return;
  const isa::TensorOperation& op = *work.op;
  work.is_copy = work.multiplies() && op.is_plain_copy();
  if (work.is_copy) work.copied.resize(static_cast<std::size_t>(op.cells));
  tag_result(work);
  FirstPass& pass = first_passes_[run.index];
  const std::uint32_t bit = 1u << tile->number;
  if (!is_execution_ || (pass.waiting & bit) == 0) return;
  pass.waiting &= ~bit;
  work.is_lowest = tile->number == std::countr_zero(pass.tiles);
  work.trace = &traces_[run.index];
  work.trace->instruction = run.index;
  work.trace->tiles |= static_cast<std::uint16_t>(bit);
  if (!op.activation) return;
  const std::uint32_t table = tables_[reef::at(tile->number)];
  std::vector<std::uint32_t>& tables = work.trace->tables;
  if (std::find(tables.begin(), tables.end(), table) == tables.end()) tables.push_back(table);
}

void TraceRecorder::loaded_table(const device::Tile& tile, const device::Running& run) {
  tables_[reef::at(tile.number)] = run.index;
}

void TraceRecorder::moved(const device::Move& move) {
  TagFollower::moved(move);
  const bool writes_line = move.kind == device::MoveKind::kHeaderReceived ||
                           move.kind == device::MoveKind::kLineReceived || move.kind == device::MoveKind::kLineStored;
  if (writes_line) std::fill_n(recorded_by(*move.tile, move.target), 4, 0);
}

void TraceRecorder::computed(const device::TensorMove& move) {
  Work& work = work_of(*move.tile);
  if (work.op == nullptr) return;
  while (!work.loops.done() && work.loops.position() < move.to) {
    step(*move.tile, work);
    if (work.ends_result()) {
      if (work.trace != nullptr) {
        record_scaling(*move.tile, work);
        ++work.trace->results;
      }
      store_result(*move.tile, work);
    }
    work.advance();
  }
}

void TraceRecorder::step(const device::Tile& tile, Work& work) {
  if (work.is_copy) take_copies(tile, work);
  if (work.trace == nullptr) return;
  if (work.resamples()) return record_samples(tile, work);
  if (work.multiplies()) record_input(tile, work);
  record_parameters(tile, work);
  record_first(tile, work);
  if (work.op->has_zero_line) record_zero_points(tile, work);
}

void TraceRecorder::record_input(const device::Tile& tile, Work& work) {
  const int bytes = work.op->products * (work.op->in_16 ? 2 : 1);
  const Tag* tags = narrow(tile) + work.in.address();
  // An op that works in place and visits a result twice would seem to read itself.
  const Tag own = value_tag(work.index, 0);
  for (int k = 0; k < bytes; ++k) {
    const Tag family = tag_family(tags[k]);
    if (family == work.last_input) continue;
    work.last_input = family;
    if (family != own) work.trace->input.add(tags[k]);
  }
}

void TraceRecorder::record_parameters(const device::Tile& tile, const Work& work) {
  const isa::TensorOperation& op = *work.op;
  const std::int64_t address = work.param.address();
  const auto lane = static_cast<int>(address & 3);
  std::uint32_t& recorded = recorded_by(tile, address >> 2)[lane];
  if (recorded == work.run) return;
  recorded = work.run;
  const int bytes = op.param_16 ? 2 * op.products : op.products;
  const int first = bytes == 4 ? 0 : op.param_16 ? lane & 2 : lane;
  const Tag* tags = line(tile, address >> 2);
  for (int cell = 0; cell < op.cells; ++cell) {
    for (int k = 0; k < bytes; ++k) work.trace->parameters.add(tags[4 * cell + ((first + k) & 3)]);
  }
}

void TraceRecorder::record_zero_points(const device::Tile& tile, const Work& work) {
  const isa::TensorOperation& op = *work.op;
  if (!work.loops.begins_pass(op.scaling_level)) return;
  const std::int64_t address = op.zero_line + op.zero_line_step * work.scaling_buffer();
  if (!WideMemory::holds(address)) return;
  const Tag* tags = line(tile, address);
  for (int k = 0; k < 4 * op.cells; ++k) work.trace->zero_points.add(tags[k]);
}

void TraceRecorder::record_first(const device::Tile& tile, Work& work) {
  if (!work.is_lowest) return;
  TensorOpTrace& trace = *work.trace;
  const int number = result_number(*work.op, work.loops, work.psum);
  if (number > 1) return;
  const std::int64_t address = work.in.address();
  if (number == 1) {
    if (trace.result_step == 0) trace.result_step = static_cast<std::int32_t>(address - work.first_address);
    return;
  }
  if (trace.steps_per_result == 0) work.first_address = address;
  if (++trace.steps_per_result > kMaxFirstSteps) return;
  const std::int64_t param = work.param.address();
  const Tag* tags = line(tile, param >> 2);
  FirstStep step;
  step.parameter = tags[param & 3];
  step.input_address = static_cast<std::int32_t>(address);
  if (NarrowMemory::holds_bytes(address, 1)) {
    std::copy_n(narrow(tile) + address, step.inputs.size(), step.inputs.begin());
  }
  if (work.op->param_16) step.words.assign(tags, tags + 4 * work.op->cells);
  trace.first.push_back(std::move(step));
}

// The pixels that a result is made of; the input nest gives only the first pixel of the source.
void TraceRecorder::record_samples(const device::Tile& tile, const Work& work) {
  if (!work.loops.begins_pass(2)) return;
  const isa::TensorOperation& op = *work.op;
  const bool is_nearest = op.x.nearest;
  const std::int64_t x = op.x.phase + 2 * work.loops.index(2), y = op.y.phase + 2 * work.loops.index(3);
  const std::int64_t half = is_nearest ? 1 : 0, taps = is_nearest ? 1 : 2;
  const std::int64_t first_x = (x + half * op.x.factor) / (2 * op.x.factor);
  const std::int64_t first_y = (y + half * op.y.factor) / (2 * op.y.factor);
  for (std::int64_t dy = 0; dy < taps; ++dy) {
    for (std::int64_t dx = 0; dx < taps; ++dx) {
      const std::int64_t address =
          work.in.address() + (first_x + dx) * op.pixel_stride + (first_y + dy) * op.row_stride;
      if (!NarrowMemory::holds_bytes(address, 4)) continue;
      for (std::int64_t k = 0; k < 4; ++k) work.trace->input.add(narrow(tile)[address + k]);
    }
  }
}

void TraceRecorder::record_scaling(const device::Tile& tile, Work& work) {
  const isa::TensorOperation& op = *work.op;
  if (!op.has_bias && !op.has_scales) return;
  const std::int64_t pass = work.loops.pass(op.scaling_level);
  if (work.recorded_pass == pass) return;
  work.recorded_pass = pass;
  const Tag* scales = scaling(tile) + kHalfBytes * work.scaling_buffer();
  const Tag* biases = scales + 2 * kHalfBytes;
  for (int k = 0; k < 4 * op.cells; ++k) {
    if (op.has_bias) work.trace->biases.add(biases[k]);
    if (op.has_scales) work.trace->multipliers.add(scales[k]);
  }
}

// Which input byte each cell of a plain copy takes: the one whose weight, a byte of a constant word, is 1.
void TraceRecorder::take_copies(const device::Tile& tile, Work& work) {
  const isa::TensorOperation& op = *work.op;
  const std::int64_t address = work.param.address();
  const Tag* weights = line(tile, address >> 2);
  const std::uint8_t* values = tile.wide.line(address >> 2).bytes.data();
  const Tag* inputs = narrow(tile) + work.in.address();
  for (int cell = 0; cell < op.cells; ++cell) {
    Tag& taken = work.copied[reef::at(cell)];
    for (int k = 0; k < op.products; ++k) {
      const int at = 4 * cell + (op.products == 4 ? k : static_cast<int>((address + k) & 3));
      const bool is_constant = tag_origin(weights[at]) == Origin::kFill;
      if (is_constant && values[at] == 0) continue;
      taken = is_constant && values[at] == 1 && taken == 0 && inputs[k] != 0 ? inputs[k] : kMixed;
    }
  }
}

// The bytes of a result: those that a copy took, else the instruction's own.
void TraceRecorder::tag_result(Work& work) {
  const int cell_bytes = work.op->out_16 ? 2 : 1;
  work.result.resize(static_cast<std::size_t>(4 * work.op->out_words));
  for (std::size_t k = 0; k < work.result.size(); ++k) {
    const auto cell = static_cast<int>(k) / cell_bytes;
    const Tag copied = work.is_copy && cell < work.op->cells ? work.copied[k] : device::kNoTag;
    work.result[k] = copied != device::kNoTag && copied != kMixed ? copied : value_tag(work.index, cell % chip::kCells);
  }
}

void TraceRecorder::store_result(const device::Tile& tile, Work& work) {
  const isa::TensorOperation& op = *work.op;
  if (work.is_copy) {
    tag_result(work);
    std::fill(work.copied.begin(), work.copied.end(), device::kNoTag);
  }
  const std::int64_t sums = work.psum.address() >> 2;
  if (op.sums_are_results() && WideMemory::holds(sums)) {
    for (int cell = 0; cell < op.cells; ++cell) {
      std::fill_n(line(tile, sums) + 4 * cell, 4, value_tag(work.index, cell));
    }
    std::fill_n(recorded_by(tile, sums), 4, 0);
  }
  work.store_result([&](std::int64_t word, std::int64_t words, std::int64_t address) {
    std::copy_n(work.result.begin() + 4 * word, 4 * words, narrow(tile) + address);
  });
}

}  // namespace reef::retarget
