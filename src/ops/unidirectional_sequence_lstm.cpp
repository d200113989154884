// SPDX-License-Identifier: Apache-2.0
// UNIDIRECTIONAL_SEQUENCE_LSTM: a long short-term memory over a sequence.
//
// The two states are variables: they keep their values from one invocation to the next. See lstm_family_int.cpp for
// where TFLite's releases differ; on floats they differ in the last bits (their vectorized tanh and logistic functions
// do).
#include <fmt/format.h>
#include <algorithm>

#include "ops/checks.h"
#include "ops/chip_rules.h"
#include "ops/lstm_family.h"
#include "ops/op_def.h"

namespace reef::ops {
namespace {

constexpr AttributeDoc kUnidirectionalSequenceLstmAttributes[] = {
    {"fused_activation_function", "activation of cell gate and cell state on floats, usually TANH"},
    {"cell_clip", "the cell state is kept within +-cell_clip; 0: no limit"},
    {"proj_clip", "the projection is kept within +-proj_clip; 0: no limit"},
    {"time_major", "the input is [time, batch, features] instead of [batch, time, features]"},
    {"asymmetric_quantize_inputs", "float activations meet int8 weights with a zero point"},
    {"diagonal_recurrent_tensors", "must be false"},
};

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

Status unidirectional_sequence_lstm_infer(InferContext& ctx) {
  REEF_ASSIGN_OR_RETURN(const LstmSequence sequence, sequence_of(ctx));
  Shape shape = ctx.input(0).shape;
  REEF_ASSIGN_OR_RETURN(const kernels::LstmSizes sizes, lstm_sizes(ctx, kFullLstm, sequence.batches, shape[2]));
  shape[2] = static_cast<std::int32_t>(sizes.outputs);
  return give_shape(ctx, std::move(shape));
}

Result<Kernel> unidirectional_sequence_lstm_prepare(PrepareContext& ctx) {
  REEF_ASSIGN_OR_RETURN(const LstmSequence sequence, sequence_of(ctx));
  REEF_ASSIGN_OR_RETURN(const kernels::LstmSizes sizes,
                        lstm_sizes(ctx, kFullLstm, sequence.batches, ctx.input(0).shape[2]));
  REEF_RETURN_IF_ERROR(check_lstm_operands(ctx, kFullLstm, sizes));
  if (ctx.input(0).type == DataType::kInt8) return prepare_int_lstm(ctx, kFullLstm, sizes, sequence);
  return prepare_float_lstm(ctx, kFullLstm, sizes, sequence);
}

// Widest input with 32 units: about 900 compile, 1,000 crash Google's compiler.
constexpr std::int64_t kUnidirectionalSequenceLstmWidestOnChip = 900;

std::string is_too_wide(const OpContext& ctx) {
  const Shape& input = ctx.input(0).shape;
  if (input.rank() == 0 || input.last() <= kUnidirectionalSequenceLstmWidestOnChip) return "";
  return fmt::format("input is {}: {} features", chip::shape_text(input), chip::number_text(input.last()));
}

std::string has_extras(const OpContext& ctx) {
  const auto any_of = [&](std::initializer_list<int> inputs) {
    return std::any_of(inputs.begin(), inputs.end(), [&](int i) { return ctx.has_input(i); });
  };
  if (any_of({9, 10, 11})) return "it has peepholes";
  if (any_of({16, 17})) return "it has a projection";
  if (any_of({20, 21, 22, 23})) return "it normalizes its gates";
  return ctx.has_input(1) ? "" : "its input gate is coupled to its forget gate";
}

constexpr ChipRule kUnidirectionalSequenceLstmChipRules[] = {
    {
        .id = "lstm-width",
        .says = "The input has at most 900 features.",
        .suggestion = "Put a FULLY_CONNECTED before it that makes the input narrower.",
        .broken = is_too_wide,
        .source = RuleSource::kReported,
        .evidence = "With 32 units, below about 900 features compile and above 1,000 crash the compiler (edgetpu#598).",
    },
    {
        .id = "lstm-plain",
        .says = "No peepholes, no projection, no normalized and no coupled gates.",
        .suggestion = "Use the plain LSTM of Keras.",
        .broken = has_extras,
        .source = RuleSource::kAssumed,
        .evidence = "The LSTMs that are seen mapped have none of these.",
    },
};

}  // namespace

constinit const OpDef unidirectional_sequence_lstm_op = define(
    {.name = name_of(Op::UNIDIRECTIONAL_SEQUENCE_LSTM),
     .summary = "Long short-term memory over a sequence.",
     .inputs = {1, kFullLstmInputs},
     .attributes = kUnidirectionalSequenceLstmAttributes,
     .types = "float32; hybrid (float32 with int8 or uint8 weights); int8 (int8 weights, int16 cell state)",
     .has_state = true,
     .infer = unidirectional_sequence_lstm_infer,
     .prepare = unidirectional_sequence_lstm_prepare,
     .chip = {.first_runtime = 12,
              .rules = kUnidirectionalSequenceLstmChipRules,
              .parameters = input_set({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 20, 21, 22, 23}),
              .evidence = "Coral's table says 14, but it is seen mapped in a file for 12."}});

}  // namespace reef::ops
