// SPDX-License-Identifier: Apache-2.0
// SignalPCAN (TFLite-Micro): per-channel gain control by the estimate of the noise, through a table.
#include "kernels/signal/audio_features.h"
#include "ops/checks.h"
#include "ops/flex_options.h"
#include "ops/op_def.h"

namespace reef::ops {
namespace {

constexpr int kSignal = 0, kNoise = 1, kTable = 2;
constexpr AttributeDoc kSignalPcanAttributes[] = {{"snr_shift", "bits that products are shifted down by, 0 to 63"}};

Status signal_pcan_infer(InferContext& ctx) { return give_shape(ctx, ctx.input(kSignal).shape); }

Result<Kernel> signal_pcan_prepare(PrepareContext& ctx) {
  for (const int i : {kSignal, kNoise}) REEF_RETURN_IF_ERROR(require_type(ctx.input(i), "input", {DataType::kUInt32}));
  REEF_RETURN_IF_ERROR(require_type(ctx.input(kTable), "table", {DataType::kInt16}));
  REEF_RETURN_IF_ERROR(require_same_type(ctx.input(kSignal), ctx.output(0)));
  REEF_REQUIRE(ctx.input(kSignal).elements() == ctx.input(kNoise).elements(),
               "signal and noise have {} and {} channels", ctx.input(kSignal).elements(), ctx.input(kNoise).elements());
  REEF_REQUIRE(ctx.input(kTable).elements() >= static_cast<std::int64_t>(kernels::kGainTableEntries),
               "the table has {} entries; {} are needed", ctx.input(kTable).elements(), kernels::kGainTableEntries);
  REEF_ASSIGN_OR_RETURN(const FlexOptions options, FlexOptions::parse(ctx.op().custom_options));
  REEF_ASSIGN_OR_RETURN(const std::int64_t shift, options.get_int("snr_shift"));
  REEF_REQUIRE(shift >= 0 && shift <= 63, "snr_shift is {}; 0 to 63 is possible", shift);
  return Kernel([shift](RunContext& run) {
    const auto signal = run.input(kSignal).values<std::uint32_t>(), noise = run.input(kNoise).values<std::uint32_t>();
    const auto table = run.input(kTable).values<std::int16_t>();
    const auto output = run.output(0).mutable_values<std::uint32_t>();
    for (std::size_t i = 0; i < signal.size(); ++i) {
      output[i] = kernels::pcan(signal[i], noise[i], table, static_cast<int>(shift));
    }
    return ok_status();
  });
}

}  // namespace

constinit const OpDef signal_pcan_op =
    define({.name = name_of(Op::SignalPCAN),
            .summary = "Per-channel gain control of audio energies (TFLite-Micro).",
            .inputs = {3, 3},
            .attributes = kSignalPcanAttributes,
            .types = "uint32 (int16 table)",
            .is_custom = true,
            .infer = signal_pcan_infer,
            .prepare = signal_pcan_prepare,
            .chip = {.instead = "Features of sound are computed on the CPU before the network."}});

}  // namespace reef::ops
