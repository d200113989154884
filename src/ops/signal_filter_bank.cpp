// SPDX-License-Identifier: Apache-2.0
// SignalFilterBank (TFLite-Micro): energies gathered into channels by overlapping triangular filters.
#include "kernels/signal/audio_features.h"
#include "ops/checks.h"
#include "ops/flex_options.h"
#include "ops/op_def.h"

namespace reef::ops {
namespace {

constexpr int kEnergy = 0, kWeights = 1, kUnweights = 2, kStarts = 3, kWeightStarts = 4, kWidths = 5;
constexpr AttributeDoc kSignalFilterBankAttributes[] = {{"num_channels", "channels; the tables have one entry more"}};

Status signal_filter_bank_infer(InferContext& ctx) {
  REEF_ASSIGN_OR_RETURN(const FlexOptions options, FlexOptions::parse(ctx.op().custom_options));
  REEF_ASSIGN_OR_RETURN(const std::int64_t channels, options.get_int("num_channels"));
  REEF_REQUIRE(channels >= 0 && channels < INT32_MAX, "num_channels is {}", channels);
  return give_shape(ctx, {static_cast<std::int32_t>(channels)});
}

Result<Kernel> signal_filter_bank_prepare(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(require_type(ctx.input(kEnergy), "energy", {DataType::kUInt32}));
  REEF_RETURN_IF_ERROR(require_type(ctx.output(0), "output", {DataType::kUInt64}));
  for (const int i : {kWeights, kUnweights, kStarts, kWeightStarts, kWidths}) {
    REEF_RETURN_IF_ERROR(require_type(ctx.input(i), "table", {DataType::kInt16}));
  }
  for (const int i : {kStarts, kWeightStarts, kWidths}) {
    REEF_REQUIRE(ctx.input(i).elements() > ctx.output(0).elements(),
                 "table {} has {} entries for {} channels; one more than "
                 "channels is needed",
                 i, ctx.input(i).elements(), ctx.output(0).elements());
  }
  return Kernel([](RunContext& run) {
    const auto table = [&run](int i) { return run.input(i).values<std::int16_t>(); };
    return kernels::run_filter_bank(
        {table(kWeights), table(kUnweights), table(kStarts), table(kWeightStarts), table(kWidths)},
        run.input(kEnergy).values<std::uint32_t>(), run.output(0).mutable_values<std::uint64_t>());
  });
}

}  // namespace

constinit const OpDef signal_filter_bank_op =
    define({.name = name_of(Op::SignalFilterBank),
            .summary = "Gathers energies into channels (TFLite-Micro).",
            .inputs = {6, 6},
            .attributes = kSignalFilterBankAttributes,
            .types = "uint32 (int16 weights, uint64 result)",
            .is_custom = true,
            .infer = signal_filter_bank_infer,
            .prepare = signal_filter_bank_prepare,
            .chip = {.instead = "Features of sound are computed on the CPU before the network."}});

}  // namespace reef::ops
