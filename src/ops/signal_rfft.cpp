// SPDX-License-Identifier: Apache-2.0
// SignalRfft (TFLite-Micro): the Fourier transform of frames of real numbers, zero-padded to fft_length.
// The result's last dimension holds fft_length / 2 + 1 pairs (real, imaginary).
#include <algorithm>

#include "kernels/signal/rfft.h"
#include "ops/checks.h"
#include "ops/flex_options.h"
#include "ops/op_def.h"

namespace reef::ops {
namespace {

constexpr std::int64_t kSignalRfftMaxLength = std::int64_t{1} << 24;
constexpr AttributeDoc kSignalRfftAttributes[] = {{"fft_length", "length of the transform: a power of two, 4 to 2^24"},
                                                  {"T", "element type; the input's own type decides"}};

Result<std::int64_t> fft_length(const OpContext& ctx) {
  REEF_ASSIGN_OR_RETURN(const FlexOptions options, FlexOptions::parse(ctx.op().custom_options));
  REEF_ASSIGN_OR_RETURN(const std::int64_t length, options.get_int("fft_length"));
  REEF_REQUIRE(length >= 4 && length <= kSignalRfftMaxLength && (length & (length - 1)) == 0,
               "fft_length is {}; a power of two from 4 to {} is needed", length, kSignalRfftMaxLength);
  const Shape& shape = ctx.input(0).shape;
  REEF_REQUIRE(shape.rank() >= 1 && shape.last() <= length, "frames of shape {} do not fit an fft_length of {}",
               shape.to_string(), length);
  return length;
}

Status signal_rfft_infer(InferContext& ctx) {
  REEF_ASSIGN_OR_RETURN(const std::int64_t length, fft_length(ctx));
  Shape shape = ctx.input(0).shape;
  shape[shape.rank() - 1] = static_cast<std::int32_t>(length + 2);
  return give_shape(ctx, std::move(shape));
}

template <typename T>
Kernel signal_rfft_make_kernel(std::int64_t length) {
  return [length](RunContext& run) {
    const Tensor& input = run.input(0);
    const std::int64_t frame = input.shape.last();
    const std::int64_t frames = input.shape.product(0, input.shape.rank() - 1);
    kernels::RealFft<T> fft(length);
    std::vector<T> padded(static_cast<std::size_t>(length));
    for (std::int64_t i = 0; i < frames; ++i) {
      std::copy_n(input.values<T>().data() + i * frame, frame, padded.data());
      fft(padded.data(), run.output(0).mutable_values<T>().data() + i * (length + 2));
    }
    return ok_status();
  };
}

Result<Kernel> signal_rfft_prepare(PrepareContext& ctx) {
  REEF_ASSIGN_OR_RETURN(const std::int64_t length, fft_length(ctx));
  REEF_RETURN_IF_ERROR(require_same_type(ctx.input(0), ctx.output(0)));
  return for_element_type<float, std::int16_t, std::int32_t>(
      ctx, ctx.input(0).type, [&]<typename T>() { return signal_rfft_make_kernel<T>(length); });
}

}  // namespace

constinit const OpDef signal_rfft_op =
    define({.name = name_of(Op::SignalRfft),
            .summary = "Fourier transform of real numbers (TFLite-Micro).",
            .attributes = kSignalRfftAttributes,
            .types = "int16; int32; float32",
            .is_custom = true,
            .infer = signal_rfft_infer,
            .prepare = signal_rfft_prepare,
            .chip = {.instead = "Features of sound are computed on the CPU before the network."}});

}  // namespace reef::ops
