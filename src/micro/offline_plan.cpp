// SPDX-License-Identifier: Apache-2.0
#include "micro/offline_plan.h"

#include <cstring>

#include "ir/metadata.h"

namespace reef::micro {
namespace {

constexpr std::size_t kHeadWords = 3;  // version, subgraph, number of offsets

std::int32_t word(const Bytes& data, std::size_t i) {
  std::int32_t value = 0;
  std::memcpy(&value, data.data() + i * sizeof value, sizeof value);
  return value;
}

}  // namespace

Result<OfflinePlan> read_offline_plan(const ir::Model& model) {
  OfflinePlan plan;
  const Bytes* data = ir::find_metadata(model, kOfflinePlanMetadata);
  if (data == nullptr) return plan;
  std::size_t tensors = 0;
  for (const ir::Subgraph& graph : model.subgraphs) tensors += graph.tensors.size();
  const std::size_t words = data->size() / sizeof(std::int32_t);
  REEF_REQUIRE(words >= kHeadWords && words - kHeadWords >= tensors,
               "its plan of memory (metadata OfflineMemoryAllocation) has {} bytes, and {} tensors need {}",
               data->size(), tensors, (kHeadWords + tensors) * sizeof(std::int32_t));
  REEF_REQUIRE(word(*data, 2) == static_cast<std::int64_t>(tensors),
               "its plan of memory (metadata OfflineMemoryAllocation) is for {} tensors, and the model has {}",
               word(*data, 2), tensors);
  for (std::size_t i = 0; i < tensors; ++i) {
    plan.offsets.push_back(word(*data, kHeadWords + i));
    REEF_REQUIRE(plan.offsets.back() >= -1,
                 "its plan of memory (metadata OfflineMemoryAllocation) puts tensor {} at {}", i, plan.offsets.back());
  }
  return plan;
}

}  // namespace reef::micro
