// SPDX-License-Identifier: Apache-2.0
// UNIDIRECTIONAL_SEQUENCE_RNN: a plain recurrent network over a sequence. The state is a variable.
#include "ops/checks.h"
#include "ops/op_def.h"
#include "ops/rnn_family.h"

namespace reef::ops {
namespace {

constexpr AttributeDoc kUnidirectionalSequenceRnnAttributes[] = {
    {"time_major", "the input is [time, batch, features] instead of [batch, time, features]"},
    {"fused_activation_function", "activation of the output, usually TANH"},
    {"asymmetric_quantize_inputs", "float activations meet int8 weights with a zero point"},
};

Status unidirectional_sequence_rnn_infer(InferContext& ctx) {
  REEF_RETURN_IF_ERROR(require_rank(ctx.input(kRnnInput), "input", 3, 3));
  Shape shape = ctx.input(kRnnInput).shape;
  REEF_ASSIGN_OR_RETURN(const std::int64_t units, rnn_units(ctx, shape[2]));
  shape[2] = static_cast<std::int32_t>(units);
  return give_shape(ctx, std::move(shape));
}

Result<Kernel> unidirectional_sequence_rnn_prepare(PrepareContext& ctx) {
  const Shape& shape = ctx.input(kRnnInput).shape;
  LstmSequence sequence;
  sequence.time_major = ctx.attributes().get_bool("time_major");
  sequence.batches = shape[sequence.time_major ? 1 : 0];
  sequence.steps = shape[sequence.time_major ? 0 : 1];
  return prepare_rnn(ctx, shape[2], sequence);
}

}  // namespace

constinit const OpDef unidirectional_sequence_rnn_op =
    define({.name = name_of(Op::UNIDIRECTIONAL_SEQUENCE_RNN),
            .summary = "Plain recurrent network over a sequence.",
            .inputs = {kRnnInputs, kRnnInputs},
            .attributes = kUnidirectionalSequenceRnnAttributes,
            .types = "float32; hybrid (float32 with int8 or uint8 weights)",
            .has_state = true,
            .infer = unidirectional_sequence_rnn_infer,
            .prepare = unidirectional_sequence_rnn_prepare,
            .chip = {.instead = "Use an LSTM, or unroll the network."}});

}  // namespace reef::ops
