// SPDX-License-Identifier: Apache-2.0
// Where machine code comes from: a part of a model in, a package out.
//
// The seam between choosing operators for the chip and generating code for them. A generator answers kUnsupported for a
// part that it has no code for (the file then gets a package without code, which says so, see
// formats/darwinn/placeholder.h), and any other error for a part that cannot be compiled at all, such as one whose
// activations do not fit (edgetpu_compiler -d then looks for a smaller one).
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/status.h"
#include "formats/darwinn/package.h"
#include "ir/model.h"

namespace reef::compiler {

struct PartProgram {
  const ir::Model& model;                     // verified; the part is of subgraph 0
  std::vector<std::int32_t> ops;              // ascending
  std::vector<std::int32_t> inputs, outputs;  // tensors, in the order of the custom op's operands
  int min_runtime_version = 14;
  std::uint64_t caching_token = 0;    // equal in everything that is compiled together
  std::int64_t cached_bytes_max = 0;  // of parameters on the chip: what others have left
};

using CodeGenerator = std::function<Result<darwinn::Package>(const PartProgram&)>;

// Reef's own. This version generates no code: every part is answered with kUnsupported.
Result<darwinn::Package> generate_code(const PartProgram& part);

}  // namespace reef::compiler
