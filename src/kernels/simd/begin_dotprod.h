// SPDX-License-Identifier: Apache-2.0
// Code from here to simd/end_target.h is compiled for 64-bit ARM with dot products of bytes (SDOT). CPUs that have
// them are of version 8.2 at least. No include guard: it is a bracket. See simd/targets.h.
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("arch=armv8.2-a+dotprod"))), apply_to = function)
#else
#pragma GCC diagnostic push
#pragma GCC push_options
#pragma GCC target("arch=armv8.2-a+dotprod")
#endif
