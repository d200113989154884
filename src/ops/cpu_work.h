// SPDX-License-Identifier: Apache-2.0
// How much one execution of an op takes on a CPU, counted from shapes alone. Estimates of time multiply it by rates
// (partition/cpu_cost.h); bounds on work compare it as it is, so that they decide the same on every machine.
#pragma once

#include "ops/op_context.h"

namespace reef::ops {

// Elements of a tensor as a number that cannot overflow; 0 where the shape is not known or absurd.
double element_count(const Tensor& tensor);
// The larger of the elements that the op reads, constants left out, and those that it writes.
double elements_of(const OpContext& ctx);
// Multiplications of an op with weights or a second matrix as input 1; 0 for all other ops.
double products_of(const OpContext& ctx);
// All of it in one number: a call, every element read or written, constants included, and every product. A unit is
// about a nanosecond of plain scalar code, and much less where kernels use vectors.
double cpu_work(const OpContext& ctx);

}  // namespace reef::ops
