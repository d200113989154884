// SPDX-License-Identifier: Apache-2.0
// Which tensors can lie in one place: an output that is nothing but its input under another shape, and the output of an
// element-wise op whose input nobody needs any more.
//
// Problem: a copy that is not made costs nothing, and a result written over its operand finds it in the cache and makes
// the arena smaller. Approach: one walk over the ops in order. A place is a set of tensors with one life, from the
// first write to the last read of any of them; it may be written again only by an op that is the last to read it.
// Outputs of the graph share with none of its other outputs and inputs, so that a caller can fill and read each of them
// by itself.
#pragma once

#include <cstdint>
#include <vector>

namespace reef::cpu {

// A tensor as far as memory is concerned. Tensors that live elsewhere have in_arena false.
struct PlacedTensor {
  std::int64_t bytes = 0;
  bool in_arena = false;
  bool is_input = false, is_output = false;  // of the graph
};

// An op, in order of execution; numbers are tensors.
struct PlacedOp {
  std::vector<std::int32_t> reads, writes;
  std::vector<std::int32_t> may_become;  // reads in whose place writes[0] may be computed
  bool is_view = false;                  // writes[0] has the bytes of reads[0]
};

struct TensorPlaces {
  std::vector<std::int32_t> place;  // of every tensor: the number of the first tensor there
  std::vector<bool> is_free;        // of every op: nothing is left to do
};

TensorPlaces share_places(const std::vector<PlacedTensor>& tensors, const std::vector<PlacedOp>& ops);

}  // namespace reef::cpu
