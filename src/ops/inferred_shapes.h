// SPDX-License-Identifier: Apache-2.0
// Shapes of an operator's results outside of an interpreter, for stages that judge or change a model without running
// it. What a file declares for computed tensors is a claim: TFLite ignores it and infers every shape again, so the op's
// own inference is the only truth. settled_shapes.h makes a whole model tell it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/status.h"
#include "ir/model.h"

namespace reef::ops {

// From the shapes that subgraph `subgraph` gives for the operands, and from the values of those that `is_constant`
// names. Errors:
//   kDeferred      the shapes depend on values that exist only while the model runs
//   kUnsupported   the op is not known, or is resolved only inside an interpreter (control flow, resource variables)
//   kInvalidInput  the op refuses its operands: no runtime can run this model
Result<std::vector<ir::Shape>> infer_shapes(const ir::Model& model, std::size_t subgraph, const ir::Operator& op,
                                            const std::function<bool(std::int32_t)>& is_constant);

// The same where any error means "not known".
std::optional<std::vector<ir::Shape>> inferred_shapes(const ir::Model& model, std::size_t subgraph,
                                                      const ir::Operator& op,
                                                      const std::function<bool(std::int32_t)>& is_constant);

// Ok: the op gives exactly the shapes that the model declares for its results. kInvalidInput: it does not, or it
// refuses its operands; the message names tensor, declared and given shape. Other errors as infer_shapes. For stages
// that index by declared shapes and therefore must not believe them.
Status check_declared_shapes(const ir::Model& model, std::size_t subgraph, const ir::Operator& op);

}  // namespace reef::ops
