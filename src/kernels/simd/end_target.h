// SPDX-License-Identifier: Apache-2.0
// Ends what simd/begin_<target>.h began. No include guard: it is a bracket.
#undef REEF_VECTOR_BYTES
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#pragma GCC diagnostic pop
#endif
