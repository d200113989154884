// SPDX-License-Identifier: Apache-2.0
#include "import/onnx/quantized_movement.h"
#include "import/onnx/shared_parts.h"

#include <set>
#include <string_view>

namespace reef::import {
namespace {

const std::set<std::string_view>& moving_ops() {
  static const std::set<std::string_view> names = {
      "DepthToSpace", "Expand",       "Flatten", "Gather",  "MaxPool", "Pad",       "Resize",    "Reshape",
      "Slice",        "SpaceToDepth", "Split",   "Squeeze", "Tile",    "Transpose", "Unsqueeze", "Upsample"};
  return names;
}

struct Parameters {
  Id scale = kAbsent, zero_point = kAbsent;
};

Parameters constants_of(GraphBuilder& b, const ir::Quantization& q) {
  const float scale = q.scale[0];
  return {b.floats({&scale, 1}, {}), b.ints({&q.zero_point[0], 1}, {})};
}

bool is_byte(ir::DataType type) { return type == ir::DataType::kInt8 || type == ir::DataType::kUInt8; }

}  // namespace

std::optional<CarriedScale> as_real_numbers(GraphBuilder& b, const onnx::Node& node, std::vector<Value>& inputs) {
  const bool moves = node.domain.empty() ? moving_ops().count(node.op_type) > 0 : node.op_type == "NhwcMaxPool";
  if (!moves || inputs.empty()) return std::nullopt;
  const Value x = inputs[0];
  if (x.id < 0 || x.sequence != nullptr || !is_byte(b.type(x.id)) || b.is_known(x.id)) return std::nullopt;
  const ir::Quantization q = b.tensor(x.id).quantization;
  if (q.scale.size() != 1 || q.zero_point.size() != 1) return std::nullopt;
  const Parameters p = constants_of(b, q);
  const auto real = [&](const Value& value) {
    return Value{dequantize(b, value.id, p.scale, p.zero_point, 0), onnx::ElementType::kFloat, {}};
  };
  inputs[0] = real(x);
  // What Pad fills up with is a number of the same kind.
  const bool has_filler = node.op_type == "Pad" && inputs.size() > 2 && inputs[2].id >= 0;
  if (has_filler && is_byte(b.type(inputs[2].id))) inputs[2] = real(inputs[2]);
  return CarriedScale{q, x};
}

void as_integers(GraphBuilder& b, const CarriedScale& scale, std::vector<Value>& outputs) {
  const Parameters p = constants_of(b, scale.quantization);
  for (Value& y : outputs) {
    if (y.id < 0 || b.type(y.id) != ir::DataType::kFloat32) continue;
    y.id = quantize(b, y.id, p.scale, p.zero_point, 0, b.type(scale.integers.id));
    y.type = scale.integers.type;
  }
}

}  // namespace reef::import
