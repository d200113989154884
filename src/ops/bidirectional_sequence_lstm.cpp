// SPDX-License-Identifier: Apache-2.0
// BIDIRECTIONAL_SEQUENCE_LSTM: two LSTMs over a sequence, one from each end.
//
// Both can take an auxiliary input beside the input, with weights of its own: the output of a previous such layer
// running backwards. Without weights of its own TFLite would give it to the second LSTM in place of the input, but
// reads uninitialized memory then; that is refused here.

#include "ops/checks.h"
#include "ops/lstm_family.h"
#include "ops/op_def.h"

namespace reef::ops {
namespace {

using kernels::kLstmGates;

constexpr int kBidirectionalSequenceLstmInput = 0, kAuxInput = 39, kInputs = 48;
// Operands of the LSTM that runs forwards and of the one that runs backwards.
constexpr LstmPositions kDirections[] = {
    {kBidirectionalSequenceLstmInput,
     kAuxInput,
     {{1, 40, 5, 9, 12, -1}, {2, 41, 6, 10, 13, -1}, {3, 42, 7, -1, 14, -1}, {4, 43, 8, 11, 15, -1}},
     16,
     17,
     35,
     36},
    {kBidirectionalSequenceLstmInput,
     kAuxInput,
     {{18, 44, 22, 26, 29, -1}, {19, 45, 23, 27, 30, -1}, {20, 46, 24, -1, 31, -1}, {21, 47, 25, 28, 32, -1}},
     33,
     34,
     37,
     38}};

constexpr AttributeDoc kBidirectionalSequenceLstmAttributes[] = {
    {"fused_activation_function", "activation of cell gate and cell state, usually TANH"},
    {"cell_clip", "the cell state is kept within +-cell_clip; 0: no limit"},
    {"proj_clip", "the projection is kept within +-proj_clip; 0: no limit"},
    {"merge_outputs", "one output with both results side by side"},
    {"time_major", "the input is [time, batch, features] instead of [batch, time, features]"},
    {"asymmetric_quantize_inputs", "float activations meet int8 weights with a zero point"},
};

struct BidirectionalSequenceLstmLayer {
  LstmSequence sequence;
  kernels::LstmSizes sizes[2];
  LstmPositions at[2] = {kDirections[0], kDirections[1]};
  bool merged = false;
};

Result<BidirectionalSequenceLstmLayer> bidirectional_sequence_lstm_layer_of(const OpContext& ctx) {
  BidirectionalSequenceLstmLayer layer;
  const Tensor& input = ctx.input(kBidirectionalSequenceLstmInput);
  REEF_REQUIRE(ctx.input_count() == kInputs, "{} inputs are given; {} are needed", ctx.input_count(), kInputs);
  REEF_RETURN_IF_ERROR(require_rank(input, "input", 3, 3));
  layer.merged = ctx.attributes().get_bool("merge_outputs");
  REEF_REQUIRE(ctx.output_count() == (layer.merged ? 1 : 2), "{} outputs are given", ctx.output_count());
  layer.sequence.time_major = ctx.attributes().get_bool("time_major");
  layer.sequence.batches = input.shape[layer.sequence.time_major ? 1 : 0];
  layer.sequence.steps = input.shape[layer.sequence.time_major ? 0 : 1];
  const bool has_aux = has(ctx, kAuxInput);
  const bool has_aux_weights = has(ctx, kDirections[0].gates[kernels::kForgetGate].aux_weights);
  REEF_REQUIRE(has_aux == has_aux_weights, "an auxiliary input and weights for it must be given together");
  std::int64_t aux_length = 0;
  if (has_aux) {
    const Shape& shape = ctx.input(kAuxInput).shape;
    REEF_RETURN_IF_ERROR(require_type(ctx.input(kAuxInput), "auxiliary input", {input.type}));
    REEF_REQUIRE(shape.rank() == 3 && shape[0] == input.shape[0] && shape[1] == input.shape[1],
                 "the auxiliary input has shape {}, which does not fit {}", shape.to_string(), input.shape.to_string());
    aux_length = shape[2];
  }
  if (!has_aux) layer.at[0].aux_input = layer.at[1].aux_input = -1;
  for (int d = 0; d < 2; ++d) {
    REEF_ASSIGN_OR_RETURN(layer.sizes[d], lstm_sizes(ctx, layer.at[d], layer.sequence.batches, input.shape[2]));
    layer.sizes[d].aux_inputs = aux_length;
    for (const LstmGatePositions& gate : layer.at[d].gates) {
      const bool expected = has_aux_weights && has(ctx, gate.input_weights);
      REEF_REQUIRE(has(ctx, gate.aux_weights) == expected, "auxiliary weights must be given for all gates or for none");
    }
  }
  return layer;
}

Status bidirectional_sequence_lstm_infer(InferContext& ctx) {
  REEF_ASSIGN_OR_RETURN(const BidirectionalSequenceLstmLayer layer, bidirectional_sequence_lstm_layer_of(ctx));
  Shape shape = ctx.input(kBidirectionalSequenceLstmInput).shape;
  const std::int64_t forward = layer.sizes[0].outputs, backward = layer.sizes[1].outputs;
  REEF_REQUIRE(forward + backward <= INT32_MAX, "the outputs are too wide");
  shape[2] = static_cast<std::int32_t>(layer.merged ? forward + backward : forward);
  ctx.set_output_shape(0, shape);
  if (layer.merged) return ok_status();
  shape[2] = static_cast<std::int32_t>(backward);
  ctx.set_output_shape(1, shape);
  return ok_status();
}

// One direction. `first` is where its results start within a row of `length` numbers of output `output`.
void run_direction(RunContext& run, const BidirectionalSequenceLstmLayer& layer, int direction,
                   const kernels::LstmFloat& parameters, int output, std::int64_t first, std::int64_t length) {
  kernels::LstmFloat lstm = parameters;
  const LstmPositions& at = layer.at[direction];
  std::vector<float> recovered[kLstmGates];
  bind_float_lstm(run, at, lstm, recovered);
  const LstmSequence& sequence = layer.sequence;
  kernels::LstmFloatStep step;
  step.input_stride = sequence.batch_stride(lstm.sizes.inputs);
  step.aux_stride = sequence.batch_stride(lstm.sizes.aux_inputs);
  step.output_stride = sequence.batch_stride(length);
  step.output_state = run.variable(at.output_state).mutable_values<float>().data();
  step.cell_state = run.variable(at.cell_state).mutable_values<float>().data();
  std::vector<float> workspace;
  for (std::int64_t i = 0; i < sequence.steps; ++i) {
    const std::int64_t t = direction == 0 ? i : sequence.steps - 1 - i;
    step.input = run.input(at.input).values<float>().data() + t * sequence.step_stride(lstm.sizes.inputs);
    if (at.aux_input >= 0) {
      step.aux_input = run.input(at.aux_input).values<float>().data() + t * sequence.step_stride(lstm.sizes.aux_inputs);
    }
    step.output = run.output(output).mutable_values<float>().data() + first + t * sequence.step_stride(length);
    kernels::run_lstm_step(lstm, step, workspace, [&run](std::int64_t count, std::int64_t grain, const auto& body) {
      run.parallel_for(count, grain, body);
    });
  }
}

Result<Kernel> bidirectional_sequence_lstm_prepare(PrepareContext& ctx) {
  REEF_ASSIGN_OR_RETURN(const BidirectionalSequenceLstmLayer layer, bidirectional_sequence_lstm_layer_of(ctx));
  REEF_RETURN_IF_ERROR(require_type(ctx.input(kBidirectionalSequenceLstmInput), "input", {DataType::kFloat32}));
  for (int i = 0; i < ctx.output_count(); ++i) {
    REEF_RETURN_IF_ERROR(require_type(ctx.output(i), "output", {DataType::kFloat32}));
  }
  std::vector<kernels::LstmFloat> parameters;
  for (int d = 0; d < 2; ++d) {
    REEF_RETURN_IF_ERROR(check_lstm_operands(ctx, layer.at[d], layer.sizes[d]));
    REEF_ASSIGN_OR_RETURN(kernels::LstmFloat lstm, float_lstm_parameters(ctx, layer.at[d], layer.sizes[d]));
    lstm.batch_at_once = layer.sequence.time_major;
    parameters.push_back(lstm);
  }
  return Kernel([layer, parameters](RunContext& run) {
    const std::int64_t forward = layer.sizes[0].outputs, backward = layer.sizes[1].outputs;
    const std::int64_t merged = forward + backward;
    run_direction(run, layer, 0, parameters[0], 0, 0, layer.merged ? merged : forward);
    run_direction(run, layer, 1, parameters[1], layer.merged ? 0 : 1, layer.merged ? forward : 0,
                  layer.merged ? merged : backward);
    return ok_status();
  });
}

}  // namespace

constinit const OpDef bidirectional_sequence_lstm_op =
    define({.name = name_of(Op::BIDIRECTIONAL_SEQUENCE_LSTM),
            .summary = "Long short-term memories over a sequence from both ends.",
            .inputs = {1, kInputs},
            .outputs = {1, 2},
            .attributes = kBidirectionalSequenceLstmAttributes,
            .types = "float32; hybrid (float32 with int8 or uint8 weights)",
            .has_state = true,
            .infer = bidirectional_sequence_lstm_infer,
            .prepare = bidirectional_sequence_lstm_prepare,
            .chip = {.instead = "Use unidirectional LSTMs; one of them can run over the reversed input."}});

}  // namespace reef::ops
