// SPDX-License-Identifier: Apache-2.0
// Tensors whose size is known only while the model runs: what is said of their shape in the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ir/model.h"

namespace reef::import {

// The shape of such a tensor, and of one that could not be made, until the import ends: enough dimensions of 1 for any
// reader.
const ir::Shape& stand_in_shape();

// The shape signature of result `output` of `op`, -1 for sizes that vary. Where even the number of dimensions is not
// known, one is said, which runtimes correct.
std::vector<std::int32_t> open_signature(const ir::Model& model, const ir::Operator& op, std::size_t output);

// As converters write it beside a signature: 1 for sizes that vary.
ir::Shape shape_of_signature(const std::vector<std::int32_t>& signature);

}  // namespace reef::import
