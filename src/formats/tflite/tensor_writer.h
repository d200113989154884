// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/status.h"
#include "formats/tflite/schema_generated.h"
#include "formats/tflite/write_context.h"
#include "ir/model.h"

namespace reef::tflite {

Result<flatbuffers::Offset<tflite_schema::Tensor>> write_tensor(WriteContext& context, const ir::Tensor& tensor);

}  // namespace reef::tflite
