// SPDX-License-Identifier: Apache-2.0
// Operators that make each byte of the result from one byte: QUANTIZE, activations, functions by table.
#include "lower/elementwise.h"

#include <cmath>
#include <limits>

#include "ir/describe.h"
#include "lower/lowerings.h"
#include "numeric/chip_tables.h"

namespace reef::lower {
namespace {

using numeric::ChipActivation;
using tiled::Elementwise;

Status finish_elementwise(Builder& builder, tiled::Step& step) {
  auto& work = std::get<Elementwise>(step.work);
  work.identity = builder.identity(step);
  builder.take_place(work.output, work.input);
  return ok_status();
}

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

Result<ChipActivation> fused_activation(const ir::Operator& op) {
  const std::string_view name = op.attributes.get_enum("fused_activation_function", "NONE");
  if (name == "NONE") return ChipActivation::kNone;
  if (name == "RELU") return ChipActivation::kRelu;
  if (name == "RELU6") return ChipActivation::kRelu6;
  if (name == "RELU_N1_TO_1") return ChipActivation::kReluN1To1;
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

namespace {

bool are_spread_alike(const tiled::TiledTensor& a, const tiled::TiledTensor& b) {
  return a.spread == b.spread && a.height == b.height && a.width == b.width && a.channels == b.channels &&
         a.tiles == b.tiles && a.run == b.run;
}

// A tensor of fewer elements as if it had the shape of `whole`, which lies over the tiles as `image` does: a single
// channel is repeated for all, a single pixel brought to all tiles.
Result<std::int32_t> add_repetition(Builder& builder, std::int32_t op, std::int32_t part, std::int32_t whole,
                                    std::int32_t image) {
  const ir::Shape &few = builder.source(part).shape, &many = builder.source(whole).shape;
  const tiled::TiledTensor like = builder.tensor(image);
  const std::int64_t elements = few.elements();
  const bool all_pixels = elements == std::int64_t{like.height} * like.width && few.rank() > 0 && few.last() == 1;
  const bool all_channels = elements == like.channels && few.rank() > 0 && few.last() == elements;
  const bool is_image = many.rank() == 4 && many.elements() == std::int64_t{like.height} * like.width * like.channels;
  if (!is_image || few.rank() > 4 || (!all_pixels && !all_channels && elements != 1)) {
    return unsupported("operands of shapes {} and {} are not generated", few.to_string(), many.to_string());
  }
  Elementwise copy;
  if (all_pixels && elements > 1) {
    REEF_ASSIGN_OR_RETURN(copy.input, builder.grid(part));
  } else {
    REEF_ASSIGN_OR_RETURN(copy.input, builder.packed_copies(part, tiled::kAllTiles));
  }
  const tiled::TiledTensor& input = builder.tensor(copy.input);
  if (all_pixels && elements > 1 && (input.height != like.height || input.width != like.width)) {
    return unsupported("operands of shapes {} and {} are not generated", few.to_string(), many.to_string());
  }
  copy.clamp = {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity()};
  copy.repeats_channel = like.channels > 1 && input.channels == 1;
  tiled::TiledTensor result = like;
  result.source = part;
  result.offset = 0;
  result.pitch = result.pixel_words() * chip::kNarrowWordBytes;
  result.zero_point = input.zero_point;
  result.scale = input.scale;
  copy.output = builder.add_tensor(std::move(result), builder.slice_rows(whole));
  const std::int32_t output = copy.output;
  const auto finish = [](Builder& to, tiled::Step& step) {
    auto& work = std::get<Elementwise>(step.work);
    if (!work.repeats_channel) {
      work.identity = to.identity(step);
      return ok_status();
    }
    work.repeater_words = to.new_narrow(tiled::kIdentityLineWords * chip::kNarrowWordBytes);
    work.repeater = to.new_wide(1);
    step.narrow_used.push_back(work.repeater_words);
    step.wide_used.push_back(work.repeater);
    return ok_status();
  };
  builder.add_step(op, copy, {Read{copy.input}}, {output}, finish);
  return output;
}

}  // namespace

Result<Operands> computed_operands(Builder& builder, std::int32_t op) {
  REEF_ASSIGN_OR_RETURN(const std::int32_t a, builder.operand(op, 0));
  REEF_ASSIGN_OR_RETURN(const std::int32_t b, builder.operand(op, 1));
  Operands operands;
  REEF_ASSIGN_OR_RETURN(operands.a, elements_of(builder, a));
  REEF_ASSIGN_OR_RETURN(operands.b, elements_of(builder, b));
  const tiled::TiledTensor &ta = builder.tensor(operands.a), &tb = builder.tensor(operands.b);
  if (are_spread_alike(ta, tb)) return operands;
  const ir::Shape &sa = builder.source(a).shape, &sb = builder.source(b).shape;
  if (sa != sb) {
    const bool a_is_whole = sa.elements() >= sb.elements();
    const std::int32_t whole = a_is_whole ? a : b, part = a_is_whole ? b : a;
    REEF_ASSIGN_OR_RETURN(const std::int32_t image, builder.grid(whole));
    REEF_ASSIGN_OR_RETURN(const std::int32_t repeated, add_repetition(builder, op, part, whole, image));
    return a_is_whole ? Operands{image, repeated} : Operands{repeated, image};
  }
  const bool as_vectors = ta.spread == tiled::Spread::kVector || tb.spread == tiled::Spread::kVector;
  REEF_ASSIGN_OR_RETURN(operands.a, as_vectors ? builder.vector(a) : builder.grid(a));
  REEF_ASSIGN_OR_RETURN(operands.b, as_vectors ? builder.vector(b) : builder.grid(b));
  REEF_REQUIRE(are_spread_alike(builder.tensor(operands.a), builder.tensor(operands.b)),
               "the operands cannot be brought together");
  return operands;
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

void add_copy(Builder& builder, std::int32_t op, std::int32_t from, std::int32_t to) {
  Elementwise copy;
  copy.input = from;
  copy.output = to;
  copy.clamp = {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity()};
  builder.add_step(op, copy, {Read{from}}, {to}, [](Builder& finishing, tiled::Step& step) {
    auto& work = std::get<Elementwise>(step.work);
    work.identity = finishing.identity(step);
    return ok_status();
  });
}

std::int32_t insert_copy_without_halo(Builder& builder, std::int32_t op, std::int32_t tensor, std::int32_t owner) {
  Elementwise copy;
  copy.input = tensor;
  copy.output = builder.new_without_halo(tensor, owner);
  copy.clamp = {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity()};
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
                       type == "RELU6"          ? ChipActivation::kRelu6
                       : type == "RELU_N1_TO_1" ? ChipActivation::kReluN1To1
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
  work.function = builder.op(op).type == "TANH" ? tiled::TableFunction::kTanh : tiled::TableFunction::kLogistic;
  work.function_scale = to.quantization.scale[0];
  return add_elementwise(builder, op, work);
}

}  // namespace reef::lower
