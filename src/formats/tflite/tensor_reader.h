// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/status.h"
#include "formats/tflite/read_context.h"
#include "formats/tflite/schema_generated.h"
#include "ir/model.h"

namespace reef::tflite {

Result<ir::Tensor> read_tensor(ReadContext& context, const tflite_schema::Tensor& source);

// Cuts the union member out of the file verbatim; adds a note where that may be incomplete.
Result<ir::OpaqueTable> read_opaque(ReadContext& context, const void* table, int union_type);

}  // namespace reef::tflite
