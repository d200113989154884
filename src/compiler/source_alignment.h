// SPDX-License-Identifier: Apache-2.0
// Which operators of a source model each package of a compiled model is.
#pragma once

#include <vector>

#include "compiler/verification.h"

namespace reef::compiler {

// By package, in the order of the compiled model's operators. Tensors at the borders are found over the operators that
// both models have, then by their order, which also tells those of the same name apart; else by names alone. Fails
// where the source has no such tensors.
Result<std::vector<VerifiedPart>> parts_of(const ir::Model& compiled, const ir::Model& source,
                                           const std::vector<darwinn::Package>& packages);

}  // namespace reef::compiler
