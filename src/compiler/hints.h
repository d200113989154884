// SPDX-License-Identifier: Apache-2.0
// What a user could do next, found out by trying it.
#pragma once

#include <string>

#include "compiler/plan.h"

namespace reef::compiler {

// "with -a 328 of 331 operators run on the Edge TPU: 12.74 ms instead of 21.00 (estimated)", where several parts would
// be faster on the host asked about, or on a Raspberry Pi; else empty.
std::string several_parts_hint(const Plan& plan, const PlanOptions& options);

// " --preprocess yolo": what models of this kind are usually fed, with a space before it; empty: not known. A guess by
// task and shapes, for commands that are suggested; nothing is computed with it.
std::string preprocess_hint(const ir::Model& model);

}  // namespace reef::compiler
