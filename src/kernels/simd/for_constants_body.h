// SPDX-License-Identifier: Apache-2.0
// Loops whose index is a constant. No include guard: it is included once per target, see simd/targets.h.

// body(0), body(1), ... with numbers that are constants. (gcc unrolls loops within loops too late to keep arrays of
// vectors that they go through in registers.)
template <int kCount, int kIndex = 0, typename Body>
[[gnu::always_inline]] inline void for_constants(const Body& body) {
  if constexpr (kIndex < kCount) {
    body(std::integral_constant<int, kIndex>());
    for_constants<kCount, kIndex + 1>(body);
  }
}
