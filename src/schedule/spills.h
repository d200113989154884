// SPDX-License-Identifier: Apache-2.0
// Putting activations aside: what is not used while too much exists waits in wide memory, which otherwise holds
// parameters.
//
// Which: at the step where most is too much, the largest that this step does not use; then again, until nothing is too
// much. It leaves directly behind its last use before that step and comes back directly before the next.
#pragma once

#include <cstdint>

#include "tiled/program.h"

namespace reef::schedule {

// Adds the steps that make everything that exists at one time fit into `limit` bytes. False: that is not possible.
bool put_aside(tiled::TiledProgram& program, std::int64_t limit);

}  // namespace reef::schedule
