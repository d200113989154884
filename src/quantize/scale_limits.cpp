// SPDX-License-Identifier: Apache-2.0
#include "quantize/scale_limits.h"

#include <fmt/format.h>

#include "ir/describe.h"

namespace reef::quantize {

Status check_scales(const ir::Model& model) {
  for (const ir::Subgraph& graph : model.subgraphs) {
    for (const ir::Tensor& tensor : graph.tensors) {
      if (!tensor.has_quantization) continue;
      for (const float scale : tensor.quantization.scale) {
        if (scale >= kSmallestScale && scale <= kLargestScale) continue;
        return invalid_input(
            "tensor '{}' would get scale {:.3g}, so nothing is written: scales from {:g} to {:g} make a usable model. "
            "Its values are far too {} for 8 bits; correct the model or the preprocessing. reef quantize --keep-float "
            "NAME leaves the operator that computes it in float",
            ir::describe_name(tensor.name), scale, kSmallestScale, kLargestScale, scale > 1 ? "large" : "small");
      }
    }
  }
  return ok_status();
}

Range at_least(const Range& range, double scale) {
  const double span = static_cast<double>(range.max) - range.min;
  const double wanted = 255 * scale;
  if (!(span > 0) || span >= wanted) return range;
  // Not as a factor: spans of denormal numbers would make it infinite.
  if (-range.min > range.max) return {static_cast<float>(-wanted), 0};
  return {static_cast<float>(range.min < 0 ? -wanted : 0), static_cast<float>(wanted)};
}

}  // namespace reef::quantize
