// SPDX-License-Identifier: Apache-2.0
// Any bytes: reading must not crash, and every tensor that is read has as many bytes as its type and sizes say.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "formats/onnx/reader.h"
#include "formats/onnx/tensor_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace reef;
  const Bytes file(std::vector<std::uint8_t>(data, data + size));
  (void)onnx::looks_like_onnx(file.span());
  const auto tensor = onnx::read_tensor(file);
  if (tensor.ok() && tensor->external_location.empty() && !onnx::check_size(*tensor).ok()) std::abort();
  const auto model = onnx::read_model(file);
  if (!model.ok()) return 0;
  for (const onnx::Tensor& each : model->graph.initializers) {
    if (each.external_location.empty() && !onnx::check_size(each).ok()) std::abort();
  }
  return 0;
}
