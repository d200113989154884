// SPDX-License-Identifier: Apache-2.0
// SignalFilterBankSquareRoot (TFLite-Micro): rounded square roots, shifted down by the bits that SignalFftAutoScale
// gave.
#include "kernels/signal/audio_features.h"
#include "ops/checks.h"
#include "ops/op_def.h"

namespace reef::ops {
namespace {

constexpr int kSignalFilterBankSquareRootInput = 0, kSignalFilterBankSquareRootScaleBits = 1;

Status signal_filter_bank_square_root_infer(InferContext& ctx) {
  return give_shape(ctx, ctx.input(kSignalFilterBankSquareRootInput).shape);
}

Result<Kernel> signal_filter_bank_square_root_prepare(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(require_type(ctx.input(kSignalFilterBankSquareRootInput), "input", {DataType::kUInt64}));
  REEF_RETURN_IF_ERROR(require_type(ctx.input(kSignalFilterBankSquareRootScaleBits), "scale bits", {DataType::kInt32}));
  REEF_RETURN_IF_ERROR(require_type(ctx.output(0), "output", {DataType::kUInt32}));
  REEF_REQUIRE(ctx.input(kSignalFilterBankSquareRootScaleBits).elements() == 1,
               "the scale bits have shape {}; one number is needed",
               ctx.input(kSignalFilterBankSquareRootScaleBits).shape.to_string());
  return Kernel([](RunContext& run) {
    const std::int32_t bits = run.input(kSignalFilterBankSquareRootScaleBits).values<std::int32_t>()[0];
    REEF_REQUIRE(bits >= 0 && bits <= 31, "the scale bits are {}; 0 to 31 is possible", bits);
    std::uint32_t* output = run.output(0).mutable_values<std::uint32_t>().data();
    for (const std::uint64_t x : run.input(kSignalFilterBankSquareRootInput).values<std::uint64_t>()) {
      *output++ = kernels::rounded_square_root(x) >> bits;
    }
    return ok_status();
  });
}

}  // namespace

constinit const OpDef signal_filter_bank_square_root_op =
    define({.name = name_of(Op::SignalFilterBankSquareRoot),
            .summary = "Rounded square roots of channels (TFLite-Micro).",
            .inputs = {2, 2},
            .types = "uint64 (uint32 result)",
            .is_custom = true,
            .infer = signal_filter_bank_square_root_infer,
            .prepare = signal_filter_bank_square_root_prepare,
            .chip = {.instead = "Features of sound are computed on the CPU before the network."}});

}  // namespace reef::ops
