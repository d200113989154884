// SPDX-License-Identifier: Apache-2.0
// Operators that make each byte of the result from one byte: QUANTIZE, activations, functions by table.
#include "lower/elementwise.h"

#include <cmath>

#include "ir/describe.h"
#include "lower/lowerings.h"
#include "numeric/chip_activation.h"
#include "numeric/chip_tables.h"
#include "ops/table_functions.h"

namespace reef::lower {
namespace {

using numeric::ChipActivation;
using tiled::Elementwise;

// x * (input scale / output scale), limited by the activation.
Status add_rescaling(Builder& builder, std::int32_t op, ChipActivation activation) {
  REEF_ASSIGN_OR_RETURN(const std::int32_t from, builder.operand(op, 0));
  Elementwise work;
  REEF_ASSIGN_OR_RETURN(work.input, elements_of(builder, from));
  const ir::Tensor& to = builder.source(builder.op(op).outputs[0]);
  REEF_ASSIGN_OR_RETURN(work.output_zero, chip_zero_point(to));
  const tiled::TiledTensor& input = builder.tensor(work.input);
  work.input_zero = input.zero_point;
  work.multiplier = numeric::chip_rescale_multiplier(input.scale, to.quantization.scale[0]);
  work.clamp = numeric::chip_clamp(to.quantization.scale[0], work.output_zero, activation);
  return add_elementwise(builder, op, work);
}

}  // namespace

Status finish_elementwise(Builder& builder, tiled::Step& step) {
  auto& work = std::get<Elementwise>(step.work);
  work.identity = builder.identity(step);
  builder.take_place(work.output, work.input);
  return ok_status();
}

Result<ChipActivation> fused_activation(const ir::Operator& op) {
  const std::string_view name = op.attributes.get_enum("fused_activation_function", "NONE");
  if (const auto known = numeric::chip_activation(name)) return *known;
  return unsupported("a fused {} is not generated", name);
}

Result<std::int32_t> elements_of(Builder& builder, std::int32_t source) {
  REEF_ASSIGN_OR_RETURN(const std::int32_t tensor, builder.any_layout(source));
  const float scale = builder.tensor(tensor).scale;
  if (!(scale > 0) || !std::isfinite(scale)) {
    return unsupported("tensor '{}' has the scale {}, which is not a positive number",
                       ir::describe_name(builder.source(source).name), scale);
  }
  return tensor;
}

Status add_elementwise(Builder& builder, std::int32_t op, Elementwise work) {
  const std::int32_t to = builder.op(op).outputs[0];
  REEF_ASSIGN_OR_RETURN(work.output, builder.new_like(to, work.input));
  const float scale = builder.tensor(work.output).scale;
  if (!(scale > 0) || !std::isfinite(scale)) {
    return unsupported("the result has the scale {}, which is not a positive number", scale);
  }
  builder.set_value(to, {work.output, {}});
  builder.add_step(op, work, {Read{work.input}}, {work.output}, finish_elementwise);
  return ok_status();
}

Elementwise copy_of(std::int32_t from, std::int32_t to) {
  Elementwise copy;
  copy.input = from;
  copy.output = to;
  copy.clamp = numeric::kNoChipClamp;
  return copy;
}

void add_copy(Builder& builder, std::int32_t op, std::int32_t from, std::int32_t to) {
  builder.add_step(op, copy_of(from, to), {Read{from}}, {to}, [](Builder& finishing, tiled::Step& step) {
    auto& work = std::get<Elementwise>(step.work);
    work.identity = finishing.identity(step);
    return ok_status();
  });
}

std::int32_t insert_copy_without_halo(Builder& builder, std::int32_t op, std::int32_t tensor, std::int32_t owner) {
  Elementwise copy = copy_of(tensor, builder.new_without_halo(tensor, owner));
  tiled::Step step;
  step.op = op;
  copy.identity = builder.identity(step);
  step.reads = {copy.input};
  step.writes = {copy.output};
  const std::int32_t result = copy.output;
  step.work = std::move(copy);
  builder.insert_before(std::move(step));
  return result;
}

Status lower_quantize(Builder& builder, std::int32_t op) {
  REEF_ASSIGN_OR_RETURN(const std::int32_t from, builder.operand(op, 0));
  const std::int32_t to = builder.op(op).outputs[0];
  REEF_ASSIGN_OR_RETURN(const bool same, same_quantization(builder.source(from), builder.source(to)));
  if (!same) return add_rescaling(builder, op, ChipActivation::kNone);
  // Between int8 and uint8 of the same meaning the chip's bytes stay as they are.
  REEF_ASSIGN_OR_RETURN(const Value value, builder.value(from));
  builder.set_value(to, value);
  return ok_status();
}

Status lower_relu(Builder& builder, std::int32_t op) {
  const std::string& type = builder.op(op).type;
  return add_rescaling(builder, op,
                       type == Op::RELU6          ? ChipActivation::kRelu6
                       : type == Op::RELU_N1_TO_1 ? ChipActivation::kReluN1To1
                                                  : ChipActivation::kRelu);
}

Status lower_table_function(Builder& builder, std::int32_t op) {
  REEF_ASSIGN_OR_RETURN(const std::int32_t from, builder.operand(op, 0));
  Elementwise work;
  REEF_ASSIGN_OR_RETURN(work.input, elements_of(builder, from));
  const ir::Tensor& to = builder.source(builder.op(op).outputs[0]);
  REEF_ASSIGN_OR_RETURN(work.output_zero, chip_zero_point(to));
  const tiled::TiledTensor& input = builder.tensor(work.input);
  work.input_zero = input.zero_point;
  work.multiplier = input.scale;  // the table's argument is a real number
  const std::string& type = builder.op(op).type;
  const float scale = to.quantization.scale[0];
  work.function = type == Op::TANH    ? numeric::chip_tanh(scale)
                  : type == Op::RSQRT ? numeric::chip_inverse_root(1.0f / scale)
                                      : numeric::chip_logistic(scale);
  return add_elementwise(builder, op, work);
}

Status lower_fitted_function(Builder& builder, std::int32_t op) {
  if (!ops::has_table(builder.op(op))) return unsupported("no table was fitted for it (rewrite by-table)");
  REEF_ASSIGN_OR_RETURN(const std::int32_t from, builder.operand(op, ops::table_operand(builder.op(op))));
  Elementwise work;
  REEF_ASSIGN_OR_RETURN(work.input, elements_of(builder, from));
  const ir::Tensor& to = builder.source(builder.op(op).outputs[0]);
  REEF_ASSIGN_OR_RETURN(work.output_zero, chip_zero_point(to));
  const tiled::TiledTensor& input = builder.tensor(work.input);
  work.input_zero = input.zero_point;
  work.multiplier = input.scale;
  const float scale = to.quantization.scale[0];
  if (!(scale > 0) || !std::isfinite(scale)) return unsupported("the result has the scale {}", scale);
  const numeric::TableFit fit =
      ops::table_fit(builder.op(op), {input.scale, input.zero_point}, {scale, work.output_zero});
  if (fit.error > ops::kLargestTableError) {
    return unsupported("its table would be up to {:.2f} steps from the function", fit.error);
  }
  work.function = fit.function;
  return add_elementwise(builder, op, work);
}

}  // namespace reef::lower
