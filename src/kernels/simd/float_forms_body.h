// SPDX-License-Identifier: Apache-2.0
// REEF_BODY, a file's name, in both forms of adding a product (float_vectors_body.h), as far as the target has both. No
// include guard: it is included once per target, see simd/targets.h.

namespace rounded {
namespace {
#define REEF_FUSED 0
#include REEF_BODY
#undef REEF_FUSED
}  // namespace
}  // namespace rounded

#if REEF_LANES > 4 || defined(__aarch64__)
namespace fused {
namespace {
#define REEF_FUSED 1
#include REEF_BODY
#undef REEF_FUSED
}  // namespace
}  // namespace fused
#endif
