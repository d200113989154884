// SPDX-License-Identifier: Apache-2.0
// SignalEnergy (TFLite-Micro): squared magnitudes of a spectrum from start_index up to end_index; the rest, which the
// original leaves as it was, is 0.
#include "kernels/signal/audio_features.h"
#include "ops/checks.h"
#include "ops/flex_options.h"
#include "ops/op_def.h"

namespace reef::ops {
namespace {

constexpr AttributeDoc kSignalEnergyAttributes[] = {{"start_index", "first frequency that is wanted"},
                                                    {"end_index", "first frequency that is not wanted any more"}};

Status signal_energy_infer(InferContext& ctx) {
  REEF_RETURN_IF_ERROR(require_rank(ctx.input(0), "spectrum", 1, 1));
  return give_shape(ctx, {ctx.input(0).shape[0] / 2});
}

Result<Kernel> signal_energy_prepare(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(require_type(ctx.input(0), "spectrum", {DataType::kInt16}));
  REEF_RETURN_IF_ERROR(require_type(ctx.output(0), "energy", {DataType::kUInt32}));
  REEF_ASSIGN_OR_RETURN(const FlexOptions options, FlexOptions::parse(ctx.op().custom_options));
  REEF_ASSIGN_OR_RETURN(const std::int64_t start, options.get_int("start_index"));
  REEF_ASSIGN_OR_RETURN(const std::int64_t end, options.get_int("end_index"));
  REEF_REQUIRE(start >= 0 && end <= ctx.output(0).elements(), "frequencies {} to {} are wanted; there are {}", start,
               end, ctx.output(0).elements());
  return Kernel([start, end](RunContext& run) {
    kernels::spectrum_energy(run.input(0).values<std::int16_t>(), start, end,
                             run.output(0).mutable_values<std::uint32_t>().data());
    return ok_status();
  });
}

}  // namespace

constinit const OpDef signal_energy_op =
    define({.name = name_of(Op::SignalEnergy),
            .summary = "Squared magnitudes of a spectrum (TFLite-Micro).",
            .attributes = kSignalEnergyAttributes,
            .types = "int16",
            .is_custom = true,
            .infer = signal_energy_infer,
            .prepare = signal_energy_prepare,
            .chip = {.instead = "Features of sound are computed on the CPU before the network."}});

}  // namespace reef::ops
