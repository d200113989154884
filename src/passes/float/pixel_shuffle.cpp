// SPDX-License-Identifier: Apache-2.0
// RESHAPE, TRANSPOSE, RESHAPE that move blocks of pixels into channels or back become SPACE_TO_DEPTH or DEPTH_TO_SPACE.
//
// PyTorch's pixel shuffle counts channels in another order than TFLite's operators: there the convolution before (or,
// for the way back, behind) computes (reads) its channels in that order instead. Exact.
#include <algorithm>

#include "passes/float/layout_rules.h"
#include "passes/float/patterns.h"
#include "passes/pass.h"

namespace reef::passes {
namespace {

// A rearrangement of elements in its simplest form: sizes of axes that stay side by side are multiplied.
struct Movement {
  std::vector<std::int64_t> sizes;
  std::vector<int> order;
  friend bool operator==(const Movement&, const Movement&) = default;
};

Movement simplest(const ir::Shape& shape, const Layout& layout) {
  std::vector<std::pair<int, std::int64_t>> groups;  // first axis of the operand, size; in the result's order
  int last = -1;
  for (const int axis : layout) {
    if (shape[axis] == 1) continue;
    bool follows = !groups.empty() && last < axis;
    for (int between = last + 1; follows && between < axis; ++between) follows = shape[between] == 1;
    if (follows) {
      groups.back().second *= shape[axis];
    } else {
      groups.emplace_back(axis, shape[axis]);
    }
    last = axis;
  }
  std::vector<std::pair<int, std::int64_t>> sorted = groups;
  std::sort(sorted.begin(), sorted.end());
  Movement movement;
  for (const auto& [axis, size] : sorted) movement.sizes.push_back(size);
  for (const auto& group : groups) {
    movement.order.push_back(static_cast<int>(std::find(sorted.begin(), sorted.end(), group) - sorted.begin()));
  }
  return movement;
}

// Where the RESHAPEs and the TRANSPOSE between them lead from and to.
struct Place {
  OpId transpose = kNone, last = kNone;
  TensorId x = kNone, y = kNone;
  Movement movement;
};

std::optional<Place> find_place(const Graph& graph, OpId id) {
  const auto layout = conversion_of(graph, id);
  const OpId before = made_by(graph, graph.op(id).inputs[0], Op::RESHAPE);
  const OpId after = graph.only_user(graph.op(id).outputs[0]);
  if (!layout || before == kNone || !graph.is(after, Op::RESHAPE) || !graph.is_sound(after)) return std::nullopt;
  Place place{id, after, graph.op(before).inputs[0], graph.op(after).outputs[0],
              simplest(graph.shape(graph.op(id).inputs[0]), *layout)};
  if (graph.shape(place.x).rank() != 4 || graph.shape(place.y).rank() != 4) return std::nullopt;
  return place;
}

void replace_by(Graph& graph, const Place& place, TensorId x, OpName type, int block) {
  ir::Attributes attributes;
  attributes.set("block_size", std::int64_t{block});
  const std::string options = type == Op::DEPTH_TO_SPACE ? "DepthToSpaceOptions" : "SpaceToDepthOptions";
  graph.become(place.last, type, options, std::move(attributes), {x});
}

// Weights with one axis (of size blocks * blocks * channels) counted as [blocks, blocks, channels], from
// [channels, blocks, blocks].
TensorId reordered(Graph& graph, TensorId constant, int axis, int blocks) {
  const ir::Shape shape = graph.shape(constant);
  ir::Shape split;
  Layout layout;
  for (int i = 0; i < shape.rank(); ++i) {
    const int at = split.rank();
    if (i != axis) {
      split.push_back(shape[i]);
      layout.push_back(at);
      continue;
    }
    split.push_back(shape[i] / (blocks * blocks));
    split.push_back(blocks);
    split.push_back(blocks);
    layout.insert(layout.end(), {at + 1, at + 2, at});
  }
  ir::Tensor made = graph.tensor(constant);
  std::vector<std::uint8_t> data =
      rearranged(ir::constant_data(graph.model(), made).span(), split, sizeof(float), layout);
  return graph.add_constant(std::move(made), std::move(data));
}

// Reorders the channels of the convolution that computes x; its new result. kNone: there is none, or others read x.
TensorId with_channels_reordered(Graph& graph, TensorId x, int block) {
  const auto layer = as_layer(graph, graph.producer(x));
  if (!layer || !graph.has_one_user(x) || !graph.is(layer->op, Op::CONV_2D)) return kNone;
  auto bias = bias_of(graph, *layer);
  if (!bias) return kNone;
  set_bias(graph, *layer, std::move(*bias));  // a constant of its own
  const std::vector<TensorId> inputs = graph.op(layer->op).inputs;
  graph.set_inputs(layer->op,
                   {inputs[0], reordered(graph, inputs[1], 0, block), reordered(graph, inputs[2], 0, block)});
  // The values change their places, so it is another tensor.
  const TensorId y = graph.add_like(x, graph.shape(x));
  graph.set_outputs(layer->op, {y});
  return y;
}

// DEPTH_TO_SPACE behind RESHAPE, TRANSPOSE, RESHAPE that bring the channels into its order.
bool reorder_before(Graph& graph, OpId id) {
  const OpId after = made_by(graph, graph.op(id).inputs[0], Op::RESHAPE);
  const OpId middle = after == kNone ? kNone : made_by(graph, graph.op(after).inputs[0], Op::TRANSPOSE);
  const OpId before = middle == kNone ? kNone : made_by(graph, graph.op(middle).inputs[0], Op::RESHAPE);
  if (before == kNone) return false;
  for (const OpId each : {after, middle, before}) {
    if (!graph.has_one_user(graph.op(each).outputs[0])) return false;
  }
  const TensorId x = graph.op(before).inputs[0];
  const ir::Shape shape = graph.shape(x);
  const auto block = static_cast<std::int32_t>(graph.op(id).attributes.get_int("block_size"));
  const auto layout = conversion_of(graph, middle);
  if (!layout || shape.rank() != 4 || shape != graph.shape(graph.op(id).inputs[0]) || block < 2 || block > 256 ||
      shape[3] % (block * block) != 0) {
    return false;
  }
  const ir::Shape split = {static_cast<std::int32_t>(shape.product(0, 3)), shape[3] / (block * block), block * block};
  if (!(simplest(graph.shape(graph.op(middle).inputs[0]), *layout) == simplest(split, {0, 2, 1}))) return false;
  const TensorId y = with_channels_reordered(graph, x, block);
  if (y == kNone) return false;
  graph.set_input(id, 0, y);
  return true;
}

bool to_space(Graph& graph, const Place& place) {
  const ir::Shape from = graph.shape(place.x), to = graph.shape(place.y);
  const int block = from[1] > 0 ? to[1] / from[1] : 0;
  if (block < 2 || to[1] != from[1] * block || to[2] != from[2] * block || to[0] != from[0]) return false;
  const std::int32_t channels = to[3];
  if (channels * block * block != from[3]) return false;
  if (place.movement == simplest({from[0], from[1], from[2], block, block, channels}, {0, 1, 3, 2, 4, 5})) {
    replace_by(graph, place, place.x, Op::DEPTH_TO_SPACE, block);
    return true;
  }
  if (!(place.movement == simplest({from[0], from[1], from[2], channels, block, block}, {0, 1, 4, 2, 5, 3})))
    return false;
  const TensorId x = with_channels_reordered(graph, place.x, block);
  if (x == kNone) return false;
  replace_by(graph, place, x, Op::DEPTH_TO_SPACE, block);
  return true;
}

bool to_depth(Graph& graph, const Place& place) {
  const ir::Shape from = graph.shape(place.x), to = graph.shape(place.y);
  const int block = to[1] > 0 ? from[1] / to[1] : 0;
  if (block < 2 || from[1] != to[1] * block || from[2] != to[2] * block || to[0] != from[0]) return false;
  if (from[3] * block * block != to[3]) return false;
  const ir::Shape split = {from[0], to[1], block, to[2], block, from[3]};
  if (place.movement == simplest(split, {0, 1, 3, 2, 4, 5})) {
    replace_by(graph, place, place.x, Op::SPACE_TO_DEPTH, block);
    return true;
  }
  const OpId user = graph.only_user(place.y);
  const auto layer = as_layer(graph, user);
  if (!layer || !graph.is(user, Op::CONV_2D) || graph.op(user).inputs[0] != place.y) return false;
  if (!(place.movement == simplest(split, {0, 1, 3, 5, 2, 4}))) return false;
  if (graph.shape(graph.op(user).inputs[1])[3] != to[3]) return false;
  graph.set_input(user, 1, reordered(graph, graph.op(user).inputs[1], 3, block));
  replace_by(graph, place, place.x, Op::SPACE_TO_DEPTH, block);
  return true;
}

bool pixel_shuffle_at(Graph& graph, OpId id) {
  if (graph.is(id, Op::DEPTH_TO_SPACE)) return reorder_before(graph, id);
  if (!graph.is(id, Op::TRANSPOSE)) return false;
  const auto place = find_place(graph, id);
  return place && (to_space(graph, *place) || to_depth(graph, *place));
}

}  // namespace

constinit const Pass pixel_shuffle_float_pass = {
    .name = "pixel-shuffle",
    .summary =
        "RESHAPE, TRANSPOSE, RESHAPE of blocks of pixels become DEPTH_TO_SPACE or SPACE_TO_DEPTH; PyTorch's order of "
        "channels goes into the convolution beside it.",
    .at = pixel_shuffle_at};

}  // namespace reef::passes
