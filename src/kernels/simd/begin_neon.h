// SPDX-License-Identifier: Apache-2.0
// Code from here to simd/end_target.h is compiled for the vectors that every 64-bit ARM has. No include guard: it is
// a bracket. See simd/targets.h.
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("neon"))), apply_to = function)
#else
#pragma GCC diagnostic push
#pragma GCC push_options
#endif
