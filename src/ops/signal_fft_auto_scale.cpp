// SPDX-License-Identifier: Apache-2.0
// SignalFftAutoScale (TFLite-Micro): shifts a frame up to the full range of 16 bits, and tells by how much.
#include "kernels/signal/audio_features.h"
#include "ops/checks.h"
#include "ops/op_def.h"

namespace reef::ops {
namespace {

constexpr int kScaled = 0, kScaleBits = 1;

Status signal_fft_auto_scale_infer(InferContext& ctx) {
  ctx.set_output_shape(kScaled, ctx.input(0).shape);
  ctx.set_output_shape(kScaleBits, Shape());
  return ok_status();
}

Result<Kernel> signal_fft_auto_scale_prepare(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(require_type(ctx.input(0), "input", {DataType::kInt16}));
  REEF_RETURN_IF_ERROR(require_type(ctx.output(kScaled), "output", {DataType::kInt16}));
  REEF_RETURN_IF_ERROR(require_type(ctx.output(kScaleBits), "scale bits", {DataType::kInt32}));
  return Kernel([](RunContext& run) {
    run.output(kScaleBits).mutable_values<std::int32_t>()[0] = kernels::scale_up_for_fft(
        run.input(0).values<std::int16_t>(), run.output(kScaled).mutable_values<std::int16_t>().data());
    return ok_status();
  });
}

}  // namespace

constinit const OpDef signal_fft_auto_scale_op =
    define({.name = name_of(Op::SignalFftAutoScale),
            .summary = "Shifts a frame of audio up to the full range of 16 bits (TFLite-Micro).",
            .outputs = {2, 2},
            .types = "int16",
            .is_custom = true,
            .infer = signal_fft_auto_scale_infer,
            .prepare = signal_fft_auto_scale_prepare,
            .chip = {.instead = "Features of sound are computed on the CPU before the network."}});

}  // namespace reef::ops
