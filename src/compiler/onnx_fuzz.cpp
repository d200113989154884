// SPDX-License-Identifier: Apache-2.0
// Any bytes that read as an ONNX model, imported and simplified: a verified model or an error.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "formats/onnx/reader.h"
#include "import/onnx/importer.h"
#include "ir/verify.h"
#include "passes/simplify.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace reef;
  const auto model = onnx::read_model(Bytes(std::vector<std::uint8_t>(data, data + size)));
  if (!model.ok()) return 0;
  import::ImportOptions options;
  options.pad_selections = size % 2 != 0;
  auto imported = import::import_onnx(*model, options);
  if (!imported.ok()) return 0;
  if (!ir::verify(imported->model).ok()) std::abort();
  if (!passes::simplify(imported->model).ok() || !ir::verify(imported->model).ok()) std::abort();
  return 0;
}
