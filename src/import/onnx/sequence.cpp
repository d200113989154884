// SPDX-License-Identifier: Apache-2.0
// Sequences of tensors inside of a model: lists in Python that the exporter could not resolve. Their length and the
// positions asked for are known while importing, so that nothing is left of them.
#include <algorithm>

#include "import/onnx/converter.h"

namespace reef::import {
namespace {

using Items = std::vector<Value>;

constexpr std::size_t kMostItems = 100'000;

Result<Items> items_of(const NodeContext& ctx, int input) {
  REEF_REQUIRE(ctx.has(input) && ctx.value(input).sequence != nullptr, "input {} is no sequence", input);
  return *ctx.value(input).sequence;
}

void give(NodeContext& ctx, Items items) {
  Value value;
  if (!items.empty()) value.type = items[0].type;
  value.sequence = std::make_shared<const Items>(std::move(items));
  ctx.out(0, std::move(value));
}

// A position from input `input`, negative from the end; `limit` places there are.
Result<std::size_t> position(NodeContext& ctx, int input, std::size_t limit) {
  REEF_ASSIGN_OR_RETURN(const Dims given, ctx.ints(input));
  const auto places = static_cast<std::int64_t>(limit);
  REEF_REQUIRE(given.size() == 1 && given[0] >= -places && given[0] < places, "position {} of {} is asked for",
               given.empty() ? 0 : given[0], places);
  return static_cast<std::size_t>(given[0] < 0 ? given[0] + places : given[0]);
}

}  // namespace

Status convert_sequence_construct(NodeContext& ctx, GraphBuilder&) {
  Items items;
  for (int i = 0; i < ctx.input_count(); ++i) {
    REEF_RETURN_IF_ERROR(ctx.require_operands(ctx.input_count()));
    items.push_back(ctx.value(i));
  }
  give(ctx, std::move(items));
  return ok_status();
}

Status convert_sequence_empty(NodeContext& ctx, GraphBuilder&) {
  give(ctx, {});
  return ok_status();
}

Status convert_sequence_insert(NodeContext& ctx, GraphBuilder&) {
  REEF_ASSIGN_OR_RETURN(Items items, items_of(ctx, 0));
  REEF_REQUIRE(ctx.has(1) && ctx.value(1).sequence == nullptr && items.size() < kMostItems,
               "no tensor can be inserted");
  std::size_t at = items.size();
  if (ctx.has(2)) {
    REEF_ASSIGN_OR_RETURN(const Dims given, ctx.ints(2));
    const auto count = static_cast<std::int64_t>(items.size());
    REEF_REQUIRE(given.size() == 1 && given[0] >= -count && given[0] <= count, "the position is outside of {} items",
                 count);
    at = static_cast<std::size_t>(given[0] < 0 ? given[0] + count : given[0]);
  }
  items.insert(items.begin() + static_cast<std::ptrdiff_t>(at), ctx.value(1));
  give(ctx, std::move(items));
  return ok_status();
}

Status convert_sequence_erase(NodeContext& ctx, GraphBuilder&) {
  REEF_ASSIGN_OR_RETURN(Items items, items_of(ctx, 0));
  REEF_REQUIRE(!items.empty(), "the sequence is empty");
  std::size_t at = items.size() - 1;
  if (ctx.has(1)) {
    REEF_ASSIGN_OR_RETURN(at, position(ctx, 1, items.size()));
  }
  items.erase(items.begin() + static_cast<std::ptrdiff_t>(at));
  give(ctx, std::move(items));
  return ok_status();
}

Status convert_sequence_at(NodeContext& ctx, GraphBuilder&) {
  REEF_ASSIGN_OR_RETURN(const Items items, items_of(ctx, 0));
  REEF_ASSIGN_OR_RETURN(const std::size_t at, position(ctx, 1, items.size()));
  return ctx.give(items[at]);
}

Status convert_sequence_length(NodeContext& ctx, GraphBuilder& b) {
  REEF_ASSIGN_OR_RETURN(const Items items, items_of(ctx, 0));
  const Dims count = {static_cast<std::int64_t>(items.size())};
  return ctx.give({b.ints(count, {}, ir::DataType::kInt64), onnx::ElementType::kInt64, {}});
}

Status convert_concat_from_sequence(NodeContext& ctx, GraphBuilder& b) {
  REEF_ASSIGN_OR_RETURN(const Items items, items_of(ctx, 0));
  REEF_REQUIRE(!items.empty(), "the sequence is empty");
  std::vector<Id> parts;
  for (const Value& item : items) {
    REEF_REQUIRE(item.id >= 0 && b.is_shape_known(item.id) && b.type(item.id) == b.type(items[0].id),
                 "the tensors of the sequence are of different types, or of open sizes");
    parts.push_back(item.id);
  }
  const bool is_new = ctx.int_attribute("new_axis", 0) != 0;
  REEF_ASSIGN_OR_RETURN(const int axis, ctx.axis(ctx.int_attribute("axis", 0), b.rank(parts[0]) + (is_new ? 1 : 0)));
  Value value = items[0];
  value.id = is_new ? stack(b, parts, axis) : concat(b, parts, axis);
  return ctx.give(value);
}

Status convert_split_to_sequence(NodeContext& ctx, GraphBuilder& b) {
  const Id x = ctx.in(0);
  REEF_ASSIGN_OR_RETURN(const int axis, ctx.axis(ctx.int_attribute("axis", 0), b.rank(x)));
  const std::int64_t length = b.dim(x, axis);
  Dims sizes;
  std::int64_t each = 1;
  if (ctx.has(1)) {
    REEF_ASSIGN_OR_RETURN(sizes, ctx.ints(1));
    REEF_REQUIRE(!sizes.empty(), "split is empty");
    if (b.rank(ctx.in(1)) == 0) each = sizes[0], sizes.clear();
  }
  REEF_REQUIRE(each >= 1 && length < static_cast<std::int64_t>(kMostItems), "pieces of {} of {} are asked for", each,
               length);
  if (sizes.empty()) {
    for (std::int64_t at = 0; at < length; at += each) sizes.push_back(std::min(each, length - at));
  }
  const bool drops = !ctx.has(1) && ctx.int_attribute("keepdims", 1) == 0;
  Items items;
  std::int64_t begin = 0;
  for (const std::int64_t size : sizes) {
    REEF_REQUIRE(size >= 0 && size <= length - begin, "the pieces are longer than the axis");
    Value item = ctx.value(0);
    item.id = slice_axis(b, x, axis, begin, size);
    begin += size;
    if (drops) {
      Dims dims = dims_of(b.shape(item.id));
      dims.erase(dims.begin() + axis);
      item.id = reshape(b, item.id, dims);
    }
    items.push_back(std::move(item));
  }
  give(ctx, std::move(items));
  return ok_status();
}

}  // namespace reef::import
