// SPDX-License-Identifier: Apache-2.0
// --time-limit and --memory-limit, which every command that can take long has (docs/limits.md).
#pragma once

#include "command.h"

#include "base/budget.h"

namespace reef::app {

// Of commands whose work follows from one file: a damaged or malicious one must not keep them busy for ever.
inline constexpr double kUsualSeconds = 600, kUsualMib = 4096;
// Of commands whose work follows from the user's data, which may take hours: no limit of time; of memory, three
// quarters of what the machine has.
double most_mib();

struct LimitFlags {
  double seconds = kUsualSeconds, mib = kUsualMib;  // 0: no limit
  static LimitFlags for_data() { return {0, most_mib()}; }
};

void add_limit_flags(Command& command, LimitFlags& flags);

// Time begins to count now.
Budget budget_of(const LimitFlags& flags);

}  // namespace reef::app
