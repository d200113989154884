// SPDX-License-Identifier: Apache-2.0
// LSTM: one step of a long short-term memory, in two forms that the attribute "kernel_type" tells apart.
//
// FULL has the operands of UNIDIRECTIONAL_SEQUENCE_LSTM and its arithmetic, with states in variables. BASIC has one
// matrix for all gates; it takes the previous output and state as inputs and gives the new ones as outputs, beside two
// temporary results. Where those inputs are variables, the new values are also copied into them, as TFLite does.
#include <cmath>
#include <cstring>

#include "kernels/recurrent/lstm_basic.h"
#include "ops/checks.h"
#include "ops/lstm_family.h"
#include "ops/op_def.h"

namespace reef::ops {
namespace {

constexpr AttributeDoc kLstmAttributes[] = {
    {"kernel_type", "FULL or BASIC"},
    {"fused_activation_function", "activation of cell gate and cell state on floats, usually TANH"},
    {"cell_clip", "the cell state is kept within +-cell_clip; 0: no limit"},
    {"proj_clip", "the projection is kept within +-proj_clip; 0: no limit"},
    {"asymmetric_quantize_inputs", "float activations meet int8 weights with a zero point"},
};

// Operands of the basic form.
constexpr int kLstmInput = 0, kPreviousOutput = 1, kWeights = 2, kBias = 3, kPreviousState = 4, kBasicInputs = 5;
constexpr int kLstmOutput = 0, kState = 1, kJoined = 2, kGates = 3, kBasicOutputs = 4;

Result<bool> is_basic(const OpContext& ctx) {
  const std::string_view kind = ctx.attributes().get_enum("kernel_type", "FULL");
  REEF_REQUIRE(kind == "FULL" || kind == "BASIC", "kernel_type {} is not known", kind);
  if (kind == "BASIC") {
    REEF_REQUIRE(ctx.input_count() == kBasicInputs && ctx.output_count() == kBasicOutputs,
                 "the basic kernel has {} inputs and {} outputs, not {} and {}", kBasicInputs, kBasicOutputs,
                 ctx.input_count(), ctx.output_count());
    for (int i = 0; i < kBasicInputs; ++i) REEF_REQUIRE(ctx.has_input(i), "input {} is missing", i);
    return true;
  }
  REEF_REQUIRE(ctx.input_count() == kFullLstmInputs || ctx.input_count() == kFullLstmInputsWithoutNorm,
               "{} inputs are given; {} or {} are needed", ctx.input_count(), kFullLstmInputs,
               kFullLstmInputsWithoutNorm);
  REEF_REQUIRE(ctx.output_count() == 1, "the full kernel has one output, not {}", ctx.output_count());
  return false;
}

Result<kernels::BasicLstmSizes> basic_sizes(const OpContext& ctx) {
  for (const int i : {kLstmInput, kPreviousOutput, kWeights, kPreviousState}) {
    REEF_RETURN_IF_ERROR(require_rank(ctx.input(i), "operand", 2, 2));
  }
  kernels::BasicLstmSizes s;
  s.batches = ctx.input(kLstmInput).shape[0];
  s.inputs = ctx.input(kLstmInput).shape[1];
  s.cells = ctx.input(kPreviousOutput).shape[1];
  REEF_REQUIRE(ctx.input(kPreviousOutput).shape[0] == s.batches &&
                   ctx.input(kPreviousState).shape == ctx.input(kPreviousOutput).shape,
               "previous output and state have shapes {} and {}; both must be [{}, cells]",
               ctx.input(kPreviousOutput).shape.to_string(), ctx.input(kPreviousState).shape.to_string(), s.batches);
  REEF_REQUIRE(ctx.input(kWeights).shape[0] == 4 * s.cells && ctx.input(kWeights).shape[1] == s.depth(),
               "the weights have shape {}; [{}, {}] is needed", ctx.input(kWeights).shape.to_string(), 4 * s.cells,
               s.depth());
  REEF_REQUIRE(ctx.input(kBias).elements() == 4 * s.cells, "the bias has {} elements; {} are needed",
               ctx.input(kBias).elements(), 4 * s.cells);
  REEF_REQUIRE(s.depth() <= INT32_MAX, "the weights are too wide");
  return s;
}

Status lstm_infer(InferContext& ctx) {
  REEF_ASSIGN_OR_RETURN(const bool basic, is_basic(ctx));
  REEF_RETURN_IF_ERROR(require_rank(ctx.input(kLstmInput), "input", 2, 2));
  const std::int32_t batches = ctx.input(kLstmInput).shape[0];
  if (!basic) {
    REEF_ASSIGN_OR_RETURN(const kernels::LstmSizes sizes,
                          lstm_sizes(ctx, kFullLstm, batches, ctx.input(kLstmInput).shape[1]));
    return give_shape(ctx, {batches, static_cast<std::int32_t>(sizes.outputs)});
  }
  REEF_ASSIGN_OR_RETURN(const kernels::BasicLstmSizes s, basic_sizes(ctx));
  const auto cells = static_cast<std::int32_t>(s.cells);
  ctx.set_output_shape(kLstmOutput, {batches, cells});
  ctx.set_output_shape(kState, {batches, cells});
  ctx.set_output_shape(kJoined, {batches, static_cast<std::int32_t>(s.depth())});
  ctx.set_output_shape(kGates, {batches, 4 * cells});
  return ok_status();
}

// The new output and state become the previous ones where those are variables.
void keep_for_next_run(RunContext& run) {
  for (const auto& [previous, now] : {std::pair{kPreviousOutput, kLstmOutput}, std::pair{kPreviousState, kState}}) {
    if (!run.input(previous).is_variable) continue;
    Tensor& variable = run.variable(previous);
    std::memcpy(variable.data, run.output(now).data, variable.bytes);
  }
}

kernels::ParallelFor lstm_parallel(const RunContext& run) {
  return [&run](std::int64_t count, std::int64_t grain, const auto& body) { run.parallel_for(count, grain, body); };
}

template <typename Lstm, typename Activations, typename Bias, typename State>
void bind_basic(RunContext& run, Lstm& lstm) {
  lstm.input = run.input(kLstmInput).values<Activations>().data();
  lstm.weights = run.input(kWeights).values<Activations>().data();
  lstm.previous_output = run.input(kPreviousOutput).values<Activations>().data();
  lstm.bias = run.input(kBias).values<Bias>().data();
  lstm.previous_state = run.input(kPreviousState).values<State>().data();
  lstm.output = run.output(kLstmOutput).mutable_values<Activations>().data();
  lstm.state = run.output(kState).mutable_values<State>().data();
  lstm.joined = run.output(kJoined).mutable_values<Activations>().data();
  lstm.gates = run.output(kGates).mutable_values<State>().data();
}

Status require_basic_types(const PrepareContext& ctx, DataType activations, DataType bias, DataType state) {
  for (const int i : {kLstmInput, kPreviousOutput, kWeights}) {
    REEF_RETURN_IF_ERROR(require_type(ctx.input(i), "operand", {activations}));
  }
  REEF_RETURN_IF_ERROR(require_type(ctx.input(kBias), "bias", {bias}));
  REEF_RETURN_IF_ERROR(require_type(ctx.input(kPreviousState), "previous state", {state}));
  for (const int i : {kLstmOutput, kJoined}) REEF_RETURN_IF_ERROR(require_type(ctx.output(i), "output", {activations}));
  for (const int i : {kState, kGates}) REEF_RETURN_IF_ERROR(require_type(ctx.output(i), "state", {state}));
  return ok_status();
}

Result<Kernel> prepare_basic(const PrepareContext& ctx) {
  REEF_ASSIGN_OR_RETURN(const kernels::BasicLstmSizes sizes, basic_sizes(ctx));
  if (ctx.input(kLstmInput).type == DataType::kFloat32) {
    REEF_RETURN_IF_ERROR(require_basic_types(ctx, DataType::kFloat32, DataType::kFloat32, DataType::kFloat32));
    return Kernel([sizes](RunContext& run) {
      kernels::BasicLstmFloat lstm;
      lstm.sizes = sizes;
      bind_basic<kernels::BasicLstmFloat, float, float, float>(run, lstm);
      kernels::run_basic_lstm(lstm, lstm_parallel(run));
      keep_for_next_run(run);
      return ok_status();
    });
  }
  REEF_RETURN_IF_ERROR(require_basic_types(ctx, DataType::kUInt8, DataType::kInt32, DataType::kInt16));
  REEF_ASSIGN_OR_RETURN(const QuantParams weights, per_tensor_quantization(ctx.input(kWeights), "weights"));
  REEF_ASSIGN_OR_RETURN(const QuantParams bias, per_tensor_quantization(ctx.input(kBias), "bias"));
  REEF_ASSIGN_OR_RETURN(const QuantParams state, per_tensor_quantization(ctx.output(kState), "state"));
  const float exponent = std::log2(state.scale);
  REEF_REQUIRE(std::abs(exponent + 11) < 1e-3f, "the state ('{}') has scale {}; 2^-11 is needed",
               ctx.output(kState).name, state.scale);
  const numeric::Multiplier factor = numeric::make_multiplier(4096.0 * static_cast<double>(bias.scale));
  return Kernel([sizes, factor, zero_point = weights.zero_point](RunContext& run) {
    kernels::BasicLstmInt lstm;
    lstm.sizes = sizes;
    lstm.factor = factor;
    lstm.weights_zero_point = zero_point;
    bind_basic<kernels::BasicLstmInt, std::uint8_t, std::int32_t, std::int16_t>(run, lstm);
    kernels::run_basic_lstm(lstm, lstm_parallel(run));
    keep_for_next_run(run);
    return ok_status();
  });
}

Result<Kernel> lstm_prepare(PrepareContext& ctx) {
  REEF_ASSIGN_OR_RETURN(const bool basic, is_basic(ctx));
  if (basic) return prepare_basic(ctx);
  LstmSequence one_step;
  one_step.batches = ctx.input(kLstmInput).shape[0];
  one_step.time_major = true;
  REEF_ASSIGN_OR_RETURN(const kernels::LstmSizes sizes,
                        lstm_sizes(ctx, kFullLstm, one_step.batches, ctx.input(kLstmInput).shape[1]));
  REEF_RETURN_IF_ERROR(check_lstm_operands(ctx, kFullLstm, sizes));
  if (ctx.input(kLstmInput).type == DataType::kInt8) return prepare_int_lstm(ctx, kFullLstm, sizes, one_step);
  return prepare_float_lstm(ctx, kFullLstm, sizes, one_step);
}

}  // namespace

constinit const OpDef lstm_op =
    define({.name = name_of(Op::LSTM),
            .summary = "One step of a long short-term memory.",
            .inputs = {1, kFullLstmInputs},
            .outputs = {1, kBasicOutputs},
            .attributes = kLstmAttributes,
            .types = "float32; hybrid (float32 with int8 or uint8 weights; FULL); int8 (int8 weights, int16 cell "
                     "state; FULL); uint8 (int16 state; BASIC)",
            .has_state = true,
            .infer = lstm_infer,
            .prepare = lstm_prepare,
            .chip = {.instead = "Use the LSTM layer of Keras, which converts to UNIDIRECTIONAL_SEQUENCE_LSTM."}});

}  // namespace reef::ops
