// SPDX-License-Identifier: Apache-2.0
// For tests: every target that this CPU has, one after the other.
#pragma once

#include "kernels/simd/targets.h"

namespace reef::kernels {

template <typename Body>
void for_each_supported_target(const Body& body) {
  const SimdTarget before = active_target();
  for (const SimdTarget target : supported_targets()) {
    set_active_target(target);
    body(target);
  }
  set_active_target(before);
}

}  // namespace reef::kernels
