// SPDX-License-Identifier: Apache-2.0
// Code from here to simd/end_target.h is compiled for AVX2 with AVX-VNNI. No include guard: it is a bracket. See
// simd/targets.h.
#define REEF_VECTOR_BYTES 32
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c,bmi,bmi2,avxvnni"))), apply_to = function)
#else
// gcc 12's own headers leave vectors undefined on purpose.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c,bmi,bmi2,avxvnni")
#endif
