// SPDX-License-Identifier: Apache-2.0
// extract_model: some operators of a model as a model of their own.
#include <algorithm>

#include "ir/compact.h"
#include "partition/segments.h"

namespace reef::partition {

ir::Model extract_model(const ir::Model& model, const std::vector<std::int32_t>& ops,
                        const std::vector<std::int32_t>& inputs, const std::vector<std::int32_t>& outputs) {
  ir::Model result = model;
  const ir::Subgraph& graph = model.subgraphs[0];
  ir::Subgraph part;
  part.name = graph.name;
  part.inputs = inputs;
  part.outputs = outputs;
  for (const std::int32_t op : ops) part.operators.push_back(graph.operators[at(op)]);
  // A variable is not an input: it keeps its value inside of the segment that uses it.
  std::erase_if(part.inputs, [&](std::int32_t tensor) { return graph.tensors[at(tensor)].is_variable; });
  part.tensors = graph.tensors;
  ir::drop_unused_tensors(part);
  result.subgraphs[0] = std::move(part);
  // They name inputs and outputs that this part does not have.
  std::erase_if(result.signatures, [](const ir::Signature& signature) { return signature.subgraph == 0; });
  ir::drop_unused_buffers(result);
  return result;
}

}  // namespace reef::partition
