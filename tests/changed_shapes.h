// SPDX-License-Identifier: Apache-2.0
// Models that say one untrue thing about one tensor: a size, the rank, the batch, the type, or the number of scales.
// What the bytes of a file cannot say is not made; ir::verify accepts many of these, because it knows no operators.
#pragma once

#include <random>
#include <string>

#include "ir/model.h"

namespace reef::testing {

// Changes one thing about one tensor of the first graph and tells which, in words: "tensor 3 'conv': size 1 is 7, not
// 8". Empty: there was nothing to change.
std::string change_one_claim(ir::Model& model, std::mt19937& random);

}  // namespace reef::testing
