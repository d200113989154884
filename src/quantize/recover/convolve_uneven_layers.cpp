// SPDX-License-Identifier: Apache-2.0
// Dense layers whose outputs have weights of very different size, as 1x1 CONV_2D.
//
// TFLite's specification gives FULLY_CONNECTED one scale for all weights, so one output with large weights rounds those
// of all others coarsely. CONV_2D has a scale for each output, in every release of TFLite and for every compiler. Over
// rows as pixels it computes the same, and the chip takes as long for it. No weight is rounded more coarsely than
// before. It is done only for outsized outputs: it costs two RESHAPEs, which move nothing, and it decides for the chip,
// whatever the time, because an Edge TPU takes convolutions of many rows and not dense layers. Other changes, which
// know layers by their operators, come before.
#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "graph/appender.h"
#include "quantize/graph_constants.h"
#include "quantize/recover/techniques.h"
#include "quantize/session.h"

namespace reef::quantize {
namespace {

// Power of the rounding with one scale over that with a scale for each row. Layers of trained networks have 1.3 to 8
// (dense layers and recurrent ones of the models in the collection), layers with an outsized output hundreds.
constexpr double kWorthwhileRatio = 16;

double ratio_of_roundings(const std::vector<float>& weights, std::size_t row) {
  double largest = 0, sum = 0;
  for (std::size_t begin = 0; begin < weights.size(); begin += row) {
    double of_row = 0;
    for (std::size_t i = begin; i < begin + row; ++i) of_row = std::max<double>(of_row, std::abs(weights[i]));
    largest = std::max(largest, of_row);
    sum += of_row * of_row;
  }
  const double mean = sum / static_cast<double>(weights.size() / row);
  return mean > 0 ? largest * largest / mean : 1;
}

bool is_uneven(const ir::Model& model, const ir::Operator& op) {
  if (op.type != Op::FULLY_CONNECTED || op.attributes.get_enum("weights_format", "DEFAULT") != "DEFAULT") return false;
  const auto tensor = [&](std::int32_t t) -> const ir::Tensor& { return model.subgraphs[0].tensors[at(t)]; };
  const ir::Tensor &x = tensor(op.inputs[0]), &weights = tensor(op.inputs[1]), &y = tensor(op.outputs[0]);
  if (!is_float_constant(model, weights) || weights.shape.rank() != 2 || weights.shape.elements() <= 0) return false;
  if (!x.shape_signature.empty() || !y.shape_signature.empty() || x.shape.elements() <= 0) return false;
  if (x.shape.elements() % weights.shape[1] != 0) return false;
  return ratio_of_roundings(float_values(model, weights), static_cast<std::size_t>(weights.shape[1])) >=
         kWorthwhileRatio;
}

void add_convolution(ir::Model& model, const ir::Operator& dense) {
  graph::Appender make(model);
  ir::Tensor weights = make.tensor(dense.inputs[1]);  // shares its data with the layer's
  const std::int32_t outputs = weights.shape[0], depth = weights.shape[1];
  const auto rows = static_cast<std::int32_t>(make.tensor(dense.inputs[0]).shape.elements() / depth);
  const std::string name = make.tensor(dense.outputs[0]).name;
  const std::int32_t in = make.add_tensor(name + "/rows", ir::Shape({1, rows, 1, depth}));
  const std::int32_t out = make.add_tensor(name + "/products", ir::Shape({1, rows, 1, outputs}));
  make.reshape(dense.inputs[0], in, name + "/rows_shape");
  weights.shape = {outputs, 1, 1, depth};
  weights.name += "/filter";
  std::vector<ir::Tensor>& tensors = model.subgraphs[0].tensors;
  tensors.push_back(std::move(weights));
  const auto filter = static_cast<std::int32_t>(tensors.size() - 1);
  // A CONV_2D, unlike a FULLY_CONNECTED, cannot say that it has no bias.
  const bool has_bias = dense.inputs.size() > 2 && dense.inputs[2] >= 0;
  const std::int32_t bias = has_bias
                                ? dense.inputs[2]
                                : make.add_constant(name + "/no_bias", ir::Shape({outputs}), ir::DataType::kFloat32,
                                                    std::vector<float>(static_cast<std::size_t>(outputs)));
  ir::Operator& op = make.op(Op::CONV_2D, "Conv2DOptions", {in, filter, bias}, out);
  graph::Appender::set_pointwise(op);
  op.attributes.set("fused_activation_function",
                    ir::EnumName{std::string(dense.attributes.get_enum("fused_activation_function", "NONE"))});
  make.reshape(out, dense.outputs[0], name + "/products_shape");
}

}  // namespace

int convolve_uneven_layers(ir::Model& model) {
  ir::Subgraph& graph = model.subgraphs[0];
  std::vector<ir::Operator> before = std::move(graph.operators);
  graph.operators.clear();
  int count = 0;
  for (ir::Operator& op : before) {
    if (is_uneven(model, op)) {
      add_convolution(model, op);
      ++count;
    } else {
      graph.operators.push_back(std::move(op));
    }
  }
  drop_unread(model);
  return count;
}

std::string note_of_uneven_layers(int count) {
  return fmt::format("{} dense layers whose outputs have weights of very different size as 1x1 convolutions", count);
}

Status convolve_uneven_layers(Session& session) {
  ir::Model model = *session.best().model;
  const int count = convolve_uneven_layers(model);
  if (count == 0) return ok_status();
  return session.consider_rewritten(std::move(model), note_of_uneven_layers(count));
}

}  // namespace reef::quantize
