// SPDX-License-Identifier: Apache-2.0
#include "compiler/resize_inputs.h"

#include <algorithm>
#include <set>

#include <fmt/ranges.h>

#include "ir/describe.h"
#include "ops/inferred_shapes.h"

namespace reef::compiler {
namespace {

Result<std::int32_t> input_named(const ir::Subgraph& graph, const std::string& name) {
  std::vector<std::string> names;
  for (const std::int32_t input : graph.inputs) {
    const ir::Tensor& tensor = graph.tensors[static_cast<std::size_t>(input)];
    if (tensor.name == name || (name.empty() && graph.inputs.size() == 1)) return input;
    names.push_back(ir::describe_name(tensor.name));
  }
  return invalid_input("--input-shape names '{}', but the model's inputs are {}; give it as name:1,2,3", name,
                       fmt::join(names, ", "));
}

Result<ir::Shape> shape_of(const std::vector<std::int64_t>& sizes, const ir::Tensor& tensor) {
  REEF_REQUIRE(tensor.shape.rank() == 0 || static_cast<int>(sizes.size()) == tensor.shape.rank(),
               "input '{}' has {} dimensions, but --input-shape gives {}", ir::describe_name(tensor.name),
               tensor.shape.rank(), sizes.size());
  std::vector<std::int32_t> dims;
  for (const std::int64_t size : sizes) {
    REEF_REQUIRE(size > 0 && size < (std::int64_t{1} << 31), "--input-shape: {} is no size", size);
    dims.push_back(static_cast<std::int32_t>(size));
  }
  ir::Shape shape(dims);
  REEF_REQUIRE(shape.is_usable(), "--input-shape: input '{}' would have 2^31 elements or more",
               ir::describe_name(tensor.name));
  return shape;
}

}  // namespace

Status resize_inputs(ir::Model& model, const InputShapes& shapes) {
  if (shapes.empty()) return ok_status();
  REEF_REQUIRE(!model.subgraphs.empty(), "the model has no subgraph");
  ir::Subgraph& graph = model.subgraphs[0];
  std::set<std::int32_t> resized;
  const auto resize = [&](std::int32_t index, const ir::Shape& shape) {
    ir::Tensor& tensor = graph.tensors[static_cast<std::size_t>(index)];
    if (!(tensor.shape == shape) || !tensor.shape_signature.empty()) resized.insert(index);
    tensor.shape = shape;
    tensor.shape_signature.clear();
  };
  for (const auto& [name, sizes] : shapes) {
    REEF_ASSIGN_OR_RETURN(const std::int32_t input, input_named(graph, name));
    REEF_ASSIGN_OR_RETURN(const ir::Shape shape, shape_of(sizes, graph.tensors[static_cast<std::size_t>(input)]));
    resize(input, shape);
  }
  const auto is_constant = [&](std::int32_t index) {
    return !constant_data(model, graph.tensors[static_cast<std::size_t>(index)]).empty();
  };
  for (std::size_t i = 0; i < graph.operators.size(); ++i) {
    const ir::Operator& op = graph.operators[i];
    if (std::none_of(op.inputs.begin(), op.inputs.end(), [&](auto t) { return resized.count(t) > 0; })) continue;
    const auto inferred = ops::inferred_shapes(model, 0, op, is_constant);
    REEF_REQUIRE(inferred && inferred->size() == op.outputs.size(),
                 "--input-shape: op {} {} does not take the new sizes, or its results' sizes depend on values", i,
                 op.type);
    for (std::size_t k = 0; k < op.outputs.size(); ++k) resize(op.outputs[k], (*inferred)[k]);
  }
  return ok_status();
}

}  // namespace reef::compiler
