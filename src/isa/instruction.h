// SPDX-License-Identifier: Apache-2.0
// One instruction: its opcode and its bits, read and written by field, and its loop nests as counts and strides.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/status.h"
#include "isa/format.h"

namespace reef::isa {

// A loop nest as a programmer thinks of it. Dimension 0 is innermost. Step i of dimension k adds i * stride.
struct Nest {
  struct Dim {
    std::int64_t stride = 0;  // in the nest's address unit
    std::uint32_t count = 1;  // steps, at least 1
    bool used = false;        // the `used` mask of the hardware; see NestFields::used
    bool operator==(const Dim&) const = default;
  };
  std::uint32_t base = 0;
  std::array<Dim, kMaxDims> dims;  // dimensions that the hardware nest does not have stay {0, 1, false}
  std::uint32_t buffer_level = 0;
  std::int64_t buffer_stride = 0;
  // While dimension clip_dim is at its last index, dimension 0 runs clip_steps steps, mostly fewer but sometimes more
  // than dims[0].count. clip_dim 0 is no clip. Where narrow_to_wide transposes, it is dimension 1 that runs clip_steps
  // steps.
  std::uint32_t clip_steps = 1;
  std::uint32_t clip_dim = 0;
  std::int32_t clip_deficit = 0;  // (count - clip_steps) * stride of the dimension that is clipped

  // Dimensions up to the last that is not {stride 0, count 1, unused}.
  int significant_dims() const;
  // Steps of the whole nest, clip included; nothing where that is more than 2^63 - 1.
  std::optional<std::int64_t> steps(int clip_inner = 0) const;
  bool operator==(const Nest&) const = default;
};

struct Watcher {
  std::uint32_t counter = 0;
  std::uint32_t level = 0;
  std::int32_t threshold = 0;
  std::uint32_t increment = 0;
  bool enabled = false;
  bool on_destination = false;
  bool operator==(const Watcher&) const = default;
};

struct Producer {
  bool enabled = false;
  std::uint32_t level = 0;
  bool operator==(const Producer&) const = default;
};

class Instruction {
 public:
  // All bits 0 but the opcode.
  explicit Instruction(Opcode opcode);
  // From memory: `rows` must be as long as the opcode in its first bytes says. decode() is the checked way.
  static Result<Instruction> from_bytes(std::span<const std::uint8_t> bytes);

  Opcode opcode() const { return opcode_; }
  int rows() const { return rows_; }
  std::span<const std::uint64_t> words() const { return {words_.data(), static_cast<std::size_t>(2 * rows_)}; }
  void append_to(std::vector<std::uint8_t>& bytes) const;

  // The bits of a field as an unsigned number. A field beyond the end of this instruction reads as 0.
  std::uint32_t bits(const Field& field) const;
  // The field's value: sign-extended where it is signed, plus one where it holds a count less one (Field::plus).
  std::int64_t get(const Field& field) const;
  bool test(const Field& field) const { return bits(field) != 0; }
  float get_float(const Field& field) const;

  // Fails, changing nothing, where the value does not fit the field, the field is the opcode and the value another
  // one, or the field does not lie in this instruction.
  Status set(const Field& field, std::int64_t value);
  Status set_float(const Field& field, float value);
  // Puts Field::usual in every field.
  void set_usual();

  Nest read_nest(const NestFields& fields) const;
  Status write_nest(const NestFields& fields, const Nest& nest);
  Watcher read_watcher(const WatcherFields& fields) const;
  Status write_watcher(const WatcherFields& fields, const Watcher& watcher);
  Producer read_producer(const ProducerFields& fields) const;
  Status write_producer(const ProducerFields& fields, const Producer& producer);
  // The counter that a producer of this instruction counts, with its selector as set.
  std::uint32_t producer_counter(const ProducerFields& fields) const;

  bool operator==(const Instruction& other) const;

 private:
  void put(const Field& field, std::uint32_t bits);

  Opcode opcode_;
  std::uint8_t rows_;
  std::array<std::uint64_t, 2 * kMaxRows + 1> words_{};  // one more, so that a field may be read as two words
};

}  // namespace reef::isa
