// SPDX-License-Identifier: Apache-2.0
// Attention as ONNX Runtime's transformer optimizer writes it (domain com.microsoft): with the projections inside
// (Attention, QAttention) or before it (MultiHeadAttention), and its rotary embedding.
//
// Masks: key lengths, first and last key, or 0 and 1 for each key (for each query, for each head). A key that a mask of
// 0 and 1 leaves out gets mask_filter_value (-10000) added, as there; causality takes the lowest float.
#include <cmath>
#include <limits>

#include "import/onnx/converters.h"
#include "import/onnx/shared_parts.h"
#include "ir/op.h"

namespace reef::import {
namespace {

constexpr std::int64_t kMostPairs = std::int64_t{1} << 24;

// [batch, positions, heads * width] -> [batch, heads, positions, width]
Result<Id> with_heads(GraphBuilder& b, Id x, std::int64_t heads) {
  REEF_REQUIRE(b.rank(x) == 3 && heads >= 1 && b.dim(x, 2) % heads == 0,
               "{} cannot be cut into the {} heads of attribute num_heads", b.shape(x).to_string(), heads);
  const Id parts = reshape(b, x, {b.dim(x, 0), b.dim(x, 1), heads, b.dim(x, 2) / heads});
  return transpose(b, parts, {0, 2, 1, 3});
}

// What is added to the scores [batch, heads, queries, keys] for a mask in any of its forms.
Result<Id> mask_bias(NodeContext& ctx, Id mask, std::int64_t batch, std::int64_t queries, std::int64_t keys) {
  GraphBuilder& b = ctx.b;
  const int rank = b.rank(mask);
  mask = cast(b, mask, ir::DataType::kInt32);
  Id allowed = kAbsent;  // float, 0 or 1
  if (rank == 1 && (b.dim(mask, 0) == batch || b.dim(mask, 0) == 2 * batch)) {
    Dims numbers;
    for (std::int64_t i = 0; i < keys; ++i) numbers.push_back(i);
    const Id key = b.ints(numbers, shape_from({1, 1, 1, keys}));
    const auto bound = [&](std::int64_t from) {
      return reshape(b, slice_axis(b, mask, 0, from, batch), {batch, 1, 1, 1});
    };
    Id inside = compare(b, Op::LESS, key, bound(0));
    if (b.dim(mask, 0) == 2 * batch) {
      inside = b.emit(Op::LOGICAL_AND, {inside, compare(b, Op::GREATER_EQUAL, key, bound(batch))}, ir::DataType::kBool);
    }
    allowed = cast(b, inside, ir::DataType::kFloat32);
  } else if (rank == 2 && b.dim(mask, 0) == batch && b.dim(mask, 1) == keys) {
    allowed = reshape(b, cast(b, mask, ir::DataType::kFloat32), {batch, 1, 1, keys});
  } else if (rank == 3 && b.dim(mask, 1) == queries && b.dim(mask, 2) == keys) {
    allowed = reshape(b, cast(b, mask, ir::DataType::kFloat32), {b.dim(mask, 0), 1, queries, keys});
  } else if (rank == 4 && b.dim(mask, 2) >= keys && b.dim(mask, 3) >= keys && keys >= queries) {
    const Id rows = slice_axis(b, mask, 2, keys - queries, queries);
    allowed = cast(b, slice_axis(b, rows, 3, 0, keys), ir::DataType::kFloat32);
  } else {
    return unsupported("a mask {} is not converted for {} queries and {} keys", b.shape(mask).to_string(), queries,
                       keys);
  }
  return mul(b, subtract_from(b, 1.0, allowed), ctx.float_attribute("mask_filter_value", -10000));
}

struct Operands {
  Id q = kAbsent, k = kAbsent, v = kAbsent;  // [batch, heads, positions, width]
  Id mask = kAbsent;                         // see mask_bias
  Id bias = kAbsent;                         // added to the scores
};

// softmax(q k' * scale + masks) v as [batch, queries, heads * width].
Result<Id> attend(NodeContext& ctx, const Operands& o) {
  GraphBuilder& b = ctx.b;
  const ir::Shape q = b.shape(o.q), k = b.shape(o.k), v = b.shape(o.v);
  REEF_REQUIRE(q.rank() == 4 && k.rank() == 4 && v.rank() == 4 && q[0] == k[0] && q[1] == k[1] && q[3] == k[3] &&
                   k[0] == v[0] && k[1] == v[1] && k[2] == v[2],
               "queries {}, keys {} and values {} do not fit together", q.to_string(), k.to_string(), v.to_string());
  const std::int64_t queries = q[2], keys = k[2];
  float scale = ctx.float_attribute("scale", 0);
  if (scale == 0) scale = static_cast<float>(1 / std::sqrt(static_cast<double>(q[3])));
  Id scores = matmul(b, mul(b, o.q, scale), o.k, true);
  if (o.mask != kAbsent) {
    REEF_ASSIGN_OR_RETURN(const Id added, mask_bias(ctx, o.mask, q[0], queries, keys));
    scores = add(b, scores, added);
  }
  if (o.bias != kAbsent) scores = add(b, scores, o.bias);
  if (ctx.int_attribute("unidirectional", 0) != 0) {
    if (queries * keys > kMostPairs) {
      return unsupported("{} queries for {} keys are too many for a mask", queries, keys);
    }
    std::vector<std::uint8_t> seen;
    for (std::int64_t i = 0; i < queries * keys; ++i) seen.push_back(i % keys <= i / keys + keys - queries ? 1 : 0);
    const Id allowed = b.constant(ir::DataType::kBool, shape_from({queries, keys}), Bytes(std::move(seen)));
    scores = select(b, allowed, scores, b.scalar(ir::DataType::kFloat32, std::numeric_limits<float>::lowest()));
  }
  const Id y = matmul(b, softmax_last(b, scores), o.v);
  return reshape(b, transpose(b, y, {0, 2, 1, 3}), {q[0], queries, q[1] * v[3]});
}

// Past keys and values before new ones; [2, batch, heads, positions, width] in one tensor.
Status with_past(NodeContext& ctx, int input, Operands& o) {
  GraphBuilder& b = ctx.b;
  if (!ctx.has(input)) return ok_status();
  const Id past = ctx.in(input);
  REEF_REQUIRE(b.rank(past) == 5 && b.dim(past, 0) == 2, "past has the shape {}", b.shape(past).to_string());
  Dims dims = dims_of(b.shape(past));
  dims.erase(dims.begin());
  o.k = concat(b, {reshape(b, slice_axis(b, past, 0, 0, 1), dims), o.k}, 2);
  o.v = concat(b, {reshape(b, slice_axis(b, past, 0, 1, 1), dims), o.v}, 2);
  return ok_status();
}

// Projections of x [batch, positions, inputs] by weights [inputs, q + k + v] and a bias, cut into heads.
Result<Operands> projected(NodeContext& ctx, Id x, Id weights, Id bias) {
  GraphBuilder& b = ctx.b;
  REEF_REQUIRE(b.rank(x) == 3 && b.rank(weights) == 2 && b.dim(weights, 0) == b.dim(x, 2),
               "weights {} do not fit the input {}", b.shape(weights).to_string(), b.shape(x).to_string());
  Dims sizes = ctx.ints_attribute("qkv_hidden_sizes");
  if (sizes.empty()) sizes.assign(3, b.dim(weights, 1) / 3);
  REEF_REQUIRE(sizes.size() == 3 && sizes[0] >= 1 && sizes[1] >= 1 && sizes[2] >= 1 && sizes[0] < (1 << 24) &&
                   sizes[1] < (1 << 24) && sizes[2] < (1 << 24) && sizes[0] + sizes[1] + sizes[2] == b.dim(weights, 1),
               "attribute qkv_hidden_sizes does not add up to {}", b.dim(weights, 1));
  const std::int64_t heads = ctx.int_attribute("num_heads", 0);
  Operands o;
  std::int64_t from = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    const Id part = transpose(b, slice_axis(b, weights, 1, from, sizes[i]), {1, 0});
    const Id offset = bias == kAbsent ? kAbsent : slice_axis(b, bias, 0, from, sizes[i]);
    from += sizes[i];
    REEF_ASSIGN_OR_RETURN((i == 0   ? o.q
                           : i == 1 ? o.k
                                    : o.v),
                          with_heads(b, fully_connected(b, x, part, offset), heads));
  }
  return o;
}

Status show_present(NodeContext& ctx, const Operands& o) {
  if (ctx.wants(1)) ctx.out(1, float_value(stack(ctx.b, {o.k, o.v}, 0)));
  return ok_status();
}

}  // namespace

// input, weights, bias, mask, past, attention bias.
Status convert_runtime_attention(NodeContext& ctx, GraphBuilder&) {
  if (ctx.int_attribute("do_rotary", 0) != 0) return unsupported("attribute do_rotary is not converted");
  REEF_ASSIGN_OR_RETURN(Operands o, projected(ctx, ctx.in(0), ctx.in(1), ctx.in(2)));
  o.mask = ctx.in(3);
  REEF_RETURN_IF_ERROR(with_past(ctx, 4, o));
  o.bias = ctx.in(5);
  REEF_ASSIGN_OR_RETURN(const Id y, attend(ctx, o));
  ctx.out(0, float_value(y));
  return show_present(ctx, o);
}

// input, weights, bias, input's scale, weights' scale, mask, input's zero point, weights' zero point, past.
Status convert_quantized_attention(NodeContext& ctx, GraphBuilder& b) {
  if (ctx.int_attribute("do_rotary", 0) != 0) return unsupported("attribute do_rotary is not converted");
  const Id x = dequantize(b, ctx.in(0), ctx.in(3), ctx.in(6), 0);
  Id weights = cast(b, ctx.in(1), ir::DataType::kFloat32);
  const auto one_or_columns = [&](Id parameter) {
    const Id real = cast(b, parameter, ir::DataType::kFloat32);
    return b.elements(real) == 1 ? reshape(b, real, {}) : reshape(b, real, {1, b.elements(real)});
  };
  if (ctx.has(7)) weights = sub(b, weights, one_or_columns(ctx.in(7)));
  weights = mul(b, weights, one_or_columns(ctx.in(4)));
  REEF_ASSIGN_OR_RETURN(Operands o, projected(ctx, x, weights, ctx.in(2)));
  o.mask = ctx.in(5);
  REEF_RETURN_IF_ERROR(with_past(ctx, 8, o));
  REEF_ASSIGN_OR_RETURN(const Id y, attend(ctx, o));
  ctx.out(0, float_value(y));
  return show_present(ctx, o);
}

namespace {

// Part `index` of [batch, positions, heads, parts, width] as [batch, heads, positions, width].
Id part_of_packed(GraphBuilder& b, Id packed, std::int64_t index) {
  const Id part = slice_axis(b, packed, 3, index, 1);
  const ir::Shape s = b.shape(packed);
  return transpose(b, reshape(b, part, {s[0], s[1], s[2], s[4]}), {0, 2, 1, 3});
}

// Queries, keys and values in their three forms: apart, keys with values, all in one tensor.
Result<Operands> read_operands(NodeContext& ctx) {
  GraphBuilder& b = ctx.b;
  const std::int64_t heads = ctx.int_attribute("num_heads", 0);
  Operands o;
  if (b.rank(ctx.in(0)) == 5) {
    if (ctx.has(3)) return unsupported("a bias of packed queries, keys and values is not converted");
    o.q = part_of_packed(b, ctx.in(0), 0), o.k = part_of_packed(b, ctx.in(0), 1), o.v = part_of_packed(b, ctx.in(0), 2);
    return o;
  }
  REEF_REQUIRE(ctx.has(1), "keys are missing");
  std::int64_t from = 0;
  const auto read = [&](int input) -> Result<Id> {
    Id x = ctx.in(input);
    if (b.rank(x) == 4) return x;
    if (ctx.has(3)) {
      const std::int64_t width = b.dim(x, 2);
      REEF_REQUIRE(b.rank(ctx.in(3)) == 1 && from + width <= b.dim(ctx.in(3), 0), "the bias {} is too short",
                   b.shape(ctx.in(3)).to_string());
      x = add(b, x, slice_axis(b, ctx.in(3), 0, from, width));
      from += width;
    }
    return with_heads(b, x, heads);
  };
  REEF_ASSIGN_OR_RETURN(o.q, read(0));
  if (b.rank(ctx.in(1)) == 5) {
    o.k = part_of_packed(b, ctx.in(1), 0), o.v = part_of_packed(b, ctx.in(1), 1);
    return o;
  }
  REEF_REQUIRE(ctx.has(2), "values are missing");
  REEF_ASSIGN_OR_RETURN(o.k, read(1));
  REEF_ASSIGN_OR_RETURN(o.v, read(2));
  return o;
}

}  // namespace

// query, key, value, bias, mask of keys, attention bias, past keys, past values.
Status convert_multi_head_attention(NodeContext& ctx, GraphBuilder& b) {
  REEF_ASSIGN_OR_RETURN(Operands o, read_operands(ctx));
  REEF_REQUIRE(ctx.has(6) == ctx.has(7), "past_key and past_value must be given together");
  if (ctx.has(6)) {
    o.k = concat(b, {ctx.in(6), o.k}, 2);
    o.v = concat(b, {ctx.in(7), o.v}, 2);
  }
  o.mask = ctx.in(4);
  o.bias = ctx.in(5);
  REEF_ASSIGN_OR_RETURN(const Id y, attend(ctx, o));
  ctx.out(0, float_value(y));
  if (ctx.wants(1)) ctx.out(1, float_value(o.k));
  if (ctx.wants(2)) ctx.out(2, float_value(o.v));
  return ok_status();
}

// input, position ids (or the first one's number), cosines, sines: the standard node's in another order.
Status convert_runtime_rotary_embedding(NodeContext& ctx, GraphBuilder& b) {
  Value positions = ctx.value(1);
  const Id x = ctx.in(0);
  if (b.elements(positions.id) == 1) {
    const std::int64_t batch = b.dim(x, 0), length = b.dim(x, b.rank(x) == 4 ? 2 : 1);
    Dims numbers;
    for (std::int64_t i = 0; i < batch * length; ++i) numbers.push_back(i % length);
    const Id steps = b.ints(numbers, shape_from({batch, length}));
    positions.id = add(b, steps, reshape(b, cast(b, positions.id, ir::DataType::kInt32), {}));
  }
  NodeContext inner = ctx.with_inputs({ctx.value(0), ctx.value(2), ctx.value(3), positions}, kStandardOpset);
  REEF_RETURN_IF_ERROR(convert_rotary_embedding(inner, inner.b));
  return ctx.give(inner.take_outputs().at(0));
}

}  // namespace reef::import
