// SPDX-License-Identifier: Apache-2.0
// SOFTMAX and LOG_SOFTMAX work on rows: the last dimension of a tensor of any rank from 1 on.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "base/status.h"
#include "kernels/activation/softmax.h"
#include "ops/op_context.h"

namespace reef::ops {

// Runs body(in, rows, out) on parts of the rows; body returns false where a row's sum of exponentials overflows.
template <typename In, typename Out, typename Body>
Kernel softmax_kernel(Body body) {
  return [body](RunContext& ctx) {
    const Tensor& input = ctx.input(0);
    const std::int64_t depth = input.shape.last();
    const std::int64_t rows = input.shape.product(0, input.shape.rank() - 1);
    const In* in = input.values<In>().data();
    Out* out = ctx.output(0).mutable_values<Out>().data();
    std::atomic<bool> fits = true;
    constexpr std::int64_t kElementsAtOnce = 1 << 13;
    const std::int64_t grain = std::max<std::int64_t>(1, kElementsAtOnce / std::max<std::int64_t>(1, depth));
    ctx.parallel_for(rows, grain, [&](std::int64_t begin, std::int64_t end) {
      if (!body(in, kernels::Rows{begin, end, depth}, out)) fits = false;
    });
    REEF_REQUIRE(fits, "rows of {} elements overflow the fixed-point sum of exponentials; use float32 or fewer", depth);
    return ok_status();
  };
}

}  // namespace reef::ops
