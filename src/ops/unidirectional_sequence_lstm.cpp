// SPDX-License-Identifier: Apache-2.0
// UNIDIRECTIONAL_SEQUENCE_LSTM: a long short-term memory over a sequence.
//
// The two states are variables: they keep their values from one invocation to the next. See lstm_family_int.cpp for
// where TFLite's releases differ; on floats they differ in the last bits (their vectorized tanh and logistic functions
// do).
#include "ops/checks.h"
#include "ops/lstm_family.h"
#include "ops/op_def.h"

namespace reef::ops {
namespace {

constexpr AttributeDoc kAttributes[] = {
    {"fused_activation_function", "activation of cell gate and cell state on floats, usually TANH"},
    {"cell_clip", "the cell state is kept within +-cell_clip; 0: no limit"},
    {"proj_clip", "the projection is kept within +-proj_clip; 0: no limit"},
    {"time_major", "the input is [time, batch, features] instead of [batch, time, features]"},
    {"asymmetric_quantize_inputs", "float activations meet int8 weights with a zero point"},
    {"diagonal_recurrent_tensors", "must be false"},
};
constexpr std::string_view kTypes[] = {"float32", "hybrid (float32 with int8 or uint8 weights)",
                                       "int8 (int8 weights, int16 cell state)"};

Result<LstmSequence> sequence_of(const OpContext& ctx) {
  REEF_REQUIRE(ctx.input_count() == kFullLstmInputs || ctx.input_count() == kFullLstmInputsWithoutNorm,
               "{} inputs are given; {} or {} are needed", ctx.input_count(), kFullLstmInputs,
               kFullLstmInputsWithoutNorm);
  const Tensor& input = ctx.input(0);
  REEF_RETURN_IF_ERROR(require_rank(input, "input", 3, 3));
  LstmSequence sequence;
  sequence.time_major = ctx.attributes().get_bool("time_major");
  sequence.batches = input.shape[sequence.time_major ? 1 : 0];
  sequence.steps = input.shape[sequence.time_major ? 0 : 1];
  return sequence;
}

Status infer(InferContext& ctx) {
  REEF_ASSIGN_OR_RETURN(const LstmSequence sequence, sequence_of(ctx));
  Shape shape = ctx.input(0).shape;
  REEF_ASSIGN_OR_RETURN(const kernels::LstmSizes sizes, lstm_sizes(ctx, kFullLstm, sequence.batches, shape[2]));
  shape[2] = static_cast<std::int32_t>(sizes.outputs);
  ctx.set_output_shape(0, std::move(shape));
  return ok_status();
}

Result<Kernel> prepare(PrepareContext& ctx) {
  REEF_ASSIGN_OR_RETURN(const LstmSequence sequence, sequence_of(ctx));
  REEF_ASSIGN_OR_RETURN(const kernels::LstmSizes sizes,
                        lstm_sizes(ctx, kFullLstm, sequence.batches, ctx.input(0).shape[2]));
  REEF_RETURN_IF_ERROR(check_lstm_operands(ctx, kFullLstm, sizes));
  if (ctx.input(0).type == DataType::kInt8) return prepare_int_lstm(ctx, kFullLstm, sizes, sequence);
  return prepare_float_lstm(ctx, kFullLstm, sizes, sequence);
}

}  // namespace

extern const OpDef unidirectional_sequence_lstm_op;
constinit const OpDef unidirectional_sequence_lstm_op = define({.name = "UNIDIRECTIONAL_SEQUENCE_LSTM",
                                                                .summary = "Long short-term memory over a sequence.",
                                                                .inputs = {1, kFullLstmInputs},
                                                                .attributes = kAttributes,
                                                                .types = kTypes,
                                                                .has_state = true,
                                                                .infer = infer,
                                                                .prepare = prepare});

}  // namespace reef::ops
