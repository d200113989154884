// SPDX-License-Identifier: Apache-2.0
#include "ops/rnn_family.h"

#include "kernels/recurrent/rnn.h"
#include "ops/checks.h"
#include "ops/weights.h"

namespace reef::ops {
namespace {

Status check_operands(const PrepareContext& ctx, std::int64_t batches, std::int64_t units) {
  const DataType weights = ctx.input(kRnnInputWeights).type;
  REEF_RETURN_IF_ERROR(require_type(ctx.input(kRnnInput), "input", {DataType::kFloat32}));
  REEF_RETURN_IF_ERROR(require_type(ctx.input(kRnnInputWeights), "input weights",
                                    {DataType::kFloat32, DataType::kInt8, DataType::kUInt8}));
  REEF_RETURN_IF_ERROR(require_type(ctx.input(kRnnRecurrentWeights), "recurrent weights", {weights}));
  REEF_RETURN_IF_ERROR(require_type(ctx.input(kRnnBias), "bias", {DataType::kFloat32}));
  REEF_RETURN_IF_ERROR(require_type(ctx.input(kRnnState), "state", {DataType::kFloat32}));
  REEF_RETURN_IF_ERROR(require_type(ctx.output(0), "output", {DataType::kFloat32}));
  REEF_REQUIRE(ctx.input(kRnnBias).elements() == units, "the bias has {} elements; {} are needed",
               ctx.input(kRnnBias).elements(), units);
  const Tensor& state = ctx.input(kRnnState);
  REEF_REQUIRE(state.is_variable, "the state ('{}') is not a variable", state.name);
  REEF_REQUIRE(state.elements() == batches * units, "the state has shape {}; {} elements are needed",
               state.shape.to_string(), batches * units);
  return ok_status();
}

kernels::WeightMatrix rnn_family_weight_matrix(const Tensor& tensor) {
  kernels::WeightMatrix matrix;
  if (tensor.type == DataType::kFloat32) {
    matrix.real = tensor.values<float>().data();
  } else {
    matrix.quantized = reinterpret_cast<const std::int8_t*>(tensor.data);  // TFLite reads uint8 weights as int8, too
    matrix.scale = tensor.quantization->scale[0];
  }
  return matrix;
}

}  // namespace

Result<std::int64_t> rnn_units(const OpContext& ctx, std::int64_t inputs) {
  const Tensor& input_weights = ctx.input(kRnnInputWeights);
  const Tensor& recurrent_weights = ctx.input(kRnnRecurrentWeights);
  REEF_RETURN_IF_ERROR(require_rank(input_weights, "input weights", 2, 2));
  REEF_RETURN_IF_ERROR(require_rank(recurrent_weights, "recurrent weights", 2, 2));
  const std::int32_t units = input_weights.shape[0];
  REEF_REQUIRE(input_weights.shape[1] == inputs && recurrent_weights.shape == Shape({units, units}),
               "weights of shapes {} and {} do not fit an input of {} numbers", input_weights.shape.to_string(),
               recurrent_weights.shape.to_string(), inputs);
  return units;
}

Result<Kernel> prepare_rnn(const PrepareContext& ctx, std::int64_t inputs, const LstmSequence& sequence) {
  REEF_ASSIGN_OR_RETURN(const std::int64_t units, rnn_units(ctx, inputs));
  REEF_RETURN_IF_ERROR(check_operands(ctx, sequence.batches, units));
  kernels::RnnFloat parameters;
  parameters.batches = sequence.batches;
  parameters.inputs = inputs;
  parameters.units = units;
  parameters.functions = float_functions(ctx);
  parameters.quantizer = float_quantizer(ctx, ctx.attributes().get_bool("asymmetric_quantize_inputs"));
  REEF_ASSIGN_OR_RETURN(parameters.activation, recurrent_activation(ctx.attributes()));
  if (ctx.input(kRnnInputWeights).type != DataType::kFloat32) {
    for (const int i : {kRnnInputWeights, kRnnRecurrentWeights}) {
      REEF_RETURN_IF_ERROR(per_tensor_quantization(ctx.input(i), "weights").status());
    }
  }
  return Kernel([=](RunContext& run) {
    kernels::RnnFloat rnn = parameters;
    rnn.input = rnn_family_weight_matrix(run.input(kRnnInputWeights));
    rnn.recurrent = rnn_family_weight_matrix(run.input(kRnnRecurrentWeights));
    rnn.bias = run.input(kRnnBias).values<float>().data();
    kernels::RnnFloatStep step;
    step.input_stride = sequence.batch_stride(inputs);
    step.output_stride = sequence.batch_stride(units);
    step.state = run.variable(kRnnState).mutable_values<float>().data();
    for (std::int64_t t = 0; t < sequence.steps; ++t) {
      step.input = run.input(kRnnInput).values<float>().data() + t * sequence.step_stride(inputs);
      step.output = run.output(0).mutable_values<float>().data() + t * sequence.step_stride(units);
      kernels::run_rnn_step(rnn, step, [&run](std::int64_t count, std::int64_t grain, const auto& body) {
        run.parallel_for(count, grain, body);
      });
    }
    return ok_status();
  });
}

}  // namespace reef::ops
