// SPDX-License-Identifier: Apache-2.0
// Normalizations of tokens that differ much in size, done in two passes.
//
// A normalization multiplies each token by r = 1/sqrt(variance). Of an 8-bit variance that spans 0.001 to 2 the small
// ones become 0, and all tokens that have such a variance get the same factor; an 8-bit factor that spans 0.7 to 33
// rounds the usual 0.7 by 9 %. Class tokens are like that: they are a parameter of size 0.02 among patches of size 1,
// and a wrong factor scales the one token that the answer is read from.
//
//   before: r = RSQRT(v + e), v = MEAN(c * c); y = c * r
//   after:  a = c * RSQRT(v + f);  y = a * RSQRT(MEAN(a * a) + g)
//
// f is a quarter of the variance's 8-bit step, so that the first factor is right to within a factor of two or so where
// v rounds to 0, and the rounded values of a fill their range. The second pass divides by what a really is: whatever
// the first factor was rounded to falls away. In floats it is the same but for g, which stands for e: for a token of
// variance v it should be e / (v + f), and is what that is for the smallest variance that was seen.
//
// It costs five operators and two roundings of a, so that it loses where tokens are of the same size. For the chip the
// second pass is a normalization by the root of the mean square like any other.
//
// Where the small tokens are constants, such as a class token that has just been put beside the patches, what they come
// to is known, and one operator is enough. Their variances get a guard of their own, as large as the variances of the
// others, so that factors are of one size, and what is missing in their rows is added behind:
//
//   after:  r = RSQRT(v + guards);  y = c * r + (what the constants come to, less what c * r is in their rows)
#include <cmath>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "graph/appender.h"
#include "quantize/graph_constants.h"
#include "quantize/recover/techniques.h"
#include "quantize/session.h"

namespace reef::quantize {
namespace {

// Largest over smallest factor of the samples. Below it the smallest variance has four of its 255 steps, and is rounded
// by 12 % at most.
constexpr float kWorthwhileSpread = 8;
constexpr float kShareOfStep = 0.25F;

class Normalizer {
 public:
  Normalizer(ir::Model& model, const Calibration& calibration)
      : model_(model), graph_(model.subgraphs[0]), calibration_(calibration) {}

  int run() {
    const ir::Uses uses(model_);
    std::vector<Place> places(graph_.operators.size());  // by number of the product
    int count = 0;
    for (std::size_t i = 0; i < graph_.operators.size(); ++i) {
      if (const Place place = at(uses, graph_.operators[i]); place.sum >= 0) {
        places[i] = place;
        ++count;
      }
    }
    if (count == 0) return 0;
    const std::vector<ir::Operator> before = std::move(graph_.operators);
    graph_.operators.clear();
    for (std::size_t i = 0; i < before.size(); ++i) {
      if (places[i].sum < 0) {
        graph_.operators.push_back(before[i]);
      } else {
        if (places[i].constants) {
          add_constants(before, places[i], before[i]);
        } else {
          add_passes(before, places[i], before[i]);
        }
      }
    }
    drop_unread(model_);
    return count;
  }

 private:
  // Tokens that are constants: rows `first` to `end` of these values, one for each element of the tokens' tensor.
  struct ConstantTokens {
    std::int32_t first = 0, end = 0;
    std::vector<float> values;
  };
  // Operators by their numbers; `centred`: the tensor that is normalized.
  struct Place {
    std::int32_t mean = -1, sum = -1, root = -1, centred = -1;
    std::optional<ConstantTokens> constants = std::nullopt;
  };

  const ir::Tensor& tensor(std::int32_t t) const { return graph_.tensors[reef::at(t)]; }
  const ir::Operator& op(std::int32_t number) const { return graph_.operators[reef::at(number)]; }
  const TensorStatistics& seen(std::int32_t t) const { return calibration_.tensors[reef::at(t)]; }
  // The operator of this type that computes `t`; -1: another does, or none.
  std::int32_t maker(const ir::Uses& uses, std::int32_t t, Op type) const {
    const std::int32_t number = t < 0 ? -1 : uses.producer(t);
    const bool is_it = number >= 0 && op(number).type == type &&
                       op(number).attributes.get_enum("fused_activation_function", "NONE") == "NONE";
    return is_it ? number : -1;
  }
  bool is_number(std::int32_t t) const {
    return t >= 0 && is_float_constant(model_, tensor(t)) && tensor(t).shape.elements() == 1;
  }

  Place at(const ir::Uses& uses, const ir::Operator& product) const {
    const bool is_product = product.type == Op::MUL && product.inputs.size() == 2 &&
                            product.attributes.get_enum("fused_activation_function", "NONE") == "NONE";
    if (!is_product) return {};
    for (const std::size_t factor : {std::size_t{1}, std::size_t{0}}) {
      Place place;
      place.centred = product.inputs[1 - factor];
      place.root = maker(uses, product.inputs[factor], Op::RSQRT);
      if (place.root < 0 || !spans_much(product.inputs[factor])) continue;
      place.sum = maker(uses, op(place.root).inputs[0], Op::ADD);
      if (place.sum < 0 || !is_number(op(place.sum).inputs[1])) continue;
      place.mean = maker(uses, op(place.sum).inputs[0], Op::MEAN);
      if (place.mean < 0 || !squares(uses, op(place.mean).inputs[0], place.centred)) continue;
      place.constants = constant_tokens(uses, place.centred);
      return place;
    }
    return {};
  }

  bool spans_much(std::int32_t factor) const {
    const TensorStatistics& values = seen(factor);
    return values.seen() && values.min > 0 && values.max >= kWorthwhileSpread * values.min;
  }

  // `t` is c * c, or the squared difference from a mean that is subtracted in c.
  bool squares(const ir::Uses& uses, std::int32_t t, std::int32_t c) const {
    if (const std::int32_t square = maker(uses, t, Op::MUL); square >= 0) {
      return op(square).inputs[0] == c && op(square).inputs[1] == c;
    }
    const std::int32_t difference = maker(uses, t, Op::SQUARED_DIFFERENCE), centring = maker(uses, c, Op::SUB);
    return difference >= 0 && centring >= 0 && op(difference).inputs == op(centring).inputs;
  }

  // Of ADD(PAD(x), constants) minus its mean, [1, tokens, channels]: the tokens that PAD adds on one side.
  std::optional<ConstantTokens> constant_tokens(const ir::Uses& uses, std::int32_t centred) const {
    const std::int32_t centring = maker(uses, centred, Op::SUB);
    const std::int32_t sum = centring < 0 ? -1 : maker(uses, op(centring).inputs[0], Op::ADD);
    if (sum < 0) return std::nullopt;
    const std::int32_t pad = maker(uses, op(sum).inputs[0], Op::PAD), constant = op(sum).inputs[1];
    const ir::Shape& shape = tensor(centred).shape;
    if (pad < 0 || shape.rank() != 3 || shape[0] != 1 || !is_float_constant(model_, tensor(constant)) ||
        tensor(constant).shape != shape) {
      return std::nullopt;
    }
    const std::vector<std::int32_t> amounts = int_values<std::int32_t>(model_, tensor(op(pad).inputs[1]));
    if (amounts.size() != 6 || amounts[0] + amounts[1] + amounts[4] + amounts[5] != 0) return std::nullopt;
    if ((amounts[2] > 0) == (amounts[3] > 0)) return std::nullopt;
    const std::int32_t first = amounts[2] > 0 ? 0 : shape[1] - amounts[3];
    const std::int32_t end = amounts[2] > 0 ? amounts[2] : shape[1];
    return ConstantTokens{first, end, float_values(model_, tensor(constant))};
  }

  // A copy of an operator with other operands and a new result like its own.
  std::int32_t add_like(const ir::Operator& other, std::vector<std::int32_t> inputs, const std::string& name) {
    const std::int32_t made = graph::Appender(model_).add_tensor(name, tensor(other.outputs[0]).shape);
    ir::Operator copy = other;
    copy.inputs = std::move(inputs);
    copy.outputs = {made};
    graph_.operators.push_back(std::move(copy));
    return made;
  }
  std::int32_t number(const std::string& name, float value) {
    return graph::Appender(model_).add_constant(name, ir::Shape({1}), ir::DataType::kFloat32,
                                                std::vector<float>{value});
  }

  void add_constants(const std::vector<ir::Operator>& before, const Place& place, const ir::Operator& product) {
    const auto from = [&](std::int32_t index) -> const ir::Operator& { return before[reef::at(index)]; };
    const ir::Operator &sum = from(place.sum), &root = from(place.root);
    const ir::Shape shape = tensor(place.centred).shape;
    const float guard = float_values(model_, tensor(sum.inputs[1]))[0];
    const float own_guard = seen(from(place.mean).outputs[0]).max;
    std::vector<float> guards(static_cast<std::size_t>(shape[1]), guard);
    std::vector<float> missing(static_cast<std::size_t>(shape.elements()), 0.0F);
    const auto width = static_cast<std::size_t>(shape[2]);
    for (auto row = static_cast<std::size_t>(place.constants->first);
         row < static_cast<std::size_t>(place.constants->end); ++row) {
      const float* const values = place.constants->values.data() + row * width;
      double mean = 0, variance = 0;
      for (std::size_t i = 0; i < width; ++i) mean += values[i] / static_cast<double>(width);
      for (std::size_t i = 0; i < width; ++i)
        variance += (values[i] - mean) * (values[i] - mean) / static_cast<double>(width);
      const double less = 1 / std::sqrt(variance + guard) - 1 / std::sqrt(variance + own_guard);
      for (std::size_t i = 0; i < width; ++i) missing[row * width + i] = static_cast<float>((values[i] - mean) * less);
      guards[row] = own_guard;
    }
    const std::string name = tensor(product.outputs[0]).name;
    graph::Appender make(model_);
    const std::int32_t guarded =
        add_like(sum,
                 {sum.inputs[0],
                  make.add_constant(name + "/guards", ir::Shape({1, shape[1], 1}), ir::DataType::kFloat32, guards)},
                 name + "/guarded");
    const std::int32_t y =
        add_like(product, {place.centred, add_like(root, {guarded}, name + "/factor")}, name + "/rest");
    ir::Operator last = sum;
    last.inputs = {y, make.add_constant(name + "/constants", shape, ir::DataType::kFloat32, missing)};
    last.outputs = product.outputs;
    graph_.operators.push_back(std::move(last));
  }

  void add_passes(const std::vector<ir::Operator>& before, const Place& place, const ir::Operator& product) {
    const auto from = [&](std::int32_t index) -> const ir::Operator& { return before[reef::at(index)]; };
    const ir::Operator &mean = from(place.mean), &sum = from(place.sum), &root = from(place.root);
    const TensorStatistics& variance = seen(mean.outputs[0]);
    const float guard = float_values(model_, tensor(sum.inputs[1]))[0];
    const float rough = std::max(guard, kShareOfStep * variance.max / 255);
    const std::string name = tensor(product.outputs[0]).name;
    const std::int32_t first_sum =
        add_like(sum, {sum.inputs[0], number(name + "/rough_guard", rough)}, name + "/rough_sum");
    const std::int32_t factor = add_like(root, {first_sum}, name + "/rough_factor");
    const std::int32_t a = add_like(product, {place.centred, factor}, name + "/rough");
    const std::int32_t square = add_like(product, {a, a}, name + "/square");
    const std::int32_t again = add_like(mean, {square, mean.inputs[1]}, name + "/mean_square");
    const float rest = guard / (std::max(variance.min, 0.0F) + rough);
    const std::int32_t second_sum = add_like(sum, {again, number(name + "/guard", rest)}, name + "/sum");
    ir::Operator last = product;
    last.inputs = {a, add_like(root, {second_sum}, name + "/factor")};
    graph_.operators.push_back(std::move(last));
  }

  ir::Model& model_;
  ir::Subgraph& graph_;
  const Calibration& calibration_;
};

}  // namespace

int normalize_twice(ir::Model& model, const Calibration& calibration) { return Normalizer(model, calibration).run(); }

std::string note_of_normalizing_twice(int count) {
  return fmt::format("{} normalization{} of tokens that differ much in size in two passes", count,
                     count == 1 ? "" : "s");
}

Status normalize_twice(Session& session) {
  ir::Model model = *session.best().model;
  const int count = normalize_twice(model, *session.best().calibration);
  if (count == 0) return ok_status();
  return session.consider_rewritten(std::move(model), note_of_normalizing_twice(count), Session::Proof::kBetter);
}

}  // namespace reef::quantize
