// SPDX-License-Identifier: Apache-2.0
// The CPU's instructions as functions, for bodies that need one which the compiler's vectors have no operator for.
#pragma once

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif
