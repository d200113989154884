// SPDX-License-Identifier: Apache-2.0
// Finds attention in a part of a model: queries by keys, SOFTMAX, by values, with heads that are runs of channels.
//
// A model writes heads as an axis of their own: RESHAPE, TRANSPOSE and SPLIT cut a layer's result into queries, keys
// and values of each head, others join the heads' results. On the chip a token is a pixel with all channels of all
// heads, which is how the layers before and behind have them; products of a head can read and write its run of channels
// where it is. So nothing of that needs to be moved.
//
// What the movement in between does is not guessed from its operators: where each element comes from is computed, for
// all elements, and looked at. Whatever an exporter writes is found, if it comes to runs of channels.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "ir/model.h"

namespace reef::lower {

// Queries, keys or values: for each head a run of channels, of all tokens or of the first ones.
struct Heads {
  std::int32_t source = -1;  // the model's tensor; its last dimension is the channels, all others are the tokens
  std::int32_t tokens = 0, channels = 0;
  std::int32_t source_tokens = 0;   // of the tensor, at least `tokens`
  std::vector<std::int32_t> first;  // channel, by head
};

struct Attention {
  std::int32_t scores_op = -1, softmax_op = -1, means_op = -1;  // BATCH_MATMUL, SOFTMAX, BATCH_MATMUL
  std::vector<std::int32_t> masks;  // operators between scores and SOFTMAX: sums and products with constants
  Heads queries, keys, values;
  std::int32_t heads = 0, depth = 0, value_depth = 0;  // channels of a head
  std::int32_t scores = -1, result = -1;  // the model's tensors; the result has all heads' channels for each token
};

class AttentionPlan {
 public:
  AttentionPlan() = default;
  // `ops`: of the part, ascending; those that are executed in slices, or whose results the host keeps, are not among
  // them. `outputs`: tensors that others read.
  AttentionPlan(const ir::Model& model, const std::vector<std::int32_t>& ops, const std::set<std::int32_t>& outputs);

  // The operator moves elements, and nobody needs them moved.
  bool is_left_out(std::int32_t op) const { return left_out_.contains(op); }
  // Null: the operator is none of those that an Attention names.
  const Attention* of(std::int32_t op) const {
    const auto found = by_op_.find(op);
    return found == by_op_.end() ? nullptr : &all_[found->second];
  }

 private:
  std::vector<Attention> all_;
  std::map<std::int32_t, std::size_t> by_op_;
  std::set<std::int32_t> left_out_;
};

}  // namespace reef::lower
