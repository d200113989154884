// SPDX-License-Identifier: Apache-2.0
// Attention (opset 23 on): scaled dot products of queries and keys, soft cap, mask, softmax, product with the values.
//
// Where fewer heads of keys and values serve several of queries, these are put one below the other instead of copying
// keys. Masks of causality and windows whose place is known are constants. A position that takes no part gets the
// lowest float; a query without any gives zeros, which costs operators only where the mask is not known beforehand.
#include <algorithm>
#include <cmath>
#include <limits>

#include "import/onnx/converter.h"

namespace reef::import {
namespace {

constexpr std::int64_t kMostPairs = std::int64_t{1} << 24;

struct Heads {
  std::int64_t batch = 0, queries = 0, keys = 0;  // queries and keys: how many positions
  std::int64_t query_heads = 0, key_heads = 0;
  std::int64_t width = 0, value_width = 0;
  std::int64_t past = 0;  // positions before the first query
};

// [batch, positions, heads * width] -> [batch, heads, positions, width]
Result<Id> with_heads(NodeContext& ctx, int input, std::string_view attribute) {
  GraphBuilder& b = ctx.b;
  const Id x = ctx.in(input);
  if (b.rank(x) == 4) return x;
  const std::int64_t heads = ctx.int_attribute(attribute, 0);
  REEF_REQUIRE(b.rank(x) == 3 && heads >= 1 && b.dim(x, 2) % heads == 0,
               "input {} {} does not fit attribute {}, which is {}", input, b.shape(x).to_string(), attribute, heads);
  const Id parts = reshape(b, x, {b.dim(x, 0), b.dim(x, 1), heads, b.dim(x, 2) / heads});
  return transpose(b, parts, {0, 2, 1, 3});
}

// Which keys each query may see by causality, windows and the number of valid keys: bool, kAbsent: all.
Result<Id> structural_mask(NodeContext& ctx, const Heads& h) {
  GraphBuilder& b = ctx.b;
  const bool is_causal = ctx.int_attribute("is_causal", 0) != 0;
  const std::int64_t left = ctx.int_attribute("left_window_size", -1),
                     right = ctx.int_attribute("right_window_size", -1);
  const bool is_open = ctx.has(6) && ctx.opset() >= 24;
  if (!is_causal && left < 0 && right < 0 && !is_open) return kAbsent;
  if (h.queries * h.keys > kMostPairs) {
    return unsupported("{} queries for {} keys are too many for a mask", h.queries, h.keys);
  }
  // How far each key lies behind its query, were there no keys before the first one.
  const auto is_seen = [&](std::int64_t distance) {
    return (!is_causal || distance <= 0) && (left < 0 || distance >= -left) && (right < 0 || distance <= right);
  };
  if (!is_open) {
    std::vector<std::uint8_t> mask;
    for (std::int64_t i = 0; i < h.queries * h.keys; ++i) {
      mask.push_back(is_seen(i % h.keys - i / h.keys - h.past) ? 1 : 0);
    }
    return b.constant(ir::DataType::kBool, shape_from({h.queries, h.keys}), Bytes(std::move(mask)));
  }
  REEF_REQUIRE(b.elements(ctx.in(6)) == h.batch, "nonpad_kv_seqlen has {} elements for a batch of {}",
               b.elements(ctx.in(6)), h.batch);
  const Id valid = reshape(b, cast(b, ctx.in(6), ir::DataType::kInt32), {h.batch, 1, 1, 1});
  Dims keys, distances;
  for (std::int64_t i = 0; i < h.keys; ++i) keys.push_back(i);
  for (std::int64_t i = 0; i < h.queries * h.keys; ++i) distances.push_back(i % h.keys - i / h.keys);
  Id mask = compare(b, Op::LESS, b.ints(keys, shape_from({1, 1, 1, h.keys})), valid);
  const Id offset = sub(b, valid, static_cast<double>(h.queries));
  const Id distance = sub(b, b.ints(distances, shape_from({1, 1, h.queries, h.keys})), offset);
  const auto also = [&](OpName op, std::int64_t limit) {
    const Id is_within = compare(b, op, distance, b.scalar(ir::DataType::kInt32, static_cast<double>(limit)));
    mask = b.emit(Op::LOGICAL_AND, {mask, is_within}, ir::DataType::kBool);
  };
  if (is_causal) also(Op::LESS_EQUAL, 0);
  if (left >= 0) also(Op::GREATER_EQUAL, -left);
  if (right >= 0) also(Op::LESS_EQUAL, right);
  return mask;
}

struct Mask {
  Id allowed = kAbsent;  // bool
  Id bias = kAbsent;     // float32, added
};

// attn_mask, filled up to all keys, and the structural mask.
Result<Mask> read_mask(NodeContext& ctx, const Heads& h) {
  GraphBuilder& b = ctx.b;
  Mask mask;
  REEF_ASSIGN_OR_RETURN(mask.allowed, structural_mask(ctx, h));
  if (!ctx.has(3)) return mask;
  Id given = ctx.in(3);
  const int rank = b.rank(given);
  REEF_REQUIRE(b.is_shape_known(given) && rank >= 1 && rank <= 4, "attn_mask has {} dimensions", rank);
  const std::int64_t missing = b.dim(given, rank - 1) == 1 ? 0 : h.keys - b.dim(given, rank - 1);
  REEF_REQUIRE(missing >= 0, "attn_mask {} is wider than the {} keys", b.shape(given).to_string(), h.keys);
  Dims before(static_cast<std::size_t>(rank), 0), after = before;
  after.back() = missing;
  if (b.type(given) != ir::DataType::kBool) {
    mask.bias = pad_constant(b, given, before, after, -std::numeric_limits<double>::infinity());
    return mask;
  }
  if (missing > 0) {
    const Id wide = pad_constant(b, cast(b, given, ir::DataType::kInt32), before, after, 0);
    given = compare(b, Op::GREATER, wide, b.scalar(ir::DataType::kInt32, 0));
  }
  mask.allowed = mask.allowed == kAbsent ? given : b.emit(Op::LOGICAL_AND, {mask.allowed, given}, ir::DataType::kBool);
  return mask;
}

// Whether a query may find all its keys masked. Masks that are not known may do that.
bool may_be_empty(GraphBuilder& b, const Mask& mask, std::int64_t keys) {
  if (mask.bias != kAbsent) return true;
  if (mask.allowed == kAbsent) return false;
  const auto known = b.int_values(mask.allowed);
  if (!known || b.dim(mask.allowed, b.rank(mask.allowed) - 1) != keys) return true;
  for (std::size_t i = 0; i + static_cast<std::size_t>(keys) <= known->size(); i += static_cast<std::size_t>(keys)) {
    const auto row = known->begin() + static_cast<std::ptrdiff_t>(i);
    if (std::all_of(row, row + keys, [](std::int64_t each) { return each == 0; })) return true;
  }
  return false;
}

// Probabilities with zeros for queries that see no key.
Id without_empty_rows(GraphBuilder& b, const Mask& mask, Id probabilities) {
  const Id lowest = b.scalar(ir::DataType::kFloat32, std::numeric_limits<float>::lowest());
  Id best = mask.bias;
  if (mask.allowed != kAbsent) {
    const Id bias = mask.bias != kAbsent ? mask.bias : b.scalar(ir::DataType::kFloat32, 0);
    best = select(b, mask.allowed, bias, lowest);
  }
  best = reduce(b, Op::REDUCE_MAX, best, {b.rank(best) - 1}, true);
  const Id is_empty = compare(b, Op::LESS_EQUAL, best, lowest);
  return select(b, is_empty, b.scalar(ir::DataType::kFloat32, 0), probabilities);
}

Result<Heads> read_heads(NodeContext& ctx, Id q, Id k, Id v) {
  GraphBuilder& b = ctx.b;
  Heads h;
  h.batch = b.dim(q, 0), h.query_heads = b.dim(q, 1), h.queries = b.dim(q, 2), h.width = b.dim(q, 3);
  h.key_heads = b.dim(k, 1), h.keys = b.dim(k, 2), h.value_width = b.dim(v, 3);
  REEF_REQUIRE(b.rank(q) == 4 && b.rank(k) == 4 && b.rank(v) == 4 && b.dim(k, 0) == h.batch && b.dim(v, 0) == h.batch &&
                   b.dim(k, 3) == h.width && b.dim(v, 1) == h.key_heads && b.dim(v, 2) == h.keys && h.key_heads >= 1 &&
                   h.query_heads % h.key_heads == 0,
               "queries {}, keys {} and values {} do not fit together", b.shape(q).to_string(), b.shape(k).to_string(),
               b.shape(v).to_string());
  if (ctx.has(4)) h.past = b.dim(ctx.in(4), 2);
  return h;
}

}  // namespace

Status convert_attention(NodeContext& ctx, GraphBuilder& b) {
  REEF_ASSIGN_OR_RETURN(Id q, with_heads(ctx, 0, "q_num_heads"));
  REEF_ASSIGN_OR_RETURN(Id k, with_heads(ctx, 1, "kv_num_heads"));
  REEF_ASSIGN_OR_RETURN(Id v, with_heads(ctx, 2, "kv_num_heads"));
  REEF_REQUIRE(ctx.has(4) == ctx.has(5), "past_key and past_value must be given together");
  if (ctx.has(4)) {
    k = concat(b, {ctx.in(4), k}, 2);
    v = concat(b, {ctx.in(5), v}, 2);
  }
  REEF_RETURN_IF_ERROR(b.status());
  REEF_ASSIGN_OR_RETURN(const Heads h, read_heads(ctx, q, k, v));
  REEF_ASSIGN_OR_RETURN(const Mask mask, read_mask(ctx, h));
  const double scale = ctx.float_attribute("scale", static_cast<float>(1 / std::sqrt(static_cast<double>(h.width))));
  const std::int64_t rows = h.query_heads / h.key_heads * h.queries;
  const std::int64_t shown = ctx.wants(3) ? ctx.int_attribute("qk_matmul_output_mode", 0) : -1;
  const auto show = [&](std::int64_t mode, Id scores) {
    if (shown == mode) ctx.out(3, scores);
  };
  Id scores = matmul(b, reshape(b, mul(b, q, scale), {h.batch, h.key_heads, rows, h.width}), k, true);
  scores = reshape(b, scores, {h.batch, h.query_heads, h.queries, h.keys});
  show(0, scores);
  if (const double cap = ctx.float_attribute("softcap", 0); cap > 0) {
    scores = mul(b, unary(b, Op::TANH, mul(b, scores, 1 / cap)), cap);
  }
  show(1, scores);
  if (mask.bias != kAbsent) scores = add(b, scores, mask.bias);
  if (mask.allowed != kAbsent) {
    const double masked = shown == 2 ? -std::numeric_limits<double>::infinity() : std::numeric_limits<float>::lowest();
    scores = select(b, mask.allowed, scores, b.scalar(ir::DataType::kFloat32, masked));
  }
  show(2, scores);
  Id probabilities = softmax_last(b, scores);
  if (may_be_empty(b, mask, h.keys)) probabilities = without_empty_rows(b, mask, probabilities);
  show(3, probabilities);
  Id y = matmul(b, reshape(b, probabilities, {h.batch, h.key_heads, rows, h.keys}), v);
  y = reshape(b, y, {h.batch, h.query_heads, h.queries, h.value_width});
  if (b.rank(ctx.in(0)) == 3) {
    y = reshape(b, transpose(b, y, {0, 2, 1, 3}), {h.batch, h.queries, h.query_heads * h.value_width});
  }
  ctx.out(0, y);
  if (ctx.wants(1)) ctx.out(1, k);
  if (ctx.wants(2)) ctx.out(2, v);
  return ok_status();
}

// Turns pairs of elements by angles that grow with the position.
Status convert_rotary_embedding(NodeContext& ctx, GraphBuilder& b) {
  REEF_RETURN_IF_ERROR(ctx.require_inputs(3));
  Id x = ctx.in(0);
  const bool is_flat = b.rank(x) == 3;  // [batch, positions, heads * width], else [batch, heads, positions, width]
  REEF_REQUIRE(b.rank(x) == 3 || b.rank(x) == 4, "the input has {} dimensions", b.rank(x));
  if (is_flat) {
    const std::int64_t heads = ctx.int_attribute("num_heads", 0);
    REEF_REQUIRE(heads >= 1 && b.dim(x, 2) % heads == 0, "attribute num_heads is {} for {}", heads,
                 b.shape(x).to_string());
    x = reshape(b, x, {b.dim(x, 0), b.dim(x, 1), heads, b.dim(x, 2) / heads});
  }
  const std::int64_t positions = b.dim(x, is_flat ? 1 : 2), width = b.dim(x, 3);
  std::int64_t turned = ctx.int_attribute("rotary_embedding_dim", 0);
  if (turned == 0) turned = width;
  REEF_REQUIRE(turned >= 2 && turned <= width && turned % 2 == 0, "attribute rotary_embedding_dim is {} of {}", turned,
               width);
  const auto angles = [&](int input) {
    Id table = ctx.in(input);
    if (ctx.has(3)) table = gather(b, table, cast(b, ctx.in(3), ir::DataType::kInt32), 0);
    const std::int64_t batch = b.elements(table) / std::max<std::int64_t>(1, positions * turned / 2);
    return reshape(b, table, is_flat ? Dims{batch, positions, 1, turned / 2} : Dims{batch, 1, positions, turned / 2});
  };
  const Id cosine = angles(1), sine = angles(2);
  const Id part = slice_axis(b, x, 3, 0, turned);
  const bool is_interleaved = ctx.int_attribute("interleaved", 0) != 0;
  Id first = kAbsent, second = kAbsent;
  Dims pairs = dims_of(b.shape(part));
  const Dims half = {pairs[0], pairs[1], pairs[2], turned / 2};
  if (is_interleaved) {
    const Id apart = reshape(b, part, {pairs[0], pairs[1], pairs[2] * turned / 2, 2});
    first = reshape(b, slice_axis(b, apart, 3, 0, 1), half);
    second = reshape(b, slice_axis(b, apart, 3, 1, 1), half);
  } else {
    first = slice_axis(b, part, 3, 0, turned / 2);
    second = slice_axis(b, part, 3, turned / 2, turned / 2);
  }
  const Id real = sub(b, mul(b, cosine, first), mul(b, sine, second));
  const Id imaginary = add(b, mul(b, sine, first), mul(b, cosine, second));
  Id y = is_interleaved ? reshape(b, stack(b, {real, imaginary}, 4), pairs) : concat(b, {real, imaginary}, 3);
  if (turned < width) y = concat(b, {y, slice_axis(b, x, 3, turned, width - turned)}, 3);
  return ctx.give(reshape(b, y, dims_of(b.shape(ctx.in(0)))));
}

}  // namespace reef::import
