// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rewrite/rewrite.h"

namespace reef::compiler {

// Runs models on the CPU for rewrites that compare values. One run takes at most `seconds`.
rewrite::Evaluator cpu_evaluator(double seconds = 10);

}  // namespace reef::compiler
