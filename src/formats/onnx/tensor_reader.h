// SPDX-License-Identifier: Apache-2.0
// TensorProto: whichever of its typed fields holds the data, the result is dense little-endian bytes.
#pragma once

#include "base/status.h"
#include "formats/onnx/model.h"
#include "formats/onnx/wire.h"

namespace reef::onnx {

Result<Tensor> read_tensor(WireReader message);

// Fails unless the tensor's data has as many bytes as its type and sizes say.
Status check_size(const Tensor& tensor);

// The number of elements; an error for negative sizes and more than 2^31 - 1 of them.
Result<std::int64_t> element_count(const Tensor& tensor);

}  // namespace reef::onnx
