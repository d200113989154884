// SPDX-License-Identifier: Apache-2.0
// The fully quantized LSTM of lstm_family.h: multipliers from scales, and the loop over a sequence.
//
// The scale and zero point of the hidden state, in front of the projection, come with the fifth of the op's
// intermediate tensors; with layer normalization the first four give the scales of the gates' sums. TFLite 2.9.1
// subtracts the hidden state's zero point where later releases add it, and corrects for that in the projection; models
// without a projection and with another zero point than 0 therefore give other results there.
#include <algorithm>
#include <cmath>

#include "ops/checks.h"
#include "ops/lstm_family.h"

namespace reef::ops {
namespace {

using kernels::kLstmGates;
using kernels::LstmSizes;

constexpr int kIntermediates = 5;
constexpr int kHidden = 4;

Result<float> scale_of(const OpContext& ctx, int i, std::string_view role) {
  if (!has(ctx, i)) return 1.0f;
  REEF_ASSIGN_OR_RETURN(const QuantParams q, per_tensor_quantization(ctx.input(i), role));
  return q.scale;
}

// The exponent of a scale that is a power of two to within a thousandth of an octave.
Result<int> cell_scale_exponent(const Tensor& cell_state) {
  REEF_ASSIGN_OR_RETURN(const QuantParams q, per_tensor_quantization(cell_state, "cell state"));
  const float exact = std::log(q.scale) * (1.0f / std::log(2.0f));
  const float rounded = std::round(exact);
  REEF_REQUIRE(std::abs(rounded - exact) < 1e-3f && rounded >= -15 && rounded <= -9,
               "the cell state ('{}') has scale {}; a power of two from 2^-15 to 2^-9 is needed", cell_state.name,
               q.scale);
  return static_cast<int>(rounded);
}

// Scales of what the gates sum up: Q3.12, unless layer normalization follows.
Result<float> gate_scale(const PrepareContext& ctx, int gate, bool layer_norm) {
  if (!layer_norm) return 1.0f / 4096;
  REEF_ASSIGN_OR_RETURN(const QuantParams q, per_tensor_quantization(*ctx.intermediate(gate), "intermediate tensor"));
  return q.scale;
}

Status set_gate_factors(const PrepareContext& ctx, const LstmPositions& at, int k, kernels::LstmInt& lstm) {
  const LstmGatePositions& gate = at.gates[k];
  if (!has(ctx, gate.input_weights)) return ok_status();
  kernels::LstmIntGate& to = lstm.gates[k];
  REEF_ASSIGN_OR_RETURN(const float sum_scale, gate_scale(ctx, k, has(ctx, gate.layer_norm)));
  REEF_ASSIGN_OR_RETURN(const float input_scale, scale_of(ctx, at.input, "input"));
  REEF_ASSIGN_OR_RETURN(const float state_scale, scale_of(ctx, at.output_state, "output state"));
  REEF_ASSIGN_OR_RETURN(const float input_weight_scale, scale_of(ctx, gate.input_weights, "input weights"));
  REEF_ASSIGN_OR_RETURN(const float recurrent_scale, scale_of(ctx, gate.recurrent_weights, "recurrent weights"));
  to.input_factor = numeric::make_multiplier(input_weight_scale * input_scale / sum_scale);
  to.recurrent_factor = numeric::make_multiplier(recurrent_scale * state_scale / sum_scale);
  if (has(ctx, gate.peephole)) {
    REEF_ASSIGN_OR_RETURN(const float peephole_scale, scale_of(ctx, gate.peephole, "peephole weights"));
    const double factor = std::ldexp(1.0, lstm.cell_scale_exponent) * peephole_scale / sum_scale;
    to.peephole_factor = numeric::make_multiplier(static_cast<float>(factor));
  }
  if (has(ctx, gate.layer_norm)) {
    REEF_ASSIGN_OR_RETURN(const float norm_scale, scale_of(ctx, gate.layer_norm, "normalization coefficients"));
    REEF_REQUIRE(norm_scale < 65536, "normalization coefficients have scale {}; that is too large", norm_scale);
    to.layer_norm_factor = numeric::make_multiplier(norm_scale);
    to.variance_guard = std::max(1, static_cast<std::int32_t>(10000 * norm_scale));
  }
  return ok_status();
}

Status set_output_factors(const PrepareContext& ctx, const LstmPositions& at, kernels::LstmInt& lstm) {
  REEF_ASSIGN_OR_RETURN(const QuantParams hidden, per_tensor_quantization(*ctx.intermediate(kHidden), "hidden state"));
  REEF_ASSIGN_OR_RETURN(const QuantParams state, per_tensor_quantization(ctx.input(at.output_state), "output state"));
  REEF_ASSIGN_OR_RETURN(const QuantParams input, per_tensor_quantization(ctx.input(at.input), "input"));
  REEF_ASSIGN_OR_RETURN(const float projection_scale, scale_of(ctx, at.projection, "projection weights"));
  lstm.input_zero_point = input.zero_point;
  lstm.output_state_zero_point = state.zero_point;
  lstm.hidden_factor =
      numeric::make_multiplier(static_cast<float>(std::ldexp(1.0, -15) / hidden.scale * std::ldexp(1.0, -15)));
  lstm.projection_factor = numeric::make_multiplier(projection_scale * hidden.scale / state.scale);
  const bool subtracts = ctx.environment()->tflite_release() == TfliteRelease::k2_9 || has(ctx, at.projection);
  if (ctx.environment()->tflite_release() == TfliteRelease::k2_9 && !has(ctx, at.projection) &&
      hidden.zero_point != 0) {
    ctx.note("TFLite 2.9 subtracts the hidden state's zero point where it should be added");
  }
  lstm.hidden_offset = subtracts ? -hidden.zero_point : hidden.zero_point;
  lstm.projection_offset = subtracts ? hidden.zero_point : -hidden.zero_point;
  return ok_status();
}

Result<kernels::LstmInt> int_lstm_parameters(const PrepareContext& ctx, const LstmPositions& at,
                                             const LstmSizes& sizes) {
  kernels::LstmInt lstm;
  lstm.sizes = sizes;
  REEF_ASSIGN_OR_RETURN(lstm.cell_scale_exponent, cell_scale_exponent(ctx.input(at.cell_state)));
  for (int k = 0; k < kLstmGates; ++k) REEF_RETURN_IF_ERROR(set_gate_factors(ctx, at, k, lstm));
  REEF_RETURN_IF_ERROR(set_output_factors(ctx, at, lstm));
  const auto cell_clip = static_cast<float>(ctx.attributes().get_float("cell_clip"));
  const auto projection_clip = static_cast<float>(ctx.attributes().get_float("proj_clip"));
  REEF_REQUIRE(cell_clip >= 0 && projection_clip >= 0, "cell_clip is {} and proj_clip {}; neither may be negative",
               cell_clip, projection_clip);
  REEF_ASSIGN_OR_RETURN(const float cell_scale, scale_of(ctx, at.cell_state, "cell state"));
  REEF_ASSIGN_OR_RETURN(const QuantParams output, per_tensor_quantization(ctx.output(0), "output"));
  lstm.cell_clip = static_cast<std::int16_t>(std::min(cell_clip / cell_scale, 32767.0f));
  lstm.projection_clip = static_cast<std::int8_t>(std::min(projection_clip / output.scale, 127.0f));
  return lstm;
}

void bind_int_lstm(const RunContext& ctx, const LstmPositions& at, kernels::LstmInt& lstm) {
  for (int k = 0; k < kLstmGates; ++k) {
    const LstmGatePositions& from = at.gates[k];
    kernels::LstmIntGate& to = lstm.gates[k];
    to.input = data_or_null<std::int8_t>(ctx, from.input_weights);
    to.recurrent = data_or_null<std::int8_t>(ctx, from.recurrent_weights);
    to.peephole = data_or_null<std::int16_t>(ctx, from.peephole);
    to.layer_norm = data_or_null<std::int16_t>(ctx, from.layer_norm);
    to.bias = data_or_null<std::int32_t>(ctx, from.bias);
  }
  lstm.projection = data_or_null<std::int8_t>(ctx, at.projection);
  lstm.projection_bias = data_or_null<std::int32_t>(ctx, at.projection_bias);
}

}  // namespace

Result<Kernel> prepare_int_lstm(const PrepareContext& ctx, const LstmPositions& at, const LstmSizes& sizes,
                                const LstmSequence& sequence) {
  REEF_RETURN_IF_ERROR(require_type(ctx.output(0), "output", {DataType::kInt8}));
  if (ctx.intermediate(kIntermediates) != nullptr) {
    return unsupported(
        "a quantized LSTM with 8-bit gates (more than {} intermediate tensors) is not supported; convert the "
        "model again with 16-bit gates",
        kIntermediates);
  }
  for (int i = 0; i < kIntermediates; ++i) {
    REEF_REQUIRE(ctx.intermediate(i) != nullptr, "a quantized LSTM needs {} intermediate tensors for its scales",
                 kIntermediates);
  }
  REEF_REQUIRE(!has(ctx, at.gates[kernels::kOutputGate].peephole) || sizes.outputs <= sizes.cells,
               "a quantized LSTM with peephole cannot have more outputs ({}) than cells ({})", sizes.outputs,
               sizes.cells);
  REEF_ASSIGN_OR_RETURN(kernels::LstmInt parameters, int_lstm_parameters(ctx, at, sizes));
  parameters.batch_at_once = sequence.time_major;
  return Kernel([=](RunContext& run) {
    kernels::LstmInt lstm = parameters;
    bind_int_lstm(run, at, lstm);
    const LstmSizes& s = lstm.sizes;
    kernels::LstmIntStep step;
    step.input_stride = sequence.batch_stride(s.inputs);
    step.output_stride = sequence.batch_stride(s.outputs);
    step.output_state = run.variable(at.output_state).mutable_values<std::int8_t>().data();
    step.cell_state = run.variable(at.cell_state).mutable_values<std::int16_t>().data();
    kernels::LstmIntWorkspace workspace;
    for (std::int64_t t = 0; t < sequence.steps; ++t) {
      step.input = run.input(at.input).values<std::int8_t>().data() + t * sequence.step_stride(s.inputs);
      step.output = run.output(0).mutable_values<std::int8_t>().data() + t * sequence.step_stride(s.outputs);
      kernels::run_lstm_step(lstm, step, workspace, [&run](std::int64_t count, std::int64_t grain, const auto& body) {
        run.parallel_for(count, grain, body);
      });
    }
    return ok_status();
  });
}

}  // namespace reef::ops
