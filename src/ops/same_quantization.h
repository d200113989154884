// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/status.h"
#include "ops/op_context.h"

namespace reef::ops {

// Refuses tensors that are quantized differently, for ops that pass values on unchanged. Two tensors without
// quantization agree; a per-axis quantization counts as none, as it does for TFLite's kernels of such ops.
inline Status require_same_quantization(const Tensor& a, const Tensor& b) {
  const auto scale = [](const Tensor& t) {
    return t.quantization->scale.size() == 1 ? t.quantization->scale[0] : 0.0F;
  };
  const auto zero_point = [](const Tensor& t) {
    return t.quantization->scale.size() == 1 && !t.quantization->zero_point.empty() ? t.quantization->zero_point[0] : 0;
  };
  REEF_REQUIRE(scale(a) == scale(b) && zero_point(a) == zero_point(b),
               "'{}' (scale {}, zero point {}) and '{}' (scale {}, zero point {}) must be quantized alike", a.name,
               scale(a), zero_point(a), b.name, scale(b), zero_point(b));
  return ok_status();
}

}  // namespace reef::ops
