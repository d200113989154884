// SPDX-License-Identifier: Apache-2.0
// Code shared by ARG_MAX and ARG_MIN.
#pragma once

#include "ops/op_def.h"

namespace reef::ops {

inline constexpr AttributeDoc kArgMinMaxAttributes[] = {
    {"output_type", "INT32 or INT64; the output tensor's own type decides"}};
inline constexpr std::string_view kArgMinMaxTypes = "float32; int8; uint8; int32; bool";

Status infer_arg_min_max(InferContext& ctx);
Result<Kernel> prepare_arg_min_max(PrepareContext& ctx, bool want_max);

}  // namespace reef::ops
