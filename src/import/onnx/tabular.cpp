// SPDX-License-Identifier: Apache-2.0
// Nodes of domain ai.onnx.ml that stand before and behind networks for tables: scaling, missing values, one-hot
// columns, linear models, and the way from a class's number to its name. scikit-learn's exporters write them.
//
// Names (strings) are numbers here (Conversion::names): a tensor of names moves, is picked from and compared as one of
// numbers. ZipMap, which turns rows of probabilities into dictionaries, gives the rows themselves.
#include "import/onnx/converter.h"
#include "import/onnx/converters.h"

namespace reef::import {
namespace {

// A row of numbers that fits the last axis of x: one for all, or one for each.
Result<Id> row(NodeContext& ctx, std::string_view name, Id x) {
  const std::vector<float> values = ctx.floats_attribute(name);
  const std::int64_t columns = ctx.b.dim(x, ctx.b.rank(x) - 1);
  REEF_REQUIRE(values.size() == 1 || static_cast<std::int64_t>(values.size()) == columns,
               "attribute {} has {} numbers for {} columns", name, values.size(), columns);
  return ctx.b.floats(values, {static_cast<std::int32_t>(values.size())});
}

Result<Id> table(NodeContext& ctx) {
  REEF_RETURN_IF_ERROR(ctx.require_inputs(1));
  REEF_REQUIRE(ctx.b.rank(ctx.in(0)) >= 1, "its input has no columns");
  return cast(ctx.b, ctx.in(0), ir::DataType::kFloat32);
}

// The entries of a list attribute that is there in one of several types, as a tensor [n]; kAbsent: none of them is.
Result<Value> entries(NodeContext& ctx, std::string_view stem) {
  GraphBuilder& b = ctx.b;
  const auto length = [](std::size_t size) { return ir::Shape({static_cast<std::int32_t>(size)}); };
  if (const auto names = ctx.strings_attribute(fmt::format("{}strings", stem)); !names.empty()) {
    const Dims numbers = ctx.numbers_of(names);
    return Value{b.ints(numbers, length(numbers.size()), ir::DataType::kInt64), onnx::ElementType::kString, {}};
  }
  if (const auto numbers = ctx.ints_attribute(fmt::format("{}int64s", stem)); !numbers.empty()) {
    return Value{b.ints(numbers, length(numbers.size()), ir::DataType::kInt64), onnx::ElementType::kInt64, {}};
  }
  if (const auto numbers = ctx.floats_attribute(fmt::format("{}floats", stem)); !numbers.empty()) {
    return Value{b.floats(numbers, length(numbers.size())), onnx::ElementType::kFloat, {}};
  }
  if (const onnx::Tensor* tensor = ctx.tensor_attribute(fmt::format("{}tensor", stem))) {
    return ctx.constant(*tensor, "");
  }
  return Value{};
}

// The value for keys that are not in the table.
Result<Id> entry_for_others(NodeContext& ctx, const Value& values) {
  GraphBuilder& b = ctx.b;
  if (const onnx::Tensor* tensor = ctx.tensor_attribute("default_tensor")) {
    REEF_ASSIGN_OR_RETURN(const Value given, ctx.constant(*tensor, ""));
    REEF_REQUIRE(b.elements(given.id) == 1, "attribute default_tensor has {} elements", b.elements(given.id));
    return reshape(b, cast(b, given.id, b.type(values.id)), {});
  }
  switch (values.type) {
    case onnx::ElementType::kString: {
      const Dims number = ctx.numbers_of({ctx.string_attribute("default_string", "_Unused")});
      return b.ints(number, {}, ir::DataType::kInt64);
    }
    case onnx::ElementType::kFloat:
      return b.scalar(ir::DataType::kFloat32, ctx.float_attribute("default_float", -0.0F));
    default:
      return b.ints(Dims{ctx.int_attribute("default_int64", -1)}, {}, b.type(values.id));
  }
}

// x compared with each of n keys: [elements of x, n].
Result<Id> is_key(NodeContext& ctx, Id keys) {
  GraphBuilder& b = ctx.b;
  Id x = ctx.in(0);
  if (b.type(x) != b.type(keys)) {
    x = cast(b, x, ir::DataType::kFloat32);
    keys = cast(b, keys, ir::DataType::kFloat32);
  }
  return compare(b, Op::EQUAL, reshape(b, x, {b.elements(x), 1}), reshape(b, keys, {1, b.elements(keys)}));
}

Status finish_scores(NodeContext& ctx, Id& scores) {
  const std::string transform = ctx.string_attribute("post_transform", "NONE");
  if (transform == Op::SOFTMAX) {
    scores = softmax_last(ctx.b, scores);
  } else if (transform == Op::LOGISTIC) {
    scores = unary(ctx.b, Op::LOGISTIC, scores);
  } else if (transform != "NONE") {
    return unsupported("post_transform {} is not converted; NONE, LOGISTIC and SOFTMAX are", transform);
  }
  return ok_status();
}

// x times the rows of attribute coefficients, plus intercepts: [rows of x, `count`].
Result<Id> linear(NodeContext& ctx, std::int64_t count) {
  GraphBuilder& b = ctx.b;
  REEF_ASSIGN_OR_RETURN(Id x, table(ctx));
  const std::int64_t columns = b.dim(x, b.rank(x) - 1);
  const std::vector<float> weights = ctx.floats_attribute("coefficients");
  const std::vector<float> offsets = ctx.floats_attribute("intercepts");
  REEF_REQUIRE(count > 0 && columns > 0 && static_cast<std::int64_t>(weights.size()) == count * columns,
               "{} coefficients for {} results of {} columns", weights.size(), count, columns);
  REEF_REQUIRE(offsets.empty() || static_cast<std::int64_t>(offsets.size()) == count, "{} intercepts for {} results",
               offsets.size(), count);
  if (b.rank(x) == 1) x = reshape(b, x, {1, columns});
  const auto rows = static_cast<std::int32_t>(count);
  return fully_connected(b, x, b.floats(weights, {rows, static_cast<std::int32_t>(columns)}),
                         offsets.empty() ? kAbsent : b.floats(offsets, {rows}));
}

}  // namespace

Status convert_scaler(NodeContext& ctx, GraphBuilder& b) {
  REEF_ASSIGN_OR_RETURN(Id x, table(ctx));
  if (ctx.has_attribute("offset")) {
    REEF_ASSIGN_OR_RETURN(const Id offset, row(ctx, "offset", x));
    x = sub(b, x, offset);
  }
  if (ctx.has_attribute("scale")) {
    REEF_ASSIGN_OR_RETURN(const Id scale, row(ctx, "scale", x));
    x = mul(b, x, scale);
  }
  return ctx.give(float_value(x));
}

Status convert_normalizer(NodeContext& ctx, GraphBuilder& b) {
  REEF_ASSIGN_OR_RETURN(const Id x, table(ctx));
  const std::string norm = ctx.string_attribute("norm", "MAX");
  const Dims last = {b.rank(x) - 1};
  Id size = kAbsent;
  if (norm == "MAX") {
    size = reduce(b, Op::REDUCE_MAX, x, last, true);
  } else if (norm == "L1") {
    size = reduce(b, Op::SUM, unary(b, Op::ABS, x), last, true);
  } else if (norm == "L2") {
    size = unary(b, Op::SQRT, reduce(b, Op::SUM, mul(b, x, x), last, true));
  } else {
    return unsupported("norm {} is not one of MAX, L1 and L2", norm);
  }
  // Rows of zeros stay so.
  const Id is_zero = compare(b, Op::EQUAL, size, b.scalar(ir::DataType::kFloat32, 0));
  return ctx.give(float_value(div(b, x, add(b, size, cast(b, is_zero, ir::DataType::kFloat32)))));
}

Status convert_binarizer(NodeContext& ctx, GraphBuilder& b) {
  REEF_RETURN_IF_ERROR(ctx.require_inputs(1));
  const Id x = ctx.in(0);
  const Id bound = b.scalar(b.type(x), ctx.float_attribute("threshold", 0));
  return ctx.give(cast(b, compare(b, Op::GREATER, x, bound), b.type(x)));
}

// The number that stands for a missing one is replaced, column by column.
Status convert_imputer(NodeContext& ctx, GraphBuilder& b) {
  REEF_ASSIGN_OR_RETURN(const Id x, table(ctx));
  const bool is_integer = ctx.has_attribute("imputed_value_int64s");
  Id fill = kAbsent, is_missing = kAbsent;
  if (is_integer) {
    const Dims numbers = ctx.ints_attribute("imputed_value_int64s");
    const std::vector<float> values(numbers.begin(), numbers.end());
    REEF_REQUIRE(values.size() == 1 || static_cast<std::int64_t>(values.size()) == b.dim(x, b.rank(x) - 1),
                 "attribute imputed_value_int64s has {} numbers", values.size());
    fill = b.floats(values, {static_cast<std::int32_t>(values.size())});
    const auto missing = static_cast<double>(ctx.int_attribute("replaced_value_int64", 0));
    is_missing = compare(b, Op::EQUAL, x, b.scalar(ir::DataType::kFloat32, missing));
  } else {
    REEF_ASSIGN_OR_RETURN(fill, row(ctx, "imputed_value_floats", x));
    const float missing = ctx.float_attribute("replaced_value_float", 0);
    // Only what is not a number differs from itself.
    is_missing = missing != missing ? compare(b, Op::NOT_EQUAL, x, x)
                                    : compare(b, Op::EQUAL, x, b.scalar(ir::DataType::kFloat32, missing));
  }
  return ctx.give(cast(b, select(b, is_missing, broadcast_to(b, fill, dims_of(b.shape(x))), x), b.type(ctx.in(0))));
}

Status convert_feature_vectorizer(NodeContext& ctx, GraphBuilder& b) {
  REEF_RETURN_IF_ERROR(ctx.require_inputs(ctx.input_count()));
  std::vector<Id> parts;
  for (int i = 0; i < ctx.input_count(); ++i) {
    Id part = cast(b, ctx.in(i), ir::DataType::kFloat32);
    if (b.rank(part) == 1) part = reshape(b, part, {1, b.elements(part)});
    REEF_REQUIRE(b.rank(part) == 2 && b.dim(part, 0) == b.dim(parts.empty() ? part : parts[0], 0),
                 "its input {} is no table of as many rows as the first", i);
    parts.push_back(part);
  }
  REEF_REQUIRE(!parts.empty(), "it has no inputs");
  return ctx.give(float_value(concat(b, parts, 1)));
}

Status convert_one_hot_encoder(NodeContext& ctx, GraphBuilder& b) {
  REEF_ASSIGN_OR_RETURN(const Value keys, entries(ctx, "cats_"));
  REEF_REQUIRE(keys.id >= 0, "it has neither cats_int64s nor cats_strings");
  if (ctx.int_attribute("zeros", 1) == 0) {
    return unsupported("attribute zeros is 0: it fails on unknown categories, which no TFLite operator does");
  }
  REEF_ASSIGN_OR_RETURN(const Id columns, is_key(ctx, keys.id));
  Dims shape = dims_of(b.shape(ctx.in(0)));
  shape.push_back(b.elements(keys.id));
  return ctx.give(float_value(reshape(b, cast(b, columns, ir::DataType::kFloat32), shape)));
}

Status convert_label_encoder(NodeContext& ctx, GraphBuilder& b) {
  REEF_ASSIGN_OR_RETURN(Value keys, entries(ctx, "keys_"));
  REEF_ASSIGN_OR_RETURN(Value values, entries(ctx, "values_"));
  if (const auto classes = ctx.strings_attribute("classes_strings"); !classes.empty()) {  // version 1: both ways
    const auto count = static_cast<std::int32_t>(classes.size());
    Dims numbers;
    for (std::int32_t i = 0; i < count; ++i) numbers.push_back(i);
    const Value ranks = {b.ints(numbers, {count}, ir::DataType::kInt64), onnx::ElementType::kInt64, {}};
    const Value names = {
        b.ints(ctx.numbers_of(classes), {count}, ir::DataType::kInt64), onnx::ElementType::kString, {}};
    const bool is_name = ctx.value(0).type == onnx::ElementType::kString;
    keys = is_name ? names : ranks;
    values = is_name ? ranks : names;
  }
  REEF_REQUIRE(keys.id >= 0 && values.id >= 0, "keys or values are left out, or of a type that is not converted");
  REEF_REQUIRE(b.elements(keys.id) == b.elements(values.id), "{} keys for {} values", b.elements(keys.id),
               b.elements(values.id));
  REEF_ASSIGN_OR_RETURN(const Id matches, is_key(ctx, keys.id));
  REEF_ASSIGN_OR_RETURN(const Id otherwise, entry_for_others(ctx, values));
  const Id hits = cast(b, matches, ir::DataType::kFloat32);
  const Id best = b.emit(Op::ARG_MAX, {hits, b.scalar(ir::DataType::kInt32, 1)}, ir::DataType::kInt32);
  const Id is_known = reduce(b, Op::REDUCE_ANY, matches, {1}, false);
  const Dims flat = {b.elements(ctx.in(0))};
  const Id found = select(b, is_known, gather(b, reshape(b, values.id, {b.elements(values.id)}), best, 0),
                          broadcast_to(b, otherwise, flat));
  return ctx.give({reshape(b, found, dims_of(b.shape(ctx.in(0)))), values.type, {}});
}

// Columns of the last axis, by their numbers.
Status convert_array_feature_extractor(NodeContext& ctx, GraphBuilder& b) {
  Id x = ctx.in(0);
  REEF_REQUIRE(b.rank(x) >= 1, "its input has no columns");
  if (b.rank(x) == 1) x = reshape(b, x, {1, b.elements(x)});
  const Id columns = cast(b, reshape(b, ctx.in(1), {b.elements(ctx.in(1))}), ir::DataType::kInt32);
  return ctx.give({gather(b, x, columns, b.rank(x) - 1), ctx.value(0).type, {}});
}

Status convert_zip_map(NodeContext& ctx, GraphBuilder&) {
  ctx.note("ONNX gives a dictionary for each row; here it is the row of numbers, in the order of the classes");
  return ctx.give(ctx.value(0));
}

Status convert_linear_regressor(NodeContext& ctx, GraphBuilder&) {
  REEF_ASSIGN_OR_RETURN(Id y, linear(ctx, ctx.int_attribute("targets", 1)));
  REEF_RETURN_IF_ERROR(finish_scores(ctx, y));
  return ctx.give(float_value(y));
}

Status convert_linear_classifier(NodeContext& ctx, GraphBuilder& b) {
  Dims labels = ctx.ints_attribute("classlabels_ints");
  onnx::ElementType type = onnx::ElementType::kInt64;
  if (const auto names = ctx.strings_attribute("classlabels_strings"); !names.empty()) {
    labels = ctx.numbers_of(names);
    type = onnx::ElementType::kString;
  }
  const auto count = static_cast<std::int64_t>(labels.size());
  REEF_REQUIRE(count >= 2, "it has {} class labels", count);
  if (static_cast<std::int64_t>(ctx.floats_attribute("intercepts").size()) == 1) {
    return unsupported("two classes with one score are not converted; export the model with a score for each class");
  }
  REEF_ASSIGN_OR_RETURN(Id scores, linear(ctx, count));
  const Id best =
      b.emit(Op::ARG_MAX, {scores, b.scalar(ir::DataType::kInt32, b.rank(scores) - 1)}, ir::DataType::kInt32);
  const Id table = b.ints(labels, {static_cast<std::int32_t>(count)}, ir::DataType::kInt64);
  ctx.out(0, {gather(b, table, best, 0), type, {}});
  REEF_RETURN_IF_ERROR(finish_scores(ctx, scores));
  ctx.out(1, float_value(scores));
  return ok_status();
}

}  // namespace reef::import
