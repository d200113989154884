// SPDX-License-Identifier: Apache-2.0
// Any bytes that read as an ONNX model: importing must end with a verified model or an error.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "formats/onnx/reader.h"
#include "import/onnx/importer.h"
#include "ir/verify.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace reef;
  const auto model = onnx::read_model(Bytes(std::vector<std::uint8_t>(data, data + size)));
  if (!model.ok()) return 0;
  const auto imported = import::import_onnx(*model, {});
  if (imported.ok() && !ir::verify(imported->model).ok()) std::abort();
  return 0;
}
