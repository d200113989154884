// SPDX-License-Identifier: Apache-2.0
// SignalFilterBankSpectralSubtraction (TFLite-Micro): takes a running estimate of the noise off every channel. The
// estimate persists from one invocation to the next; it is kept among the environment's variables, so that resetting
// those forgets it.
#include "kernels/signal/audio_features.h"
#include "ops/checks.h"
#include "ops/flex_options.h"
#include "ops/op_def.h"

namespace reef::ops {
namespace {

constexpr int kSignalFilterBankSpectralSubtractionOutput = 0, kNoiseEstimate = 1;
constexpr AttributeDoc kSignalFilterBankSpectralSubtractionAttributes[] = {
    {"smoothing", "weight of the new value in the estimate, for channels of even number"},
    {"one_minus_smoothing", "weight of the old estimate, for channels of even number"},
    {"alternate_smoothing", "the same for channels of odd number"},
    {"alternate_one_minus_smoothing", "the same for channels of odd number"},
    {"smoothing_bits", "more fractional bits of the estimate than of the signal, 0 to 31"},
    {"spectral_subtraction_bits", "fractional bits of the weights, 0 to 63"},
    {"min_signal_remaining", "part of the signal that is left at least"},
    {"clamping", "the estimate never exceeds the signal"},
    {"num_channels", "number of channels"},
};

Status signal_filter_bank_spectral_subtraction_infer(InferContext& ctx) {
  ctx.set_output_shape(kSignalFilterBankSpectralSubtractionOutput, ctx.input(0).shape);
  ctx.set_output_shape(kNoiseEstimate, ctx.input(0).shape);
  return ok_status();
}

Result<kernels::NoiseSubtraction> signal_filter_bank_spectral_subtraction_settings_of(const OpContext& ctx) {
  REEF_ASSIGN_OR_RETURN(const FlexOptions options, FlexOptions::parse(ctx.op().custom_options));
  REEF_ASSIGN_OR_RETURN(const std::int64_t channels, options.get_int("num_channels"));
  REEF_REQUIRE(channels == ctx.input(0).elements(), "num_channels is {}, but the input has {}", channels,
               ctx.input(0).elements());
  REEF_ASSIGN_OR_RETURN(const std::int64_t smoothing_bits, options.get_int("smoothing_bits"));
  REEF_ASSIGN_OR_RETURN(const std::int64_t subtraction_bits, options.get_int("spectral_subtraction_bits"));
  REEF_REQUIRE(smoothing_bits >= 0 && smoothing_bits <= 31 && subtraction_bits >= 0 && subtraction_bits <= 63,
               "smoothing_bits is {} and spectral_subtraction_bits {}; up to 31 and 63 are possible", smoothing_bits,
               subtraction_bits);
  kernels::NoiseSubtraction settings;
  REEF_ASSIGN_OR_RETURN(settings.smoothing[0], options.get_uint32("smoothing"));
  REEF_ASSIGN_OR_RETURN(settings.smoothing[1], options.get_uint32("alternate_smoothing"));
  REEF_ASSIGN_OR_RETURN(settings.one_minus_smoothing[0], options.get_uint32("one_minus_smoothing"));
  REEF_ASSIGN_OR_RETURN(settings.one_minus_smoothing[1], options.get_uint32("alternate_one_minus_smoothing"));
  REEF_ASSIGN_OR_RETURN(settings.min_signal_remaining, options.get_uint32("min_signal_remaining"));
  settings.smoothing_bits = static_cast<int>(smoothing_bits);
  settings.spectral_subtraction_bits = static_cast<int>(subtraction_bits);
  settings.clamping = options.get_bool("clamping");
  return settings;
}

// This op's estimate: zeros at first.
std::span<std::uint32_t> noise_estimate(RunContext& run) {
  Environment& environment = *run.environment();
  const std::int32_t handle = environment.variable_handle(name_of(Op::SignalFilterBankSpectralSubtraction),
                                                          fmt::format("{}", static_cast<const void*>(&run.op())));
  OwnedTensor& state = environment.variables()[handle];
  const Tensor& input = run.input(0);
  if (state.type != DataType::kUInt32 || state.shape != input.shape || state.data.size() != input.bytes) {
    state.type = DataType::kUInt32;
    state.shape = input.shape;
    state.data.assign(input.bytes, std::byte{0});
  }
  return {reinterpret_cast<std::uint32_t*>(state.data.data()), state.data.size() / sizeof(std::uint32_t)};
}

Result<Kernel> signal_filter_bank_spectral_subtraction_prepare(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(require_type(ctx.input(0), "input", {DataType::kUInt32}));
  REEF_RETURN_IF_ERROR(require_rank(ctx.input(0), "input", 1, 1));
  for (const int i : {kSignalFilterBankSpectralSubtractionOutput, kNoiseEstimate}) {
    REEF_RETURN_IF_ERROR(require_type(ctx.output(i), "output", {DataType::kUInt32}));
  }
  REEF_ASSIGN_OR_RETURN(const kernels::NoiseSubtraction settings,
                        signal_filter_bank_spectral_subtraction_settings_of(ctx));
  return Kernel([settings](RunContext& run) {
    const std::span<std::uint32_t> estimate = noise_estimate(run);
    kernels::subtract_noise(
        settings, run.input(0).values<std::uint32_t>(), estimate,
        run.output(kSignalFilterBankSpectralSubtractionOutput).mutable_values<std::uint32_t>().data());
    std::copy(estimate.begin(), estimate.end(), run.output(kNoiseEstimate).mutable_values<std::uint32_t>().data());
    return ok_status();
  });
}

}  // namespace

constinit const OpDef signal_filter_bank_spectral_subtraction_op =
    define({.name = name_of(Op::SignalFilterBankSpectralSubtraction),
            .summary = "Takes a running estimate of the noise off every channel (TFLite-Micro).",
            .outputs = {2, 2},
            .attributes = kSignalFilterBankSpectralSubtractionAttributes,
            .types = "uint32",
            .is_custom = true,
            .has_state = true,
            .infer = signal_filter_bank_spectral_subtraction_infer,
            .prepare = signal_filter_bank_spectral_subtraction_prepare,
            .chip = {.instead = "Features of sound are computed on the CPU before the network."}});

}  // namespace reef::ops
