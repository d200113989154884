// SPDX-License-Identifier: Apache-2.0
#include "program_use.h"

#include <algorithm>

#include "isa/scalar.h"

namespace reef::testing {
namespace {

constexpr std::uint32_t kAllTiles = (1u << chip::kTiles) - 1;
constexpr int kScalarCore = chip::kTiles;

bool is_on(std::uint32_t tiles, int tile) { return (tiles >> tile & 1) != 0; }

}  // namespace

ProgramUse::ProgramUse(const std::vector<isa::Instruction>& instructions,
                       const std::vector<isa::Operation>& operations) {
  for (std::size_t i = 0; i < operations.size(); ++i) {
    has_branches_ = has_branches_ || operations[i].opcode == isa::Opcode::kBranch;
    tiles_.push_back(operations[i].tiles_register >= 0 ? kAllTiles : operations[i].tiles);
    note_counters(i, operations[i]);
    note_signals(i, operations[i]);
    note_fences(i, operations[i]);
    note_busy_units(i, operations[i]);
    note_buffers(i, operations[i]);
  }
  note_transfers(instructions);
}

std::int64_t highest_needed(const isa::Wait& wait, const isa::NestShape& nest) {
  const std::int64_t passes = wait.level == 0 ? nest.size() : nest.unclipped_size() / nest.pass_length(wait.level);
  return wait.threshold + static_cast<std::int64_t>(wait.increment) * (passes - 1);
}

void ProgramUse::note_waits(std::size_t index, std::uint32_t tiles, const std::vector<isa::Wait>& waits,
                            const isa::NestShape* nest) {
  for (const isa::Wait& wait : waits) {
    if (wait.counter >= chip::kTileCounters) continue;
    const Event event{index, nest == nullptr ? wait.threshold : highest_needed(wait, *nest)};
    if (tiles == 0) uses(kScalarCore, wait.counter).waits.push_back(event);
    for (int t = 0; t < chip::kTiles; ++t) {
      if (is_on(tiles, t)) uses(t, wait.counter).waits.push_back(event);
    }
  }
}

void ProgramUse::note_counters(std::size_t index, const isa::Operation& operation) {
  const std::uint32_t tiles = tiles_[index];
  const auto& code = operation.code;
  if (const auto* op = std::get_if<isa::TensorOperation>(&code)) note_waits(index, tiles, op->waits, &op->loops);
  if (const auto* op = std::get_if<isa::RingSend>(&code)) note_waits(index, tiles, op->waits, &op->in);
  if (const auto* op = std::get_if<isa::RingReceive>(&code)) note_waits(index, tiles, op->waits, &op->out);
  if (const auto* op = std::get_if<isa::Infeed>(&code)) note_waits(index, 0, op->waits, &op->out);
  if (const auto* op = std::get_if<isa::Pop>(&code)) note_waits(index, 0, op->waits, &op->in);
  if (const auto* op = std::get_if<isa::Outfeed>(&code)) note_waits(index, 0, op->waits, &op->out);
  const auto both = [&](const auto& op) {
    note_waits(index, tiles, op.in_waits, &op.in);
    note_waits(index, tiles, op.out_waits, &op.out);
  };
  if (const auto* op = std::get_if<isa::NarrowToWide>(&code)) both(*op);
  if (const auto* op = std::get_if<isa::WideToNarrow>(&code)) both(*op);
  if (const auto* op = std::get_if<isa::Mesh>(&code)) both(*op);
}

// Whose turn it is on the ring is counted everywhere.
void ProgramUse::note_signal(std::size_t index, bool is_scalar, const isa::Signal& signal) {
  if (!signal.enabled) return;
  const int producer = static_cast<int>(isa::ScalarCounter::kRingProducerA);
  const int tile_producer = static_cast<int>(isa::TileCounter::kRingProducerA);
  const int channel = signal.counter - (is_scalar ? producer : tile_producer);
  const bool is_everywhere = channel == 0 || channel == 1;
  for (int t = 0; t < chip::kTiles; ++t) {
    if (is_everywhere) uses(t, tile_producer + channel).signals.push_back({index, 1});
    if (!is_everywhere && !is_scalar && is_on(tiles_[index], t)) uses(t, signal.counter).signals.push_back({index, 1});
  }
  if (is_everywhere) uses(kScalarCore, producer + channel).signals.push_back({index, 1});
  if (!is_everywhere && is_scalar) uses(kScalarCore, signal.counter).signals.push_back({index, 1});
}

void ProgramUse::note_signals(std::size_t index, const isa::Operation& operation) {
  const auto& code = operation.code;
  const auto note = [&](bool is_scalar, std::initializer_list<isa::Signal> signals) {
    for (const isa::Signal& signal : signals) note_signal(index, is_scalar, signal);
  };
  if (const auto* op = std::get_if<isa::TensorOperation>(&code)) note(false, {op->avdata, op->parameters});
  if (const auto* op = std::get_if<isa::RingSend>(&code)) note(false, {op->ring_write, op->ring_producer});
  if (const auto* op = std::get_if<isa::RingReceive>(&code)) note(false, {op->read});
  if (const auto* op = std::get_if<isa::NarrowToWide>(&code)) note(false, {op->signal});
  if (const auto* op = std::get_if<isa::WideToNarrow>(&code)) note(false, {op->signal});
  if (const auto* op = std::get_if<isa::Mesh>(&code)) note(false, {op->sent, op->received});
  if (const auto* op = std::get_if<isa::Infeed>(&code)) note(true, {op->signal});
  if (const auto* op = std::get_if<isa::Pop>(&code)) note(true, {op->signal, op->ring_producer});
  if (const auto* op = std::get_if<isa::Outfeed>(&code)) note(true, {op->signal});
}

bool ProgramUse::is_reset_already(std::size_t index, bool is_scalar, int counter, std::int64_t value) const {
  if (has_branches_) return false;
  for (int core = 0; core < kCores; ++core) {
    if (!concerns(core, index, is_scalar, false)) continue;
    const Uses& used = uses(core, counter);
    const Event* start = reset_before(used, index);
    if ((start == nullptr ? 0 : start->value) != value) return false;
    const auto signal = std::lower_bound(used.signals.begin(), used.signals.end(), start == nullptr ? 0 : start->index);
    if (signal != used.signals.end() && signal->index < index) return false;
  }
  return true;
}

void ProgramUse::note_fences(std::size_t index, const isa::Operation& operation) {
  if (const auto* fence = std::get_if<isa::ScalarFence>(&operation.code)) {
    note_waits(index, 0, fence->waits, nullptr);
    for (int c = 0; c < chip::kScalarCounters; ++c) {
      if ((fence->reset >> c & 1) != 0) uses(kScalarCore, c).resets.push_back({index, fence->reset_to});
    }
  }
  const auto* fence = std::get_if<isa::TileFence>(&operation.code);
  if (fence == nullptr) return;
  for (int t = 0; t < chip::kTiles; ++t) {
    if (!is_on(tiles_[index], t)) continue;
    const int producer = static_cast<int>(isa::TileCounter::kRingProducerA);
    if (fence->await_producer_a) uses(t, producer).waits.push_back({index, fence->await_count});
    if (fence->await_producer_b) uses(t, producer + 1).waits.push_back({index, fence->await_count});
    for (int c = 0; c < chip::kTileCounters; ++c) {
      if ((fence->reset >> c & 1) != 0) uses(t, c).resets.push_back({index, fence->reset_to});
    }
  }
}

void ProgramUse::note_busy_units(std::size_t index, const isa::Operation& operation) {
  // Bits of a scalar fence's mask.
  if (operation.opcode == isa::Opcode::kInfeed) busy_[kScalarCoreIndex] |= 1u << 0;
  if (operation.opcode == isa::Opcode::kPop) busy_[kScalarCoreIndex] |= 1u << 2;
  if (operation.opcode == isa::Opcode::kOutfeed) busy_[kScalarCoreIndex] |= 1u << 3;
  if (const auto* fence = std::get_if<isa::ScalarFence>(&operation.code)) {
    busy_units_[index] = busy_;
    busy_[kScalarCoreIndex] &= ~fence->drain;
  }
  if (!isa::is_tile_instruction(operation.opcode)) return;
  const auto* fence = std::get_if<isa::TileFence>(&operation.code);
  if (fence != nullptr) busy_units_[index] = busy_;
  for (int t = 0; t < chip::kTiles; ++t) {
    if (!is_on(tiles_[index], t)) continue;
    std::uint32_t& busy = busy_[static_cast<std::size_t>(t)];
    busy = fence != nullptr ? busy & ~fence->drain : busy | 1u << static_cast<int>(isa::info(operation.opcode).unit);
  }
}

const ProgramUse::Event* ProgramUse::reset_before(const Uses& used, std::size_t index) {
  const auto next = std::lower_bound(used.resets.begin(), used.resets.end(), index);
  return next == used.resets.begin() ? nullptr : &*std::prev(next);
}

bool ProgramUse::concerns(int core, std::size_t index, bool is_scalar, bool is_everywhere) const {
  if (core == kScalarCore) return is_scalar;
  return !is_scalar && (is_everywhere || is_on(tiles_[index], core));
}

bool ProgramUse::is_awaited(std::size_t index, bool is_scalar, int counter, bool is_reset) const {
  if (has_branches_) return true;
  const bool is_everywhere = !is_scalar && !is_reset && counter >= static_cast<int>(isa::TileCounter::kRingProducerA);
  for (int core = 0; core < kCores; ++core) {
    if (!concerns(core, index, is_scalar, is_everywhere)) continue;
    const Uses& used = uses(core, counter);
    const auto next = std::lower_bound(used.resets.begin(), used.resets.end(), index + 1);
    const std::size_t end = next == used.resets.end() ? ~std::size_t{0} : next->index;
    const Event* start = reset_before(used, is_reset ? index + 1 : index);
    const std::size_t begin = is_reset ? index : start == nullptr ? 0 : start->index;
    for (auto wait = std::lower_bound(used.waits.begin(), used.waits.end(), begin);
         wait != used.waits.end() && wait->index < end; ++wait) {
      if (start == nullptr || wait->value > start->value) return true;
    }
  }
  return false;
}

bool ProgramUse::is_fulfilled_anyway(std::size_t index, bool is_scalar, int counter, std::int64_t needed) const {
  if (has_branches_) return false;
  for (int core = 0; core < kCores; ++core) {
    if (!concerns(core, index, is_scalar, false)) continue;
    const Event* start = reset_before(uses(core, counter), index);
    if (start == nullptr || needed > start->value) return false;
  }
  return true;
}

void ProgramUse::note_buffers(std::size_t index, const isa::Operation& operation) {
  std::array<const isa::NestShape*, 3> nests{};
  const auto& code = operation.code;
  if (const auto* op = std::get_if<isa::TensorOperation>(&code)) nests = {&op->in, &op->param, &op->out};
  if (const auto* op = std::get_if<isa::RingSend>(&code)) nests = {&op->in};
  if (const auto* op = std::get_if<isa::RingReceive>(&code)) nests = {&op->out};
  if (const auto* op = std::get_if<isa::NarrowToWide>(&code)) nests = {&op->in, &op->out};
  if (const auto* op = std::get_if<isa::WideToNarrow>(&code)) nests = {&op->in, &op->out};
  if (const auto* op = std::get_if<isa::Mesh>(&code))
    nests = {op->sends ? &op->in : nullptr, op->receives ? &op->out : nullptr};
  const auto reaches = [&](int nest) { second_half_.insert({index, nest}); };
  if (const auto* op = std::get_if<isa::Infeed>(&code); op != nullptr && op->out.buffer_passes() > 1) reaches(0);
  if (const auto* op = std::get_if<isa::Pop>(&code); op != nullptr && op->in.buffer_passes() > 1) reaches(0);
  if (const auto* op = std::get_if<isa::Outfeed>(&code); op != nullptr && op->out.buffer_passes() > 1) reaches(0);
  const auto* fence = std::get_if<isa::TileFence>(&code);
  for (std::size_t t = 0; t < phases_.size(); ++t) {
    if (!is_on(tiles_[index], static_cast<int>(t))) continue;
    for (std::size_t u = 0; fence != nullptr && u < phases_[t].size(); ++u) {
      if ((fence->restarts() >> u & 1) != 0) phases_[t][u] = {};
    }
    for (std::size_t n = 0; n < nests.size(); ++n) {
      if (nests[n] == nullptr) continue;
      std::int64_t& phase = phases_[t][static_cast<std::size_t>(isa::info(operation.opcode).unit)][n];
      const std::int64_t passes = nests[n]->buffer_passes();
      if (has_branches_ || passes > 1 || (phase & 1) != 0) reaches(static_cast<int>(n));
      phase += passes;
    }
  }
}

// A register's last value goes into the descriptor; interrupts have no address and no size.
void ProgramUse::note_transfers(const std::vector<isa::Instruction>& instructions) {
  namespace b = isa::bundle;
  std::array<std::size_t, 32> written_by{};
  std::array<std::uint32_t, 32> value{};
  std::array<std::size_t, 4> word{};  // who wrote it
  std::uint32_t tag = 0;
  for (std::size_t i = 0; i < instructions.size(); ++i) {
    const isa::Instruction& bundle = instructions[i];
    if (bundle.opcode() != isa::Opcode::kScalar) continue;
    const auto store = static_cast<b::Store>(bundle.bits(b::kStore));
    const std::uint32_t source = bundle.bits(b::kStoreSource), at = bundle.bits(b::kStoreAddress);
    if (store == b::Store::kDescriptor && at < word.size()) {
      word[at] = written_by[source];
      if (at == 3) tag = value[source];
    } else if (store == b::Store::kIssue && tag != static_cast<std::uint32_t>(b::DescriptorTag::kInterrupt)) {
      describing_.insert(word.begin(), word.end());
    }
    if (bundle.bits(b::kAlu) == static_cast<std::uint32_t>(b::Alu::kNone)) continue;
    written_by[bundle.bits(b::kAluDest)] = i;
    value[bundle.bits(b::kAluDest)] = bundle.bits(b::kAluOperand);
  }
}

}  // namespace reef::testing
