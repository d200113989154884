// SPDX-License-Identifier: Apache-2.0
// 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) becomes GELU (approximate), with its products in any order. The
// form with erf has no operators in TFLite to be written with; the importer recognises it. Float32 only; differs by
// rounding.
#include <cmath>
#include <map>

#include "passes/float/patterns.h"
#include "passes/pass.h"

namespace reef::passes {
namespace {

// A product taken apart: a number times tensors, each with its power.
struct Product {
  double factor = 1;
  std::map<TensorId, int> powers;
};

// Follows products down, but not into `stop`s: whatever is no product is a factor.
Product factors_of(const Graph& graph, TensorId tensor, int depth = 6) {
  Product result;
  const OpId op = graph.producer(tensor);
  const bool is_known =
      op != kNone && depth > 0 && graph.is_sound(op) && has_no_activation(graph, op) && is_float(graph, tensor);
  if (is_known && (graph.is(op, Op::MUL) || graph.is(op, Op::DIV) || graph.is(op, Op::POW))) {
    const auto parts = with_number(graph, op);
    if (graph.is(op, Op::POW)) {
      if (parts && !parts->number_first && (parts->number == 2 || parts->number == 3)) {
        result = factors_of(graph, parts->x, depth - 1);
        const int power = static_cast<int>(parts->number);
        result.factor = std::pow(result.factor, power);
        for (auto& [each, count] : result.powers) count *= power;
        return result;
      }
    } else if (parts && !(graph.is(op, Op::DIV) && parts->number_first)) {
      result = factors_of(graph, parts->x, depth - 1);
      result.factor *= graph.is(op, Op::MUL) ? parts->number : 1.0 / parts->number;
      return result;
    } else if (graph.is(op, Op::MUL)) {
      for (const TensorId operand : graph.op(op).inputs) {
        const Product part = factors_of(graph, operand, depth - 1);
        result.factor *= part.factor;
        for (const auto& [each, count] : part.powers) result.powers[each] += count;
      }
      return result;
    }
  }
  result.powers[tensor] = 1;
  return result;
}

bool is_power(const Product& product, TensorId x, int power, double factor) {
  return product.powers.size() == 1 && product.powers.begin()->first == x && product.powers.begin()->second == power &&
         is_about(product.factor, factor, 1e-4);
}

// tensor = x + 0.044715 x^3, or x (1 + 0.044715 x^2), times a factor.
bool is_cubic(const Graph& graph, const Product& product, TensorId x, double factor) {
  const double cubic = 0.044715;
  if (!is_about(product.factor, factor, 1e-4)) return false;
  if (product.powers.size() == 1 && product.powers.begin()->second == 1) {
    const OpId sum = made_by(graph, product.powers.begin()->first, Op::ADD);
    if (sum == kNone || !has_no_activation(graph, sum)) return false;
    const TensorId a = graph.op(sum).inputs[0], b = graph.op(sum).inputs[1];
    return (a == x && is_power(factors_of(graph, b), x, 3, cubic)) ||
           (b == x && is_power(factors_of(graph, a), x, 3, cubic));
  }
  if (product.powers.size() != 2 || !product.powers.contains(x) || product.powers.at(x) != 1) return false;
  const auto other = product.powers.begin()->first == x ? std::next(product.powers.begin()) : product.powers.begin();
  const OpId sum = made_by(graph, other->first, Op::ADD);
  if (other->second != 1 || sum == kNone || !has_no_activation(graph, sum)) return false;
  const auto parts = with_number(graph, sum);
  return parts && parts->number == 1 && is_power(factors_of(graph, parts->x), x, 2, cubic);
}

// tensor = 1 + tanh(u): u.
TensorId one_plus_tanh(const Graph& graph, TensorId tensor) {
  const OpId sum = made_by(graph, tensor, Op::ADD);
  if (sum == kNone || !has_no_activation(graph, sum)) return kNone;
  const auto parts = with_number(graph, sum);
  if (!parts || parts->number != 1) return kNone;
  const OpId tanh = made_by(graph, parts->x, Op::TANH);
  return tanh == kNone ? kNone : graph.op(tanh).inputs[0];
}

bool gelu_at(Graph& graph, OpId id) {
  if (!graph.is(id, Op::MUL) || !has_no_activation(graph, id)) return false;
  const TensorId y = graph.op(id).outputs[0];
  const Product product = factors_of(graph, y);
  if (product.powers.size() != 2 || !is_about(product.factor, 0.5)) return false;
  for (const auto& [gate, power] : product.powers) {
    const TensorId argument = one_plus_tanh(graph, gate);
    if (argument == kNone || power != 1) continue;
    for (const auto& [x, count] : product.powers) {
      if (x == gate || count != 1 || graph.shape(x) != graph.shape(y)) continue;
      if (!is_cubic(graph, factors_of(graph, argument), x, std::sqrt(2 / M_PI))) continue;
      ir::Attributes attributes;
      attributes.set("approximate", true);
      graph.become(id, Op::GELU, "GeluOptions", std::move(attributes), {x});
      return true;
    }
  }
  return false;
}

}  // namespace

constinit const Pass gelu_float_pass = {
    .name = "gelu", .summary = "GELU written out with tanh becomes GELU.", .safety = Safety::kRounding, .at = gelu_at};

}  // namespace reef::passes
