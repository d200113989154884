// SPDX-License-Identifier: Apache-2.0
#include "isa/instruction.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace reef::isa {
namespace {

// Sums of strides are formed modulo 2^64: with arbitrary bits they exceed any integer, and modulo 2^64 the way back to
// the deltas is still exact. No nest of a real program comes near.
std::int64_t wrapping(std::uint64_t value) { return std::bit_cast<std::int64_t>(value); }
std::uint64_t modular(std::int64_t value) { return std::bit_cast<std::uint64_t>(value); }

std::int64_t lowest(const Field& field) {
  return (field.kind == Kind::kSigned ? -(std::int64_t{1} << (field.width - 1)) : 0) + field.plus;
}
std::int64_t highest(const Field& field) {
  return (field.kind == Kind::kSigned ? (std::int64_t{1} << (field.width - 1)) - 1
                                      : static_cast<std::int64_t>(field.mask())) +
         field.plus;
}

}  // namespace

int Nest::significant_dims() const {
  int count = kMaxDims;
  while (count > 0 && dims[count - 1] == Dim{}) --count;
  return count;
}

std::optional<std::int64_t> Nest::steps(int clip_inner) const {
  unsigned __int128 passes = 1;  // of all dimensions but the one that is clipped
  for (int k = 0; k < kMaxDims; ++k) {
    if (k != clip_inner) passes *= dims[k].count;
    if (passes >> 80 != 0) return std::nullopt;
  }
  const bool clips = clip_dim > 0 && clip_dim < kMaxDims && static_cast<int>(clip_dim) != clip_inner;
  const unsigned __int128 clipped = clips ? passes / dims[clip_dim].count : 0;
  const unsigned __int128 all = (passes - clipped) * dims[clip_inner].count + clipped * clip_steps;
  if (all > static_cast<unsigned __int128>(std::numeric_limits<std::int64_t>::max())) return std::nullopt;
  return static_cast<std::int64_t>(all);
}

Instruction::Instruction(Opcode opcode) : opcode_(opcode), rows_(info(opcode).rows) {
  put(common::kOpcode, static_cast<std::uint32_t>(opcode));
}

Result<Instruction> Instruction::from_bytes(std::span<const std::uint8_t> bytes) {
  REEF_REQUIRE(bytes.size() >= kRowBytes, "an instruction has at least {} bytes, these are {}", kRowBytes,
               bytes.size());
  const unsigned code = (bytes[0] >> 6 | bytes[1] << 2) & 63;
  const auto opcode = opcode_from_code(code);
  REEF_REQUIRE(opcode.has_value(), "unknown opcode {:#04x}", code);
  Instruction instruction(*opcode);
  const std::size_t size = static_cast<std::size_t>(instruction.rows_) * kRowBytes;
  REEF_REQUIRE(bytes.size() == size, "opcode {:#04x} ({}) has {} rows ({} bytes), these are {} bytes", code,
               info(*opcode).mnemonic, instruction.rows_, size, bytes.size());
  for (std::size_t word = 0; word < size / 8; ++word) {
    std::uint64_t value = 0;
    for (int i = 7; i >= 0; --i) value = value << 8 | bytes[word * 8 + static_cast<std::size_t>(i)];
    instruction.words_[word] = value;
  }
  return instruction;
}

void Instruction::append_to(std::vector<std::uint8_t>& bytes) const {
  for (const std::uint64_t word : words()) {
    for (int i = 0; i < 8; ++i) bytes.push_back(static_cast<std::uint8_t>(word >> (8 * i)));
  }
}

std::uint32_t Instruction::bits(const Field& field) const {
  if (field.end() > rows_ * kRowBits) return 0;
  const std::size_t word = field.bit / 64;
  const int shift = field.bit % 64;
  std::uint64_t value = words_[word] >> shift;
  if (shift > 32) value |= words_[word + 1] << (64 - shift);
  return static_cast<std::uint32_t>(value) & field.mask();
}

void Instruction::put(const Field& field, std::uint32_t value) {
  const std::size_t word = field.bit / 64;
  const int shift = field.bit % 64;
  const std::uint64_t mask = field.mask();
  words_[word] = (words_[word] & ~(mask << shift)) | (static_cast<std::uint64_t>(value) << shift);
  if (shift + field.width > 64) {
    words_[word + 1] =
        (words_[word + 1] & ~(mask >> (64 - shift))) | (static_cast<std::uint64_t>(value) >> (64 - shift));
  }
}

std::int64_t Instruction::get(const Field& field) const {
  const std::uint32_t value = bits(field);
  if (field.kind == Kind::kSigned && (value >> (field.width - 1) & 1) != 0) {
    return static_cast<std::int64_t>(value) - (std::int64_t{1} << field.width) + field.plus;
  }
  return static_cast<std::int64_t>(value) + field.plus;
}

float Instruction::get_float(const Field& field) const { return std::bit_cast<float>(bits(field)); }

Status Instruction::set(const Field& field, std::int64_t value) {
  REEF_REQUIRE(field.end() <= rows_ * kRowBits, "{} has no field {} at bit {}", info(opcode_).mnemonic,
               field.full_name(), field.bit);
  REEF_REQUIRE(value >= lowest(field) && value <= highest(field), "{} is {}, but the field holds {} to {}",
               field.full_name(), value, lowest(field), highest(field));
  REEF_REQUIRE(field.end() <= common::kOpcode.bit || field.bit >= common::kOpcode.end() ||
                   (field == common::kOpcode && value == static_cast<std::int64_t>(opcode_)),
               "the opcode of an instruction cannot be changed");
  put(field, static_cast<std::uint32_t>(modular(value - field.plus)) & field.mask());
  return ok_status();
}

Status Instruction::set_float(const Field& field, float value) {
  REEF_REQUIRE(field.kind == Kind::kFloat32, "{} is not a float32 field", field.full_name());
  return set(field, std::bit_cast<std::uint32_t>(value));
}

void Instruction::set_usual() {
  for (const Field& field : fields(opcode_)) {
    if (!(field == common::kOpcode)) put(field, field.usual);
  }
}

Nest Instruction::read_nest(const NestFields& fields) const {
  Nest nest;
  const std::uint32_t used = fields.has_addresses ? bits(fields.used) : 0;
  if (fields.has_addresses) nest.base = bits(fields.base);
  std::uint64_t span = 0;  // from the first to the last address of the dimensions so far
  for (int k = 0; k < fields.dims; ++k) {
    const std::uint64_t limit = bits(fields.limit[k]);
    const std::uint64_t stride = fields.has_addresses ? modular(get(fields.delta[k])) + span : 0;
    span += stride * limit;
    nest.dims[k] = {wrapping(stride), static_cast<std::uint32_t>(limit) + 1, (used >> k & 1) != 0};
  }
  if (fields.has_addresses && fields.has_buffer) {
    nest.buffer_level = bits(fields.buffer_level);
    nest.buffer_stride = get(fields.buffer_stride);
  }
  nest.clip_steps = bits(fields.clip_limit) + 1;
  nest.clip_dim = bits(fields.clip_dim);
  if (fields.has_addresses) nest.clip_deficit = static_cast<std::int32_t>(get(fields.clip_deficit));
  return nest;
}

Status Instruction::write_nest(const NestFields& fields, const Nest& nest) {
  Instruction changed = *this;  // so that a failure leaves nothing half done
  std::uint64_t span = 0;
  std::uint32_t used = 0;
  REEF_REQUIRE(nest.significant_dims() <= fields.dims, "nest {} has {} dimensions, the instruction has {}", fields.name,
               nest.significant_dims(), fields.dims);
  for (int k = 0; k < fields.dims; ++k) {
    const Nest::Dim& dim = nest.dims[k];
    REEF_REQUIRE(dim.count >= 1, "nest {}: dimension {} has no steps", fields.name, k);
    REEF_RETURN_IF_ERROR(changed.set(fields.limit[k], static_cast<std::int64_t>(dim.count) - 1));
    if (!fields.has_addresses) {
      REEF_REQUIRE(dim.stride == 0 && !dim.used, "nest {} has counts only", fields.name);
      continue;
    }
    const std::int64_t delta = wrapping(modular(dim.stride) - span);
    REEF_REQUIRE(delta >= lowest(fields.delta[k]) && delta <= highest(fields.delta[k]),
                 "nest {}: stride {} of dimension {} needs the delta {}, but the field holds {} to {}", fields.name,
                 dim.stride, k, delta, lowest(fields.delta[k]), highest(fields.delta[k]));
    REEF_RETURN_IF_ERROR(changed.set(fields.delta[k], delta));
    span += modular(dim.stride) * (dim.count - 1);
    used |= static_cast<std::uint32_t>(dim.used) << k;
  }
  if (fields.has_addresses) {
    REEF_RETURN_IF_ERROR(changed.set(fields.base, nest.base));
    REEF_RETURN_IF_ERROR(changed.set(fields.used, used));
    REEF_RETURN_IF_ERROR(changed.set(fields.clip_deficit, nest.clip_deficit));
  }
  if (fields.has_addresses && fields.has_buffer) {
    REEF_RETURN_IF_ERROR(changed.set(fields.buffer_level, nest.buffer_level));
    REEF_RETURN_IF_ERROR(changed.set(fields.buffer_stride, nest.buffer_stride));
  } else {
    REEF_REQUIRE(nest.buffer_level == 0 && nest.buffer_stride == 0, "nest {} has no double buffer", fields.name);
  }
  REEF_RETURN_IF_ERROR(changed.set(fields.clip_limit, static_cast<std::int64_t>(nest.clip_steps) - 1));
  REEF_RETURN_IF_ERROR(changed.set(fields.clip_dim, nest.clip_dim));
  *this = changed;
  return ok_status();
}

Watcher Instruction::read_watcher(const WatcherFields& fields) const {
  return {.counter = bits(fields.counter),
          .level = bits(fields.level),
          .threshold = static_cast<std::int32_t>(get(fields.threshold)),
          .increment = bits(fields.increment),
          .enabled = test(fields.enabled),
          .on_destination = fields.has_side && test(fields.side)};
}

Status Instruction::write_watcher(const WatcherFields& fields, const Watcher& watcher) {
  Instruction changed = *this;
  REEF_RETURN_IF_ERROR(changed.set(fields.counter, watcher.counter));
  REEF_RETURN_IF_ERROR(changed.set(fields.level, watcher.level));
  REEF_RETURN_IF_ERROR(changed.set(fields.threshold, watcher.threshold));
  REEF_RETURN_IF_ERROR(changed.set(fields.increment, watcher.increment));
  REEF_RETURN_IF_ERROR(changed.set(fields.enabled, watcher.enabled));
  REEF_REQUIRE(fields.has_side || !watcher.on_destination, "watchers of {} have no side", info(opcode_).mnemonic);
  if (fields.has_side) REEF_RETURN_IF_ERROR(changed.set(fields.side, watcher.on_destination));
  *this = changed;
  return ok_status();
}

Producer Instruction::read_producer(const ProducerFields& fields) const {
  return {.enabled = test(fields.enabled), .level = bits(fields.level)};
}

Status Instruction::write_producer(const ProducerFields& fields, const Producer& producer) {
  REEF_RETURN_IF_ERROR(set(fields.level, producer.level));
  return set(fields.enabled, producer.enabled);
}

std::uint32_t Instruction::producer_counter(const ProducerFields& fields) const {
  return fields.selector ? fields.selected[bits(*fields.selector) & 3] : fields.counter;
}

bool Instruction::operator==(const Instruction& other) const {
  return opcode_ == other.opcode_ && std::ranges::equal(words(), other.words());
}

}  // namespace reef::isa
