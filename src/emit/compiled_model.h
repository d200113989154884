// SPDX-License-Identifier: Apache-2.0
// The final model: parts of a graph replaced by Edge TPU custom ops, the rest as it was.
//
// The result is what Google's compiler makes of the same parts, which exports the graph with TFLite's own writer:
// tensors keep their names and order, those that only compiled operators used are dropped, every constant gets a buffer
// of its own, an op's tensors come in the order of their numbers. Observed ranges (min, max), shape signatures,
// signatures, "has rank" and metadata of the conversion are not carried over. Other metadata (TFLITE_METADATA) is,
// whether or not Google's compiler does that.
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

struct EmitOptions {
  bool keep_signatures = false;      // Google's compiler drops them
  std::vector<std::string> remarks;  // become metadata "reef", one to a line; empty: none
};

// Each part becomes one custom op. `source` must be verified; the result is. Fails if parts overlap or if something
// that a part computes is needed to compute what the same part reads.
Result<ir::Model> compiled_model(const ir::Model& source, const std::vector<CompiledPart>& parts,
                                 const EmitOptions& options = {});

// Name of the metadata that `remarks` become.
inline constexpr char kRemarksName[] = "reef";

}  // namespace reef::emit
