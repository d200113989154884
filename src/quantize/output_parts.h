// SPDX-License-Identifier: Apache-2.0
// How an output can be taken apart: the parts that a CONCATENATION joins, also where operators follow that treat each
// element, or each part, alike.
//
// Detectors join boxes and scores in their last steps, but seldom in the last one. Exporters put a TRANSPOSE, a RESHAPE
// or a product with strides behind, or join boxes and scores of each feature map first and then the feature maps. All
// of these can be done on the parts instead:
//
//   op(concat(a, b))                            = concat(op(a), op(b))
//   concat_rows(concat(a1, b1), concat(a2, b2)) = concat(concat_rows(a1, a2), concat_rows(b1, b2))
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/model.h"

namespace reef::quantize {

// One way to take a tensor apart: parts of these sizes along an axis, one behind the other.
struct Partition {
  int axis = 0;
  std::vector<std::int64_t> sizes;
  bool is_crossed = false;  // the second of the equations above: by the joints in front of the last one
};

// All ways that are known for tensor `t` of the first subgraph; none: it cannot be taken apart.
std::vector<Partition> partitions_of(const ir::Model& model, std::int32_t t);

// Adds operators to the first subgraph of `model` that compute the parts of `t`, and gives the parts. New tensors are
// called after `name`. `source` is the model that `partition` was found in: `model` is a copy of it, to which operators
// may have been added since (they read tensors that nobody else read, so that `model` itself no longer shows the way).
std::vector<std::int32_t> add_parts(ir::Model& model, const ir::Model& source, std::int32_t t,
                                    const Partition& partition, const std::string& name);

// Adds a CONCATENATION of tensors along an axis, and gives its result.
std::int32_t add_joint(ir::Model& model, const std::vector<std::int32_t>& parts, int axis, const std::string& name);

}  // namespace reef::quantize
