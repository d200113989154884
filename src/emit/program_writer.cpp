// SPDX-License-Identifier: Apache-2.0
#include "emit/program_writer.h"

#include <limits>

#include "emit/registers.h"
#include "isa/fence.h"
#include "isa/format.h"
#include "isa/frame.h"
#include "isa/host_queues.h"
#include "isa/nest_shape.h"
#include "isa/operation.h"
#include "isa/scalar.h"
#include "isa/tensor_op.h"

namespace reef::emit {
namespace {

// A piece that is not the last ends with a halt of its own, and nops.
constexpr int kMoreToCome = 4;
constexpr int kEndRows = 1 + kNopsAfterHalt;

}  // namespace

// ---- LoopNest ----

bool LoopNest::to_isa(isa::Nest& nest) const {
  constexpr std::int64_t kMost = std::int64_t{1} << 24;
  if (dims_.size() > isa::kMaxDims || base_ < 0 || base_ > kMost) return false;
  nest = {};
  nest.base = static_cast<std::uint32_t>(base_);
  for (std::size_t k = 0; k < dims_.size(); ++k) {
    if (dims_[k].count < 1 || dims_[k].count > kMost) return false;
    nest.dims[k] = {dims_[k].stride, static_cast<std::uint32_t>(dims_[k].count), dims_[k].used};
  }
  nest.buffer_level = static_cast<std::uint32_t>(swap_level_);
  nest.buffer_stride = swap_stride_;
  if (clip_dim_ > 0) {
    if (clip_steps_ < 1 || clip_steps_ > kMost) return false;
    nest.clip_dim = static_cast<std::uint32_t>(clip_dim_);
    nest.clip_steps = static_cast<std::uint32_t>(clip_steps_);
    nest.clip_deficit = static_cast<std::int32_t>((dims_[0].count - clip_steps_) * dims_[0].stride);
  }
  return true;
}

// ---- Draft ----

void Draft::keep(const Status& status) {
  if (status_.ok() && !status.ok()) status_ = status.in(isa::info(instruction_.opcode()).mnemonic);
}

Draft& Draft::tiles(TileMask mask) { return set(isa::tile::kTiles, mask); }

Draft& Draft::set(const isa::Field& field, std::int64_t value) {
  keep(instruction_.set(field, value));
  return *this;
}

Draft& Draft::set_float(const isa::Field& field, float value) {
  keep(instruction_.set_float(field, value));
  return *this;
}

Draft& Draft::unscaled() {
  namespace t = isa::tensor_op;
  constexpr float kNoLimit = std::numeric_limits<float>::infinity();
  return set_float(t::kScale, 1.0f).set_float(t::kMax, kNoLimit).set_float(t::kMin, -kNoLimit);
}

Draft& Draft::cells(std::int64_t count, std::int64_t last) {
  return set(isa::tensor_op::kCells, count).set(isa::tensor_op::kLastCells, last);
}

Draft& Draft::sums_inside() { return set(isa::tensor_op::kAccumulateInside).set(isa::tensor_op::kPsumGroup); }

Draft& Draft::nest(const isa::NestFields& fields, const LoopNest& nest) {
  isa::Nest whole;
  if (!nest.to_isa(whole)) {
    keep(internal_error("nest {} is out of range", fields.name));
  } else {
    keep(instruction_.write_nest(fields, whole));
  }
  return *this;
}

Draft& Draft::loops(const std::vector<std::int64_t>& counts) {
  isa::Nest nest;
  if (counts.size() > isa::kMaxDims) {
    keep(internal_error("{} loops are too many", counts.size()));
    return *this;
  }
  for (std::size_t k = 0; k < counts.size(); ++k) nest.dims[k].count = static_cast<std::uint32_t>(counts[k]);
  keep(instruction_.write_nest(isa::tensor_op::kLoops, nest));
  return *this;
}

Draft& Draft::wait(TileCounter counter, const WaitFor& wait, Gate gate) {
  add_wait(static_cast<std::uint32_t>(counter), wait, gate == Gate::kWriting);
  return *this;
}

Draft& Draft::wait(ScalarCounter counter, const WaitFor& wait) {
  add_wait(static_cast<std::uint32_t>(counter), wait, false);
  return *this;
}

void Draft::add_wait(std::uint32_t counter, const WaitFor& wait, bool on_destination) {
  const auto watchers = isa::watchers(instruction_.opcode());
  if (waits_ >= watchers.size()) {
    keep(internal_error("more than {} waits", watchers.size()));
    return;
  }
  isa::Watcher watcher;
  watcher.counter = counter;
  watcher.level = static_cast<std::uint32_t>(wait.level);
  watcher.threshold = wrapped_total(wait.threshold);
  watcher.increment = static_cast<std::uint16_t>(wait.increment);
  watcher.enabled = true;
  watcher.on_destination = on_destination;
  keep(instruction_.write_watcher(watchers[waits_++], watcher));
}

Draft& Draft::signal(const isa::ProducerFields& producer, int level) {
  keep(instruction_.write_producer(producer, {true, static_cast<std::uint32_t>(level)}));
  return *this;
}

// ---- ProgramWriter ----

ProgramWriter::ProgramWriter(std::uint16_t first_sequence, AddressCode address_code)
    : sequence_(first_sequence), address_code_(address_code) {}

void ProgramWriter::add(Draft draft) {
  isa::Instruction& instruction = draft.instruction_;
  if (const isa::Field* field = isa::sequence_field(instruction.opcode())) draft.set(*field, sequence_++);
  if (status_.ok() && !draft.status().ok()) status_ = draft.status().in(fmt::format("row {}", rows_));
  count(instruction);
  rows_ += instruction.rows();
  program_.push_back(instruction);
}

void ProgramWriter::count(const isa::Instruction& instruction) {
  count_fences(instruction);
  const Opcode opcode = instruction.opcode();
  if (opcode == Opcode::kPop && !instruction.read_producer(isa::host_queues::kSignalPopRingProducer).enabled) {
    pop_may_be_sending_ = true;
  }
  for (const isa::ProducerFields& producer : isa::producers(opcode)) {
    const isa::Producer signal = instruction.read_producer(producer);
    if (!signal.enabled) continue;
    const isa::NestFields& fields = isa::nests(opcode)[producer.nest];
    const auto shape =
        isa::nest_shape(instruction.read_nest(fields), fields.dims, isa::clipped_dim(instruction, fields));
    if (!shape.ok()) {
      if (status_.ok()) status_ = shape.status();
      return;
    }
    const std::int64_t passes = shape->passes(static_cast<int>(signal.level));
    const std::uint32_t counter = instruction.producer_counter(producer);
    // Turns on the ring are counted everywhere at once.
    const bool ring_a = producer.is_scalar ? counter == static_cast<std::uint32_t>(ScalarCounter::kRingProducerA)
                                           : counter == static_cast<std::uint32_t>(TileCounter::kRingProducerA);
    const bool ring_b = !producer.is_scalar && counter == static_cast<std::uint32_t>(TileCounter::kRingProducerB);
    if (ring_a || ring_b) {
      const auto everywhere =
          static_cast<std::size_t>(ring_a ? TileCounter::kRingProducerA : TileCounter::kRingProducerB);
      for (auto& totals : tile_totals_) totals[everywhere] += passes;
      scalar_totals_[reef::at(ring_a ? ScalarCounter::kRingProducerA : ScalarCounter::kRingProducerB)] += passes;
    } else if (producer.is_scalar) {
      scalar_totals_[counter] += passes;
    } else {
      const std::uint32_t tiles = instruction.bits(isa::tile::kTiles);
      for (std::size_t tile = 0; tile < tile_totals_.size(); ++tile) {
        if ((tiles >> tile & 1) != 0) tile_totals_[tile][counter] += passes;
      }
    }
  }
}

void ProgramWriter::count_fences(const isa::Instruction& instruction) {
  if (instruction.opcode() == Opcode::kTileFence) {
    const std::uint32_t tiles = instruction.bits(isa::tile_fence::kTiles);
    const std::uint32_t reset = instruction.bits(isa::tile_fence::kReset);
    for (std::size_t tile = 0; tile < tile_totals_.size(); ++tile) {
      for (std::size_t counter = 0; counter < tile_totals_[tile].size(); ++counter) {
        if ((tiles >> tile & 1) != 0 && (reset >> counter & 1) != 0) {
          tile_totals_[tile][counter] = instruction.get(isa::tile_fence::kResetTo);
        }
      }
    }
  }
  if (instruction.opcode() == Opcode::kScalarFence) {
    const std::uint32_t reset = instruction.bits(isa::scalar_fence::kReset);
    for (std::size_t counter = 0; counter < scalar_totals_.size(); ++counter) {
      if ((reset >> counter & 1) != 0) scalar_totals_[counter] = instruction.get(isa::scalar_fence::kResetTo);
    }
    // Tiles that are waited for have received everything; then the scalar core lets them go on.
    if (instruction.test(isa::scalar_fence::kAwaitNotify)) pop_may_be_sending_ = false;
  }
}

void ProgramWriter::load_register(int reg, std::uint32_t value) {
  namespace b = isa::bundle;
  add(Draft(Opcode::kScalar)
          .set(b::kAlu, static_cast<int>(b::Alu::kMove))
          .set(b::kAluImmediate)
          .set(b::kAluDest, reg)
          .set(b::kAluOperand, value));
}

void ProgramWriter::copy_register(int to, int from) {
  namespace b = isa::bundle;
  add(Draft(Opcode::kScalar)
          .set(b::kAlu, static_cast<int>(b::Alu::kMove))
          .set(b::kAluDest, to)
          .set(b::kAluOperand, from));
}

void ProgramWriter::copy_address(RegisterPair to, RegisterPair from, int scratch) {
  if (address_code_ == AddressCode::kAdditions) {
    add_offset(to, from, scratch, 0);
    return;
  }
  copy_register(to.low, from.low);
  copy_register(to.high, from.high);
}

void ProgramWriter::load_address(int reg, darwinn::AddressUse use) {
  addresses_.push_back({position(), std::move(use)});
  load_register(reg, 0);
}

void ProgramWriter::queue_transfer(const Descriptor& d) {
  namespace b = isa::bundle;
  const int low = d.scratch, high = d.scratch + 1, bytes = d.scratch + 2, tag = d.scratch + 3;
  const auto store = [](int word, int reg) {
    Draft draft(Opcode::kScalar);
    draft.set(b::kStore, static_cast<int>(b::Store::kDescriptor)).set(b::kStoreAddress, word).set(b::kStoreSource, reg);
    return draft;
  };
  const auto with_load = [](Draft draft, int reg, std::uint32_t value) {
    return draft.set(b::kAlu, static_cast<int>(b::Alu::kMove))
        .set(b::kAluImmediate)
        .set(b::kAluDest, reg)
        .set(b::kAluOperand, value);
  };
  copy_address({low, high}, {d.address_low, d.address_high}, d.scratch + 4);
  add(store(0, low));
  add(with_load(store(1, high), bytes, d.bytes));
  add(with_load(store(2, bytes), tag, static_cast<std::uint32_t>(d.tag)));
  add(store(3, tag));
  add(Draft(Opcode::kScalar).set(b::kStore, static_cast<int>(b::Store::kIssue)));
}

// The low half carries if its highest bit was set and is not set by the rest of both (offsets are below 2^31).
void ProgramWriter::add_offset(RegisterPair to, RegisterPair from, int scratch, std::uint32_t offset) {
  namespace b = isa::bundle;
  constexpr int kHighBit = 0, kCarry = 1;
  constexpr std::uint32_t kLowBits = 0x7fffffff;
  const auto compute = [&](b::Alu alu, int dest, int source, std::uint32_t operand, bool immediate = true) {
    Draft draft(Opcode::kScalar);
    draft.set(b::kAlu, static_cast<int>(alu)).set(b::kAluImmediate, immediate).set(b::kAluDest, dest);
    return draft.set(b::kAluSource, source).set(b::kAluOperand, operand);
  };
  const auto only_if = [](int predicate, Draft draft) {
    namespace c = isa::common;
    return draft.set(c::kPredicated).set(c::kPredicate, predicate).set(c::kPredicateSense);
  };
  add(compute(b::Alu::kLess, kHighBit, from.low, 0));
  add(compute(b::Alu::kNotEqual, kCarry, from.low, static_cast<std::uint32_t>(from.low), false));
  add(compute(b::Alu::kAnd, scratch, from.low, kLowBits));
  add(only_if(kHighBit, compute(b::Alu::kAdd, scratch, scratch, offset)));
  add(only_if(kHighBit, compute(b::Alu::kLess, kCarry, scratch, 0)));
  add(compute(b::Alu::kAdd, to.low, from.low, offset));
  add(compute(b::Alu::kAdd, to.high, from.high, 0));
  add(only_if(kCarry, compute(b::Alu::kAdd, to.high, to.high, 1)));
}

void ProgramWriter::tile_fence(std::uint32_t drain_units, std::uint32_t reset_counters, bool notify, bool last) {
  namespace f = isa::tile_fence;
  add(Draft(Opcode::kTileFence)
          .set(f::kTiles, tiled::kAllTiles)
          .set(f::kReset, reset_counters)
          .set(f::kDrain, drain_units)
          .set(f::kNotify, notify)
          .set(f::kLast, last ? 3 : 0));
}

void ProgramWriter::await_tiles() {
  namespace f = isa::scalar_fence;
  add(Draft(Opcode::kScalarFence)
          .set(f::kTiles, tiled::kAllTiles)
          .set(f::kAwaitNotify)
          .set(f::kNotifyTiles, tiled::kAllTiles)
          .set(f::kDrain, kScalarMovers));
}

// A number is loaded before and counted down behind each pass. Branches of Google's LSTM are the only ones known: back
// without a condition, forward with one. So a branch behind the one that goes back is taken at the end.
void ProgramWriter::begin_loop(std::uint32_t passes) {
  barrier();
  load_register(kLoopCounter, passes);
  loop_begin_ = rows_;
}

void ProgramWriter::end_loop() {
  namespace b = isa::bundle;
  namespace c = isa::control;
  barrier();
  const auto compute = [&](b::Alu alu, int dest, std::uint32_t operand) {
    Draft draft(Opcode::kScalar);
    return draft.set(b::kAlu, static_cast<int>(alu))
        .set(b::kAluImmediate)
        .set(b::kAluDest, dest)
        .set(b::kAluSource, kLoopCounter)
        .set(b::kAluOperand, operand);
  };
  add(compute(b::Alu::kSub, kLoopCounter, 1));
  add(compute(b::Alu::kEqual, kLoopIsDone, 0));
  add(Draft(Opcode::kBranch)
          .set(c::kBranchPredicated)
          .set(c::kBranchPredicate, kLoopIsDone)
          .set(c::kBranchSense)
          .set(c::kBranchOffset, 2));
  add(Draft(Opcode::kBranch).set(c::kBranchOffset, loop_begin_ - rows_));
  loop_begin_ = -1;
}

void ProgramWriter::barrier(bool last, std::uint32_t reset_counters) {
  if (loop_begin_ < 0) barriers_.push_back(position());  // a loop is in one piece
  rows_at_barrier_ = rows_;
  tile_fence(kAllUnits, reset_counters, true, last);
  await_tiles();
}

// Where the pieces end: each when it is long enough, or as late as the chip's memory allows.
Result<std::vector<std::size_t>> ProgramWriter::cuts() const {
  std::vector<std::size_t> cuts;
  std::size_t barrier = 0;  // the first of barriers_ that is not behind us
  std::size_t begin = 0, last = 0;
  std::int64_t enough = first_piece_rows_;
  std::int64_t left = rows_;                // from `begin` on
  std::int64_t rows = 0, rows_at_last = 0;  // from `begin` to here, to `last`
  for (std::size_t i = 0; i < program_.size() && left > std::min<std::int64_t>(enough, isa::kMaxContentRows); ++i) {
    if (barrier < barriers_.size() && barriers_[barrier] == i) {
      ++barrier;
      last = i;
      rows_at_last = rows;
      if (rows >= enough) {
        cuts.push_back(last);
        begin = last;
        left -= rows;
        rows = rows_at_last = 0;
        enough *= 2;
      }
    }
    rows += program_[i].rows();
    if (rows + kEndRows <= isa::kMaxContentRows) continue;
    if (last == begin) {
      return unsupported("{} rows of instructions without a barrier are more than the {} that the chip holds", rows,
                         isa::kMaxContentRows);
    }
    cuts.push_back(last);
    begin = last;
    rows -= rows_at_last;
    left -= rows_at_last;
  }
  cuts.push_back(program_.size());
  return cuts;
}

Result<ProgramPiece> ProgramWriter::piece(std::size_t begin, std::size_t end) {
  ProgramPiece piece;
  piece.end = end;
  piece.program.emplace_back(Opcode::kStart);
  piece.program.insert(piece.program.end(), program_.begin() + static_cast<std::ptrdiff_t>(begin),
                       program_.begin() + static_cast<std::ptrdiff_t>(end));
  if (end != program_.size()) {
    Draft halt(Opcode::kHalt);
    halt.set(isa::control::kHaltCode, kMoreToCome);
    piece.program.push_back(halt.instruction());
    for (int i = 0; i < kNopsAfterHalt; ++i) piece.program.push_back(Draft(Opcode::kScalar).instruction());
  }
  piece.program.push_back(Draft(Opcode::kEnd).instruction());
  const int rows = isa::row_count(piece.program);
  REEF_REQUIRE(rows - 2 <= isa::kMaxContentRows, "a piece of {} rows", rows);
  Draft start(Opcode::kStart);
  start.set(isa::control::kStartLength, isa::automatic_length(rows));
  REEF_RETURN_IF_ERROR(start.status());
  piece.program.front() = start.instruction();
  std::int64_t row = 1;
  std::size_t at = begin;
  for (const Address& address : addresses_) {
    if (address.position < begin || address.position >= end) continue;
    for (; at < address.position; ++at) row += program_[at].rows();
    darwinn::FieldOffset field;
    field.use = address.use;
    field.bit_offset = static_cast<std::int32_t>(row * isa::kRowBits + isa::bundle::kAluOperand.bit);
    piece.field_offsets.push_back(std::move(field));
  }
  return piece;
}

Result<std::vector<ProgramPiece>> ProgramWriter::finish() && {
  REEF_RETURN_IF_ERROR(status_);
  REEF_ASSIGN_OR_RETURN(const std::vector<std::size_t> ends, cuts());
  std::vector<ProgramPiece> pieces;
  std::size_t begin = 0;
  for (const std::size_t end : ends) {
    REEF_ASSIGN_OR_RETURN(ProgramPiece next, piece(begin, end));
    pieces.push_back(std::move(next));
    begin = end;
  }
  return pieces;
}

}  // namespace reef::emit
