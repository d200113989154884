// SPDX-License-Identifier: Apache-2.0
#include "micro/greedy_plan.h"

#include <algorithm>
#include <cstddef>

namespace reef::micro {
namespace {

bool meet(const PlannedBuffer& a, const PlannedBuffer& b) { return a.first <= b.last && b.first <= a.last; }

// `placed` is ordered by offset.
std::int64_t lowest_gap(const PlannedBuffer& wanted, const std::vector<const PlannedBuffer*>& placed) {
  std::int64_t offset = 0;
  for (const PlannedBuffer* other : placed) {
    if (!meet(wanted, *other)) continue;
    if (other->offset - offset >= wanted.bytes) break;
    offset = std::max(offset, other->offset + other->bytes);
  }
  return offset;
}

}  // namespace

std::int64_t plan_greedily(std::vector<PlannedBuffer>& buffers) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    if (buffers[i].placed) order.push_back(i);
  }
  const auto chosen = static_cast<std::ptrdiff_t>(order.size());
  for (std::size_t i = buffers.size(); i > 0; --i) {
    if (!buffers[i - 1].placed) order.push_back(i - 1);
  }
  std::stable_sort(order.begin() + chosen, order.end(),
                   [&](std::size_t a, std::size_t b) { return buffers[a].bytes > buffers[b].bytes; });
  std::vector<const PlannedBuffer*> placed;
  std::int64_t end = 0;
  for (const std::size_t i : order) {
    PlannedBuffer& buffer = buffers[i];
    buffer.offset = buffer.placed ? *buffer.placed : lowest_gap(buffer, placed);
    end = std::max(end, buffer.offset + buffer.bytes);
    const auto behind =
        std::upper_bound(placed.begin(), placed.end(), buffer.offset,
                         [](std::int64_t offset, const PlannedBuffer* p) { return offset < p->offset; });
    placed.insert(behind, &buffer);
  }
  return end;
}

}  // namespace reef::micro
