// SPDX-License-Identifier: Apache-2.0
// SVDF: a layer with memory, factored into filters over the features and filters over time; see
// kernels/recurrent/svdf.h.
//
// The state is a variable. With int8 input it is int16 in TFLite; TFLite-Micro also has int8 state and time weights,
// which TFLite's kernel does not check for and reads as if they were int16, past their end. Here both mean what
// TFLite-Micro takes them to mean (since its fix of 2026: a state beyond the range of int8 saturates; before, it
// wrapped around).
#include "kernels/recurrent/svdf.h"

#include "ops/checks.h"
#include "ops/lstm_family.h"
#include "ops/op_def.h"
#include "ops/weights.h"

namespace reef::ops {
namespace {

using kernels::SvdfSizes;

constexpr int kSvdfInput = 0, kFeatures = 1, kTime = 2, kBias = 3, kState = 4;

constexpr AttributeDoc kSvdfAttributes[] = {
    {"rank", "filters that make up one unit"},
    {"fused_activation_function", "on floats; integer kernels only saturate, as RELU does with a suitable zero point"},
    {"asymmetric_quantize_inputs", "float activations meet int8 weights with a zero point"},
};

Result<SvdfSizes> sizes_of(const OpContext& ctx) {
  REEF_REQUIRE(ctx.has_input(kFeatures) && ctx.has_input(kTime) && ctx.has_input(kState),
               "weights over features, weights over time and the state are all needed");
  for (const int i : {kSvdfInput, kFeatures, kTime, kState})
    REEF_RETURN_IF_ERROR(require_rank(ctx.input(i), "operand", 2, 2));
  const Tensor& input = ctx.input(kSvdfInput);
  SvdfSizes s;
  s.batches = input.shape[0];
  s.inputs = input.shape[1];
  s.filters = ctx.input(kFeatures).shape[0];
  s.memory = ctx.input(kTime).shape[1];
  s.rank = ctx.attributes().get_int("rank");
  REEF_REQUIRE(s.rank > 0 && s.filters % s.rank == 0, "{} filters cannot be divided into units of rank {}", s.filters,
               s.rank);
  REEF_REQUIRE(s.memory > 0, "the weights over time cover no time");
  REEF_REQUIRE(ctx.input(kFeatures).shape[1] == s.inputs && ctx.input(kTime).shape[0] == s.filters,
               "weights of shapes {} and {} do not fit the input's shape {}", ctx.input(kFeatures).shape.to_string(),
               ctx.input(kTime).shape.to_string(), input.shape.to_string());
  REEF_REQUIRE(ctx.input(kState).shape[0] == s.batches && ctx.input(kState).shape[1] == s.memory * s.filters,
               "the state has shape {}; [{}, {}] is needed", ctx.input(kState).shape.to_string(), s.batches,
               s.memory * s.filters);
  return s;
}

Status svdf_infer(InferContext& ctx) {
  REEF_ASSIGN_OR_RETURN(const SvdfSizes s, sizes_of(ctx));
  return give_shape(ctx, {static_cast<std::int32_t>(s.batches), static_cast<std::int32_t>(s.units())});
}

kernels::ParallelFor svdf_parallel(const RunContext& run) {
  return [&run](std::int64_t count, std::int64_t grain, const auto& body) { run.parallel_for(count, grain, body); };
}

Result<Kernel> svdf_prepare_float(const PrepareContext& ctx, const SvdfSizes& s) {
  const DataType weights = ctx.input(kFeatures).type;
  REEF_RETURN_IF_ERROR(
      require_type(ctx.input(kFeatures), "weights", {DataType::kFloat32, DataType::kInt8, DataType::kUInt8}));
  REEF_RETURN_IF_ERROR(require_type(ctx.input(kTime), "weights over time", {weights}));
  REEF_RETURN_IF_ERROR(require_type(ctx.input(kState), "state", {DataType::kFloat32}));
  REEF_RETURN_IF_ERROR(require_type(ctx.output(0), "output", {DataType::kFloat32}));
  REEF_RETURN_IF_ERROR(optional_bias(ctx, kBias, {DataType::kFloat32}, s.units()).status());
  kernels::SvdfFloat parameters;
  parameters.sizes = s;
  parameters.quantizer = float_quantizer(ctx, ctx.attributes().get_bool("asymmetric_quantize_inputs"));
  REEF_ASSIGN_OR_RETURN(parameters.activation, recurrent_activation(ctx.attributes()));
  parameters.functions = float_functions(ctx);
  float time_scale = 1;
  if (weights != DataType::kFloat32) {
    REEF_ASSIGN_OR_RETURN(const QuantParams features, per_tensor_quantization(ctx.input(kFeatures), "weights"));
    REEF_ASSIGN_OR_RETURN(const QuantParams time, per_tensor_quantization(ctx.input(kTime), "weights over time"));
    parameters.features.scale = features.scale;
    time_scale = time.scale;
  }
  return Kernel([=](RunContext& run) {
    kernels::SvdfFloat svdf = parameters;
    std::vector<float> time;
    if (weights == DataType::kFloat32) {
      svdf.features.real = run.input(kFeatures).values<float>().data();
      svdf.time = run.input(kTime).values<float>().data();
    } else {
      svdf.features.quantized = reinterpret_cast<const std::int8_t*>(run.input(kFeatures).data);
      for (const std::int8_t q : run.input(kTime).values<std::int8_t>())
        time.push_back(time_scale * static_cast<float>(q));
      svdf.time = time.data();
    }
    svdf.bias = float_bias(run, kBias);
    kernels::run_svdf(svdf, run.input(kSvdfInput).values<float>().data(),
                      run.variable(kState).mutable_values<float>().data(), run.output(0).mutable_values<float>().data(),
                      svdf_parallel(run));
    return ok_status();
  });
}

template <typename State>
Result<Kernel> prepare_int(const PrepareContext& ctx, const SvdfSizes& s) {
  REEF_RETURN_IF_ERROR(require_type(ctx.input(kFeatures), "weights", {DataType::kInt8}));
  REEF_RETURN_IF_ERROR(require_type(ctx.input(kTime), "weights over time", {ir::data_type_of<State>}));
  REEF_RETURN_IF_ERROR(require_type(ctx.output(0), "output", {DataType::kInt8}));
  REEF_RETURN_IF_ERROR(optional_bias(ctx, kBias, {DataType::kInt32}, s.units()).status());
  REEF_ASSIGN_OR_RETURN(const QuantParams input, per_tensor_quantization(ctx.input(kSvdfInput), "input"));
  REEF_ASSIGN_OR_RETURN(const QuantParams features, per_tensor_quantization(ctx.input(kFeatures), "weights"));
  REEF_ASSIGN_OR_RETURN(const QuantParams time, per_tensor_quantization(ctx.input(kTime), "weights over time"));
  REEF_ASSIGN_OR_RETURN(const QuantParams state, per_tensor_quantization(ctx.input(kState), "state"));
  REEF_ASSIGN_OR_RETURN(const QuantParams output, per_tensor_quantization(ctx.output(0), "output"));
  kernels::SvdfInt<State> parameters;
  parameters.sizes = s;
  parameters.feature_factor = numeric::make_multiplier(input.scale * features.scale / state.scale);
  parameters.time_factor = numeric::make_multiplier(state.scale * time.scale / output.scale);
  parameters.input_zero_point = input.zero_point;
  parameters.state_zero_point = sizeof(State) == 1 ? state.zero_point : 0;  // 16-bit state is taken to be symmetric
  parameters.output_zero_point = output.zero_point;
  return Kernel([=](RunContext& run) {
    kernels::SvdfInt<State> svdf = parameters;
    svdf.features = run.input(kFeatures).values<std::int8_t>().data();
    svdf.time = run.input(kTime).values<State>().data();
    svdf.bias = data_or_null<std::int32_t>(run, kBias);
    kernels::run_svdf(svdf, run.input(kSvdfInput).values<std::int8_t>().data(),
                      run.variable(kState).mutable_values<State>().data(),
                      run.output(0).mutable_values<std::int8_t>().data(), svdf_parallel(run));
    return ok_status();
  });
}

Result<Kernel> svdf_prepare(PrepareContext& ctx) {
  REEF_ASSIGN_OR_RETURN(const SvdfSizes s, sizes_of(ctx));
  REEF_REQUIRE(ctx.input(kState).is_variable, "the state ('{}') is not a variable", ctx.input(kState).name);
  switch (ctx.input(kSvdfInput).type) {
    case DataType::kFloat32:
      return svdf_prepare_float(ctx, s);
    case DataType::kInt8:
      REEF_RETURN_IF_ERROR(require_type(ctx.input(kState), "state", {DataType::kInt16, DataType::kInt8}));
      if (ctx.input(kState).type == DataType::kInt16) return prepare_int<std::int16_t>(ctx, s);
      return prepare_int<std::int8_t>(ctx, s);
    default:
      return unsupported_types(ctx);
  }
}

}  // namespace

constinit const OpDef svdf_op = define({.name = name_of(Op::SVDF),
                                        .summary = "A layer over the last inputs, factored into features and time.",
                                        .inputs = {1, 5},
                                        .attributes = kSvdfAttributes,
                                        .types = "float32; hybrid (float32 with int8 or uint8 weights); int8 (int16 "
                                                 "state and time weights); int8 (int8 state and time weights)",
                                        .has_state = true,
                                        .infer = svdf_infer,
                                        .prepare = svdf_prepare,
                                        .chip = {.instead = "Use CONV_2D over time, or an LSTM."}});

}  // namespace reef::ops
