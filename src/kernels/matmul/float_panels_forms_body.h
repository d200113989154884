// SPDX-License-Identifier: Apache-2.0
// float_panels_body.h in both forms, as far as the target has both. No include guard: it is included once per
// target, see simd/targets.h.

namespace rounded {
namespace {
#define REEF_FUSED 0
#include "kernels/matmul/float_panels_body.h"
#undef REEF_FUSED
}  // namespace
}  // namespace rounded

#if REEF_LANES > 4 || defined(__aarch64__)
namespace fused {
namespace {
#define REEF_FUSED 1
#include "kernels/matmul/float_panels_body.h"
#undef REEF_FUSED
}  // namespace
}  // namespace fused
#endif
