// SPDX-License-Identifier: Apache-2.0
// Nodes that give a tensor another shape, or tell its shape.
#include <algorithm>

#include "import/onnx/converter.h"
#include "import/onnx/open_sizes.h"

namespace reef::import {

Status convert_identity(NodeContext& ctx, GraphBuilder&) {
  REEF_REQUIRE(ctx.has(0), "its input is left out");
  return ctx.give(ctx.value(0));
}

// While a model is used, Dropout does nothing; its mask is all true.
Status convert_dropout(NodeContext& ctx, GraphBuilder& b) {
  if (ctx.has(2)) {
    REEF_ASSIGN_OR_RETURN(const Dims training, ctx.ints(2));
    float ratio = 0.5f;
    if (ctx.has(1)) {
      REEF_ASSIGN_OR_RETURN(const std::vector<float> given, ctx.floats(1));
      if (!given.empty()) ratio = given[0];
    }
    if (!training.empty() && training[0] != 0 && ratio != 0) {
      return unsupported("input training_mode is true: random results are for training; export the model in eval mode");
    }
  }
  ctx.out(0, ctx.value(0));
  if (ctx.wants(1)) ctx.out(1, b.filled(ir::DataType::kBool, b.shape(ctx.in(0)), 1));
  return ok_status();
}

Status convert_reshape(NodeContext& ctx, GraphBuilder& b) {
  Dims wanted = ctx.ints_attribute("shape");
  if (ctx.is_open(1)) return open_reshape(ctx);
  if (ctx.opset() >= 5 || ctx.has(1)) {
    REEF_ASSIGN_OR_RETURN(wanted, ctx.ints(1));
  }
  const ir::Shape from = b.shape(ctx.in(0));
  const bool zero_is_zero = ctx.int_attribute("allowzero", 0) != 0;
  std::int64_t known = 1;
  int open = -1;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i] == 0 && !zero_is_zero) {
      REEF_REQUIRE(static_cast<int>(i) < from.rank(), "size {} is to be copied, but the input is {}", i,
                   from.to_string());
      wanted[i] = from[static_cast<int>(i)];
    }
    REEF_REQUIRE(wanted[i] >= -1 && wanted[i] < (std::int64_t{1} << 31), "size {} is {}", i, wanted[i]);
    if (wanted[i] == -1) {
      REEF_REQUIRE(open < 0, "two sizes are -1");
      open = static_cast<int>(i);
    } else {
      known *= wanted[i];
      REEF_REQUIRE(known < (std::int64_t{1} << 40), "the sizes' product is too large");
    }
  }
  if (open >= 0) {
    REEF_REQUIRE(known > 0 && from.elements() % known == 0, "{} elements cannot be shaped with size {} open",
                 from.elements(), open);
    wanted[reef::at(open)] = from.elements() / known;
    known *= wanted[reef::at(open)];
  }
  REEF_REQUIRE(known == from.elements(), "{} elements cannot become {}", from.elements(), known);
  return ctx.give(reshape(b, ctx.in(0), wanted));
}

Status convert_flatten(NodeContext& ctx, GraphBuilder& b) {
  const ir::Shape shape = b.shape(ctx.in(0));
  const int rank = shape.rank();
  std::int64_t axis = ctx.int_attribute("axis", 1);
  REEF_REQUIRE(axis >= -rank && axis <= rank, "attribute axis is {} for {} dimensions", axis, rank);
  if (axis < 0) axis += rank;
  const int at = static_cast<int>(axis);
  return ctx.give(reshape(b, ctx.in(0), {shape.product(0, at), shape.product(at, rank)}));
}

namespace {

// Axes from an attribute, or from input 1 since opset 13.
Result<Dims> axes_given(NodeContext& ctx) {
  if (ctx.has(1)) return ctx.ints(1);
  return ctx.ints_attribute("axes");
}

}  // namespace

Status convert_squeeze(NodeContext& ctx, GraphBuilder& b) {
  if (ctx.is_open(1)) return open_squeeze(ctx);
  const ir::Shape shape = b.shape(ctx.in(0));
  REEF_ASSIGN_OR_RETURN(const Dims given, axes_given(ctx));
  REEF_ASSIGN_OR_RETURN(const std::vector<int> axes, ctx.axes(given, shape.rank()));
  Dims dims;
  for (int i = 0; i < shape.rank(); ++i) {
    const bool is_named = std::find(axes.begin(), axes.end(), i) != axes.end();
    REEF_REQUIRE(!is_named || shape[i] == 1, "axis {} is to be dropped, but has the size {}", i, shape[i]);
    if (!(is_named || (given.empty() && shape[i] == 1))) dims.push_back(shape[i]);
  }
  return ctx.give(reshape(b, ctx.in(0), dims));
}

Status convert_unsqueeze(NodeContext& ctx, GraphBuilder& b) {
  if (ctx.is_open(1)) return open_unsqueeze(ctx);
  const ir::Shape shape = b.shape(ctx.in(0));
  REEF_ASSIGN_OR_RETURN(const Dims given, axes_given(ctx));
  const int rank = shape.rank() + static_cast<int>(given.size());
  REEF_ASSIGN_OR_RETURN(const std::vector<int> axes, ctx.axes(given, rank));
  Dims dims;
  int next = 0;
  for (int i = 0; i < rank; ++i) {
    const bool is_new = std::find(axes.begin(), axes.end(), i) != axes.end();
    dims.push_back(is_new ? 1 : shape[next++]);
  }
  return ctx.give(reshape(b, ctx.in(0), dims));
}

namespace {

void give_int64(NodeContext& ctx, const Dims& values, ir::Shape shape) {
  Value value;
  value.id = ctx.b.ints(values, std::move(shape), ir::DataType::kInt64);
  value.type = onnx::ElementType::kInt64;
  ctx.out(0, value);
}

}  // namespace

Status convert_shape(NodeContext& ctx, GraphBuilder& b) {
  const Dims dims = dims_of(b.shape(ctx.in(0)));
  const auto rank = static_cast<std::int64_t>(dims.size());
  const auto place = [&](std::int64_t at) { return std::clamp<std::int64_t>(at < 0 ? at + rank : at, 0, rank); };
  const std::int64_t start = place(ctx.int_attribute("start", 0));
  const std::int64_t end = std::max(start, ctx.has_attribute("end") ? place(ctx.int_attribute("end", 0)) : rank);
  const Dims part(dims.begin() + start, dims.begin() + end);
  give_int64(ctx, part, {static_cast<std::int32_t>(part.size())});
  return ok_status();
}

Status convert_size(NodeContext& ctx, GraphBuilder& b) {
  give_int64(ctx, {b.elements(ctx.in(0))}, {});
  return ok_status();
}

Status convert_transpose(NodeContext& ctx, GraphBuilder& b) {
  const int rank = b.rank(ctx.in(0));
  Dims given = ctx.ints_attribute("perm");
  if (given.empty()) {
    for (int i = rank; i-- > 0;) given.push_back(i);
  }
  REEF_REQUIRE(static_cast<int>(given.size()) == rank, "attribute perm has {} numbers for {} dimensions", given.size(),
               rank);
  REEF_ASSIGN_OR_RETURN(const std::vector<int> order, ctx.axes(given, rank));
  return ctx.give(transpose(b, ctx.in(0), order));
}

Status convert_expand(NodeContext& ctx, GraphBuilder& b) {
  if (ctx.is_open(1)) return open_expand(ctx);
  REEF_ASSIGN_OR_RETURN(Dims wanted, ctx.ints(1));
  const ir::Shape from = b.shape(ctx.in(0));
  // Broadcasting works both ways: a size of 1 keeps the input's.
  while (static_cast<int>(wanted.size()) < from.rank()) wanted.insert(wanted.begin(), 1);
  const int lead = static_cast<int>(wanted.size()) - from.rank();
  for (int i = 0; i < from.rank(); ++i) {
    std::int64_t& size = wanted[reef::at(i + lead)];
    REEF_REQUIRE(size == 1 || from[i] == 1 || size == from[i], "{} does not broadcast to size {} of axis {}",
                 from.to_string(), size, i + lead);
    if (size == 1) size = from[i];
  }
  for (const std::int64_t size : wanted)
    REEF_REQUIRE(size >= 0 && size < (std::int64_t{1} << 31), "a size is {}", size);
  return ctx.give(broadcast_to(b, ctx.in(0), wanted));
}

Status convert_constant(NodeContext& ctx, GraphBuilder& b) {
  Value value;
  if (const onnx::Tensor* tensor = ctx.tensor_attribute("value")) {
    REEF_ASSIGN_OR_RETURN(value, ctx.constant(*tensor, ctx.node().outputs.empty() ? "" : ctx.node().outputs[0]));
  } else if (ctx.has_attribute("value_float")) {
    value = {b.scalar(ir::DataType::kFloat32, ctx.float_attribute("value_float", 0)), onnx::ElementType::kFloat, {}};
  } else if (ctx.has_attribute("value_int")) {
    const Dims one = {ctx.int_attribute("value_int", 0)};
    value = {b.ints(one, {}, ir::DataType::kInt64), onnx::ElementType::kInt64, {}};
  } else if (ctx.has_attribute("value_floats")) {
    const std::vector<float> values = ctx.floats_attribute("value_floats");
    value = {b.floats(values, {static_cast<std::int32_t>(values.size())}), onnx::ElementType::kFloat, {}};
  } else if (ctx.has_attribute("value_ints")) {
    const Dims values = ctx.ints_attribute("value_ints");
    value = {b.ints(values, {static_cast<std::int32_t>(values.size())}, ir::DataType::kInt64),
             onnx::ElementType::kInt64,
             {}};
  } else if (ctx.has_attribute("value_string") || ctx.has_attribute("value_strings")) {
    const bool is_one = ctx.has_attribute("value_string");
    const Dims numbers = ctx.numbers_of(is_one ? std::vector<std::string>{ctx.string_attribute("value_string", "")}
                                               : ctx.strings_attribute("value_strings"));
    const ir::Shape shape = is_one ? ir::Shape() : ir::Shape({static_cast<std::int32_t>(numbers.size())});
    value = {b.ints(numbers, shape, ir::DataType::kInt64), onnx::ElementType::kString, {}};
  } else {
    return unsupported("its value is sparse; TFLite has no operators for that");
  }
  return ctx.give(value);
}

Status convert_constant_of_shape(NodeContext& ctx, GraphBuilder& b) {
  if (ctx.is_open(0)) return open_constant_of_shape(ctx);
  REEF_ASSIGN_OR_RETURN(const Dims dims, ctx.ints(0));
  for (const std::int64_t size : dims) REEF_REQUIRE(size >= 0 && size < (std::int64_t{1} << 31), "a size is {}", size);
  Value value;
  value.type = onnx::ElementType::kFloat;
  const onnx::Tensor* tensor = ctx.tensor_attribute("value");
  if (tensor == nullptr) {
    value.id = b.filled(ir::DataType::kFloat32, shape_from(dims), 0);
  } else {
    value.type = tensor->type;
    REEF_ASSIGN_OR_RETURN(const Id one, constant_of(b, *tensor, ""));
    REEF_REQUIRE(b.elements(one) == 1, "attribute value has {} elements", b.elements(one));
    if (b.type(one) == ir::DataType::kFloat32) {
      value.id = b.filled(b.type(one), shape_from(dims), b.float_values(one).value_or(std::vector<float>{0})[0]);
    } else {
      const Dims number = b.int_values(one).value_or(Dims{0});
      value.id = b.filled(b.type(one), shape_from(dims), static_cast<double>(number[0]));
    }
  }
  return ctx.give(value);
}

Status convert_cast(NodeContext& ctx, GraphBuilder& b) {
  Value value;
  value.type = static_cast<onnx::ElementType>(ctx.int_attribute("to", 0));
  if (ctx.op() == "CastLike") {
    REEF_RETURN_IF_ERROR(ctx.require_operands(2));
    value.type = ctx.value(1).type;
  }
  const auto to = stored_type(value.type);
  if (!to) {
    return unsupported("attribute to asks for type {}, which TFLite has no operators for",
                       onnx::element_type_name(value.type));
  }
  if (ctx.value(0).type == onnx::ElementType::kString) {
    return unsupported("it reads numbers out of strings, which no TFLite operator does");
  }
  Id x = ctx.in(0);
  // Narrow floating-point types are stored wide: round as they would.
  if (value.type == onnx::ElementType::kFloat16 && ctx.value(0).type != onnx::ElementType::kFloat16) {
    x = cast(b, x, ir::DataType::kFloat16);
  } else if (value.type == onnx::ElementType::kBFloat16 && ctx.value(0).type != onnx::ElementType::kBFloat16) {
    x = cast(b, x, ir::DataType::kBFloat16);
  }
  value.id = cast(b, x, *to);
  return ctx.give(value);
}

}  // namespace reef::import
