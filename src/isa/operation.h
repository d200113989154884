// SPDX-License-Identifier: Apache-2.0
// Instructions as operations: loop nests, waits, signals and constants taken out of the bits once, for whoever executes
// or follows programs. What the fields mean, and how that is known, is said where they are defined (tensor_op.h and
// its neighbours); the rules of execution are in docs/hardware/isa.md.
#pragma once

#include <array>
#include <cstdint>
#include <variant>
#include <vector>

#include "base/status.h"
#include "isa/instruction.h"
#include "isa/nest_shape.h"

namespace reef::isa {

// The dimension of one of the instruction's nests that its clip shortens. It is dimension 0, but for the source of a
// narrow_to_wide that transposes: there, dimension 0 is the pixels that change places with the bytes of a word, and the
// clip acts on dimension 1. The field clip_deficit shows it: it holds the missing steps times the stride of that
// dimension in all programs seen (349 clips that lengthen dimension 0 among them).
int clipped_dim(const Instruction& instruction, const NestFields& nest);

// Before pass j of `level`: the counter must have reached threshold + increment * j, compared as a signed difference of
// 16 bits.
struct Wait {
  std::uint8_t counter = 0;
  std::uint8_t level = 0;
  std::int32_t threshold = 0;
  std::uint32_t increment = 0;
};

// After each pass of `level`, the counter is one higher.
struct Signal {
  bool enabled = false;
  std::uint8_t counter = 0;
  std::uint8_t level = 0;
};

// Opcode 05: where the samples are.
struct ResampleAxis {
  int dim = 0;  // of the loops
  bool nearest = false;
  std::int32_t phase = 0, factor = 1;  // source coordinate of output i: (phase + 2 * i) / (2 * factor) pixels
};

struct TensorOperation {
  NestShape loops, in, out, param, psum;
  std::vector<Wait> waits;
  Signal avdata, parameters;
  bool in_16 = false, param_16 = false, out_16 = false;
  bool accumulate_inside = true;  // false: partial sums live in wide memory
  bool static_params = false;
  int products = 4;  // operand pairs of a step and cell: 4, 2 or 1
  int cells = 1;
  int out_words = 1;  // of a result
  int scaling_level = 0;
  int group_level = -1;           // inner psum dimensions that make one result; -1: reduce_dims says it
  std::uint32_t reduce_dims = 0;  // mask of loop dimensions
  std::int32_t in_zero = 0, param_zero = 0, out_zero = 0;
  bool has_zero_line = false;  // parameter zero points, one per cell, from wide memory
  std::int64_t zero_line = 0, zero_line_step = 0;
  std::int32_t constant = 0;
  bool has_bias = false, has_scales = false;  // one per cell, from scaling memory
  float scale = 1, min = 0, max = 0;
  bool activation = false, reciprocal_root = false, odd_symmetry = false;
  // Opcode 05 only.
  ResampleAxis x, y;
  std::int32_t pixel_stride = 0, row_stride = 0;  // bytes

  // 16-bit parameters that are no weights, 8-bit inputs and partial sums in wide memory: the sums are results
  // themselves.
  bool sums_are_results() const { return !accumulate_inside && param_16 && !in_16 && !static_params; }
  // Bytes as they are: each result byte is an input byte, if the parameters are zeros and ones.
  bool is_plain_copy() const;
};

struct LoadActivation {
  std::array<std::array<float, 5>, 8> segments{};  // polynomial coefficients, constant first
  std::array<float, 7> breaks{};
};

struct RingSend {
  NestShape in;
  std::vector<Wait> waits;
  Signal ring_write, ring_producer;
  int channel = 0;  // 0: A, 1: B
  std::uint16_t to_tiles = 0;
  bool to_scalar = false;
};

struct RingReceive {
  NestShape out;
  std::vector<Wait> waits;
  Signal read;
  int channel = 0;
  bool has_header = false;
  int header_level = 0;  // header lines come before each pass of this level
  std::int64_t header_first = 0, header_lines = 0, header_step = 0, header_buffers = 1;
};

struct NarrowToWide {
  NestShape in, out;  // words, lines
  std::vector<Wait> in_waits, out_waits;
  Signal signal;
  bool transpose = false, halves = false;
  int line_level = 0;
  int base_register = -1;  // scalar register that holds the base of `in`; -1: none
};

struct WideToNarrow {
  NestShape in, out;  // lines, words (or steps of 8 bytes of scaling memory)
  std::vector<Wait> in_waits, out_waits;
  Signal signal;
  bool to_scaling = false;
  int line_level = 0;
  int skip_level = 0;           // `skip_words` words are skipped before each pass of this level
  std::int64_t skip_words = 0;  // 0: none
};

struct Mesh {
  bool sends = false, receives = false, fills = false;
  std::uint32_t fill_value = 0;
  NestShape in, out;  // words
  std::vector<Wait> in_waits, out_waits;
  Signal sent, received;
};

struct TileFence {
  std::uint32_t drain = 0, reset = 0;  // masks of units and counters
  std::int32_t reset_to = 0;
  bool notify = false;
  bool await_producer_a = false, await_producer_b = false;
  std::int32_t await_count = 0;

  // Units whose double buffers start over: those that it drains. A fence of the tensor unit alone restarts nothing.
  std::uint32_t restarts() const { return drain == kTensorUnitOnly ? 0 : drain; }
  static constexpr std::uint32_t kTensorUnitOnly = 1;
};

struct ScalarFence {
  std::uint32_t reset = 0, drain = 0;
  std::int32_t reset_to = 0;
  bool await_notify = false;
  std::uint16_t notify_tiles = 0;
  std::vector<Wait> waits;
};

struct Infeed {
  bool activations = false;
  NestShape out;
  std::vector<Wait> waits;
  Signal signal;
};

struct Pop {
  int source = 0;  // 0 parameters, 1 activations, 2 loop-back
  NestShape in;
  std::vector<Wait> waits;
  Signal signal, ring_producer;
  std::uint16_t to_tiles = 0;
  int line_bytes = 0;
};

struct Outfeed {
  NestShape out;
  std::vector<Wait> waits;
  Signal signal;
  bool loop_back = false;
  int unit_bytes = 4;  // 8: straight to the host
};

// Scalar instructions (bundles, branches, repeats, halt, start, end) are read from their fields.
using OperationCode = std::variant<std::monostate, TensorOperation, LoadActivation, RingSend, RingReceive, NarrowToWide,
                                   WideToNarrow, Mesh, TileFence, ScalarFence, Infeed, Pop, Outfeed>;

struct Operation {
  Opcode opcode = Opcode::kScalar;
  std::uint16_t tiles = 0;  // 0: no tile instruction, or the mask comes from a register
  int tiles_register = -1;  // scalar register that holds the tile mask; -1: none
  OperationCode code;
};

// Whether a counter has reached a value: 16 bits that wrap, compared as a signed difference.
constexpr bool has_reached(std::uint16_t counter, std::uint32_t needed) {
  return static_cast<std::int16_t>(static_cast<std::uint16_t>(counter - needed)) >= 0;
}

// Whether the step on which the cursors of a tensor operation stand is the last one of its result.
bool ends_result(const TensorOperation& operation, Opcode opcode, const NestCursor& loops, const NestCursor& psum);

// Fails where the fields contradict each other in a way that no execution could make sense of.
Result<Operation> operation_of(const Instruction& instruction);

}  // namespace reef::isa
