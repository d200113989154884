// SPDX-License-Identifier: Apache-2.0
// Another model of the same architecture: every weight, bias, scale and zero point changed at random, within what the
// operators allow.
#pragma once

#include <cstdint>

#include "ir/model.h"

namespace reef::testing {

// What must stay equal stays equal: tensors that an operator passes on unchanged share their quantization, outputs of
// SOFTMAX, LOGISTIC and TANH keep theirs, biases that are zero stay zero, scales per channel that are equal stay equal.
ir::Model vary(const ir::Model& model, std::uint32_t seed);

}  // namespace reef::testing
