// SPDX-License-Identifier: Apache-2.0
// SignalFilterBankLog (TFLite-Micro): scaled natural logarithms of channels.
#include "kernels/signal/audio_features.h"
#include "ops/checks.h"
#include "ops/flex_options.h"
#include "ops/op_def.h"

namespace reef::ops {
namespace {

constexpr AttributeDoc kSignalFilterBankLogAttributes[] = {
    {"output_scale", "what the logarithm is multiplied by"},
    {"input_correction_bits", "bits that inputs are shifted up by first, 0 to 31"}};

Result<Kernel> signal_filter_bank_log_prepare(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(require_type(ctx.input(0), "input", {DataType::kUInt32}));
  REEF_RETURN_IF_ERROR(require_type(ctx.output(0), "output", {DataType::kInt16}));
  REEF_ASSIGN_OR_RETURN(const FlexOptions options, FlexOptions::parse(ctx.op().custom_options));
  REEF_ASSIGN_OR_RETURN(const std::int64_t bits, options.get_int("input_correction_bits"));
  REEF_REQUIRE(bits >= 0 && bits <= 31, "input_correction_bits is {}; 0 to 31 is possible", bits);
  REEF_ASSIGN_OR_RETURN(const std::uint32_t scale, options.get_uint32("output_scale"));
  return Kernel([bits, scale](RunContext& run) {
    std::int16_t* output = run.output(0).mutable_values<std::int16_t>().data();
    for (const std::uint32_t x : run.input(0).values<std::uint32_t>()) {
      *output++ = kernels::scaled_logarithm(x, scale, static_cast<int>(bits));
    }
    return ok_status();
  });
}

}  // namespace

constinit const OpDef signal_filter_bank_log_op =
    define({.name = name_of(Op::SignalFilterBankLog),
            .summary = "Scaled logarithms of channels (TFLite-Micro).",
            .attributes = kSignalFilterBankLogAttributes,
            .types = "uint32 (int16 result)",
            .is_custom = true,
            .infer = infer_same_shape,
            .prepare = signal_filter_bank_log_prepare,
            .chip = {.instead = "Features of sound are computed on the CPU before the network."}});

}  // namespace reef::ops
