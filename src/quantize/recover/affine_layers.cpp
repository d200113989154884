// SPDX-License-Identifier: Apache-2.0
// A product and a sum with a constant for each channel (what is left of a normalization that no layer follows) as one
// DEPTHWISE_CONV_2D of size 1x1: the result is rounded to 8 bits once instead of twice, the factors have a scale for
// each channel, that is no error at all, and the sum's constants have 32 bits. Tensors that are not [n, h, w, c] are
// reshaped before and behind it.
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "graph/appender.h"
#include "quantize/graph_constants.h"
#include "quantize/recover/techniques.h"
#include "quantize/session.h"

namespace reef::quantize {
namespace {

struct Affinity {
  std::size_t product, sum;  // operators
  std::int32_t x;
  std::vector<float> factors, offsets;
};

class AffineFolder {
 public:
  explicit AffineFolder(ir::Model& model) : model_(model), graph_(model.subgraphs[0]) {}

  int run() {
    std::vector<std::optional<Affinity>> found(graph_.operators.size());  // at the sum's place
    int count = 0;
    const ir::Uses index(model_);
    for (std::size_t i = 0; i < graph_.operators.size(); ++i) {
      if (auto affinity = at(index, i)) {
        const std::size_t place = affinity->sum;
        found[place] = std::move(affinity);
        ++count;
      }
    }
    std::vector<ir::Operator> before = std::move(graph_.operators);
    graph_.operators.clear();
    for (std::size_t i = 0; i < before.size(); ++i) {
      if (found[i]) {
        add_layer(*found[i], before[i]);
      } else {
        graph_.operators.push_back(std::move(before[i]));
      }
    }
    drop_unread(model_);
    return count;
  }

 private:
  const ir::Tensor& tensor(std::int32_t t) const { return graph_.tensors[reef::at(t)]; }

  // The constant among two operands as one number for each channel; `other`: the operand that is computed.
  std::vector<float> channel_constant(const ir::Operator& op, std::int32_t& other) const {
    if (op.inputs.size() != 2 || op.inputs[0] < 0 || op.inputs[1] < 0) return {};
    const int place = is_float_constant(model_, tensor(op.inputs[1])) ? 1 : 0;
    const std::int32_t constant = op.inputs[reef::at(place)];
    other = op.inputs[reef::at(1 - place)];
    if (!is_float_constant(model_, tensor(constant)) || is_float_constant(model_, tensor(other))) return {};
    const ir::Shape &shape = tensor(constant).shape, &result = tensor(op.outputs[0]).shape;
    if (tensor(other).shape != result || result.rank() < 2 || shape.rank() == 0) return {};
    if (shape.last() != result.last() || shape.elements() != shape.last()) return {};
    return float_values(model_, tensor(constant));
  }

  std::optional<Affinity> at(const ir::Uses& index, std::size_t number) const {
    const ir::Operator& mul = graph_.operators[number];
    if (mul.type != Op::MUL || mul.attributes.get_enum("fused_activation_function", "NONE") != "NONE") return {};
    Affinity result{number, 0, -1, {}, {}};
    result.factors = channel_constant(mul, result.x);
    if (result.factors.empty() || !index.has_one_use(mul.outputs[0])) return {};
    result.sum = static_cast<std::size_t>(index.consumers(mul.outputs[0])[0]);
    const ir::Operator& add = graph_.operators[result.sum];
    std::int32_t product = -1;
    if (add.type != Op::ADD || !tensor(result.x).shape_signature.empty()) return {};
    if (tensor(result.x).shape.elements() <= 0) return {};
    result.offsets = channel_constant(add, product);
    if (result.offsets.empty() || product != mul.outputs[0]) return {};
    return result;
  }

  void add_layer(const Affinity& affinity, const ir::Operator& add) {
    const ir::Shape shape = tensor(affinity.x).shape;
    const std::string name = tensor(add.outputs[0]).name;
    const std::int32_t channels = shape.last();
    const ir::Shape grid =
        shape.rank() == 4 ? shape : ir::Shape({1, static_cast<std::int32_t>(shape.elements() / channels), 1, channels});
    const bool moves = shape.rank() != 4;
    graph::Appender make(model_);
    const std::int32_t in = moves ? make.add_tensor(name + "/grid", grid) : affinity.x;
    const std::int32_t out = moves ? make.add_tensor(name + "/scaled", grid) : add.outputs[0];
    if (moves) make.reshape(affinity.x, in, name + "/grid_shape");
    const std::int32_t weights =
        make.add_constant(name + "/factors", ir::Shape({1, 1, 1, channels}), ir::DataType::kFloat32, affinity.factors);
    const std::int32_t bias =
        make.add_constant(name + "/offsets", ir::Shape({channels}), ir::DataType::kFloat32, affinity.offsets);
    ir::Operator& op = make.op(Op::DEPTHWISE_CONV_2D, "DepthwiseConv2DOptions", {in, weights, bias}, out);
    graph::Appender::set_pointwise(op);
    op.attributes.set("depth_multiplier", std::int64_t{1});
    op.attributes.set("fused_activation_function",
                      ir::EnumName{std::string(add.attributes.get_enum("fused_activation_function", "NONE"))});
    if (moves) make.reshape(out, add.outputs[0], name + "/shape");
  }

  ir::Model& model_;
  ir::Subgraph& graph_;
};

}  // namespace

int affine_layers(ir::Model& model) { return AffineFolder(model).run(); }

Status affine_layers(Session& session) {
  ir::Model model = *session.best().model;
  const int count = affine_layers(model);
  if (count == 0) return ok_status();
  return session.consider_rewritten(std::move(model),
                                    fmt::format("{} products and sums with constants as layers", count));
}

}  // namespace reef::quantize
