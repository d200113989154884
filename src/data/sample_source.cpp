// SPDX-License-Identifier: Apache-2.0
#include "data/sample_source.h"

namespace reef::data {

InputSpec input_spec(const ir::Model& model, int index) {
  const ir::Subgraph& graph = model.subgraphs[0];
  const ir::Tensor& tensor = graph.tensors[at(graph.inputs[at(index)])];
  return {.index = index,
          .name = tensor.name,
          .type = tensor.type,
          .shape = tensor.shape,
          .quantization = tensor.quantization};
}

}  // namespace reef::data
