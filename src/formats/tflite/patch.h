// SPDX-License-Identifier: Apache-2.0
// Changes values in a .tflite file without moving a byte.
//
// write_model() lays a file out anew. Where only values changed, and none changed its size, the old file with the new
// values in their old places says the same and stays byte for byte the same elsewhere, which keeps differences small
// and keeps whatever the reader does not (see docs/formats/tflite.md).
#pragma once

#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "ir/model.h"

namespace reef::tflite {

// `edited` is read_model(original_file) with other values in buffers, custom options, scales and zero points.
// kUnsupported, naming the piece, if one of them changed its size or number or something else differs: write_model()
// can save such a model. The result has been read back and compared with `edited`.
Result<std::vector<std::uint8_t>> patch_file(const Bytes& original_file, const ir::Model& edited);

}  // namespace reef::tflite
