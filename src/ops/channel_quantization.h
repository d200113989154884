// SPDX-License-Identifier: Apache-2.0
// Quantization of a tensor of any rank, per tensor or per index of one dimension, for QUANTIZE and DEQUANTIZE.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "ops/checks.h"
#include "ops/op_context.h"

namespace reef::ops {

// Element i belongs to channel (i / inner) % channels.size(). One channel: per tensor.
struct ChannelQuantization {
  std::vector<QuantParams> channels;
  std::int64_t inner = 1;
};
// Checked: scales positive and finite, zero points within the type, as many scales as the dimension is long.
Result<ChannelQuantization> channel_quantization(const Tensor& tensor, std::string_view role);

// body(params, begin, end) for each maximal run of elements [begin, end) within [from, to) that share a channel.
template <typename Body>
void for_each_channel_run(const ChannelQuantization& q, std::int64_t from, std::int64_t to, Body body) {
  if (q.channels.size() == 1) return body(q.channels[0], from, to);
  const auto count = static_cast<std::int64_t>(q.channels.size());
  while (from < to) {
    const std::int64_t run = from / q.inner;
    const std::int64_t end = std::min(to, (run + 1) * q.inner);
    body(q.channels[at(run % count)], from, end);
    from = end;
  }
}

}  // namespace reef::ops
