// SPDX-License-Identifier: Apache-2.0
// The units between host and ring: infeed, pop, outfeed. Their buffers are addressed, not queues; what may be
// overwritten is decided by waits alone.
#include <algorithm>

#include "execute/device/bulk_moves.h"
#include "execute/device/chip.h"
#include "execute/device/waits.h"

namespace reef::device {
namespace {

void add(std::array<std::uint16_t, chip::kScalarCounters>& counters, const isa::Signal& signal, std::int64_t passes) {
  if (passes != 0) counters[signal.counter] = static_cast<std::uint16_t>(counters[signal.counter] + passes);
}

}  // namespace

bool Chip::start_host_unit(HostUnitId id) {
  HostUnit& unit = host_unit(id);
  if (unit.running) return true;
  if (unit.queue.empty()) return false;
  unit.running.emplace();
  unit.running->index = unit.queue.front();
  unit.running->operation = &program_->operations[unit.queue.front()];
  unit.queue.pop_front();
  unit.pending.clear();
  unit.pending_known.clear();
  failing_tile_ = -1;
  failing_index_ = unit.running->index;
  const isa::OperationCode& code = unit.running->operation->code;
  if (const auto* infeed = std::get_if<isa::Infeed>(&code)) unit.running->first = isa::NestCursor(infeed->out, 0);
  if (const auto* pop = std::get_if<isa::Pop>(&code)) unit.running->first = isa::NestCursor(pop->in, 0);
  if (const auto* outfeed = std::get_if<isa::Outfeed>(&code)) unit.running->first = isa::NestCursor(outfeed->out, 0);
  if (observer_ != nullptr) observer_->started(nullptr, static_cast<int>(id), *unit.running);
  return true;
}

void Chip::finish_host_unit(HostUnitId id) {
  HostUnit& unit = host_unit(id);
  if (observer_ != nullptr) observer_->finished(nullptr, static_cast<int>(id), *unit.running);
  unit.running.reset();
}

bool Chip::run_infeed() {
  HostUnit& unit = host_unit(HostUnitId::kInfeed);
  bool moved = false;
  while (start_host_unit(HostUnitId::kInfeed)) {
    Running& run = *unit.running;
    const auto& op = std::get<isa::Infeed>(run.operation->code);
    const Purpose stream = op.activations ? Purpose::kInput : Purpose::kParameters;
    HostBuffer& buffer = buffers_[op.activations ? 1 : 0];
    const std::int64_t unit_bytes = buffer.unit_bytes;
    const std::int64_t from = run.first.position();
    const std::int64_t end = affordable(from, permitted_end(op.out, op.waits, scalar_counters_, from, comparison_));
    auto ready = static_cast<std::int64_t>(host_->available(stream));
    while (!run.first.done() && run.first.position() < end && ready >= unit_bytes) {
      const std::int64_t at = buffer.unit_at(run.first.address());
      if (buffer.states[reef::at(at)] == HostBuffer::kFull) {
        return fail(fmt::format("fills unit {} of its buffer before what is there was taken", at));
      }
      host_->take(stream, buffer.bytes.data() + at * unit_bytes, buffer.known.data() + at * unit_bytes,
                  static_cast<std::size_t>(unit_bytes));
      buffer.states[reef::at(at)] = HostBuffer::kFull;
      ready -= unit_bytes;
      const std::int64_t position = run.first.position();
      run.first.advance();
      if (observer_ != nullptr) {
        observer_->moved({.kind = MoveKind::kInfed,
                          .unit = static_cast<int>(HostUnitId::kInfeed),
                          .run = &run,
                          .target = at,
                          .from = position,
                          .to = run.first.position()});
      }
    }
    const std::int64_t to = run.first.position();
    if (!spend(to - from)) return false;
    add(scalar_counters_, op.signal, signalled(op.signal, op.out, from, to));
    if (to > from) moved = true;
    if (!run.first.done()) break;
    finish_host_unit(HostUnitId::kInfeed);
    moved = true;
  }
  return moved;
}

// Returns how many lines went to the ring: complete ones, and what is left at the end of the instruction.
std::int64_t Chip::send_pending(HostUnit& unit, const isa::Pop& op, bool is_end) {
  std::int64_t sent = 0;
  const auto line_bytes = static_cast<std::size_t>(op.line_bytes);
  while (unit.pending.size() >= line_bytes || (is_end && !unit.pending.empty())) {
    Line& line = new_ring_line(op.to_tiles, 0, false);
    Line::Flags known{};
    const std::size_t part = std::min(line_bytes, unit.pending.size());
    std::copy_n(unit.pending.begin(), part, line.bytes.begin());
    std::fill(line.bytes.begin() + static_cast<std::ptrdiff_t>(part), line.bytes.end(), std::uint8_t{0});
    std::copy_n(unit.pending_known.begin(), part, known.begin());
    line.set_known(known);
    unit.pending.erase(unit.pending.begin(), unit.pending.begin() + static_cast<std::ptrdiff_t>(part));
    unit.pending_known.erase(unit.pending_known.begin(),
                             unit.pending_known.begin() + static_cast<std::ptrdiff_t>(part));
    ++sent;
  }
  return sent;
}

bool Chip::run_pop() {
  HostUnit& unit = host_unit(HostUnitId::kPop);
  bool moved = false;
  while (start_host_unit(HostUnitId::kPop)) {
    Running& run = *unit.running;
    const auto& op = std::get<isa::Pop>(run.operation->code);
    HostBuffer& buffer = buffers_[reef::at(op.source)];
    const std::int64_t unit_bytes = buffer.unit_bytes;
    const std::int64_t from = run.first.position();
    const std::int64_t end = affordable(from, permitted_end(op.in, op.waits, scalar_counters_, from, comparison_));
    const auto line_bytes = static_cast<std::int64_t>(op.line_bytes);
    while (!run.first.done() && run.first.position() < end && ring_room(op.to_tiles, 0, false) > 0) {
      const std::int64_t position = run.first.position();
      const std::int64_t at = buffer.unit_at(run.first.address());
      // Up to the unit that completes a line: whether there is room changes only then.
      std::int64_t count = 1;
      if (observer_ == nullptr) {
        const std::int64_t missing = line_bytes - static_cast<std::int64_t>(unit.pending.size());
        count = std::max<std::int64_t>(1, (missing + unit_bytes - 1) / unit_bytes);
        count = std::min(count, equal_steps(run.first, op.in, end));
      }
      for (std::int64_t i = 0; i < count; ++i, run.first.advance()) {
        const std::int64_t taken = buffer.unit_at(run.first.address());
        if (!buffer.take(taken)) return fail(fmt::format("takes unit {} of its buffer, where nothing new is", taken));
        const auto bytes = buffer.bytes.begin() + taken * unit_bytes, known = buffer.known.begin() + taken * unit_bytes;
        unit.pending.insert(unit.pending.end(), bytes, bytes + unit_bytes);
        unit.pending_known.insert(unit.pending_known.end(), known, known + unit_bytes);
      }
      const std::int64_t sent = send_pending(unit, op, run.first.done() && !doubts(Belief::kPopSendsRest));
      if (observer_ != nullptr) {
        observer_->moved({.kind = MoveKind::kPopped,
                          .unit = static_cast<int>(HostUnitId::kPop),
                          .run = &run,
                          .source = at,
                          .target = sent,
                          .from = position,
                          .to = run.first.position()});
      }
    }
    const std::int64_t to = run.first.position();
    if (!spend(to - from)) return false;
    add(scalar_counters_, op.signal, signalled(op.signal, op.in, from, to));
    count_ring(nullptr, 0, signalled(op.ring_producer, op.in, from, to));
    if (to > from) moved = true;
    if (!run.first.done()) break;
    finish_host_unit(HostUnitId::kPop);
    moved = true;
  }
  return moved;
}

// Lines from the ring go to the host, to the loop-back buffer, or to the scalar core's memory. What is left of a line
// at the end of the instruction is padding.
bool Chip::run_outfeed() {
  HostUnit& unit = host_unit(HostUnitId::kOutfeed);
  bool moved = false;
  while (start_host_unit(HostUnitId::kOutfeed)) {
    Running& run = *unit.running;
    const auto& op = std::get<isa::Outfeed>(run.operation->code);
    const bool was_full = to_scalar_.size() >= depths_.ring_lines;  // senders wait for it
    const std::int64_t from = run.first.position();
    const std::int64_t end = affordable(from, permitted_end(op.out, op.waits, scalar_counters_, from, comparison_));
    while (!run.first.done() && run.first.position() < end && !to_scalar_.empty()) {
      const Line& line = to_scalar_.front()->line;
      const std::uint8_t* data = line.bytes.data() + to_scalar_byte_;
      std::array<std::uint8_t, 8> known;
      line.copy_known(static_cast<int>(to_scalar_byte_), op.unit_bytes, known.data());
      const std::int64_t address = run.first.address();
      if (op.unit_bytes == 8) {
        if (!host_->put(data, known.data(), 8)) return fail("sends the host more than it was asked to take");
      } else if (op.loop_back) {
        HostBuffer& buffer = buffers_[2];
        const std::int64_t at = buffer.unit_at(address);
        std::copy_n(data, 4, buffer.bytes.begin() + 4 * at);
        std::copy_n(known.begin(), 4, buffer.known.begin() + 4 * at);
        buffer.states[reef::at(at)] = HostBuffer::kFull;  // padding of lines is never taken
      } else {
        auto& memory = core_.memory();
        std::memcpy(&memory[static_cast<std::size_t>(address) % memory.size()], data, 4);
      }
      to_scalar_byte_ += static_cast<std::size_t>(op.unit_bytes);
      if (to_scalar_byte_ >= kLineBytes) {
        ring_lines_.leave(to_scalar_.front());
        to_scalar_.pop_front();
        to_scalar_byte_ = 0;
      }
      const std::int64_t position = run.first.position();
      run.first.advance();
      if (observer_ != nullptr) {
        observer_->moved({.kind = MoveKind::kOutfed,
                          .unit = static_cast<int>(HostUnitId::kOutfeed),
                          .run = &run,
                          .target = op.loop_back ? buffers_[2].unit_at(address) : address,
                          .from = position,
                          .to = run.first.position()});
      }
    }
    const std::int64_t to = run.first.position();
    if (!spend(to - from)) return false;
    add(scalar_counters_, op.signal, signalled(op.signal, op.out, from, to));
    if (to > from) moved = true;
    if (was_full && to > from) touch_all();
    if (!run.first.done()) break;
    if (to_scalar_byte_ != 0 && !doubts(Belief::kOutfeedDropsRest)) {
      ring_lines_.leave(to_scalar_.front());
      to_scalar_.pop_front();
      to_scalar_byte_ = 0;
    }
    finish_host_unit(HostUnitId::kOutfeed);
    moved = true;
  }
  return moved;
}

}  // namespace reef::device
