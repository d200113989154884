// SPDX-License-Identifier: Apache-2.0
// What one core can multiply and add at most, in exact integer arithmetic on bytes and in floats. Measured when called.
#pragma once

namespace reef::bench {

struct MultiplyLimits {
  double bytes = 0, floats = 0;  // GMAC/s
};
MultiplyLimits multiply_limits();

}  // namespace reef::bench
