// SPDX-License-Identifier: Apache-2.0
// Factors of queries and keys go behind their product, where SOFTMAX takes them in as its beta: exporters scale either,
// or both by the root, in front of, between or behind what moves heads. Such a factor keeps movement from going away,
// and is a tensor more to round when the model is quantized. Float32 only; rounding.
//
// And a product of two transposed matrices is the transposed product of both in the other order: YOLO multiplies values
// by weights in this way.
#include <cmath>

#include "passes/float/patterns.h"
#include "passes/pass.h"

namespace reef::passes {
namespace {

constexpr int kMostOpsBetween = 4;

// Factors, masks, and then SOFTMAX, each read by the next alone.
bool leads_to_softmax(const Graph& graph, TensorId tensor) {
  for (int i = 0; i < kMostOpsBetween; ++i) {
    const OpId user = graph.only_user(tensor);
    if (user == kNone || !graph.is_sound(user)) return false;
    if (graph.is(user, Op::SOFTMAX)) return true;
    if (!graph.is(user, Op::MUL) && !graph.is(user, Op::ADD) && !graph.is(user, Op::SUB)) return false;
    if (graph.shape(graph.op(user).outputs[0]) != graph.shape(tensor)) return false;
    tensor = graph.op(user).outputs[0];
  }
  return false;
}

// The product with a positive number that a tensor is, behind movement or not; kNone: there is none.
OpId factor_before(const Graph& graph, TensorId tensor) {
  for (int i = 0; i < kMostOpsBetween; ++i) {
    const OpId maker = graph.producer(tensor);
    if (maker == kNone || !graph.is_sound(maker) || !graph.has_one_user(tensor)) return kNone;
    if (graph.is(maker, Op::MUL)) {
      const auto parts = with_number(graph, maker);
      const bool fits = parts && has_no_activation(graph, maker) && parts->number > 0 && std::isfinite(parts->number) &&
                        graph.shape(parts->x) == graph.shape(tensor);
      return fits ? maker : kNone;
    }
    if (!graph.is(maker, Op::RESHAPE) && !graph.is(maker, Op::TRANSPOSE)) return kNone;
    tensor = graph.op(maker).inputs[0];
  }
  return kNone;
}

bool move_factors(Graph& graph, OpId id) {
  const TensorId out = graph.op(id).outputs[0];
  if (!leads_to_softmax(graph, out)) return false;
  double factor = 1;
  bool found = false;
  for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
    const OpId product = factor_before(graph, graph.op(id).inputs[side]);
    if (product == kNone) continue;
    const auto parts = with_number(graph, product);
    if (graph.replace(graph.op(product).outputs[0], parts->x) == kNone) continue;
    factor *= static_cast<double>(parts->number);
    found = true;
  }
  if (!found) return false;
  const TensorId plain = graph.add_like(out, graph.shape(out));
  graph.set_outputs(id, {plain});
  const TensorId number = graph.add_floats({static_cast<float>(factor)}, {}, graph.tensor(out).name + "/factor");
  graph.add_op(id, Op::MUL, "MulOptions", activation_attributes("NONE"), {plain, number}, {out});
  return true;
}

bool turn_around(Graph& graph, OpId id) {
  const ir::Attributes& given = graph.op(id).attributes;
  if (!given.get_bool("adj_x") || !given.get_bool("adj_y")) return false;
  const TensorId out = graph.op(id).outputs[0];
  const ir::Shape shape = graph.shape(out);
  if (shape.rank() < 2) return false;
  ir::Shape turned = shape;
  turned[shape.rank() - 2] = shape.last();
  turned[shape.rank() - 1] = shape.last(1);
  std::vector<std::int32_t> order;
  for (int d = 0; d < shape.rank(); ++d) order.push_back(d);
  std::swap(order[order.size() - 2], order[order.size() - 1]);
  const TensorId product = graph.add_like(out, turned);
  graph.set_inputs(id, {graph.op(id).inputs[1], graph.op(id).inputs[0]});
  graph.set_attribute(id, "adj_x", false);
  graph.set_attribute(id, "adj_y", false);
  graph.set_outputs(id, {product});
  graph.add_op(id, Op::TRANSPOSE, "TransposeOptions", {}, {product, graph.add_ints(std::move(order))}, {out});
  return true;
}

bool attention_factors_at(Graph& graph, OpId id) {
  if (!graph.is(id, Op::BATCH_MATMUL) || !graph.is_sound(id) || !is_float(graph, graph.op(id).outputs[0])) return false;
  return turn_around(graph, id) || move_factors(graph, id);
}

}  // namespace

constinit const Pass attention_factors_float_pass = {
    .name = "attention-factors",
    .summary =
        "Factors of queries and keys, in front of, between or behind what moves heads, go behind their product, where "
        "SOFTMAX takes them in (a mask is divided by them); a product of two transposed matrices is the transposed "
        "product.",
    .safety = Safety::kRounding,
    .at = attention_factors_at};

}  // namespace reef::passes
