// SPDX-License-Identifier: Apache-2.0
// Shared by RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR: attributes and shapes.
#pragma once

#include "kernels/resize/resize.h"
#include "ops/op_def.h"

namespace reef::ops {

inline constexpr AttributeDoc kResizeAttributes[] = {
    {"align_corners", "centres of the corner pixels coincide in both images"},
    {"half_pixel_centers", "pixels have their centres at halves"}};

// Input 1 holds the new height and width; sizes below `smallest_size` are refused.
Status infer_resize(InferContext& ctx, std::int64_t smallest_size);

// Geometry of a resize whose shapes are known, checked.
Result<kernels::ResizeGeometry> resize_geometry(const OpContext& ctx);

// Output rows that make a chunk of work worth handing to a thread.
std::int64_t resize_grain(const kernels::ResizeGeometry& geometry);

}  // namespace reef::ops
