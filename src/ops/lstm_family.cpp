// SPDX-License-Identifier: Apache-2.0
#include "ops/lstm_family.h"

#include "ops/checks.h"
#include "ops/weights.h"

namespace reef::ops {
namespace {

using kernels::Activation;
using kernels::kInputGate;
using kernels::kLstmGates;
using kernels::LstmSizes;

Status require_shape(const Tensor& tensor, std::string_view role, const Shape& wanted) {
  REEF_REQUIRE(tensor.shape == wanted, "{} ('{}') have shape {}; {} is needed", role, tensor.name,
               tensor.shape.to_string(), wanted.to_string());
  return ok_status();
}

Status lstm_family_check_operand(const OpContext& ctx, int i, std::string_view role, DataType type,
                                 const Shape& shape) {
  if (!has(ctx, i)) return ok_status();
  REEF_RETURN_IF_ERROR(require_type(ctx.input(i), role, {type}));
  return require_shape(ctx.input(i), role, shape);
}

Status check_state(const OpContext& ctx, int i, std::string_view role, DataType type, std::int64_t elements) {
  REEF_REQUIRE(has(ctx, i), "the {} is missing", role);
  const Tensor& state = ctx.input(i);
  REEF_RETURN_IF_ERROR(require_type(state, role, {type}));
  REEF_REQUIRE(state.is_variable, "the {} ('{}') is not a variable", role, state.name);
  REEF_REQUIRE(state.elements() == elements, "the {} ('{}') has shape {}; {} elements are needed", role, state.name,
               state.shape.to_string(), elements);
  return ok_status();
}

// Types that go together: those of weights, peephole weights, biases, layer normalization, and of the two states.
struct LstmTypes {
  DataType weights, peephole, bias, layer_norm, output_state, cell_state;
};

Result<LstmTypes> lstm_types(const OpContext& ctx, const LstmPositions& at) {
  const DataType input = ctx.input(at.input).type;
  const DataType weights = ctx.input(at.gates[kernels::kOutputGate].input_weights).type;
  const DataType real = DataType::kFloat32;
  if (input == real && (weights == real || ir::is_integer_8(weights)))
    return LstmTypes{weights, weights, real, real, real, real};
  if (input == DataType::kInt8 && weights == DataType::kInt8) {
    return LstmTypes{weights, DataType::kInt16, DataType::kInt32, DataType::kInt16, DataType::kInt8, DataType::kInt16};
  }
  return unsupported_types(ctx);
}

// Which optional operands must come together.
Status check_presence(const OpContext& ctx, const LstmPositions& at) {
  const bool cifg = !has(ctx, at.gates[kInputGate].input_weights);
  const bool peephole = has(ctx, at.gates[kernels::kOutputGate].peephole);
  const bool layer_norm = has(ctx, at.gates[kernels::kForgetGate].layer_norm);
  for (int k = 0; k < kLstmGates; ++k) {
    const LstmGatePositions& gate = at.gates[k];
    const bool expected = k != kInputGate || !cifg;
    REEF_REQUIRE(has(ctx, gate.input_weights) == expected && has(ctx, gate.recurrent_weights) == expected &&
                     has(ctx, gate.bias) == expected,
                 "weights or bias of gate {} are missing, or present where the others of the input gate are not", k);
    REEF_REQUIRE(gate.peephole < 0 || has(ctx, gate.peephole) == (peephole && expected) || (peephole && !expected),
                 "peephole weights must be given for all gates or for none");
    REEF_REQUIRE(gate.layer_norm < 0 || has(ctx, gate.layer_norm) == (layer_norm && expected),
                 "coefficients of layer normalization must be given for all gates or for none");
  }
  REEF_REQUIRE(has(ctx, at.projection) || !has(ctx, at.projection_bias), "a projection bias needs projection weights");
  return ok_status();
}

kernels::WeightMatrix lstm_family_weight_matrix(const OpContext& ctx, int i) {
  kernels::WeightMatrix matrix;
  if (!has(ctx, i)) return matrix;
  const Tensor& tensor = ctx.input(i);
  if (tensor.type == DataType::kFloat32) {
    matrix.real = tensor.values<float>().data();
  } else {
    matrix.quantized = reinterpret_cast<const std::int8_t*>(tensor.data);  // TFLite reads uint8 weights as int8, too
    matrix.scale = tensor.quantization->scale[0];
  }
  return matrix;
}

}  // namespace

kernels::FloatFunctions float_functions(const OpContext& ctx) {
  const bool as_in_2_9 = ctx.environment()->tflite_release() == TfliteRelease::k2_9;
  return as_in_2_9 ? kernels::FloatFunctions::kTflite29 : kernels::FloatFunctions::kCurrent;
}

Result<Activation> recurrent_activation(const ir::Attributes& attributes) {
  const std::string_view name = attributes.get_enum("fused_activation_function", "NONE");
  if (name == "NONE") return Activation::kNone;
  if (name == "RELU") return Activation::kRelu;
  if (name == "RELU_N1_TO_1") return Activation::kReluN1To1;
  if (name == "RELU6") return Activation::kRelu6;
  if (name == "TANH") return Activation::kTanh;
  if (name == "SIGN_BIT") return Activation::kSignBit;
  return unsupported("fused_activation_function {} is not known", name);
}

Result<LstmSizes> lstm_sizes(const OpContext& ctx, const LstmPositions& at, std::int64_t batches, std::int64_t inputs) {
  const LstmGatePositions& gate = at.gates[kernels::kOutputGate];
  REEF_REQUIRE(has(ctx, gate.input_weights) && has(ctx, gate.recurrent_weights),
               "weights of the output gate are missing");
  const Tensor& input_weights = ctx.input(gate.input_weights);
  const Tensor& recurrent_weights = ctx.input(gate.recurrent_weights);
  REEF_RETURN_IF_ERROR(require_rank(input_weights, "weights of the output gate", 2, 2));
  if (ctx.attributes().get_bool("diagonal_recurrent_tensors")) {
    return unsupported("diagonal_recurrent_tensors is not supported; store the recurrent weights as full matrices");
  }
  REEF_RETURN_IF_ERROR(require_rank(recurrent_weights, "recurrent weights of the output gate", 2, 2));
  LstmSizes sizes;
  sizes.batches = batches;
  sizes.inputs = inputs;
  sizes.cells = input_weights.shape[0];
  sizes.outputs = recurrent_weights.shape[1];
  return sizes;
}

Status check_lstm_operands(const OpContext& ctx, const LstmPositions& at, const LstmSizes& sizes) {
  REEF_ASSIGN_OR_RETURN(const LstmTypes types, lstm_types(ctx, at));
  REEF_RETURN_IF_ERROR(check_presence(ctx, at));
  REEF_REQUIRE(sizes.cells > 0 && sizes.cells <= INT32_MAX / 4, "an LSTM of {} cells cannot run", sizes.cells);
  const auto inputs = static_cast<std::int32_t>(sizes.inputs), aux = static_cast<std::int32_t>(sizes.aux_inputs);
  const auto cells = static_cast<std::int32_t>(sizes.cells), outputs = static_cast<std::int32_t>(sizes.outputs);
  for (const LstmGatePositions& gate : at.gates) {
    REEF_RETURN_IF_ERROR(
        lstm_family_check_operand(ctx, gate.input_weights, "input weights", types.weights, {cells, inputs}));
    REEF_RETURN_IF_ERROR(
        lstm_family_check_operand(ctx, gate.aux_weights, "auxiliary weights", types.weights, {cells, aux}));
    REEF_RETURN_IF_ERROR(
        lstm_family_check_operand(ctx, gate.recurrent_weights, "recurrent weights", types.weights, {cells, outputs}));
    REEF_RETURN_IF_ERROR(lstm_family_check_operand(ctx, gate.peephole, "peephole weights", types.peephole, {cells}));
    REEF_RETURN_IF_ERROR(lstm_family_check_operand(ctx, gate.bias, "gate biases", types.bias, {cells}));
    REEF_RETURN_IF_ERROR(
        lstm_family_check_operand(ctx, gate.layer_norm, "normalization coefficients", types.layer_norm, {cells}));
  }
  REEF_RETURN_IF_ERROR(
      lstm_family_check_operand(ctx, at.projection, "projection weights", types.weights, {outputs, cells}));
  REEF_RETURN_IF_ERROR(lstm_family_check_operand(ctx, at.projection_bias, "projection biases", types.bias, {outputs}));
  REEF_REQUIRE(has(ctx, at.projection) || outputs == cells, "without a projection, {} cells cannot give {} outputs",
               cells, outputs);
  REEF_RETURN_IF_ERROR(
      check_state(ctx, at.output_state, "output state", types.output_state, sizes.batches * sizes.outputs));
  return check_state(ctx, at.cell_state, "cell state", types.cell_state, sizes.batches * sizes.cells);
}

Result<kernels::LstmFloat> float_lstm_parameters(const OpContext& ctx, const LstmPositions& at,
                                                 const LstmSizes& sizes) {
  kernels::LstmFloat lstm;
  lstm.sizes = sizes;
  REEF_ASSIGN_OR_RETURN(lstm.activation, recurrent_activation(ctx.attributes()));
  lstm.functions = float_functions(ctx);
  lstm.cell_clip = static_cast<float>(ctx.attributes().get_float("cell_clip"));
  lstm.projection_clip = static_cast<float>(ctx.attributes().get_float("proj_clip"));
  REEF_REQUIRE(lstm.cell_clip >= 0 && lstm.projection_clip >= 0,
               "cell_clip is {} and proj_clip {}; neither may be negative", lstm.cell_clip, lstm.projection_clip);
  lstm.quantizer = float_quantizer(ctx, ctx.attributes().get_bool("asymmetric_quantize_inputs"));
  lstm.is_hybrid = ctx.input(at.gates[kernels::kOutputGate].input_weights).type != DataType::kFloat32;
  if (!lstm.is_hybrid) return lstm;
  const auto check_scale = [&](int i) {
    return has(ctx, i) ? per_tensor_quantization(ctx.input(i), "weights").status() : ok_status();
  };
  for (const LstmGatePositions& gate : at.gates) {
    for (const int i : {gate.input_weights, gate.aux_weights, gate.recurrent_weights, gate.peephole}) {
      REEF_RETURN_IF_ERROR(check_scale(i));
    }
  }
  REEF_RETURN_IF_ERROR(check_scale(at.projection));
  return lstm;
}

void bind_float_lstm(const RunContext& ctx, const LstmPositions& at, kernels::LstmFloat& lstm,
                     std::vector<float> (&recovered)[kLstmGates]) {
  for (int k = 0; k < kLstmGates; ++k) {
    const LstmGatePositions& from = at.gates[k];
    kernels::LstmFloatGate& to = lstm.gates[k];
    to.input = lstm_family_weight_matrix(ctx, from.input_weights);
    to.aux_input = lstm_family_weight_matrix(ctx, from.aux_weights);
    to.recurrent = lstm_family_weight_matrix(ctx, from.recurrent_weights);
    to.layer_norm = data_or_null<float>(ctx, from.layer_norm);
    to.bias = data_or_null<float>(ctx, from.bias);
    if (!lstm.is_hybrid || !has(ctx, from.peephole)) {
      to.peephole = data_or_null<float>(ctx, from.peephole);
      continue;
    }
    const kernels::WeightMatrix quantized = lstm_family_weight_matrix(ctx, from.peephole);
    recovered[k].resize(static_cast<std::size_t>(lstm.sizes.cells));
    for (std::size_t c = 0; c < recovered[k].size(); ++c) {
      recovered[k][c] = quantized.scale * static_cast<float>(quantized.quantized[c]);
    }
    to.peephole = recovered[k].data();
  }
  lstm.projection = lstm_family_weight_matrix(ctx, at.projection);
  lstm.projection_bias = data_or_null<float>(ctx, at.projection_bias);
}

Result<Kernel> prepare_float_lstm(const PrepareContext& ctx, const LstmPositions& at, const LstmSizes& sizes,
                                  const LstmSequence& sequence) {
  REEF_RETURN_IF_ERROR(require_type(ctx.output(0), "output", {DataType::kFloat32}));
  REEF_ASSIGN_OR_RETURN(kernels::LstmFloat parameters, float_lstm_parameters(ctx, at, sizes));
  parameters.batch_at_once = sequence.time_major;
  return Kernel([=](RunContext& run) {
    kernels::LstmFloat lstm = parameters;
    std::vector<float> recovered[kLstmGates];
    bind_float_lstm(run, at, lstm, recovered);
    const LstmSizes& s = lstm.sizes;
    kernels::LstmFloatStep step;
    step.input_stride = sequence.batch_stride(s.inputs);
    step.output_stride = sequence.batch_stride(s.outputs);
    step.output_state = run.variable(at.output_state).mutable_values<float>().data();
    step.cell_state = run.variable(at.cell_state).mutable_values<float>().data();
    std::vector<float> workspace;
    for (std::int64_t t = 0; t < sequence.steps; ++t) {
      step.input = run.input(at.input).values<float>().data() + t * sequence.step_stride(s.inputs);
      step.output = run.output(0).mutable_values<float>().data() + t * sequence.step_stride(s.outputs);
      kernels::run_lstm_step(lstm, step, workspace, [&run](std::int64_t count, std::int64_t grain, const auto& body) {
        run.parallel_for(count, grain, body);
      });
    }
    return ok_status();
  });
}

}  // namespace reef::ops
