// SPDX-License-Identifier: Apache-2.0
#include "ops/channel_quantization.h"

#include <cmath>

namespace reef::ops {

Result<ChannelQuantization> channel_quantization(const Tensor& tensor, std::string_view role) {
  const ir::Quantization& q = *tensor.quantization;
  ChannelQuantization result;
  if (!q.is_per_axis()) {
    REEF_ASSIGN_OR_RETURN(const QuantParams params, per_tensor_quantization(tensor, role));
    result.channels.push_back(params);
    return result;
  }
  REEF_REQUIRE(q.dimension >= 0 && q.dimension < tensor.shape.rank() &&
                   static_cast<std::int64_t>(q.scale.size()) == tensor.shape[q.dimension],
               "{} ('{}') has {} scales along dimension {}, which does not fit its shape {}", role, tensor.name,
               q.scale.size(), q.dimension, tensor.shape.to_string());
  REEF_REQUIRE(q.zero_point.size() <= 1 || q.zero_point.size() == q.scale.size(),
               "{} ('{}') has {} zero points for {} scales", role, tensor.name, q.zero_point.size(), q.scale.size());
  const IntRange range = type_range(tensor.type);
  for (std::size_t i = 0; i < q.scale.size(); ++i) {
    const std::int64_t zero_point = q.zero_point.empty() ? 0 : q.zero_point[q.zero_point.size() == 1 ? 0 : i];
    REEF_REQUIRE(std::isfinite(q.scale[i]) && q.scale[i] > 0, "{} ('{}') has scale {}; it must be positive and finite",
                 role, tensor.name, q.scale[i]);
    REEF_REQUIRE(zero_point >= range.min && zero_point <= range.max,
                 "{} ('{}') has zero point {}, outside of {}'s range", role, tensor.name, zero_point,
                 ir::type_name(tensor.type));
    result.channels.push_back({q.scale[i], static_cast<std::int32_t>(zero_point)});
  }
  result.inner = tensor.shape.product(q.dimension + 1, tensor.shape.rank());
  return result;
}

}  // namespace reef::ops
