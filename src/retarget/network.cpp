// SPDX-License-Identifier: Apache-2.0
#include "retarget/network.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "numeric/chip_activation.h"
#include "ops/registry.h"

namespace reef::retarget {

std::optional<ChipTensor> chip_tensor(const ir::Tensor& tensor) {
  const ir::Quantization& q = tensor.quantization;
  if (q.scale.size() != 1 || !(q.scale[0] > 0) || !std::isfinite(q.scale[0])) return std::nullopt;
  const std::int64_t zero_point = q.zero_point.empty() ? 0 : q.zero_point[0];
  std::int64_t shift = 0, top = 255;
  switch (tensor.type) {
    case ir::DataType::kUInt8:
      break;
    case ir::DataType::kInt8:
      shift = 128;
      break;
    case ir::DataType::kInt16:
      shift = 32768;
      top = 65535;
      break;
    default:
      return std::nullopt;
  }
  if (zero_point < -shift || zero_point > top - shift) return std::nullopt;
  return ChipTensor{q.scale[0], static_cast<std::int32_t>(zero_point + shift)};
}

std::optional<numeric::ChipActivation> fused_activation(const ir::Operator& op) {
  return numeric::chip_activation(op.attributes.get_enum("fused_activation_function", "NONE"));
}

bool Network::only_moves(const ir::Operator& op) {
  return ops::form_of(op) == ops::Form::kMove || op.type == Op::QUANTIZE;
}

bool Network::same_quantization(std::int32_t a, std::int32_t b) const {
  const auto first = chip(a), second = chip(b);
  return first && second && *first == *second;
}

bool Network::is_free(std::int32_t index) const {
  const ir::Operator& o = op(index);
  const bool keeps_size = o.type.starts_with("RESIZE_") && tensor(o.inputs[0]).shape == tensor(o.outputs[0]).shape;
  if (!only_moves(o) && !keeps_size) return false;
  for (const std::int32_t input : o.inputs) {
    if (input < 0 || is_constant(input)) continue;
    for (const std::int32_t output : o.outputs) {
      if (!same_quantization(input, output)) return false;
    }
  }
  return true;
}

Network::Network(const ir::Model& model, std::vector<std::int32_t> chip_ops)
    : model_(&model), chip_ops_(std::move(chip_ops)), also_(graph().tensors.size()), uses_(model, chip_ops_) {
  for (std::size_t t = 0; t < also_.size(); ++t) also_[t].insert(static_cast<std::int32_t>(t));
  // Operators stand in execution order, so that what an operator's output also is is known when going backwards.
  for (auto it = chip_ops_.rbegin(); it != chip_ops_.rend(); ++it) {
    const ir::Operator& o = op(*it);
    const bool keeps_size = o.type.starts_with("RESIZE_") && tensor(o.inputs[0]).shape == tensor(o.outputs[0]).shape;
    if (!only_moves(o) && !keeps_size) continue;
    for (const std::int32_t input : o.inputs) {
      if (input < 0 || is_constant(input)) continue;
      for (const std::int32_t output : o.outputs) {
        if (!same_quantization(input, output)) continue;
        const std::set<std::int32_t>& further = also_[at(output)];
        also_[at(input)].insert(further.begin(), further.end());
      }
    }
  }
}

bool Network::all_are(const std::vector<std::int32_t>& tensors, std::int32_t whole) const {
  return !tensors.empty() &&
         std::all_of(tensors.begin(), tensors.end(), [&](std::int32_t t) { return is_also(t).count(whole) > 0; });
}

bool Network::may_supply(std::int32_t part, std::int32_t whole, std::int64_t channel) const {
  // Operators stand in execution order: each turn goes to an earlier one.
  while (whole != part) {
    const std::int32_t k = uses_.producer(whole);
    if (k < 0 || !only_moves(op(k))) return false;
    const ir::Operator& move = op(k);
    const int rank = tensor(whole).shape.rank();
    if (move.type == Op::CONCATENATION) {
      std::int64_t axis = move.attributes.get_int("axis");
      if (axis < 0) axis += rank;
      if (axis != rank - 1) return is_also(part).count(whole) > 0;
      std::int32_t next = -1;
      for (const std::int32_t input : move.inputs) {
        if (input < 0 || tensor(input).shape.rank() == 0) return false;  // no operand of a concatenation
        const std::int64_t channels = tensor(input).shape.last();
        if (channel < channels) {
          next = input;
          break;
        }
        channel -= channels;
      }
      if (next < 0) return false;
      whole = next;
    } else if ((move.type == Op::QUANTIZE || move.type == Op::PAD) && tensor(move.inputs[0]).shape.rank() == rank &&
               rank > 0 && tensor(move.inputs[0]).shape.last() == tensor(whole).shape.last()) {
      whole = move.inputs[0];
    } else {
      return is_also(part).count(whole) > 0;
    }
  }
  return true;
}

bool Network::is_padded(std::int32_t t) const {
  while (true) {
    const std::int32_t k = uses_.producer(t);
    if (k < 0 || !only_moves(op(k))) return false;
    if (op(k).type == Op::PAD) return true;
    t = op(k).inputs[0];
    if (t < 0) return false;
  }
}

}  // namespace reef::retarget
