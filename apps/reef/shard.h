// SPDX-License-Identifier: Apache-2.0
// --shard K/N.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"

namespace reef::app {

// The samples of part K of N of so many: [all * (K - 1) / N, all * K / N), none where there are more parts than
// samples. All of them where no part is named.
Result<std::vector<std::int64_t>> samples_of_shard(const std::string& shard, std::int64_t all);

}  // namespace reef::app
