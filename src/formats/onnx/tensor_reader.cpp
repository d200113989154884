// SPDX-License-Identifier: Apache-2.0
// Field numbers are those of TensorProto in onnx.proto. int32_data serves every type of up to 32 bits, with float16 and
// bfloat16 as their bits and 4-bit types two to a number; uint64_data serves uint32 and uint64; complex numbers are
// pairs in float_data and double_data.
#include "formats/onnx/tensor_reader.h"

#include <cstring>
#include <limits>

#include "formats/onnx/reader.h"

namespace reef::onnx {
namespace {

struct TypedFields {
  std::vector<float> floats;
  std::vector<double> doubles;
  std::vector<std::int64_t> int32s, int64s, uint64s;
  bool has_raw = false;
  bool is_external = false;
};

template <typename Stored, typename Number>
Bytes packed(const std::vector<Number>& values) {
  std::vector<std::uint8_t> bytes(values.size() * sizeof(Stored));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto element = static_cast<Stored>(values[i]);
    std::memcpy(bytes.data() + i * sizeof(Stored), &element, sizeof(Stored));
  }
  return Bytes(std::move(bytes));
}

Bytes from_typed_fields(ElementType type, const TypedFields& fields) {
  switch (type) {
    case ElementType::kFloat:
    case ElementType::kComplex64:
      return packed<float>(fields.floats);
    case ElementType::kDouble:
    case ElementType::kComplex128:
      return packed<double>(fields.doubles);
    case ElementType::kInt64:
      return packed<std::int64_t>(fields.int64s);
    case ElementType::kUInt64:
      return packed<std::uint64_t>(fields.uint64s);
    case ElementType::kUInt32:
      return packed<std::uint32_t>(fields.uint64s);
    case ElementType::kInt32:
      return packed<std::int32_t>(fields.int32s);
    case ElementType::kInt16:
    case ElementType::kUInt16:
    case ElementType::kFloat16:
    case ElementType::kBFloat16:
      return packed<std::uint16_t>(fields.int32s);
    default:
      return packed<std::uint8_t>(fields.int32s);
  }
}

Status read_external_entry(WireReader entry, Tensor& tensor) {
  std::string key, value;
  while (entry.next()) {
    if (entry.field() == 1) key = entry.string();
    if (entry.field() == 2) value = entry.string();
  }
  REEF_RETURN_IF_ERROR(entry.status());
  if (key == "location") tensor.external_location = value;
  if (key != "offset" && key != "length") return ok_status();
  std::int64_t number = 0;
  REEF_REQUIRE(!value.empty() && value.size() <= 18, "tensor '{}': the {} of its external data is '{}'", tensor.name,
               key, value);
  for (const char digit : value) {
    REEF_REQUIRE(digit >= '0' && digit <= '9', "tensor '{}': the {} of its external data is '{}'", tensor.name, key,
                 value);
    number = number * 10 + (digit - '0');
  }
  (key == "offset" ? tensor.external_offset : tensor.external_length) = number;
  return ok_status();
}

}  // namespace

Result<std::int64_t> element_count(const Tensor& tensor) {
  std::int64_t count = 1;
  for (const std::int64_t dim : tensor.dims) {
    REEF_REQUIRE(dim >= 0 && dim <= std::numeric_limits<std::int32_t>::max(), "tensor '{}' has a dimension of size {}",
                 tensor.name, dim);
    count *= dim;
    REEF_REQUIRE(count <= std::numeric_limits<std::int32_t>::max(), "tensor '{}' has 2^31 elements or more",
                 tensor.name);
  }
  return count;
}

Status check_size(const Tensor& tensor) {
  REEF_ASSIGN_OR_RETURN(const std::int64_t count, element_count(tensor));
  if (tensor.type == ElementType::kString) {
    REEF_REQUIRE(static_cast<std::int64_t>(tensor.strings.size()) == count,
                 "tensor '{}' holds {} strings; its sizes say {}", tensor.name, tensor.strings.size(), count);
    return ok_status();
  }
  const int bits = bits_of(tensor.type);
  REEF_REQUIRE(bits > 0, "tensor '{}' has an element type this version does not know ({})", tensor.name,
               element_type_name(tensor.type));
  const auto bytes = static_cast<std::size_t>((count * bits + 7) / 8);
  REEF_REQUIRE(tensor.data.size() == bytes, "tensor '{}' ({}) holds {} bytes; its sizes say {}", tensor.name,
               element_type_name(tensor.type), tensor.data.size(), bytes);
  return ok_status();
}

Result<Tensor> read_tensor(WireReader message) {
  Tensor tensor;
  TypedFields fields;
  while (message.next()) {
    switch (message.field()) {
      case 1:
        message.append_varints(tensor.dims);
        break;
      case 2:
        tensor.type = static_cast<ElementType>(message.int64());
        break;
      case 4:
        message.append_floats(fields.floats);
        break;
      case 5:
        message.append_varints(fields.int32s);
        break;
      case 6:
        tensor.strings.push_back(message.string());
        break;
      case 7:
        message.append_varints(fields.int64s);
        break;
      case 8:
        tensor.name = message.string();
        break;
      case 9:
        tensor.data = message.bytes();
        fields.has_raw = true;
        break;
      case 10:
        message.append_doubles(fields.doubles);
        break;
      case 11:
        message.append_varints(fields.uint64s);
        break;
      case 13:
        REEF_RETURN_IF_ERROR(read_external_entry(message.message(), tensor));
        break;
      case 14:
        fields.is_external = message.varint() == 1;
        break;
      default:
        message.skip();
    }
  }
  REEF_RETURN_IF_ERROR(message.status());
  if (fields.is_external) {
    REEF_REQUIRE(!tensor.external_location.empty(), "tensor '{}' has external data but no file is named", tensor.name);
    return tensor;
  }
  tensor.external_location.clear();
  if (!fields.has_raw && tensor.type != ElementType::kString) tensor.data = from_typed_fields(tensor.type, fields);
  REEF_RETURN_IF_ERROR(check_size(tensor));
  return tensor;
}

}  // namespace reef::onnx
