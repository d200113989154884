// SPDX-License-Identifier: Apache-2.0
#include "corruption.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "isa/fence.h"
#include "isa/mesh.h"
#include "isa/movers.h"
#include "isa/operation.h"
#include "isa/program.h"
#include "isa/ring.h"
#include "isa/scalar.h"
#include "isa/tensor_op.h"
#include "program_use.h"

namespace reef::testing {
namespace {

using isa::Field;
using isa::NestFields;
using isa::NestShape;
using isa::Opcode;

// What of a nest means something.
struct NestUse {
  bool steps = true, addresses = true, base = true;
};

NestUse use_of(const isa::Operation& operation, std::size_t nest) {
  if (const auto* tensor = std::get_if<isa::TensorOperation>(&operation.code)) {
    const bool is_resample = operation.opcode == Opcode::kResample;
    const bool reads_input = operation.opcode == Opcode::kMultiplyAdd || is_resample;
    if (nest == isa::tensor_op::kInNest) return {reads_input, reads_input, reads_input};
    if (nest == isa::tensor_op::kParamNest) return {!is_resample, !is_resample, !is_resample};
    if (nest == isa::tensor_op::kPsumNest) return {true, !tensor->accumulate_inside, !tensor->accumulate_inside};
    return {};
  }
  if (const auto* mesh = std::get_if<isa::Mesh>(&operation.code)) {
    const bool is_there = nest == isa::mesh::kInNest ? mesh->sends : mesh->receives;
    return {is_there, is_there, is_there};
  }
  if (const auto* to_wide = std::get_if<isa::NarrowToWide>(&operation.code)) {
    return {true, true, nest != isa::movers::kInNest || to_wide->base_register < 0};
  }
  if (const auto* outfeed = std::get_if<isa::Outfeed>(&operation.code)) {
    return {true, outfeed->unit_bytes != 8, outfeed->unit_bytes != 8};
  }
  return {};
}

// Levels whose passes are not as long as those of `level`.
std::vector<std::int64_t> other_levels(const NestShape& nest, std::int64_t level, const Field& field) {
  std::vector<std::int64_t> levels;
  std::set<std::int64_t> lengths = {nest.pass_length(static_cast<int>(level))};
  for (int k = 0; k <= nest.dims && k <= static_cast<int>(field.mask()); ++k) {
    if (lengths.insert(nest.pass_length(k)).second) levels.push_back(k);
  }
  return levels;
}

// Collects the fields of one instruction.
class Collector {
 public:
  Collector(const isa::Instruction& instruction, const isa::Operation& operation, const ProgramUse& use,
            std::size_t index, Target place, std::vector<Target>* targets)
      : instruction_(instruction),
        operation_(operation),
        use_(use),
        index_(index),
        place_(std::move(place)),
        targets_(targets) {}

  void collect() {
    if (isa::is_tile_instruction(operation_.opcode) && operation_.tiles == 0 && operation_.tiles_register < 0) return;
    const isa::Format& format = isa::format(operation_.opcode);
    for (std::size_t n = 0; n < format.nests.size(); ++n) nest(n, format.nests[n], use_of(operation_, n));
    for (const isa::WatcherFields& watcher : format.watchers) wait(watcher, format.nests);
    for (const isa::ProducerFields& producer : format.producers) signal(producer, format.nests);
    if (operation_.opcode == Opcode::kTileFence) tile_fence();
    if (operation_.opcode == Opcode::kScalarFence) scalar_fence();
    if (operation_.opcode == Opcode::kRepeat) number(isa::control::kRepeatCount, Touches::kLoopCount);
    if (operation_.opcode == Opcode::kScalar) immediate();
    details();
  }

 private:
  void add(const Field& field, Touches touches, std::vector<std::int64_t> values, std::uint32_t mask_bits = 0) {
    Target target = place_;
    target.field = field;
    target.touches = touches;
    target.values = std::move(values);
    target.mask_bits = mask_bits;
    target.watcher = watcher_;
    target.index = index_;
    targets_[static_cast<std::size_t>(touches)].push_back(std::move(target));
  }
  void number(const Field& field, Touches touches) { add(field, touches, {}); }
  void one_of(const Field& field, Touches touches, std::vector<std::int64_t> values) {
    std::erase(values, instruction_.get(field));
    if (!values.empty()) add(field, touches, std::move(values));
  }
  void flag(const Field& field) { one_of(field, Touches::kSync, {0, 1}); }
  void mask(const Field& field, std::uint32_t bits) {
    if (bits != 0) add(field, Touches::kSync, {}, bits);
  }

  NestShape shape(const NestFields& fields) const {
    auto result = isa::nest_shape(instruction_.read_nest(fields), fields.dims, isa::clipped_dim(instruction_, fields));
    return result.ok() ? *result : NestShape{};
  }

  // As ProgramUse numbers the nests with double buffers.
  int buffer_number(std::size_t nest) const {
    if (!std::holds_alternative<isa::TensorOperation>(operation_.code)) return static_cast<int>(nest);
    return nest == isa::tensor_op::kInNest ? 0 : nest == isa::tensor_op::kParamNest ? 1 : 2;
  }

  void nest(std::size_t number_of_nest, const NestFields& fields, const NestUse& use) {
    const NestShape walked = shape(fields);
    for (std::size_t k = 0; k < fields.dims && use.steps; ++k) {
      const bool is_replaced = static_cast<int>(k) == walked.clip_inner && walked.clip_dim > 0 &&
                               walked.count[static_cast<std::size_t>(walked.clip_dim)] == 1;
      if (!is_replaced) number(fields.limit[k], Touches::kLoopCount);
      if (fields.has_addresses && use.addresses && walked.count[k] > 1) number(fields.delta[k], Touches::kAddress);
    }
    if (use.steps && walked.clip_dim > 0) number(fields.clip_limit, Touches::kLoopCount);
    if (!fields.has_addresses || !use.addresses) return;
    if (use.base) number(fields.base, Touches::kAddress);
    if (!fields.has_buffer || walked.buffer_stride == 0) return;
    if (!use_.reaches_second_half(index_, buffer_number(number_of_nest))) return;
    number(fields.buffer_stride, Touches::kAddress);
    if (walked.passes(walked.buffer_level) > 1)
      one_of(fields.buffer_level, Touches::kAddress, other_levels(walked, walked.buffer_level, fields.buffer_level));
  }

  void wait(const isa::WatcherFields& fields, std::span<const NestFields> nests) {
    const isa::Watcher watcher = instruction_.read_watcher(fields);
    if (!watcher.enabled) return;
    watcher_ = fields.slot;
    flag(fields.enabled);
    number(fields.threshold, Touches::kSync);
    std::vector<std::int64_t> counters;
    const std::size_t named = fields.is_scalar ? isa::kScalarCounterCount : isa::kTileCounterCount;
    for (std::size_t k = 0; k < named; ++k) counters.push_back(static_cast<std::int64_t>(k));
    one_of(fields.counter, Touches::kSync, counters);
    if (fields.has_side && fields.nest[0] != fields.nest[1]) flag(fields.side);
    const NestShape walked = shape(nests[fields.nest[watcher.on_destination ? 1 : 0]]);
    if (walked.passes(static_cast<int>(watcher.level)) > 1) number(fields.increment, Touches::kSync);
    one_of(fields.level, Touches::kSync, other_levels(walked, watcher.level, fields.level));
    watcher_ = -1;
  }

  void signal(const isa::ProducerFields& fields, std::span<const NestFields> nests) {
    const isa::Producer producer = instruction_.read_producer(fields);
    if (!producer.enabled) return;
    const auto counter = static_cast<int>(instruction_.producer_counter(fields));
    if (!use_.is_awaited(index_, fields.is_scalar, counter, false)) return;
    flag(fields.enabled);
    one_of(fields.level, Touches::kSync, other_levels(shape(nests[fields.nest]), producer.level, fields.level));
  }

  // Counters that a reset here would change and for which somebody waits after it, before they are set anew.
  std::uint32_t awaited_counters(bool is_scalar, int count, std::int64_t reset_to) const {
    std::uint32_t counters = 0;
    for (int c = 0; c < count; ++c) {
      const bool holds_already = use_.is_reset_already(index_, is_scalar, c, reset_to);
      if (!holds_already && use_.is_awaited(index_, is_scalar, c, true)) counters |= 1u << c;
    }
    return counters;
  }

  void tile_fence() {
    namespace f = isa::tile_fence;
    const auto& fence = std::get<isa::TileFence>(operation_.code);
    std::uint32_t waited_for = 0, waiting = 0;  // units, tiles
    for (int t = 0; t < chip::kTiles; ++t) {
      const std::uint32_t units = (operation_.tiles >> t & 1) != 0 ? fence.drain & use_.busy_units(index_, t) : 0;
      waited_for |= units;
      if (units != 0 || fence.notify) waiting |= 1u << t;
    }
    mask(f::kTiles, operation_.tiles & waiting);
    mask(f::kDrain, waited_for);
    const std::uint32_t awaited = awaited_counters(false, isa::kTileCounterCount, fence.reset_to);
    mask(f::kReset, awaited);
    if ((fence.reset & awaited) != 0) number(f::kResetTo, Touches::kSync);
    flag(f::kNotify);
    if (fence.await_producer_a) flag(f::kAwaitProducerA);
    if (fence.await_producer_b) flag(f::kAwaitProducerB);
    if (fence.await_producer_a || fence.await_producer_b) number(f::kAwaitCount, Touches::kSync);
  }

  void scalar_fence() {
    namespace f = isa::scalar_fence;
    constexpr std::uint32_t kKnownUnits = 0b01101;
    const auto& fence = std::get<isa::ScalarFence>(operation_.code);
    const std::uint32_t awaited = awaited_counters(true, isa::kScalarCounterCount, fence.reset_to);
    mask(f::kReset, awaited);
    mask(f::kDrain, fence.drain & kKnownUnits & use_.busy_host_units(index_));
    if ((fence.reset & awaited) != 0) number(f::kResetTo, Touches::kSync);
    if (fence.notify_tiles != 0) flag(f::kAwaitNotify);
    if (fence.await_notify) mask(f::kNotifyTiles, f::kNotifyTiles.mask());
    for (const isa::Wait& wait : fence.waits) {
      flag(f::compare(wait.counter));
      number(f::threshold(wait.counter), Touches::kSync);
    }
  }

  // Addresses and sizes of transfers.
  void immediate() {
    namespace b = isa::bundle;
    const bool calculates = instruction_.bits(b::kAlu) != static_cast<std::uint32_t>(b::Alu::kNone);
    if (calculates && instruction_.test(b::kAluImmediate) && use_.describes_transfer(index_))
      number(b::kAluOperand, Touches::kAddress);
  }

  void details() {
    if (const auto* receive = std::get_if<isa::RingReceive>(&operation_.code);
        receive != nullptr && receive->has_header) {
      number(isa::ring::kHeaderFirst, Touches::kAddress);
      number(isa::ring::kHeaderLines, Touches::kLoopCount);
    }
    const auto* to_narrow = std::get_if<isa::WideToNarrow>(&operation_.code);
    if (to_narrow != nullptr && to_narrow->skip_words > 0) number(isa::movers::kSkipWords, Touches::kLoopCount);
    const auto* tensor = std::get_if<isa::TensorOperation>(&operation_.code);
    if (tensor != nullptr && tensor->has_zero_line) number(isa::tensor_op::kParamZeroFirst, Touches::kAddress);
  }

  const isa::Instruction& instruction_;
  const isa::Operation& operation_;
  const ProgramUse& use_;
  std::size_t index_;  // of the instruction in its program
  int watcher_ = -1;   // whose fields are being added
  Target place_;
  std::vector<Target>* targets_;
};

// Rows of a chunk whose operand the driver replaces by an address.
std::set<std::int32_t> patched_rows(const darwinn::InstructionChunk& chunk) {
  constexpr std::int32_t kRowBits = 128;
  std::set<std::int32_t> rows;
  for (const darwinn::FieldOffset& field : chunk.field_offsets) rows.insert(field.bit_offset / kRowBits);
  return rows;
}

}  // namespace

std::string_view name_of(Touches touches) {
  switch (touches) {
    case Touches::kSync:
      return "sync";
    case Touches::kAddress:
      return "address";
    case Touches::kLoopCount:
      return "loop count";
  }
  return "";
}

Status CorruptiblePackage::collect(std::size_t executable) {
  const darwinn::Executable& from = package_.executables[executable];
  std::vector<isa::Instruction> instructions;
  std::vector<isa::Operation> operations;
  for (const darwinn::InstructionChunk& chunk : from.instruction_chunks) {
    REEF_ASSIGN_OR_RETURN(isa::Program program, isa::decode(chunk.bitstream.span()));
    for (const isa::Instruction& instruction : program) {
      REEF_ASSIGN_OR_RETURN(isa::Operation operation, isa::operation_of(instruction));
      operations.push_back(std::move(operation));
      instructions.push_back(instruction);
    }
    programs_[executable].push_back(std::move(program));
  }
  const ProgramUse& use = uses_.emplace_back(instructions, operations);
  std::size_t index = 0;
  for (std::size_t c = 0; c < from.instruction_chunks.size(); ++c) {
    const std::set<std::int32_t> patched = patched_rows(from.instruction_chunks[c]);
    Target place;
    place.executable = executable;
    place.chunk = c;
    for (const isa::Instruction& instruction : programs_[executable][c]) {
      if (!patched.contains(place.row)) {
        Collector(instruction, operations[index], use, index, place, targets_).collect();
      }
      place.row += instruction.rows();
      ++place.instruction;
      ++index;
    }
  }
  return ok_status();
}

Result<CorruptiblePackage> CorruptiblePackage::create(darwinn::Package package) {
  CorruptiblePackage result;
  result.package_ = std::move(package);
  result.programs_.resize(result.package_.executables.size());
  for (std::size_t e = 0; e < result.package_.executables.size(); ++e) REEF_RETURN_IF_ERROR(result.collect(e));
  return result;
}

std::int64_t CorruptiblePackage::another_value(const Target& target, std::mt19937& random, Change change) const {
  const std::int64_t old = at(target).get(target.field);
  const auto below = [&](std::size_t count) { return static_cast<std::int64_t>(random() % count); };
  if (!target.values.empty()) return target.values[static_cast<std::size_t>(below(target.values.size()))];
  if (change == Change::kAny && target.mask_bits != 0) return old ^ (random() & target.mask_bits);
  if (change == Change::kAny) {
    const std::int64_t bits = static_cast<std::uint32_t>(random()) & target.field.mask();
    const bool is_negative = target.field.kind == isa::Kind::kSigned && (bits >> (target.field.width - 1)) != 0;
    return bits + target.field.plus - (is_negative ? std::int64_t{1} << target.field.width : 0);
  }
  if (target.mask_bits != 0) {
    std::vector<std::int64_t> bits;
    for (int k = 0; k < 32; ++k) {
      if ((target.mask_bits >> k & 1) != 0) bits.push_back(std::int64_t{1} << k);
    }
    return old ^ bits[static_cast<std::size_t>(below(bits.size()))];
  }
  constexpr std::int64_t kFar = 64;
  const std::int64_t choices[] = {old + 1, old - 1, 2 * old, 0, old + 2 + below(kFar), old - 2 - below(kFar)};
  return choices[static_cast<std::size_t>(below(std::size(choices)))];
}

// A wait that is fulfilled from the start, before the change and after it.
bool CorruptiblePackage::means_nothing(const Target& target, const isa::Instruction& changed) const {
  if (target.watcher < 0) return false;
  const isa::Format& format = isa::format(changed.opcode());
  const isa::WatcherFields& fields = format.watchers[static_cast<std::size_t>(target.watcher)];
  for (const isa::Instruction* instruction : {&at(target), &changed}) {
    const isa::Watcher watcher = instruction->read_watcher(fields);
    if (!watcher.enabled) continue;
    const std::size_t named = fields.is_scalar ? isa::kScalarCounterCount : isa::kTileCounterCount;
    if (watcher.counter >= named) return false;
    const NestFields& nest = format.nests[fields.nest[watcher.on_destination ? 1 : 0]];
    const auto shape = isa::nest_shape(instruction->read_nest(nest), nest.dims);
    if (!shape.ok()) return false;
    const isa::Wait wait{static_cast<std::uint8_t>(watcher.counter), static_cast<std::uint8_t>(watcher.level),
                         watcher.threshold, watcher.increment};
    const auto counter = static_cast<int>(watcher.counter);
    if (!uses_[target.executable].is_fulfilled_anyway(target.index, fields.is_scalar, counter,
                                                      highest_needed(wait, *shape))) {
      return false;
    }
  }
  return true;
}

Result<Corruption> CorruptiblePackage::pick(std::mt19937& random, Change change) const {
  constexpr int kMostTries = 1000;
  for (int i = 0; i < kMostTries; ++i) {
    const std::vector<Target>& choice = targets(kAllTouches[random() % std::size(kAllTouches)]);
    if (choice.empty()) continue;
    Corruption corruption;
    corruption.target = choice[random() % choice.size()];
    const Target& target = corruption.target;
    corruption.old_value = at(target).get(target.field);
    corruption.new_value = another_value(target, random, change);
    isa::Instruction changed = at(target);
    if (corruption.new_value == corruption.old_value || !changed.set(target.field, corruption.new_value).ok()) continue;
    if (means_nothing(target, changed)) continue;
    const darwinn::Executable& executable = package_.executables[target.executable];
    corruption.description = fmt::format(
        "{}{} row {} {}: {} {} -> {}", name_of(executable.type),
        executable.instruction_chunks.size() > 1 ? fmt::format(" chunk {}", target.chunk) : "", target.row,
        isa::info(changed.opcode()).mnemonic, target.field.full_name(), corruption.old_value, corruption.new_value);
    return corruption;
  }
  return invalid_input("the package has no field to change");
}

Result<darwinn::Package> CorruptiblePackage::with(const Corruption& corruption) const {
  const Target& target = corruption.target;
  isa::Program program = programs_[target.executable][target.chunk];
  REEF_RETURN_IF_ERROR(program[target.instruction].set(target.field, corruption.new_value));
  darwinn::Package package = package_;
  package.executables[target.executable].instruction_chunks[target.chunk].bitstream = Bytes(isa::encode(program));
  return package;
}

}  // namespace reef::testing
