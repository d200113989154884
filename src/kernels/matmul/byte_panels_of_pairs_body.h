// SPDX-License-Identifier: Apache-2.0
// The tile loops of matmul/byte_panels.h for targets that multiply pairs, SSE4 and AVX2: for 16-bit rows, and for rows
// of bytes and split weights. No include guard: it is included once per target, see simd/targets.h.

#define REEF_VNNI 0
#define REEF_DOTS 0
#define REEF_BYTE_ROWS 0
#include "kernels/matmul/byte_panels_body.h"

#include "kernels/matmul/byte_rows_body.h"
#undef REEF_BYTE_ROWS
#define REEF_BYTE_ROWS 1
namespace split {
#include "kernels/matmul/byte_split_body.h"

#include "kernels/matmul/byte_rows_body.h"
}  // namespace split
#undef REEF_BYTE_ROWS
#undef REEF_DOTS
#undef REEF_VNNI
