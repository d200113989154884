// SPDX-License-Identifier: Apache-2.0
// `reef compile --conservative`: code whose every instruction combines its fields as some public program of Google's
// does (isa/combination.h). Somebody with a stick can then tell a wrong assumption of ours about the chip from a wrong
// program.
#pragma once

#include "compiler/code_generator.h"

namespace reef::compiler {

// A generator that refuses what has other instructions, and names the operators that they are for: those are left to
// the CPU, as operators without code are.
CodeGenerator conservative(CodeGenerator generate);

}  // namespace reef::compiler
