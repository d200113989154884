// SPDX-License-Identifier: Apache-2.0
// Code from here to simd/end_target.h is compiled for SSE4.1 and earlier extensions. No include guard: it is a bracket.
// See simd/targets.h.
#define REEF_VECTOR_BYTES 16
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("sse4.1"))), apply_to = function)
#else
#pragma GCC diagnostic push
#pragma GCC push_options
#pragma GCC target("sse4.1")
#endif
