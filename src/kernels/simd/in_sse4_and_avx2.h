// SPDX-License-Identifier: Apache-2.0
// Compiles the body that REEF_BODY names for SSE4 and for AVX2, in namespaces of these names, and forgets the name. No
// include guard: it is included once for each body. See simd/targets.h.
#include "kernels/simd/begin_sse4.h"
namespace sse4 {
namespace {
#include REEF_BODY
}  // namespace
}  // namespace sse4
#include "kernels/simd/end_target.h"

#include "kernels/simd/begin_avx2.h"
namespace avx2 {
namespace {
#include REEF_BODY
}  // namespace
}  // namespace avx2
#include "kernels/simd/end_target.h"
#undef REEF_BODY
