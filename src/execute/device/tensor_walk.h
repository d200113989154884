// SPDX-License-Identifier: Apache-2.0
// The steps of a tensor instruction on one tile, for whoever repeats them on something else than bytes.
//
// The tensor unit itself takes many steps at once where it can (tensor_matrices.cpp); what it does is the same as if it
// had taken them one by one, as here and in tensor_steps.cpp.
#pragma once

#include <algorithm>
#include <cstdint>

#include "execute/device/chip.h"

namespace reef::device {

// Which of the results under way the step belongs to.
inline std::int64_t slot_at(const isa::TensorOperation& op, const isa::NestCursor& loops) {
  std::int64_t slot = 0, size = 1;
  for (int d = 0; d < op.loops.dims; ++d) {
    if ((op.reduce_dims >> d & 1) != 0) continue;
    slot += size * loops.index(d);
    size *= op.loops.count[at(d)];
  }
  return slot;
}

// Where in a cell's word product `j` finds its parameter: a byte or a half, beginning at the lane.
inline int parameter_index(const isa::TensorOperation& op, int lane, int j) {
  if (op.param_16) return op.products == 1 ? lane >> 1 : j;
  return op.products == 4 ? j : (lane + j) & 3;
}

struct TensorWalk {
  const isa::TensorOperation* op = nullptr;  // null: the tensor unit loads a table, or nothing was started yet
  isa::Opcode opcode = isa::Opcode::kMultiplyAdd;
  std::uint32_t index = 0;                      // of the instruction
  isa::NestCursor loops, in, param, psum, out;  // where the instruction stands in its nests
  std::int64_t scaling_phase = 0;               // passes of the scaling buffers that earlier instructions have made
  std::int64_t results = 0;                     // that are stored

  TensorWalk() = default;
  // At the moment when the tensor unit takes up an instruction.
  TensorWalk(const Tile& tile, const Running& run)
      : op(std::get_if<isa::TensorOperation>(&run.operation->code)), opcode(run.operation->opcode), index(run.index) {
    if (op == nullptr) return;
    const BufferPhases& phases = tile.units[at(isa::Unit::kTensor)].phases;
    loops = isa::NestCursor(op->loops, 0);
    in = isa::NestCursor(op->in, phases.first);
    param = isa::NestCursor(op->param, phases.second);
    psum = isa::NestCursor(op->psum, 0);
    out = isa::NestCursor(op->out, phases.out);
    scaling_phase = phases.scaling;
  }

  bool multiplies() const { return opcode == isa::Opcode::kMultiplyAdd; }
  bool resamples() const { return opcode == isa::Opcode::kResample; }
  bool ends_result() const { return isa::ends_result(*op, opcode, loops, psum); }
  // Which of the two buffers of scales, biases and zero points the step uses.
  std::int64_t scaling_buffer() const { return (loops.pass(op->scaling_level) + scaling_phase) & 1; }
  void advance() {
    loops.advance();
    psum.advance();
    if (multiplies() || resamples()) in.advance();
    if (!resamples()) param.advance();
  }
  // Calls store(word, words, address) for the words of a result that are stored: `words` of them, from the result's
  // word number `word` on, lie side by side from byte `address` of narrow memory on.
  template <typename Store>
  void store_result(Store&& store) {
    const std::int64_t begin = results++ * op->out_words, end = begin + op->out_words;
    while (!out.done() && out.position() < end) {
      const std::int64_t word = out.position() - begin;
      const std::int64_t words = op->out.stride[0] == 4 ? std::min(out.run(), op->out_words - word) : std::int64_t{1};
      if (NarrowMemory::holds_bytes(out.address(), 4 * words)) store(word, words, out.address());
      out.advance(words);
    }
  }
};

}  // namespace reef::device
