// SPDX-License-Identifier: Apache-2.0
// Estimated time of an op on one core of the host.
#pragma once

#include "ops/op_context.h"

namespace reef::partition {

// Microseconds on the machine the rates were measured on (cpu_rates.def). Ops that are not listed there are charged by
// their elements; shapes that are not known cost nothing but the call.
double cpu_microseconds(const ops::OpContext& ctx);

}  // namespace reef::partition
