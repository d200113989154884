// SPDX-License-Identifier: Apache-2.0
// RNN: one step of a plain recurrent network. The state is a variable.
#include "ops/checks.h"
#include "ops/op_def.h"
#include "ops/rnn_family.h"

namespace reef::ops {
namespace {

constexpr AttributeDoc kRnnAttributes[] = {
    {"fused_activation_function", "activation of the output, usually TANH"},
    {"asymmetric_quantize_inputs", "float activations meet int8 weights with a zero point"}};

Status rnn_infer(InferContext& ctx) {
  REEF_RETURN_IF_ERROR(require_rank(ctx.input(kRnnInput), "input", 2, 2));
  REEF_ASSIGN_OR_RETURN(const std::int64_t units, rnn_units(ctx, ctx.input(kRnnInput).shape[1]));
  return give_shape(ctx, {ctx.input(kRnnInput).shape[0], static_cast<std::int32_t>(units)});
}

Result<Kernel> rnn_prepare(PrepareContext& ctx) {
  LstmSequence one_step;
  one_step.batches = ctx.input(kRnnInput).shape[0];
  one_step.time_major = true;
  return prepare_rnn(ctx, ctx.input(kRnnInput).shape[1], one_step);
}

}  // namespace

constinit const OpDef rnn_op = define({.name = name_of(Op::RNN),
                                       .summary = "One step of a plain recurrent network.",
                                       .inputs = {kRnnInputs, kRnnInputs},
                                       .attributes = kRnnAttributes,
                                       .types = "float32; hybrid (float32 with int8 or uint8 weights)",
                                       .has_state = true,
                                       .infer = rnn_infer,
                                       .prepare = rnn_prepare,
                                       .chip = {.instead = "Use an LSTM, or unroll the network."}});

}  // namespace reef::ops
