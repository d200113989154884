// SPDX-License-Identifier: Apache-2.0
#include "compiler/resize_inputs.h"

#include <algorithm>
#include <set>

#include <fmt/ranges.h>

#include "execute/cpu/evaluate.h"
#include "ir/describe.h"
#include "ir/excerpt.h"
#include "ir/op.h"
#include "ops/inferred_shapes.h"

namespace reef::compiler {
namespace {

Result<std::int32_t> input_named(const ir::Subgraph& graph, const std::string& name) {
  std::vector<std::string> names;
  for (const std::int32_t input : graph.inputs) {
    const ir::Tensor& tensor = graph.tensors[at(input)];
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

// Follows new sizes through a graph. Converters write sizes that a file leaves open as arithmetic (SHAPE,
// STRIDED_SLICE, PACK in front of a RESHAPE): what depends on sizes alone is computed on the way, in a copy of the
// model.
class Resizer {
 public:
  explicit Resizer(ir::Model& model) : model_(model), known_(model) {}

  Status run(const InputShapes& shapes) {
    for (const auto& [name, sizes] : shapes) {
      REEF_ASSIGN_OR_RETURN(const std::int32_t input, input_named(graph(), name));
      REEF_ASSIGN_OR_RETURN(const ir::Shape shape, shape_of(sizes, graph().tensors[at(input)]));
      resize(input, shape);
    }
    for (std::size_t i = 0; i < graph().operators.size(); ++i) {
      const ir::Operator& op = graph().operators[i];
      if (!follows_from(op, resized_)) {
        compute(op);  // a size that stays may be needed beside one that changes
        continue;
      }
      const auto inferred = ops::inferred_shapes(known_, 0, op, [this](std::int32_t t) { return is_known(t); });
      REEF_REQUIRE(inferred && inferred->size() == op.outputs.size(),
                   "--input-shape: op {} {} does not take the new sizes, or its results' sizes depend on values", i,
                   op.type);
      for (std::size_t k = 0; k < op.outputs.size(); ++k) resize(op.outputs[k], (*inferred)[k]);
      if (compute(op)) resized_.insert(op.outputs.begin(), op.outputs.end());
    }
    return ok_status();
  }

 private:
  static constexpr std::int64_t kMostSizes = 1024;  // elements of a tensor of sizes; larger ones are values

  ir::Subgraph& graph() { return model_.subgraphs[0]; }
  ir::Tensor& known(std::int32_t t) { return known_.subgraphs[0].tensors[at(t)]; }
  static bool follows_from(const ir::Operator& op, const std::set<std::int32_t>& tensors) {
    return std::any_of(op.inputs.begin(), op.inputs.end(), [&](std::int32_t t) { return tensors.contains(t); });
  }
  bool is_known(std::int32_t t) { return t >= 0 && !constant_data(known_, known(t)).empty(); }

  void resize(std::int32_t index, const ir::Shape& shape) {
    ir::Tensor& tensor = graph().tensors[at(index)];
    if (!(tensor.shape == shape) || !tensor.shape_signature.empty()) resized_.insert(index);
    tensor.shape = shape;
    tensor.shape_signature.clear();
    known(index).shape = shape;
    known(index).shape_signature.clear();
  }

  // Computes the results of an operator that depends on nothing but sizes. False: it depends on values, too.
  bool compute(const ir::Operator& op) {
    const auto is_size = [&](std::int32_t t) {
      const ir::DataType type = t < 0 ? ir::DataType::kFloat32 : known(t).type;
      return (type == ir::DataType::kInt32 || type == ir::DataType::kInt64) && known(t).shape.elements() <= kMostSizes;
    };
    const auto is_given = [&](std::int32_t t) { return t < 0 || is_known(t); };
    if (op.outputs.empty() || !std::all_of(op.outputs.begin(), op.outputs.end(), is_size)) return false;
    if (op.type == Op::SHAPE) {
      set(op.outputs[0], sizes_of(known(op.inputs[0]).shape, known(op.outputs[0]).type));
      return true;
    }
    if (!follows_from(op, computed_) || !std::all_of(op.inputs.begin(), op.inputs.end(), is_given)) return false;
    const auto values = evaluate_(ir::excerpt(known_, {&op, 1}, op.outputs));
    if (!values.ok()) return false;  // then they are not known, and who needs them says so
    for (std::size_t k = 0; k < op.outputs.size(); ++k) set(op.outputs[k], (*values)[k].bytes);
    return true;
  }

  static std::vector<std::uint8_t> sizes_of(const ir::Shape& shape, ir::DataType type) {
    std::vector<std::uint8_t> bytes;
    for (const std::int64_t size : shape) {
      for (std::int64_t byte = 0; byte < *ir::byte_size(ir::Shape{1}, type); ++byte) {
        bytes.push_back(static_cast<std::uint8_t>(size >> (8 * byte)));  // little-endian
      }
    }
    return bytes;
  }

  void set(std::int32_t t, std::vector<std::uint8_t> bytes) {
    known(t).buffer = static_cast<std::int32_t>(known_.buffers.size());
    known_.buffers.emplace_back().data = Bytes(std::move(bytes));
    computed_.insert(t);
  }

  ir::Model& model_;
  ir::Model known_;                  // as model_, with the values of sizes
  std::set<std::int32_t> resized_;   // their size is another, or may be: what is computed from them is looked at
  std::set<std::int32_t> computed_;  // sizes whose values are in known_
  cpu::Evaluator evaluate_;
};

}  // namespace

Status resize_inputs(ir::Model& model, const InputShapes& shapes) {
  if (shapes.empty()) return ok_status();
  REEF_REQUIRE(!model.subgraphs.empty(), "the model has no subgraph");
  return Resizer(model).run(shapes);
}

}  // namespace reef::compiler
