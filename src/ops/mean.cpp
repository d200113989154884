// SPDX-License-Identifier: Apache-2.0
// MEAN: means along the given axes. int32 and int64 means are cut towards zero. The mean of nothing is NaN, or 0 in
// integer types.
//
// Quantized means are sums in 32 bits, divided and rescaled. Releases differ here:
//   2.9        images (4 dimensions, axes given as 1 and 2, keep_dims): int8 and int16 are rescaled, then divided by
//   the
//              count, both rounded; uint8 does both in one factor, after which it subtracts a rounded zero point.
//              Otherwise, where input and output are quantized alike, raw values are averaged and cut towards zero;
//              else the mean is rescaled in float
//   current    the count is folded into the fixed-point factor
// float32 means of the last dimension alone are summed by Eigen in 2.9, so their last bits may differ from ours.
#include <fmt/format.h>
#include <bit>

#include "ir/op.h"
#include "ops/chip_rules.h"
#include "ops/reduce_quantized.h"

namespace reef::ops {
namespace {

// factor / count, with as many bits kept as the multiplier has room for.
numeric::Multiplier divide(numeric::Multiplier factor, std::int64_t count) {
  int shift = std::bit_width(static_cast<std::uint64_t>(count)) - 1;
  shift = std::min({shift, 32, 31 + factor.shift});
  return {static_cast<std::int32_t>((static_cast<std::int64_t>(factor.mantissa) << shift) / count),
          factor.shift - shift};
}

template <typename T>
T add_zero_point(std::int32_t mean, std::int32_t zero_point) {
  return numeric::saturate<T>(numeric::wrapping_add(mean, zero_point));
}

template <typename T>
Kernel folded_kernel(const RescaledReduction& rescaling) {
  return make_wide_sum_kernel<T>([rescaling](const kernels::ReducePlan& plan) {
    return [rescaling, count = plan.reduced_elements,
            factor = divide(rescaling.factor, plan.reduced_elements)](std::int32_t sum) {
      const std::int32_t centred = remove_zero_points(sum, rescaling.input.zero_point, count);
      return add_zero_point<T>(numeric::multiply(centred, factor), rescaling.output.zero_point);
    };
  });
}

// 2.9, images of int8 and int16.
template <typename T>
Kernel image_kernel(const RescaledReduction& rescaling) {
  return make_wide_sum_kernel<T>([rescaling](const kernels::ReducePlan& plan) {
    return [rescaling, count = plan.reduced_elements](std::int32_t sum) {
      const std::int32_t centred = remove_zero_points(sum, rescaling.input.zero_point, count);
      const std::int64_t scaled = numeric::multiply(centred, rescaling.factor);
      const std::int64_t mean = (scaled > 0 ? scaled + count / 2 : scaled - count / 2) / count;
      return add_zero_point<T>(static_cast<std::int32_t>(mean), rescaling.output.zero_point);
    };
  });
}

// 2.9, images of uint8.
template <>
Kernel image_kernel<std::uint8_t>(const RescaledReduction& rescaling) {
  return make_wide_sum_kernel<std::uint8_t>([rescaling](const kernels::ReducePlan& plan) {
    const QuantParams in = rescaling.input, out = rescaling.output;
    const float shifted = static_cast<float>(in.zero_point) * in.scale / out.scale + 0.5F;
    const std::int32_t bias = numeric::wrapping_sub(out.zero_point, numeric::round_to_int32(std::trunc(shifted)));
    const numeric::Multiplier factor =
        numeric::make_multiplier(in.scale / (static_cast<float>(plan.reduced_elements) * out.scale));
    return [=](std::int32_t sum) { return add_zero_point<std::uint8_t>(numeric::multiply(sum, factor), bias); };
  });
}

// 2.9, quantized alike.
template <typename T>
Kernel raw_kernel() {
  return make_wide_sum_kernel<T>([](const kernels::ReducePlan& plan) {
    return [count = plan.reduced_elements](std::int32_t sum) { return static_cast<T>(sum / count); };
  });
}

// 2.9, everything else.
template <typename T>
Kernel mean_float_kernel(const RescaledReduction& rescaling) {
  return make_wide_sum_kernel<T>([rescaling](const kernels::ReducePlan& plan) {
    const float scale = rescaling.input.scale / rescaling.output.scale;
    const float bias = static_cast<float>(-rescaling.input.zero_point) * scale;
    const auto count = static_cast<float>(plan.reduced_elements);
    return [=, zero_point = static_cast<float>(rescaling.output.zero_point)](std::int32_t sum) {
      const float mean = std::round(static_cast<float>(sum) / count * scale + bias) + zero_point;
      constexpr float kLow = std::numeric_limits<T>::min(), kHigh = std::numeric_limits<T>::max();
      return static_cast<T>(std::max(std::min(mean, kHigh), kLow));
    };
  });
}

// Whether 2.9's special case for images applies. Asked in each run, because axes may be computed.
bool is_image_mean(const RunContext& ctx) {
  const Tensor& axis = ctx.input(1);
  if (ctx.input(0).shape.rank() != 4 || !ctx.attributes().get_bool("keep_dims") || axis.elements() != 2) return false;
  const std::span<const std::int32_t> axes = axis.values<std::int32_t>();
  return (axes[0] == 1 && axes[1] == 2) || (axes[0] == 2 && axes[1] == 1);
}

template <typename T>
Result<Kernel> mean_quantized_kernel(PrepareContext& ctx) {
  REEF_ASSIGN_OR_RETURN(const RescaledReduction rescaling, RescaledReduction::of(ctx));
  request_wide_sums(ctx);
  if (ctx.environment()->tflite_release() != TfliteRelease::k2_9) return folded_kernel<T>(rescaling);
  const Kernel image = image_kernel<T>(rescaling);
  const Kernel other = rescaling.is_identity() ? raw_kernel<T>() : mean_float_kernel<T>(rescaling);
  return Kernel([=](RunContext& run) { return is_image_mean(run) ? image(run) : other(run); });
}

template <typename T, typename Sum>
struct PlainSumCombiner {
  static constexpr bool kAnyOrder = std::is_integral_v<Sum>;
  static constexpr bool kIsSum = std::is_same_v<T, float>;
  Sum start(T x) const { return numeric::wrapping_sum(Sum{0}, static_cast<Sum>(x)); }
  Sum next(Sum sum, Sum x) const { return numeric::wrapping_sum(sum, x); }
  Sum nothing() const { return 0; }
};

// Means of plain numbers. Sum is float for float, int64_t for integers; sums live in scratch memory.
template <typename T, typename Sum>
Result<Kernel> plain_kernel(PrepareContext& ctx) {
  ctx.request_scratch(ctx.output(0).elements() * static_cast<std::int64_t>(sizeof(Sum)));
  return Kernel([](RunContext& run) -> Status {
    REEF_ASSIGN_OR_RETURN(const kernels::ReducePlan plan, reduce_plan(run));
    const T* input = run.input(0).values<T>().data();
    T* output = run.output(0).mutable_values<T>().data();
    if (plan.input_is_empty) {
      std::fill_n(output, plan.outputs, std::numeric_limits<T>::quiet_NaN());
      return ok_status();
    }
    auto* sums = reinterpret_cast<Sum*>(run.scratch().data());
    const auto count = static_cast<Sum>(plan.reduced_elements);
    run.parallel_for(plan.split_size, kernels::reduce_grain(plan), [&](std::int64_t begin, std::int64_t end) {
      kernels::reduce(plan, input, sums, PlainSumCombiner<T, Sum>{}, begin, end);
      const std::int64_t last = end * plan.outputs_per_split;
      kernels::in_vectors([&] {
        REEF_INDEPENDENT
        for (std::int64_t i = begin * plan.outputs_per_split; i < last; ++i)
          output[i] = static_cast<T>(sums[i] / count);
      });
    });
    return ok_status();
  });
}

Result<Kernel> mean_prepare(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(check_reduce(ctx));
  return for_element_type<float, std::int8_t, std::uint8_t, std::int16_t, std::int32_t, std::int64_t>(
      ctx, ctx.input(0).type, [&]<typename T>() -> Result<Kernel> {
        if constexpr (sizeof(T) < 4) {
          return mean_quantized_kernel<T>(ctx);
        } else {
          return plain_kernel<T, std::conditional_t<std::is_integral_v<T>, std::int64_t, T>>(ctx);
        }
      });
}

// Most pixels of which one mean is taken: between 8,192, which map, and 32,768, which do not.
constexpr std::int64_t kMostPixelsOnChip = 16384;

bool reduces_channels(const OpContext& ctx) {
  const auto axes = chip::named_axes(ctx);
  return axes && !axes->empty() && axes->back();
}

std::string takes_mean_of_channels(const OpContext& ctx) {
  if (!reduces_channels(ctx)) return "";
  return fmt::format("the innermost dimension of input {} is reduced", chip::shape_text(ctx.input(0).shape));
}

std::string takes_mean_of_odd_channels(const OpContext& ctx) {
  const Shape& input = ctx.input(0).shape;
  if (!reduces_channels(ctx) || input.last() % 4 == 0) return "";
  return fmt::format("input is {}: {} channels", chip::shape_text(input), input.last());
}

std::string takes_mean_of_many_pixels(const OpContext& ctx) {
  const auto axes = chip::named_axes(ctx);
  const Shape& input = ctx.input(0).shape;
  if (!axes) return "";
  std::int64_t pixels = 1;
  for (int i = 0; i + 1 < input.rank(); ++i) pixels *= (*axes)[at(i)] ? input[i] : 1;
  if (pixels <= kMostPixelsOnChip) return "";
  return fmt::format("input is {}: means of {} pixels", chip::shape_text(input), chip::number_text(pixels));
}

constexpr ChipRule kMeanChipRules[] = {
    chip::kNoReductionOfBatch,
    {
        .id = "mean-channels",
        .says = "Means are taken over height and width only.",
        .suggestion = "Compile for runtime 12 or later, or take means of channels by a CONV_2D with equal weights.",
        .broken = takes_mean_of_channels,
        .evidence = "Table 1 says so up to runtime 12.",
        .runtimes = kUpTo11,
        .rewrite = "mean",
    },
    {
        .id = "mean-channels-multiple",
        .says = "Where means are taken over channels, there is a multiple of 4 of them.",
        .suggestion = "Pad the channels to a multiple of 4 and scale the result, or use a CONV_2D with equal weights.",
        .broken = takes_mean_of_odd_channels,
        .evidence = "Table 1",
        .runtimes = {12, kNewestRuntime},
        .rewrite = "mean",
    },
    {
        .id = "mean-pixels",
        .says = "A mean is taken of at most 16,384 pixels.",
        .suggestion = "Shrink with AVERAGE_POOL_2D first, or split the image, take means of the parts and add them.",
        .broken = takes_mean_of_many_pixels,
        .source = RuleSource::kReported,
        .evidence = "1x64x128x3 maps, 1x256x128x3 does not (edgetpu#461); 1x256x256x32 crashes the compiler "
                    "(edgetpu#183). Where the limit lies between 8,192 and 32,768 pixels is not known.",
        .rewrite = "mean",
    },
};

}  // namespace

constinit const OpDef mean_op =
    define({.name = name_of(Op::MEAN),
            .summary = "Takes means along axes.",
            .attributes = kReduceAttributes,
            .types = "float32; int8; uint8; int16; int32; int64",
            .form = Form::kReduction,
            .prepare = mean_prepare,
            .chip = {.first_runtime = 10, .rules = kMeanChipRules, .parameters = input_set({1})}});

}  // namespace reef::ops
