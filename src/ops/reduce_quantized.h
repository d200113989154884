// SPDX-License-Identifier: Apache-2.0
// Sums and means of quantized tensors: integer sums, then one rescaling per output, which differs between releases of
// TFLite (see sum.cpp and mean.cpp).
#pragma once

#include <cmath>

#include "numeric/fixed_point.h"
#include "ops/checks.h"
#include "ops/reduce.h"

namespace reef::ops {

struct RescaledReduction {
  QuantParams input, output;
  numeric::Multiplier factor;  // input scale / output scale

  bool is_identity() const { return input.scale == output.scale && input.zero_point == output.zero_point; }

  // Everything from the two tensors' quantization, checked.
  static Result<RescaledReduction> of(const OpContext& ctx) {
    RescaledReduction result;
    REEF_ASSIGN_OR_RETURN(result.input, per_tensor_quantization(ctx.input(0), "input"));
    REEF_ASSIGN_OR_RETURN(result.output, per_tensor_quantization(ctx.output(0), "output"));
    result.factor =
        numeric::make_multiplier(static_cast<double>(result.input.scale) / static_cast<double>(result.output.scale));
    return result;
  }
};

// Sums of 8- and 16-bit elements wrap around in 32 bits, as TFLite's do.
template <typename T>
struct WideSumCombiner {
  static constexpr bool kAnyOrder = true;
  std::int32_t start(T x) const { return x; }
  std::int32_t next(std::int32_t sum, std::int32_t x) const { return numeric::wrapping_add(sum, x); }
  std::int32_t nothing() const { return 0; }
};
template <>
struct WideSumCombiner<std::int8_t> : WideSumCombiner<std::int32_t> {
  using Narrow = std::int16_t;
  static constexpr std::int64_t kNarrowElements = 256;  // of at least -128
};
template <>
struct WideSumCombiner<std::uint8_t> : WideSumCombiner<std::int32_t> {
  using Narrow = std::uint16_t;
  static constexpr std::int64_t kNarrowElements = 257;  // of at most 255
};

// sum of (element - zero point), wrapped to 32 bits.
inline std::int32_t remove_zero_points(std::int32_t sum, std::int32_t zero_point, std::int64_t count) {
  return static_cast<std::int32_t>(
      static_cast<std::uint32_t>(static_cast<std::uint64_t>(sum) - static_cast<std::uint64_t>(zero_point * count)));
}

// Asks for the scratch memory that make_wide_sum_kernel uses.
inline void request_wide_sums(PrepareContext& ctx) {
  ctx.request_scratch(ctx.output(0).elements() * static_cast<std::int64_t>(sizeof(std::int32_t)));
}

// A kernel that sums T into 32 bits and passes each sum through finish_of(plan), a function int32_t -> T.
// Outputs of empty inputs are 0, which is what TFLite leaves there.
template <typename T, typename FinishOf>
Kernel make_wide_sum_kernel(FinishOf finish_of) {
  return [finish_of](RunContext& run) -> Status {
    REEF_ASSIGN_OR_RETURN(const kernels::ReducePlan plan, reduce_plan(run));
    const T* input = run.input(0).values<T>().data();
    T* output = run.output(0).mutable_values<T>().data();
    if (plan.input_is_empty) {
      std::fill_n(output, plan.outputs, T{0});
      return ok_status();
    }
    auto* sums = reinterpret_cast<std::int32_t*>(run.scratch().data());
    const auto finish = finish_of(plan);
    run.parallel_for(plan.split_size, kernels::reduce_grain(plan), [&](std::int64_t begin, std::int64_t end) {
      kernels::reduce(plan, input, sums, WideSumCombiner<T>{}, begin, end);
      const std::int64_t last = end * plan.outputs_per_split;
      kernels::in_vectors([&] {
        for (std::int64_t i = begin * plan.outputs_per_split; i < last; ++i) output[i] = finish(sums[i]);
      });
    });
    return ok_status();
  };
}

}  // namespace reef::ops
