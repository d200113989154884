// SPDX-License-Identifier: Apache-2.0
// Comparing the quantization of tensors between which elements are moved without being converted.
#pragma once

#include <cstdint>

#include "ops/op_context.h"

namespace reef::ops {

// The single scale and zero point TFLite sees in a tensor: both 0 if there is none, or one per channel.
struct EffectiveQuantization {
  float scale = 0;
  std::int64_t zero_point = 0;
  friend bool operator==(const EffectiveQuantization&, const EffectiveQuantization&) = default;
};

inline EffectiveQuantization effective_quantization(const Tensor& tensor) {
  const ir::Quantization& q = *tensor.quantization;
  if (q.scale.size() != 1) return {};
  return {q.scale[0], q.zero_point.empty() ? 0 : q.zero_point[0]};
}

inline bool has_same_quantization(const Tensor& a, const Tensor& b) {
  return effective_quantization(a) == effective_quantization(b);
}

inline Status require_same_quantization(const Tensor& a, const Tensor& b) {
  const EffectiveQuantization p = effective_quantization(a), q = effective_quantization(b);
  REEF_REQUIRE(p == q, "'{}' has scale {} and zero point {}, but '{}' has {} and {}; they must be the same", a.name,
               p.scale, p.zero_point, b.name, q.scale, q.zero_point);
  return ok_status();
}

}  // namespace reef::ops
