// SPDX-License-Identifier: Apache-2.0
// The arena memory of each kernel of TFLite Micro: its parameters, what it keeps between inferences, and scratch memory
// that lives while it runs.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "micro/arena.h"
#include "micro/op_view.h"

namespace reef::micro {

struct OperatorMemory {
  std::int64_t parameters = 0;           // the attributes
  bool has_pointers = false;             // among them: they are aligned to that
  std::int64_t at_start = 0;             // what its Init keeps; 0: nothing
  std::vector<std::int64_t> at_prepare;  // what its Prepare keeps, in order
  std::vector<std::int64_t> scratch;
};

// Tensors of the operator that its kernel looks at while it is prepared, some of them twice (prepared_tensors.def).
std::vector<const ir::Tensor*> prepared_tensors(const OpView& view, Build build);

// Nothing for a kernel whose memory is not known.
std::optional<OperatorMemory> operator_memory(const OpView& view, Build build);

}  // namespace reef::micro
