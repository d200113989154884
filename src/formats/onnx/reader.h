// SPDX-License-Identifier: Apache-2.0
// .onnx bytes -> onnx::Model.
//
// The bytes are never trusted: every length is checked, nesting is limited, and memory is bounded by a small multiple
// of the file's size. Data of tensors that the file keeps in raw_data are slices of it. What the nodes mean is not
// looked at.
#pragma once

#include <cstdint>
#include <string>

#include "base/bytes.h"
#include "base/status.h"
#include "formats/onnx/model.h"

namespace reef::onnx {

// Protocol Buffers end at 2 GiB; so do TFLite files. More must be in external data, and is refused there too.
inline constexpr std::uint64_t kMaxFileBytes = (std::uint64_t{1} << 31) - 1;

// Tensors whose data is in other files say where (Tensor::external_location).
Result<Model> read_model(const Bytes& file);

// A TensorProto by itself, as in test data.
Result<Tensor> read_tensor(const Bytes& file);

// Reads the file and the external data of its tensors, which must lie in files below the model's folder.
Result<Model> load_model(const std::string& path);

// Whether these may be the bytes of an ONNX model: the first field is one of ModelProto's, of the right wire type. A
// file that is no FlatBuffer with TFLite's mark and passes this is worth read_model's message.
bool looks_like_onnx(std::span<const std::uint8_t> file);

}  // namespace reef::onnx
