// SPDX-License-Identifier: Apache-2.0
// Checks and small computations that many ops share: types, quantization, fused activations, axes, broadcasting.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "ops/op_context.h"

namespace reef::ops {

// "input 1 ('weights') is int4; float32 or int8 is needed"
Status require_type(const Tensor& tensor, std::string_view role, std::initializer_list<DataType> allowed);
Status require_same_type(const Tensor& a, const Tensor& b);
Status require_rank(const Tensor& tensor, std::string_view role, int min_rank, int max_rank);

// The error for a type combination an op has no kernel for; names all operand types.
Status unsupported_types(const OpContext& ctx);

// Per-tensor quantization, checked: one positive finite scale and a zero point that the type can hold.
struct QuantParams {
  float scale = 1;
  std::int32_t zero_point = 0;
};
Result<QuantParams> per_tensor_quantization(const Tensor& tensor, std::string_view role);

// Scales of weights: one per index of `axis` (broadcast from one if per-tensor; size = shape[axis]). Checked: positive
// finite, count matches, quantized along `axis`.
Result<std::vector<float>> channel_scales(const Tensor& weights, int axis);

// Lowest and highest value of an 8- or 16-bit (or 32-bit) integer type.
struct IntRange {
  std::int32_t min = 0;
  std::int32_t max = 0;
};
IntRange type_range(DataType type);

// Output range of a fused activation (attribute "fused_activation_function") on a quantized tensor.
Result<IntRange> quantized_activation_range(const ir::Attributes& attributes, const Tensor& output);
struct FloatRange {
  float min = 0;
  float max = 0;
};
// The same on floats; TANH and SIGN_BIT, which TFLite's kernels do not fuse, are refused.
Result<FloatRange> float_activation_range(const ir::Attributes& attributes);
// For integer tensors that are plain numbers (int32, int64 ADD ...): limits as real numbers.
template <typename T>
struct Range {
  T min;
  T max;
};
Result<Range<std::int64_t>> integer_activation_range(const ir::Attributes& attributes, std::int64_t lowest,
                                                     std::int64_t highest);

// An axis counted from the end if negative, checked against `rank`.
Result<int> normalize_axis(std::int64_t axis, int rank);

// Shape of a NumPy-style broadcast, or an error naming both shapes.
Result<Shape> broadcast_shapes(const Shape& a, const Shape& b);

// Checks the element count and bytes of a shape computed from foreign numbers before it is used.
Status check_shape(const Shape& shape);

// make.template operator()<T>() for the T among Ts whose type is `type`; an error naming the op's types if none is.
template <typename... Ts, typename Make>
Result<Kernel> for_element_type(const OpContext& ctx, DataType type, const Make& make) {
  Result<Kernel> result = Status(StatusCode::kUnsupported, "");
  const bool found = ((type == ir::data_type_of<Ts> ? (result = make.template operator()<Ts>(), true) : false) || ...);
  if (!found) return unsupported_types(ctx);
  return result;
}

}  // namespace reef::ops
