// SPDX-License-Identifier: Apache-2.0
// Instructions prepared for following: loop nests, waits and signals taken out of the bits once.
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "base/status.h"
#include "isa/instruction.h"
#include "retarget/nest_walk.h"

namespace reef::retarget {

struct Wait {
  std::uint8_t counter = 0;
  std::uint8_t level = 0;
  std::int32_t threshold = 0;
  std::uint32_t increment = 0;
};

struct Signal {
  bool enabled = false;
  std::uint8_t counter = 0;
  std::uint8_t level = 0;
};

// Where a resampling op reads: (phase + 2 * i) / (2 * factor) pixels from the first along each axis.
struct ResampleCode {
  int x_phase = 0, y_phase = 0, x_factor = 1, y_factor = 1;
  bool is_nearest = false;
  std::int64_t pixel_stride = 0, row_stride = 0;  // bytes
};

struct TensorCode {
  NestShape loops, in, out, param, psum;
  std::vector<Wait> waits;
  Signal avdata, parameters;
  bool in_16 = false, param_16 = false, psum_to_line = false;
  int lanes_off = 0;  // bit mask of byte lanes
  int cells = 1, out_words = 1;
  int products = 4;  // operands of a step and cell
  int scaling_level = 0;
  int group_level = -1;  // inner psum dimensions that make one result; -1: reduce_dims says it
  std::uint32_t reduce_dims = 0;
  bool has_bias = false, has_multipliers = false, has_zero_line = false, has_activation = false;
  std::int64_t zero_line = 0, zero_line_step = 0;
  ResampleCode resample;
  // Bytes as they are: each result byte is an input byte, if the parameters are zeros and ones.
  bool is_plain = false;
};

struct TableCode {};

struct RingSendCode {
  NestShape in;
  std::vector<Wait> waits;
  Signal ring_write, ring_producer;
  int channel = 0;
  std::uint16_t to_tiles = 0;
  bool to_scalar = false;
};

struct RingReceiveCode {
  NestShape out;
  std::vector<Wait> waits;
  Signal read;
  int channel = 0;
  bool has_header = false;
  int header_level = 0;  // header lines come before each pass of this level
  std::int64_t header_first = 0, header_lines = 0, header_step = 0, header_buffers = 1;
};

struct ToWideCode {
  NestShape in, out;  // words, lines
  std::vector<Wait> in_waits, out_waits;
  Signal signal;
  bool transpose = false, halves = false;
  int line_level = 0;
};

struct ToNarrowCode {
  NestShape in, out;  // lines, words (or 8-byte units of scaling memory)
  std::vector<Wait> in_waits, out_waits;
  Signal signal;
  bool to_scaling = false;
  int line_level = 0;
  bool has_skip = false;
  int skip_level = 0;  // words are skipped before each pass of this level
  std::int64_t skip_words = 0;
};

struct MeshCode {
  bool sends = false, receives = false, fills = false;
  NestShape in, out;  // words
  std::vector<Wait> in_waits, out_waits;
  Signal sent, received;
  int from = 0;  // tile number of the neighbour that words come from, minus the own one
  std::uint32_t fill_value = 0;
};

struct TileFenceCode {
  std::uint32_t drain = 0, reset = 0;
  std::int16_t reset_to = 0;
  bool notify = false;
};

struct ScalarFenceCode {
  std::uint32_t reset = 0, drain = 0;
  std::int16_t reset_to = 0;
  bool await_notify = false;
  std::uint16_t notify_tiles = 0;
  std::vector<Wait> waits;
};

struct InfeedCode {
  bool activations = false;
  NestShape out;
  std::vector<Wait> waits;
  Signal signal;
};

struct PopCode {
  int source = 0;  // 0 parameters, 1 activations, 2 loop-back
  NestShape in;
  std::vector<Wait> waits;
  Signal signal, ring_producer;
  std::uint16_t to_tiles = 0;
  int line_bytes = 0;
};

struct OutfeedCode {
  NestShape out;
  std::vector<Wait> waits;
  Signal signal;
  bool loopback = false;
  int unit_bytes = 4;
};

using UnitCode = std::variant<std::monostate, TensorCode, TableCode, RingSendCode, RingReceiveCode, ToWideCode,
                              ToNarrowCode, MeshCode, TileFenceCode, ScalarFenceCode, InfeedCode, PopCode, OutfeedCode>;

struct PreparedInstruction {
  isa::Opcode opcode = isa::Opcode::kScalar;
  std::uint16_t tiles = 0;  // 0: not a tile instruction
  UnitCode code;
};

Result<PreparedInstruction> prepare_instruction(const isa::Instruction& instruction);

}  // namespace reef::retarget
