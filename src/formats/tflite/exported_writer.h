// SPDX-License-Identifier: Apache-2.0
// ir::Model -> .tflite bytes in the layout of TFLite's own exporter (SubgraphWriter), with which Google's Edge TPU
// compiler writes its results: a compiled model can then be compared with Google's byte by byte.
//
// The content is that of write_model(); only the order of tables in the file differs. Constants that stay with the CPU
// are aligned to 16 bytes, where the exporter aligns them to 4: kernels read them as they lie.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "ir/model.h"

namespace reef::tflite {

// Models with things that the exporter never writes (metadata, signatures, several subgraphs, data behind the file ...)
// are written by write_model().
Result<std::vector<std::uint8_t>> write_exported_model(const ir::Model& model);

}  // namespace reef::tflite
