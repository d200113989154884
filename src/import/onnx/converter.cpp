// SPDX-License-Identifier: Apache-2.0
#include "import/onnx/converter.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "import/onnx/converters.h"
#include "numeric/half.h"

namespace reef::import {

namespace {

// Constants of more bytes than this stay slices of the file while importing.
constexpr std::size_t kBorrowed = 4096;

using Key = std::pair<std::string_view, std::string_view>;

const std::map<Key, Converter>& converters() {
  static const std::map<Key, Converter> table = {
#define CONVERTER(domain, name, function, needs)           \
  {{domain, name}, [](NodeContext& ctx, GraphBuilder& b) { \
     Status status = ctx.require_##needs;                  \
     return status.ok() ? function(ctx, b) : status;       \
   }},
#define OP_CONVERTER(domain, name, function, op) \
  {{domain, name}, [](NodeContext& ctx, GraphBuilder& b) { return function(ctx, b, Op::op); }},
#include "import/onnx/converters.def"
#undef CONVERTER
#undef OP_CONVERTER
  };
  return table;
}

template <typename To, typename From, typename Function>
Bytes mapped(const Bytes& data, Function function) {
  std::vector<std::uint8_t> bytes(data.size() / sizeof(From) * sizeof(To));
  for (std::size_t i = 0; i < data.size() / sizeof(From); ++i) {
    From from;
    std::memcpy(&from, data.data() + i * sizeof(From), sizeof(From));
    const To to = function(from);
    std::memcpy(bytes.data() + i * sizeof(To), &to, sizeof(To));
  }
  return Bytes(std::move(bytes));
}

}  // namespace

Converter find_converter(std::string_view domain, std::string_view op_type) {
  const auto found = converters().find({domain, op_type});
  return found == converters().end() ? nullptr : found->second;
}

std::vector<std::string> all_converters() {
  std::vector<std::string> names;
  for (const auto& [key, function] : converters()) {
    names.push_back(key.first.empty() ? std::string(key.second) : fmt::format("{}.{}", key.first, key.second));
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::optional<ir::DataType> stored_type(onnx::ElementType type) {
  switch (type) {
    case onnx::ElementType::kFloat:
    case onnx::ElementType::kFloat16:
    case onnx::ElementType::kBFloat16:
    case onnx::ElementType::kDouble:
      return ir::DataType::kFloat32;
    case onnx::ElementType::kUInt8:
      return ir::DataType::kUInt8;
    case onnx::ElementType::kInt8:
      return ir::DataType::kInt8;
    case onnx::ElementType::kUInt16:
      return ir::DataType::kUInt16;
    case onnx::ElementType::kInt16:
      return ir::DataType::kInt16;
    case onnx::ElementType::kInt32:
      return ir::DataType::kInt32;
    case onnx::ElementType::kUInt32:
      return ir::DataType::kUInt32;
    case onnx::ElementType::kInt64:
    case onnx::ElementType::kUInt64:
      return ir::DataType::kInt64;
    case onnx::ElementType::kBool:
      return ir::DataType::kBool;
    default:
      return std::nullopt;
  }
}

Result<Id> constant_of(GraphBuilder& b, const onnx::Tensor& tensor, std::string_view name) {
  const auto type = stored_type(tensor.type);
  if (!type) {
    return unsupported("tensor '{}' is of type {}, which TFLite has no operators for", tensor.name,
                       onnx::element_type_name(tensor.type));
  }
  std::vector<std::int32_t> dims;
  for (const std::int64_t dim : tensor.dims) dims.push_back(static_cast<std::int32_t>(dim));
  Bytes data = tensor.data;
  switch (tensor.type) {
    case onnx::ElementType::kDouble:
      data = mapped<float, double>(data, [](double x) { return static_cast<float>(x); });
      break;
    case onnx::ElementType::kFloat16:
      data = mapped<float, std::uint16_t>(data, numeric::half_to_float);
      break;
    case onnx::ElementType::kBFloat16:
      data = mapped<float, std::uint16_t>(data, numeric::bfloat16_to_float);
      break;
    case onnx::ElementType::kBool:
      data = mapped<std::uint8_t, std::uint8_t>(data, [](std::uint8_t x) { return static_cast<std::uint8_t>(x != 0); });
      break;
    default:
      if (data.size() > kBorrowed) return b.borrowed_constant(*type, ir::Shape(std::move(dims)), data, name);
      data = Bytes::copy_of(data.span());
  }
  return b.constant(*type, ir::Shape(std::move(dims)), std::move(data), name);
}

std::vector<std::int64_t> numbers_of(Conversion& conversion, const std::vector<std::string>& names) {
  std::vector<std::int64_t> numbers;
  for (const std::string& name : names) {
    numbers.push_back(
        conversion.names.try_emplace(name, static_cast<std::int64_t>(conversion.names.size())).first->second);
  }
  return numbers;
}

Result<Value> constant_value(GraphBuilder& b, Conversion& conversion, const onnx::Tensor& tensor,
                             std::string_view name) {
  Value value;
  value.type = tensor.type;
  if (tensor.type != onnx::ElementType::kString) {
    REEF_ASSIGN_OR_RETURN(value.id, constant_of(b, tensor, name));
    return value;
  }
  const ir::Shape shape = shape_from(tensor.dims);
  REEF_REQUIRE(shape.is_usable() && shape.elements() == static_cast<std::int64_t>(tensor.strings.size()),
               "tensor '{}' has {} strings, which its shape does not say", tensor.name, tensor.strings.size());
  value.id = b.ints(numbers_of(conversion, tensor.strings), shape, ir::DataType::kInt64);
  return value;
}

Status NodeContext::require_inputs(int count) const {
  for (int i = 0; i < count; ++i) {
    REEF_REQUIRE(has(i), "input {} is left out, but {} needs it", i, op());
    if (in(i) == kAbsent) return unsupported("input {} is a sequence; {} takes tensors", i, op());
    if (!b.is_shape_known(in(i))) {
      conversion_.met_open_size = true;
      return unsupported(
          "the size of input {} '{}' is known only when the model runs; export the model with fixed sizes, and a "
          "detector "
          "without the part that selects its boxes",
          i, node_.inputs[at(i)]);
    }
  }
  return ok_status();
}

Status NodeContext::require_operands(int count) const {
  for (int i = 0; i < count; ++i) {
    REEF_REQUIRE(has(i), "input {} is left out, but {} needs it", i, op());
    if (in(i) == kAbsent) return unsupported("input {} is a sequence; {} takes tensors", i, op());
  }
  return ok_status();
}

bool NodeContext::is_open(int i) {
  if (!has(i) || in(i) == kAbsent || !b.is_shape_known(in(i)) || b.is_known(in(i))) return false;
  conversion_.size_inputs.push_back(node_.inputs[at(i)]);
  return true;
}

Result<std::vector<std::int64_t>> NodeContext::ints(int i) {
  REEF_REQUIRE(has(i), "input {} is left out", i);
  if (auto values = b.int_values(in(i))) return *std::move(values);
  REEF_RETURN_IF_ERROR(b.status());
  needed_input_ = i;
  return unsupported("input {} '{}' must be known before the model runs, but it is computed", i, node_.inputs[at(i)]);
}

Result<std::vector<float>> NodeContext::floats(int i) {
  REEF_REQUIRE(has(i), "input {} is left out", i);
  if (auto values = b.float_values(in(i))) return *std::move(values);
  REEF_RETURN_IF_ERROR(b.status());
  needed_input_ = i;
  return unsupported("input {} '{}' must be known before the model runs, but it is computed", i, node_.inputs[at(i)]);
}

Result<int> NodeContext::axis(std::int64_t given, int rank) const {
  REEF_REQUIRE(given >= -rank && given < rank, "axis {} is outside of a tensor of {} dimensions", given, rank);
  return static_cast<int>(given < 0 ? given + rank : given);
}

Result<std::vector<int>> NodeContext::axes(const std::vector<std::int64_t>& given, int rank) const {
  std::vector<int> result;
  for (const std::int64_t each : given) {
    REEF_ASSIGN_OR_RETURN(const int normal, axis(each, rank));
    REEF_REQUIRE(std::find(result.begin(), result.end(), normal) == result.end(), "axis {} is given twice", each);
    result.push_back(normal);
  }
  return result;
}

std::int64_t NodeContext::int_attribute(std::string_view name, std::int64_t fallback) const {
  const onnx::Attribute* attribute = node_.find(name);
  return attribute != nullptr ? attribute->i : fallback;
}

float NodeContext::float_attribute(std::string_view name, float fallback) const {
  const onnx::Attribute* attribute = node_.find(name);
  return attribute != nullptr ? attribute->f : fallback;
}

std::string NodeContext::string_attribute(std::string_view name, std::string_view fallback) const {
  const onnx::Attribute* attribute = node_.find(name);
  return attribute != nullptr ? attribute->s : std::string(fallback);
}

std::vector<std::int64_t> NodeContext::ints_attribute(std::string_view name) const {
  const onnx::Attribute* attribute = node_.find(name);
  return attribute != nullptr ? attribute->ints : std::vector<std::int64_t>();
}

std::vector<float> NodeContext::floats_attribute(std::string_view name) const {
  const onnx::Attribute* attribute = node_.find(name);
  return attribute != nullptr ? attribute->floats : std::vector<float>();
}

std::vector<std::string> NodeContext::strings_attribute(std::string_view name) const {
  const onnx::Attribute* attribute = node_.find(name);
  return attribute != nullptr ? attribute->strings : std::vector<std::string>();
}

const onnx::Tensor* NodeContext::tensor_attribute(std::string_view name) const {
  const onnx::Attribute* attribute = node_.find(name);
  return attribute != nullptr ? attribute->tensor.get() : nullptr;
}

const onnx::Graph* NodeContext::graph_attribute(std::string_view name) const {
  const onnx::Attribute* attribute = node_.find(name);
  return attribute != nullptr ? attribute->graph.get() : nullptr;
}

namespace {

onnx::ElementType onnx_type_of(ir::DataType type) {
  switch (type) {
    case ir::DataType::kUInt8:
      return onnx::ElementType::kUInt8;
    case ir::DataType::kInt8:
      return onnx::ElementType::kInt8;
    case ir::DataType::kUInt16:
      return onnx::ElementType::kUInt16;
    case ir::DataType::kInt16:
      return onnx::ElementType::kInt16;
    case ir::DataType::kInt32:
      return onnx::ElementType::kInt32;
    case ir::DataType::kUInt32:
      return onnx::ElementType::kUInt32;
    case ir::DataType::kInt64:
      return onnx::ElementType::kInt64;
    case ir::DataType::kBool:
      return onnx::ElementType::kBool;
    default:
      return onnx::ElementType::kFloat;
  }
}

}  // namespace

void NodeContext::out(int i, Id id) {
  Value value;
  value.id = id;
  value.type = onnx_type_of(b.type(id));
  if (!inputs_.empty() && inputs_[0].id >= 0 && stored_type(inputs_[0].type) == b.type(id))
    value.type = inputs_[0].type;
  // Names that were moved are names.
  if (!inputs_.empty() && inputs_[0].type == onnx::ElementType::kString && b.type(id) == ir::DataType::kInt64)
    value.type = onnx::ElementType::kString;
  out(i, std::move(value));
}

void NodeContext::out(int i, Value value) {
  if (i < output_count()) outputs_[at(i)] = std::move(value);
}

}  // namespace reef::import
