// SPDX-License-Identifier: Apache-2.0
// The plan of memory that a model may bring for TFLite Micro: metadata "OfflineMemoryAllocation", which compilers for
// other accelerators write. TFLite Micro puts tensors where it says without looking whether they are in each other's
// way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "ir/model.h"

namespace reef::micro {

inline constexpr std::string_view kOfflinePlanMetadata = "OfflineMemoryAllocation";

struct OfflinePlan {
  std::vector<std::int64_t> offsets;  // of all subgraphs' tensors, one after the other; -1: TFLite Micro finds a place

  bool is_there() const { return !offsets.empty(); }
  std::optional<std::int64_t> of(std::size_t tensor) const {
    if (tensor >= offsets.size() || offsets[tensor] < 0) return std::nullopt;
    return offsets[tensor];
  }
};

// An empty plan if the model brings none; an error for one that TFLite Micro refuses.
Result<OfflinePlan> read_offline_plan(const ir::Model& model);

}  // namespace reef::micro
