// SPDX-License-Identifier: Apache-2.0
// Shared by convolutions and matrix products: weights of any integer type made ready for the kernels, biases, and the
// scaling of their sums.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <vector>

#include "base/status.h"
#include "kernels/matmul/int_rows.h"
#include "kernels/matmul/quantize_floats.h"
#include "kernels/matmul/requantize.h"
#include "ops/checks.h"
#include "ops/op_context.h"

namespace reef::ops {

// Products per output that kernels take: memory for one gathered window stays below 32 MiB.
inline constexpr std::int64_t kMaxDepth = std::int64_t{1} << 24;

// Elements [first, first + count) of an int2, int4, int8, uint8 or int16 tensor, minus zero_point.
void widen_elements(const Tensor& tensor, std::int64_t first, std::int64_t count, std::int32_t zero_point,
                    std::int16_t* target);
// The tensor's elements as rows of `depth`.
kernels::PackedRows pack_rows(const Tensor& tensor, std::int64_t depth, std::int32_t zero_point);

// A value that somebody else keeps, or one made for the occasion. Counting the users of a shared one would take longer
// than a small layer does.
template <typename T>
class LentOrMade {
 public:
  explicit LentOrMade(const T* lent) : value_(lent) {}
  explicit LentOrMade(std::unique_ptr<const T> made) : value_(made.get()), made_(std::move(made)) {}
  const T& operator*() const { return *value_; }
  const T* operator->() const { return value_; }

 private:
  const T* value_;
  std::unique_ptr<const T> made_;
};

// A value made from a tensor: once, if the tensor is constant, or else for each run.
template <typename T>
class FromTensor {
 public:
  FromTensor() = default;
  FromTensor(const Tensor& tensor, std::function<T(const Tensor&)> make) : make_(std::move(make)) {
    if (tensor.is_constant && tensor.data != nullptr) constant_ = std::make_shared<const T>(make_(tensor));
  }
  // The value for this run.
  LentOrMade<T> get(const Tensor& tensor) const {
    if (constant_ != nullptr) return LentOrMade<T>(constant_.get());
    return LentOrMade<T>(std::make_unique<const T>(make_(tensor)));
  }

 private:
  std::shared_ptr<const T> constant_;
  std::function<T(const Tensor&)> make_;
};

// Refuses weights with a zero point other than 0.
Status require_symmetric(const Tensor& weights);
// Refuses weights stored sparsely or quantized in blocks.
Status require_plain_storage(const Tensor& weights);
// An optional bias: null, or input `index` after checking its type and that it has `channels` elements.
Result<const Tensor*> optional_bias(const OpContext& ctx, int index, std::initializer_list<DataType> types,
                                    std::int64_t channels);
// Values of an int32 or int64 bias for this run; empty if there is none.
std::vector<std::int64_t> bias_values(const OpContext& ctx, int index);
inline const std::int64_t* data_or_null(const std::vector<std::int64_t>& values) {
  return values.empty() ? nullptr : values.data();
}
// Float bias of input `index`, or null.
const float* float_bias(const OpContext& ctx, int index);

// input_scale * weight_scale / output_scale for each scale of the weights, in double as TFLite does for convolutions.
Result<std::vector<double>> channel_factors(const Tensor& input, const Tensor& weights, int axis, const Tensor& output);
// The older computation, for one scale: the product is rounded to float. Refuses a bias (null: none) whose scale is not
// about input_scale * weight_scale.
Result<double> tensor_factor(const Tensor& input, const Tensor& weights, const Tensor* bias, const Tensor& output);
// A requantizer with these factors and the output's zero point and activation range.
Result<kernels::Requantizer> make_requantizer(const OpContext& ctx, kernels::Rounding rounding,
                                              const std::vector<double>& factors);

// Float activations quantized for a hybrid op: `rows` pieces of `size` values, each with a scale of its own.
struct QuantizedRows {
  std::vector<std::int8_t> values;
  std::vector<float> scales;
  std::vector<std::int32_t> zero_points;
};
QuantizedRows quantize_rows(const float* values, std::int64_t rows, std::int64_t size,
                            kernels::FloatQuantizer quantizer);
// Which quantizer that is, in the TFLite release whose results are wanted.
kernels::FloatQuantizer float_quantizer(const OpContext& ctx, bool asymmetric);

// Whether the wanted results are those of TFLite 2.9 rather than of the current release.
bool as_in_2_9(const OpContext& ctx);

// Rows or tiles that make up a chunk of some 10 to 100 microseconds, given the products that one of them takes, as
// factors: their product may exceed 64 bits.
std::int64_t grain_for(std::initializer_list<std::int64_t> factors);

}  // namespace reef::ops
