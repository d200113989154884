// SPDX-License-Identifier: Apache-2.0
#include "import/onnx/open_shapes.h"

#include <algorithm>

#include "base/at.h"
#include "import/onnx/numbers.h"
#include "ir/op.h"

namespace reef::import {
namespace {

using Signature = std::vector<std::int32_t>;

Signature signature_of(const ir::Tensor& tensor) {
  if (!tensor.shape_signature.empty()) return tensor.shape_signature;
  return tensor.shape.dims();
}

}  // namespace

const ir::Shape& stand_in_shape() {
  static const ir::Shape shape(std::vector<std::int32_t>(32, 1));
  return shape;
}

Signature open_signature(const ir::Model& model, const ir::Operator& op, std::size_t output) {
  const auto& tensors = model.subgraphs[0].tensors;
  const auto input = [&](std::size_t i) -> const ir::Tensor& { return tensors[at(op.inputs[i])]; };
  const bool has_two = op.inputs.size() >= 2 && op.inputs[0] >= 0 && op.inputs[1] >= 0;
  if (op.type == Op::WHERE) return {-1, input(0).shape.rank()};
  if (op.type == Op::CAST) return signature_of(input(0));
  if (op.type == Op::UNIQUE && output == 1) return signature_of(input(0));
  if (!has_two) return {-1};
  const Signature first = signature_of(input(0)), second = signature_of(input(1));
  const auto numbers =
      ir::is_constant(model, input(1)) ? as_integers(input(1).type, ir::constant_data(model, input(1))) : std::nullopt;
  if (op.type == Op::RESHAPE && numbers) return Signature(numbers->begin(), numbers->end());
  // As many dimensions as the list of sizes has elements.
  const auto unknown = [](std::int64_t rank) { return Signature(static_cast<std::size_t>(rank), -1); };
  const bool is_list = second.size() == 1 && second[0] >= 0;
  if ((op.type == Op::RESHAPE || op.type == Op::BROADCAST_TO) && is_list) return unknown(second[0]);
  if (op.type == Op::FILL && first.size() == 1 && first[0] >= 0) return unknown(first[0]);
  if (op.type == Op::TRANSPOSE && numbers && numbers->size() == first.size()) {
    Signature result;
    for (const std::int64_t axis : *numbers) {
      if (axis < 0 || axis >= static_cast<std::int64_t>(first.size())) return {-1};
      result.push_back(first[at(axis)]);
    }
    return result;
  }
  if (op.type == Op::GATHER) {
    const std::int64_t given = op.attributes.get_int("axis"), rank = static_cast<std::int64_t>(first.size());
    const std::int64_t axis = given < 0 ? given + rank : given;
    if (axis < 0 || axis >= rank || op.attributes.get_int("batch_dims") != 0) return {-1};
    Signature result(first.begin(), first.begin() + axis);
    result.insert(result.end(), second.begin(), second.end());
    result.insert(result.end(), first.begin() + axis + 1, first.end());
    return result;
  }
  return {-1};
}

ir::Shape shape_of_signature(const Signature& signature) {
  Signature dims = signature;
  for (std::int32_t& dim : dims) dim = std::max(dim, 1);
  return ir::Shape(std::move(dims));
}

}  // namespace reef::import
