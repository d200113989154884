// SPDX-License-Identifier: Apache-2.0
// Who else uses a device file.
#pragma once

#include <string>

namespace reef::driver {

// Other processes that have a file open, as "frigate (process 812), python3 (process 9)"; empty: none that may be seen.
// `proc` is where the system shows its processes.
std::string holders_of(const std::string& proc, const std::string& file);

}  // namespace reef::driver
