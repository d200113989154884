// SPDX-License-Identifier: Apache-2.0
// SignalWindow (TFLite-Micro): every frame of audio times a window, shifted down.
#include "kernels/signal/audio_features.h"
#include "ops/checks.h"
#include "ops/flex_options.h"
#include "ops/op_def.h"

namespace reef::ops {
namespace {

constexpr int kSignalWindowInput = 0, kWindow = 1;
constexpr AttributeDoc kSignalWindowAttributes[] = {{"shift", "bits that products are shifted down by, 0 to 31"}};

Status signal_window_infer(InferContext& ctx) { return give_shape(ctx, ctx.input(kSignalWindowInput).shape); }

Result<Kernel> signal_window_prepare(PrepareContext& ctx) {
  for (const int i : {kSignalWindowInput, kWindow})
    REEF_RETURN_IF_ERROR(require_type(ctx.input(i), "input", {DataType::kInt16}));
  REEF_RETURN_IF_ERROR(require_same_type(ctx.input(kSignalWindowInput), ctx.output(0)));
  REEF_RETURN_IF_ERROR(require_rank(ctx.input(kWindow), "window", 1, 1));
  const std::int64_t window = ctx.input(kWindow).elements();
  REEF_REQUIRE(window > 0 && ctx.input(kSignalWindowInput).elements() % window == 0, "{} samples are not frames of {}",
               ctx.input(kSignalWindowInput).elements(), window);
  REEF_ASSIGN_OR_RETURN(const FlexOptions options, FlexOptions::parse(ctx.op().custom_options));
  REEF_ASSIGN_OR_RETURN(const std::int64_t shift, options.get_int("shift"));
  REEF_REQUIRE(shift >= 0 && shift <= 31, "shift is {}; 0 to 31 is possible", shift);
  return Kernel([shift](RunContext& run) {
    kernels::apply_window(run.input(kSignalWindowInput).values<std::int16_t>(),
                          run.input(kWindow).values<std::int16_t>(), static_cast<int>(shift),
                          run.output(0).mutable_values<std::int16_t>().data());
    return ok_status();
  });
}

}  // namespace

constinit const OpDef signal_window_op =
    define({.name = name_of(Op::SignalWindow),
            .summary = "Multiplies frames of audio by a window (TFLite-Micro).",
            .inputs = {2, 2},
            .attributes = kSignalWindowAttributes,
            .types = "int16",
            .is_custom = true,
            .infer = signal_window_infer,
            .prepare = signal_window_prepare,
            .chip = {.instead = "Features of sound are computed on the CPU before the network."}});

}  // namespace reef::ops
