// SPDX-License-Identifier: Apache-2.0
// The final model: parts of a graph replaced by Edge TPU custom ops, the rest as it was.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "ir/model.h"

namespace reef::emit {

struct CompiledPart {
  std::vector<std::int32_t> ops;              // of subgraph 0, ascending
  std::vector<std::int32_t> inputs, outputs;  // tensors, in the order of the custom op's operands
  Bytes custom_options;                       // darwinn::write_custom_options
};

// Each part becomes one custom op. Tensors and buffers that only they used are dropped; names, order, metadata,
// signatures and the description stay, as Google's compiler leaves them.
Result<ir::Model> compiled_model(const ir::Model& source, const std::vector<CompiledPart>& parts);

}  // namespace reef::emit
