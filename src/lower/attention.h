// SPDX-License-Identifier: Apache-2.0
// Attention whose heads stay where they are (attention_plan.h).
#pragma once

#include "lower/attention_plan.h"
#include "lower/builder.h"

namespace reef::lower {

// One of the operators that `attention` names.
Status lower_attention(Builder& builder, std::int32_t op, const Attention& attention);

// SOFTMAX of the pixels of a tensor on the grid, whatever the order of its elements (softmax.cpp).
Status lower_softmax_of_pixels(Builder& builder, std::int32_t op, std::int32_t input);

}  // namespace reef::lower
