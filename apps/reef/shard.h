// SPDX-License-Identifier: Apache-2.0
// --shard I/N, of samples that are not a data set of their own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"

namespace reef::app {

// Every N-th of so many samples, from number I on; none where there are more parts than samples. All of them where no
// part is named.
Result<std::vector<std::int64_t>> samples_of_shard(const std::string& shard, std::int64_t all);

}  // namespace reef::app
