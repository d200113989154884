// SPDX-License-Identifier: Apache-2.0
#include "execute/reference/chip_reference.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>

#include "execute/reference/chip_reference_op.h"
#include "numeric/chip_activation.h"
#include "ops/inferred_shapes.h"

namespace reef::reference {
namespace {

// How much higher the chip's codes are than TFLite's.
std::int32_t code_offset(ir::DataType type) {
  if (type == ir::DataType::kInt8) return 128;
  return type == ir::DataType::kInt16 ? 32768 : 0;
}

template <typename T>
void append(const std::uint8_t* bytes, std::size_t size, std::vector<std::int32_t>& codes) {
  for (std::size_t i = 0; i + sizeof(T) <= size; i += sizeof(T)) {
    T element;
    std::memcpy(&element, bytes + i, sizeof(T));
    codes.push_back(static_cast<std::int32_t>(element) + code_offset(ir::data_type_of<T>));
  }
}

bool is_known_type(ir::DataType type) {
  return ir::is_integer_8(type) || type == ir::DataType::kInt16 || type == ir::DataType::kInt32;
}

std::int32_t find_tensor(const ir::Subgraph& graph, const std::string& name) {
  for (std::size_t i = 0; i < graph.tensors.size(); ++i) {
    if (graph.tensors[i].name == name) return static_cast<std::int32_t>(i);
  }
  return -1;
}

// The key of a wanted value: a tensor, or -1 - variable; nullopt where there is no such name.
std::optional<std::int32_t> find_value(const ir::Subgraph& graph, const std::string& name) {
  if (const std::int32_t tensor = find_tensor(graph, name); tensor >= 0) return tensor;
  const std::string suffix = kVariableOutputSuffix;
  if (!name.ends_with(suffix)) return std::nullopt;
  const std::int32_t variable = find_tensor(graph, name.substr(0, name.size() - suffix.size()));
  if (variable < 0) return std::nullopt;
  return -1 - variable;
}

// Which ops are to be computed, and constants and given values that they need put into `values`.
class Selection {
 public:
  Selection(const ir::Model& model, const ir::Subgraph& graph) : model_(model), graph_(graph) {}

  Result<std::vector<bool>> select(const std::vector<std::int32_t>& wanted, std::map<std::int32_t, ChipValue>& values) {
    std::set<std::int32_t> open(wanted.begin(), wanted.end());
    std::vector<bool> selected(graph_.operators.size());
    for (std::size_t i = graph_.operators.size(); i-- > 0;) {
      const ir::Operator& op = graph_.operators[i];
      const auto is_open = [&](std::int32_t tensor) { return open.contains(tensor) && !values.contains(tensor); };
      const auto changes = [&](std::int32_t tensor) { return tensor >= 0 && open.contains(-1 - tensor); };
      selected[i] = std::any_of(op.outputs.begin(), op.outputs.end(), is_open) ||
                    std::any_of(op.inputs.begin(), op.inputs.end(), changes);
      if (!selected[i]) continue;
      for (const std::int32_t input : op.inputs) {
        if (input >= 0) open.insert(input);
      }
      for (const std::int32_t output : op.outputs) open.erase(output);
    }
    for (const std::int32_t tensor : open) {
      if (tensor >= 0 && !values.contains(tensor)) REEF_RETURN_IF_ERROR(add_constant(tensor, values));
    }
    return selected;
  }

 private:
  Status add_constant(std::int32_t index, std::map<std::int32_t, ChipValue>& values) {
    const ir::Tensor& tensor = graph_.tensors[at(index)];
    const Bytes& data = ir::constant_data(model_, tensor);
    // A constant may have no elements: the shape of a single number, to which a RESHAPE leads.
    REEF_REQUIRE(!data.empty() || tensor.shape.elements() == 0, "tensor '{}' is neither given, constant nor computed",
                 tensor.name);
    if (!is_known_type(tensor.type))
      return unsupported("the chip has no {} ('{}')", ir::type_name(tensor.type), tensor.name);
    values[index] = chip_value(tensor, data.data(), data.size());
    return ok_status();
  }

  const ir::Model& model_;
  const ir::Subgraph& graph_;
};

const std::map<std::string_view, ChipOpEntry>& all_ops() {
  static const auto* ops = [] {
    auto* table = new std::map<std::string_view, ChipOpEntry>;
    for (const auto& part : {chip_sum_ops(), chip_product_ops(), chip_reduction_ops(), chip_elementwise_ops(),
                             chip_movement_ops(), chip_softmax_ops(), chip_lstm_ops()}) {
      for (const ChipOpEntry& entry : part) table->emplace(name_of(entry.type), entry);
    }
    return table;
  }();
  return *ops;
}

// Every function of the table relies on this: tensors of values have elements, and one scale unless they are constant.
Status check_operands(const ChipOp& op) {
  const auto check = [](const ir::Tensor& tensor, bool is_constant) -> Status {
    if (!ir::is_integer_8(tensor.type) && tensor.type != ir::DataType::kInt16) return ok_status();
    REEF_REQUIRE(tensor.shape.elements() > 0, "tensor '{}' has shape {}, without elements", tensor.name,
                 tensor.shape.to_string());
    REEF_REQUIRE(is_constant || tensor.quantization.scale.size() <= 1,
                 "tensor '{}' has {} scales, though it is computed", tensor.name, tensor.quantization.scale.size());
    return ok_status();
  };
  for (std::size_t i = 0; i < op.inputs(); ++i) {
    if (op.has(i)) REEF_RETURN_IF_ERROR(check(op.input(i), op.is_constant(i)));
  }
  for (std::size_t i = 0; i < op.outputs(); ++i) REEF_RETURN_IF_ERROR(check(op.output(i), false));
  return ok_status();
}

Status evaluate(ChipOp& op, const std::string& type) {
  const auto found = all_ops().find(type);
  if (found == all_ops().end()) return unsupported("it is not known how the chip computes it");
  for (std::size_t i = 0; i < op.outputs(); ++i) {
    if (!is_known_type(op.output(i).type)) return unsupported("the chip has no {}", ir::type_name(op.output(i).type));
  }
  for (std::size_t i = 0; i < found->second.inputs; ++i) REEF_REQUIRE(op.has(i), "input {} is missing", i);
  REEF_REQUIRE(op.outputs() > 0, "there is no output");
  REEF_RETURN_IF_ERROR(check_operands(op));
  REEF_RETURN_IF_ERROR(op.check_budget());
  return found->second.function(op);
}

}  // namespace

ChipValue chip_value(const ir::Tensor& tensor, const std::uint8_t* bytes, std::size_t size) {
  ChipValue value;
  value.shape = tensor.shape;
  if (tensor.type == ir::DataType::kUInt8) append<std::uint8_t>(bytes, size, value.codes);
  if (tensor.type == ir::DataType::kInt8) append<std::int8_t>(bytes, size, value.codes);
  if (tensor.type == ir::DataType::kInt16) append<std::int16_t>(bytes, size, value.codes);
  if (tensor.type == ir::DataType::kInt32) append<std::int32_t>(bytes, size, value.codes);
  return value;
}

std::vector<std::uint8_t> tflite_bytes(const ir::Tensor& tensor, const ChipValue& value) {
  const auto size = static_cast<std::size_t>(ir::bits_per_element(tensor.type) / 8);
  std::vector<std::uint8_t> bytes;
  for (const std::int32_t code : value.codes) {
    const auto element = static_cast<std::uint32_t>(code - code_offset(tensor.type));
    for (std::size_t i = 0; i < size; ++i) bytes.push_back(static_cast<std::uint8_t>(element >> (8 * i)));
  }
  return bytes;
}

Result<ChipQuantization> ChipOp::quantization(const ir::Tensor& tensor) const {
  const ir::Quantization& q = tensor.quantization;
  REEF_REQUIRE(!q.scale.empty() && q.scale.size() == q.zero_point.size(), "tensor '{}' is not quantized", tensor.name);
  ChipQuantization result{q.scale, {}, q.dimension};
  for (std::size_t i = 0; i < q.scale.size(); ++i) {
    REEF_REQUIRE(std::isfinite(q.scale[i]) && q.scale[i] > 0, "a scale of tensor '{}' is {}", tensor.name, q.scale[i]);
    result.zeros.push_back(static_cast<std::int32_t>(q.zero_point[i]) + code_offset(tensor.type));
  }
  return result;
}

Result<numeric::ChipActivation> ChipOp::fused_activation() const {
  const std::string_view name = attributes().get_enum("fused_activation_function", "NONE");
  if (const auto known = numeric::chip_activation(name)) return *known;
  return unsupported("it is not known how the chip computes a fused {}", name);
}

std::int32_t requantized(std::int64_t sum, float multiplier, numeric::ChipClamp clamp, std::int32_t zero,
                         std::int32_t limit) {
  const auto low = std::int64_t{std::numeric_limits<std::int32_t>::min()};
  const auto high = std::int64_t{std::numeric_limits<std::int32_t>::max()};
  const auto saturated = static_cast<float>(std::min(std::max(sum, low), high));
  const float scaled = saturated * multiplier;
  const float clamped = std::min(std::max(scaled, clamp.min), clamp.max);
  const double code = double{std::nearbyint(clamped)} + zero;
  return static_cast<std::int32_t>(std::min(std::max(code, 0.0), static_cast<double>(limit)));
}

Result<std::vector<std::int32_t>> rescaled(const std::vector<std::int32_t>& codes, const ChipQuantization& from,
                                           const ChipQuantization& to, numeric::ChipActivation activation) {
  if (from == to && activation == numeric::ChipActivation::kNone) return codes;
  const float multiplier = numeric::chip_rescale_multiplier(from.scale(), to.scale());
  const numeric::ChipClamp clamp = numeric::chip_clamp(to.scale(), to.zero(), activation);
  std::vector<std::int32_t> result;
  result.reserve(codes.size());
  for (const std::int32_t code : codes) result.push_back(requantized(code - from.zero(), multiplier, clamp, to.zero()));
  return result;
}

Result<TensorBytes> evaluate_tensors_as_chip(const ir::Model& model, const TensorBytes& given,
                                             const std::vector<std::int32_t>& wanted,
                                             const ChipReferenceOptions& options) {
  REEF_REQUIRE(!model.subgraphs.empty(), "the model has no graph");
  const ir::Subgraph& graph = model.subgraphs[0];
  std::map<std::int32_t, ChipValue> values;
  BudgetedBytes memory;
  for (const auto& [index, bytes] : given) {
    const ir::Tensor& tensor = graph.tensors[at(index)];
    REEF_REQUIRE(static_cast<std::int64_t>(bytes.size()) == ir::byte_size(tensor.shape, tensor.type).value_or(-1),
                 "tensor '{}' does not take {} bytes", tensor.name, bytes.size());
    // Tensors of other types would have no values, and every loop below runs over shapes.
    if (!is_known_type(tensor.type))
      return unsupported("the chip has no {} ('{}')", ir::type_name(tensor.type), tensor.name);
    values[index] = chip_value(tensor, bytes.data(), bytes.size());
  }
  REEF_ASSIGN_OR_RETURN(const std::vector<bool> selected, Selection(model, graph).select(wanted, values));
  for (std::size_t i = 0; i < graph.operators.size(); ++i) {
    if (!selected[i]) continue;
    const ir::Operator& op = graph.operators[i];
    // Every loop below runs over declared shapes.
    if (all_ops().contains(op.type)) {
      REEF_RETURN_IF_ERROR(ops::check_declared_shapes(model, 0, op).in(fmt::format("op {}", i)));
    }
    for (const std::int32_t output : op.outputs) {
      const ir::Shape& shape = graph.tensors[at(output)].shape;
      constexpr std::int64_t kCodeBytes = sizeof(std::int32_t);
      REEF_RETURN_IF_ERROR(memory.take(options.budget, shape.elements() * kCodeBytes, "the chip reference"));
    }
    ChipOp chip_op(model, graph, op, values, options);
    REEF_RETURN_IF_ERROR(evaluate(chip_op, op.type).in(fmt::format("op {} {}", i, op.type)));
  }
  TensorBytes results;
  for (const std::int32_t key : wanted) {
    const ir::Tensor& tensor = graph.tensors[at(key < 0 ? -1 - key : key)];
    REEF_REQUIRE(values.contains(key), "no op computes '{}'", tensor.name);
    results[key] = tflite_bytes(tensor, values.at(key));
  }
  return results;
}

Result<NamedBytes> evaluate_as_chip(const ir::Model& model, const NamedBytes& given,
                                    const std::vector<std::string>& wanted, const ChipReferenceOptions& options) {
  REEF_REQUIRE(!model.subgraphs.empty(), "the model has no graph");
  const ir::Subgraph& graph = model.subgraphs[0];
  TensorBytes values;
  for (const auto& [name, bytes] : given) {
    const std::int32_t index = find_tensor(graph, name);
    REEF_REQUIRE(index >= 0, "the source has no tensor '{}'", name);
    values[index] = bytes;
  }
  std::vector<std::int32_t> keys;
  for (const std::string& name : wanted) {
    const auto key = find_value(graph, name);
    REEF_REQUIRE(key.has_value(), "the source has no tensor '{}'", name);
    keys.push_back(*key);
  }
  REEF_ASSIGN_OR_RETURN(const TensorBytes found, evaluate_tensors_as_chip(model, values, keys, options));
  NamedBytes results;
  for (std::size_t i = 0; i < wanted.size(); ++i) results[wanted[i]] = found.at(keys[i]);
  return results;
}

}  // namespace reef::reference
