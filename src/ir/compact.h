// SPDX-License-Identifier: Apache-2.0
// Dropping what nothing refers to any more, after operators were removed or replaced: tensors of a subgraph, buffers of
// the model. What is left keeps its order.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/model.h"

namespace reef::ir {

// Drops tensors that are neither an input nor an output of the subgraph, nor an operand of one of its operators, nor
// hold the scales or zero points of a tensor that stays. Returns each tensor's new number; -1: dropped. The subgraph
// must have been verified. The first form leaves the model's signatures to the caller; in the second they count as uses
// and are renumbered.
std::vector<std::int32_t> drop_unused_tensors(Subgraph& graph);
std::vector<std::int32_t> drop_unused_tensors(Model& model, std::size_t subgraph);

// Drops buffers that neither a tensor nor metadata names. Buffer 0, which means "none", stays.
void drop_unused_buffers(Model& model);

// Removes the elements that are not kept; the new index of each, or -1.
template <typename T>
std::vector<std::int32_t> squeeze(std::vector<T>& elements, const std::vector<bool>& keep) {
  std::vector<std::int32_t> moved(elements.size(), -1);
  std::size_t count = 0;
  for (std::size_t i = 0; i < elements.size(); ++i) {
    if (!keep[i]) continue;
    moved[i] = static_cast<std::int32_t>(count);
    if (count != i) elements[count] = std::move(elements[i]);
    ++count;
  }
  elements.resize(count);
  return moved;
}

}  // namespace reef::ir
