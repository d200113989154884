// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace reef {

// "0.1.0": of the project, from CMakeLists.txt.
std::string_view reef_version();

}  // namespace reef
