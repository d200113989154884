// SPDX-License-Identifier: Apache-2.0
#include "ops/op_context.h"

namespace reef::ops {
namespace {

template <typename T>
std::vector<std::int64_t> widen(const Tensor& tensor) {
  const std::span<const T> values = tensor.values<T>();
  return {values.begin(), values.end()};
}

}  // namespace

Status InferContext::require_value(int i) const {
  if (!input(i).is_constant) used_changing_values_ = true;
  if (input(i).data == nullptr && input(i).shape.elements() != 0) {
    return make_error(StatusCode::kDeferred, "the value of input {} ('{}') is known only at run time", i,
                      input(i).name);
  }
  return ok_status();
}

void PrepareContext::note(std::string_view sentence) const { notes_.emplace_back(sentence); }

Result<std::vector<std::int64_t>> InferContext::ints(int i) const {
  REEF_REQUIRE(has_input(i), "input {} is missing", i);
  REEF_RETURN_IF_ERROR(require_value(i));
  const Tensor& tensor = input(i);
  switch (tensor.type) {
    case DataType::kInt8:
      return widen<std::int8_t>(tensor);
    case DataType::kUInt8:
      return widen<std::uint8_t>(tensor);
    case DataType::kInt16:
      return widen<std::int16_t>(tensor);
    case DataType::kInt32:
      return widen<std::int32_t>(tensor);
    case DataType::kInt64:
      return widen<std::int64_t>(tensor);
    case DataType::kUInt32:
      return widen<std::uint32_t>(tensor);
    default:
      return invalid_input("input {} ('{}') is {}; an integer tensor is needed", i, tensor.name,
                           ir::type_name(tensor.type));
  }
}

}  // namespace reef::ops
