// SPDX-License-Identifier: Apache-2.0
#include "quantize/fold_quantization.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

#include <fmt/format.h>

#include "ir/compact.h"
#include "ir/describe.h"
#include "ir/op.h"
#include "ir/verify.h"
#include "numeric/half.h"
#include "quantize/graph_constants.h"

namespace reef::quantize {
namespace {

using ir::DataType;

// Of an 8-bit tensor, as int8 (uint8's zero point moves by 128); nothing: another type, or not one scale.
std::optional<Affine> int8_affine(const ir::Tensor& tensor) {
  if (!ir::is_integer_8(tensor.type) || tensor.quantization.scale.size() != 1) return std::nullopt;
  const std::int64_t zero = tensor.quantization.zero_point.empty() ? 0 : tensor.quantization.zero_point[0];
  const std::int64_t shifted = tensor.type == DataType::kUInt8 ? zero - 128 : zero;
  const float scale = tensor.quantization.scale[0];
  if (shifted < -128 || shifted > 127 || !(scale > 0) || !std::isfinite(scale)) return std::nullopt;
  return Affine{scale, static_cast<std::int32_t>(shifted)};
}

// Integers of a constant; nothing: not of a type that weights and biases have.
std::optional<std::vector<double>> integers(const ir::Model& model, const ir::Tensor& tensor) {
  const Bytes& data = ir::constant_data(model, tensor);
  std::vector<double> result;
  const auto read = [&]<typename T>(T) {
    for (std::size_t i = 0; i + sizeof(T) <= data.size(); i += sizeof(T)) {
      T value;
      std::memcpy(&value, data.data() + i, sizeof(T));
      result.push_back(static_cast<double>(value));
    }
  };
  switch (tensor.type) {
    case DataType::kInt8:
      read(std::int8_t{});
      break;
    case DataType::kUInt8:
      read(std::uint8_t{});
      break;
    case DataType::kInt16:
      read(std::int16_t{});
      break;
    case DataType::kInt32:
      read(std::int32_t{});
      break;
    case DataType::kInt64:
      read(std::int64_t{});
      break;
    default:
      return std::nullopt;
  }
  return result;
}

// Real values of a quantized or float16 constant.
std::optional<std::vector<float>> real_constant(const ir::Model& model, const ir::Tensor& tensor) {
  const Bytes& data = ir::constant_data(model, tensor);
  if (data.empty()) return std::nullopt;
  std::vector<float> result;
  if (tensor.type == DataType::kFloat16) {
    for (std::size_t i = 0; i + 2 <= data.size(); i += 2) {
      std::uint16_t half = 0;
      std::memcpy(&half, data.data() + i, 2);
      result.push_back(numeric::half_to_float(half));
    }
    return result;
  }
  const auto q = integers(model, tensor);
  const ir::Quantization& how = tensor.quantization;
  if (!q || how.scale.empty()) return std::nullopt;
  const std::size_t count = how.scale.size();
  std::size_t inner = 1;
  if (count > 1) inner = static_cast<std::size_t>(tensor.shape.product(how.dimension + 1, tensor.shape.rank()));
  for (std::size_t i = 0; i < q->size(); ++i) {
    const std::size_t c = count > 1 ? (i / inner) % count : 0;
    const double zero =
        how.zero_point.empty() ? 0 : static_cast<double>(how.zero_point[how.zero_point.size() == 1 ? 0 : c]);
    result.push_back(static_cast<float>(((*q)[i] - zero) * how.scale[c]));
  }
  return result;
}

bool is_16_bit_value(const ir::Tensor& tensor) {
  return tensor.type == DataType::kInt16 && !tensor.is_variable && tensor.quantization.scale.size() == 1;
}

class Folder {
 public:
  explicit Folder(const ir::Model& model) { result_.model = model; }

  Result<Folded> run(bool takes_16_bits) {
    if (takes_16_bits && computes_in_16_bits(result_.model)) take_off_16_bits();
    hybrid_weights();
    std::vector<ir::Operator> kept;
    const ir::Uses index(result_.model);
    for (ir::Operator& op : graph().operators) {
      for (std::int32_t& t : op.inputs) t = now(t);
      if (!fold(op, index)) kept.push_back(op);
    }
    graph().operators = std::move(kept);
    replace_borders();
    std::vector<std::int32_t> moved = drop_unread();
    renumber(moved);
    ir::drop_unused_buffers(result_.model);
    REEF_RETURN_IF_ERROR(ir::verify(result_.model).in("after folding quantization (a defect in Reef)"));
    return std::move(result_);
  }

 private:
  ir::Subgraph& graph() { return result_.model.subgraphs[0]; }
  ir::Tensor& tensor(std::int32_t t) { return graph().tensors[at(t)]; }
  std::int32_t now(std::int32_t t) const {
    const auto found = replaced_.find(t);
    return found == replaced_.end() ? t : found->second;
  }

  // All that 16-bit operators read and give becomes float: 8 bits need scales of their own. The conversions between are
  // then none, and fold away.
  void take_off_16_bits() {
    for (const ir::Operator& op : graph().operators) {
      const auto is_16 = [&](std::int32_t t) { return t >= 0 && is_16_bit_value(tensor(t)); };
      if (std::none_of(op.inputs.begin(), op.inputs.end(), is_16)) continue;
      give_scale_to_bias(op);
      for (const std::int32_t t : op.inputs) {
        if (t >= 0 && !tensor(t).quantization.scale.empty()) make_float(tensor(t));
      }
    }
    for (ir::Tensor& each : graph().tensors) {
      if (!is_16_bit_value(each)) continue;
      each.type = DataType::kFloat32;
      each.quantization = {};
      each.has_quantization = false;
    }
    result_.notes.push_back("the model computes in 16 bits: its weights are taken, and quantized anew");
  }

  // Converters may leave out what follows from the other operands.
  void give_scale_to_bias(const ir::Operator& op) {
    const OpRule* rule = rule_of(op.type);
    if (rule == nullptr || rule->kind != RuleKind::kWeighted || rule->bias < 0) return;
    if (rule->bias >= static_cast<int>(op.inputs.size()) || op.inputs[at(rule->bias)] < 0) return;
    ir::Tensor& bias = tensor(op.inputs[at(rule->bias)]);
    const ir::Quantization& x = tensor(op.inputs[at(rule->input)]).quantization;
    if (bias.type == DataType::kFloat32 || !bias.quantization.scale.empty() || x.scale.size() != 1) return;
    bias.quantization.scale = tensor(op.inputs[at(rule->weights)]).quantization.scale;
    for (float& scale : bias.quantization.scale) scale *= x.scale[0];
    bias.quantization.zero_point.assign(bias.quantization.scale.size(), 0);
    bias.quantization.dimension = 0;
  }

  // Integer weights that float operators read as they are.
  void hybrid_weights() {
    for (ir::Operator& op : graph().operators) {
      if (op.outputs.empty() || op.type == Op::DEQUANTIZE || op.type == Op::QUANTIZE) continue;
      if (op.inputs.empty() || op.inputs[0] < 0 || tensor(op.outputs[0]).type != DataType::kFloat32) continue;
      const OpRule* rule = rule_of(op.type);
      if (rule == nullptr || rule->kind != RuleKind::kWeighted) continue;
      std::int32_t& weights = op.inputs[at(rule->weights)];
      if (weights < 0 || tensor(weights).type != DataType::kInt8) continue;
      ir::Tensor copy = tensor(weights);
      if (!make_float(copy)) continue;
      graph().tensors.push_back(copy);
      const auto made = static_cast<std::int32_t>(graph().tensors.size() - 1);
      carry_weights(weights, made);
      weights = made;
    }
  }

  bool make_float(ir::Tensor& target) {
    const auto values = real_constant(result_.model, target);
    if (!values) return false;
    set_constant(result_.model, target, *values);
    target.type = DataType::kFloat32;
    target.quantization = {};
    target.has_quantization = false;
    return true;
  }

  // `target` holds the real values of the constant `from`.
  void carry_weights(std::int32_t from, std::int32_t target) {
    const ir::Tensor& q = tensor(from);
    if (!ir::is_integer_8(q.type)) return;
    const std::int64_t middle = q.type == DataType::kUInt8 ? 128 : 0;
    const bool symmetric = std::all_of(q.quantization.zero_point.begin(), q.quantization.zero_point.end(),
                                       [&](std::int64_t z) { return z == middle; });
    if (symmetric) {
      result_.carried.weights[target] = {q.quantization.scale, q.quantization.dimension};
    } else if (++uneven_ == 1) {
      result_.notes.push_back(
          fmt::format("weights '{}' have zero point {}, which int8 weights cannot have: those and others like them are "
                      "rounded anew",
                      ir::describe_name(q.name), q.quantization.zero_point[0]));
    }
    if (const auto affine = int8_affine(q)) result_.carried.tensors[target] = *affine;
  }

  bool carry(std::int32_t t, const Affine& affine) {
    const auto [place, is_new] = result_.carried.tensors.try_emplace(t, affine);
    if (is_new) ++result_.activation_scales;
    return place->second == affine;
  }

  // True: the operator is not needed any more.
  bool fold(ir::Operator& op, const ir::Uses& index) {
    const bool converts = op.type == Op::DEQUANTIZE || op.type == Op::QUANTIZE;
    if (converts && tensor(op.inputs[0]).type == tensor(op.outputs[0]).type &&
        tensor(op.inputs[0]).type == DataType::kFloat32) {
      replaced_[op.outputs[0]] = op.inputs[0];
      return true;
    }
    if (op.type == Op::DEQUANTIZE) return fold_dequantize(op, index);
    if (op.type == Op::QUANTIZE) return fold_quantize(op, index);
    if (op.type == Op::FAKE_QUANT) return fold_fake_quant(op);
    return false;
  }

  bool fold_dequantize(const ir::Operator& op, const ir::Uses& index) {
    const std::int32_t from = op.inputs[0], to = op.outputs[0];
    if (const auto found = float_of_.find(from); found != float_of_.end()) {
      replaced_[to] = found->second;
      return true;
    }
    if (ir::is_constant(result_.model, tensor(from))) {
      ir::Tensor value = tensor(from);
      if (!make_float(value)) return false;
      value.name = tensor(to).name;
      carry_weights(from, to);
      tensor(to) = value;
      return true;
    }
    const auto affine = int8_affine(tensor(from));
    if (!affine || !index.is_input(from) || !is_only_dequantized(from, index)) return false;
    input_of_[from] = to;
    float_of_[from] = to;
    tensor(to).name.swap(tensor(from).name);
    return carry(to, *affine);
  }

  // Everyone who reads it makes it float, or only changes its type first.
  bool is_only_dequantized(std::int32_t t, const ir::Uses& index) {
    const auto readers = index.consumers(t);
    return std::all_of(readers.begin(), readers.end(), [&](std::int32_t reader) {
      const ir::Operator& op = graph().operators[at(reader)];
      return op.type == Op::DEQUANTIZE || (op.type == Op::QUANTIZE && is_change_of_type(t, op.outputs[0]) &&
                                           is_only_dequantized(op.outputs[0], index));
    });
  }
  // uint8 to int8 or back: the same values.
  bool is_change_of_type(std::int32_t from, std::int32_t to) {
    const auto a = int8_affine(tensor(from)), b = int8_affine(tensor(to));
    return a && b && *a == *b;
  }

  bool fold_quantize(const ir::Operator& op, const ir::Uses& index) {
    const std::int32_t from = op.inputs[0], to = op.outputs[0];
    if (is_change_of_type(from, to) && is_only_dequantized(to, index)) {
      const auto made_from = float_of_.find(from);
      if (made_from == float_of_.end()) {
        if (index.is_output(to)) return false;
        replaced_[to] = from;
        return true;
      }
      float_of_[to] = made_from->second;
      if (index.is_output(to)) output_of_[to] = made_from->second;
      return true;
    }
    if (tensor(from).type != DataType::kFloat32) return false;
    const auto affine = int8_affine(tensor(to));
    if (!affine || !is_only_dequantized(to, index)) return false;
    if (index.consumers(to).empty() && !index.is_output(to)) return false;
    const auto known = result_.carried.tensors.find(from);
    if (known != result_.carried.tensors.end() && known->second != *affine) return false;
    carry(from, *affine);
    float_of_[to] = from;
    if (index.is_output(to)) output_of_[to] = from;
    return true;
  }

  bool fold_fake_quant(const ir::Operator& op) {
    // In float, as the operator's own kernel does.
    const auto min = static_cast<float>(op.attributes.get_float("min"));
    const auto max = static_cast<float>(op.attributes.get_float("max"));
    const bool narrow = op.attributes.get_bool("narrow_range");
    const std::int32_t from = op.inputs[0], to = op.outputs[0];
    if (op.attributes.get_int("num_bits", 8) != 8 || !(min < max) || !std::isfinite(max - min)) return false;
    if (is_float_constant(result_.model, tensor(from))) {
      ir::Tensor value = tensor(from);
      value.name = tensor(to).name;
      tensor(to) = value;
      if (narrow && std::abs(min + max) < 1e-3f * (max - min)) {
        result_.carried.weights[to] = {{(max - min) / 254}, 0};
      } else {
        result_.notes.push_back(
            fmt::format("weights '{}' were trained with range [{}, {}], which is not symmetric: "
                        "int8 weights get a scale by their largest value",
                        ir::describe_name(value.name), min, max));
      }
      return true;
    }
    const float steps = narrow ? 254 : 255;
    const float scale = (max - min) / steps;
    if (!(scale > 0)) return false;
    const float zero = std::round(std::clamp(0.0f - min / scale, 0.0f, steps)) - (narrow ? 127 : 128);
    if (!carry(from, {scale, static_cast<std::int32_t>(zero)})) return false;
    replaced_[to] = from;
    if (is_output(to)) output_of_[to] = from;
    return true;
  }

  bool is_output(std::int32_t t) {
    return std::find(graph().outputs.begin(), graph().outputs.end(), t) != graph().outputs.end();
  }

  // Inputs and outputs that were integers, or lay behind what was folded, in their float form; names stay.
  void replace_borders() {
    for (std::int32_t& t : graph().inputs) {
      if (const auto found = input_of_.find(t); found != input_of_.end()) t = found->second;
    }
    for (std::int32_t& t : graph().outputs) {
      const auto found = output_of_.find(t);
      const std::int32_t to = found != output_of_.end() ? found->second : now(t);
      if (to == t) continue;
      tensor(to).name = tensor(t).name;
      t = to;
    }
    for (ir::Signature& signature : result_.model.signatures) {
      if (signature.subgraph != 0) continue;
      for (ir::SignatureTensor& entry : signature.inputs) {
        if (const auto found = input_of_.find(entry.tensor); found != input_of_.end()) entry.tensor = found->second;
      }
      for (ir::SignatureTensor& entry : signature.outputs) {
        const auto found = output_of_.find(entry.tensor);
        entry.tensor = found != output_of_.end() ? found->second : now(entry.tensor);
      }
    }
  }

  std::vector<std::int32_t> drop_unread() { return ir::drop_unused_tensors(result_.model, 0); }

  void renumber(const std::vector<std::int32_t>& moved) {
    const auto renumbered = [&](auto& map) {
      std::remove_reference_t<decltype(map)> result;
      for (auto& [t, value] : map) {
        if (moved[at(t)] >= 0) result[moved[at(t)]] = std::move(value);
      }
      map = std::move(result);
    };
    renumbered(result_.carried.tensors);
    renumbered(result_.carried.weights);
  }

  Folded result_;
  int uneven_ = 0;                                 // constants with a zero point that int8 weights cannot have
  std::map<std::int32_t, std::int32_t> replaced_;  // float tensor -> the one before what was folded
  std::map<std::int32_t, std::int32_t> float_of_;  // integer tensor -> the float one it was made from
  std::map<std::int32_t, std::int32_t> input_of_, output_of_;  // border tensors -> their float form
};

}  // namespace

bool computes_in_16_bits(const ir::Model& model) {
  const ir::Subgraph& graph = model.subgraphs[0];
  bool result = false;
  for (const ir::Operator& op : graph.operators) {
    for (const std::int32_t t : op.outputs) {
      if (t < 0) continue;
      const ir::Tensor& tensor = graph.tensors[at(t)];
      if (ir::is_integer_8(tensor.type) && !tensor.quantization.scale.empty()) return false;
      result = result || is_16_bit_value(tensor);
    }
  }
  return result;
}

Result<Folded> fold_quantization(const ir::Model& model, bool takes_16_bits) {
  return Folder(model).run(takes_16_bits);
}

}  // namespace reef::quantize
