// SPDX-License-Identifier: Apache-2.0
#include "base/version.h"

namespace reef {

std::string_view reef_version() { return REEF_VERSION; }

}  // namespace reef
