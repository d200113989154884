// SPDX-License-Identifier: Apache-2.0
// Where the bytes that a program's arithmetic works on come from.
//
// A compiled program says which bytes move where, not which layer they belong to. Following every byte from its origin
// to the instruction that computes with it answers that: each parameter byte of the package, each input byte, each
// constant word and each computed value has a tag, and each arithmetic instruction ("tensor op") gets a list of the
// tags it read.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace reef::retarget {

// The origin of a byte. Its number is an offset in the blob, an index of an input layer or an index of an instruction;
// for values it is an index of an instruction and the cell that made it.
enum class Origin : std::uint8_t {
  kUnwritten = 0,
  kCached = 1,    // byte of the parameter-caching program's parameters
  kStreamed = 2,  // byte of the other program's parameters
  kInput = 3,     // byte of an input layer
  kValue = 4,     // result of a tensor op
  kFill = 5,      // constant word that a mesh instruction stores
};

// Origin in the top 4 bits, its number in the others. 0: never written.
using Tag = std::uint32_t;
inline constexpr std::uint32_t kMaxTagNumber = (1u << 28) - 1;
constexpr Tag make_tag(Origin origin, std::uint32_t number) {
  return (static_cast<std::uint32_t>(origin) << 28) | (number & kMaxTagNumber);
}
constexpr Origin tag_origin(Tag tag) { return static_cast<Origin>(tag >> 28); }
constexpr std::uint32_t tag_number(Tag tag) { return tag & kMaxTagNumber; }

inline constexpr int kCellBits = 6;
inline constexpr std::uint32_t kMaxInstructions = kMaxTagNumber >> kCellBits;
constexpr Tag value_tag(std::uint32_t instruction, int cell) {
  return make_tag(Origin::kValue, instruction << kCellBits | static_cast<std::uint32_t>(cell));
}
constexpr std::uint32_t value_instruction(Tag tag) { return tag_number(tag) >> kCellBits; }
constexpr int value_cell(Tag tag) { return static_cast<int>(tag & ((1u << kCellBits) - 1)); }
// The same for all results of an instruction; other tags stand for themselves.
constexpr Tag tag_family(Tag tag) {
  return tag_origin(tag) == Origin::kValue ? value_tag(value_instruction(tag), 0) : tag;
}

// A set of byte offsets: half-open intervals, ascending and apart once `finish` has been called.
class OffsetSet {
 public:
  void add(std::uint32_t offset) {
    if (!runs_.empty() && runs_.back().second == offset) {
      ++runs_.back().second;
    } else if (runs_.empty() || offset < runs_.back().first || offset > runs_.back().second) {
      runs_.emplace_back(offset, offset + 1);
      if (runs_.size() > 2 * merged_ + 4096) finish();
    }
  }
  void finish();
  bool empty() const { return runs_.empty(); }
  std::uint32_t first() const { return runs_.front().first; }
  std::uint32_t end() const { return runs_.back().second; }
  std::uint64_t size() const;
  const std::vector<std::pair<std::uint32_t, std::uint32_t>>& runs() const { return runs_; }

 private:
  std::vector<std::pair<std::uint32_t, std::uint32_t>> runs_;
  std::size_t merged_ = 0;
};

// Everything one operand of a tensor op was read from.
struct Sources {
  OffsetSet cached, streamed;         // offsets in the two blobs
  std::vector<std::uint32_t> inputs;  // sorted, without repetition
  std::vector<std::uint32_t> values;  // instruction indices
  std::vector<std::uint32_t> fills;   // instruction indices
  bool unwritten = false;             // some bytes were never written (or are padding)

  void add(Tag tag);
  void finish();
  bool from_blob() const { return !cached.empty() || !streamed.empty(); }
  bool from_activations() const { return !inputs.empty() || !values.empty(); }

 private:
  Tag last_ = ~Tag{0};  // no tag
};

// One step of a tensor op's first result, on the lowest tile that executes it.
struct FirstStep {
  Tag parameter = 0;               // of the first byte that the first cell takes
  std::array<Tag, 4> inputs{};     // of the input bytes; how many are read depends on the op
  std::int32_t input_address = 0;  // bytes of narrow memory
  std::vector<Tag> words;          // 16-bit parameters only: per cell, of its four bytes
};

struct TensorOpTrace {
  std::uint32_t instruction = 0;  // index into the flat list of the program's instructions
  std::uint16_t tiles = 0;        // that executed it
  Sources input, parameters, biases, multipliers, zero_points;
  std::vector<std::uint32_t> tables;  // activation table instructions
  std::vector<FirstStep> first;
  std::uint64_t results = 0;  // number of results (each of `cells` channels), all tiles together
  std::uint64_t steps_per_result = 0;
  // Distance of the first input bytes of the first two results on the lowest tile; 0: there is only one.
  std::int32_t result_step = 0;
};

// The bytes that leave the chip for one output layer.
struct OutputTrace {
  std::string layer;
  std::vector<Tag> bytes;  // as the host receives them
  Sources sources;         // of all of them
};

struct Trace {
  std::vector<TensorOpTrace> tensor_ops;  // in program order
  std::vector<OutputTrace> outputs;
  // Fills whose words no tensor op and no output has read.
  std::vector<std::uint32_t> unread_fills;
};

}  // namespace reef::retarget
