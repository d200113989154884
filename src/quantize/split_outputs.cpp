// SPDX-License-Identifier: Apache-2.0
#include "quantize/split_outputs.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "ir/compact.h"
#include "ir/describe.h"
#include "quantize/graph_index.h"

namespace reef::quantize {
namespace {

constexpr float kMixed = 8;  // ratio of the parts' ranges from which a note is made

// The operator that joins output `t`, or -1.
std::int32_t joint_of(const ir::Model& model, const GraphIndex& index, std::int32_t t) {
  const ir::Subgraph& graph = model.subgraphs[0];
  const std::int32_t producer = index.producer(t);
  if (producer < 0) return -1;
  const ir::Operator& op = graph.operators[static_cast<std::size_t>(producer)];
  if (op.type != "CONCATENATION" || op.inputs.size() < 2) return -1;
  const bool all_computed = std::all_of(op.inputs.begin(), op.inputs.end(), [&](std::int32_t part) {
    return part >= 0 && index.producer(part) >= 0 &&
           graph.tensors[static_cast<std::size_t>(part)].type == ir::DataType::kFloat32;
  });
  return all_computed ? producer : -1;
}

void split_in_signatures(ir::Model& model, std::int32_t output, const std::vector<std::int32_t>& parts) {
  for (ir::Signature& signature : model.signatures) {
    if (signature.subgraph != 0) continue;
    std::vector<ir::SignatureTensor> entries;
    for (const ir::SignatureTensor& entry : signature.outputs) {
      if (entry.tensor != output) {
        entries.push_back(entry);
        continue;
      }
      for (std::size_t i = 0; i < parts.size(); ++i) {
        entries.push_back({fmt::format("{}_{}", entry.name, i), parts[i]});
      }
    }
    signature.outputs = std::move(entries);
  }
}

}  // namespace

std::vector<std::string> split_outputs(ir::Model& model) {
  std::vector<std::string> notes;
  const GraphIndex index(model);
  ir::Subgraph& graph = model.subgraphs[0];
  std::vector<std::int32_t> outputs;
  std::vector<std::size_t> dead;
  for (const std::int32_t t : graph.outputs) {
    const std::int32_t joint = joint_of(model, index, t);
    if (joint < 0) {
      outputs.push_back(t);
      continue;
    }
    const std::vector<std::int32_t> parts = graph.operators[static_cast<std::size_t>(joint)].inputs;
    outputs.insert(outputs.end(), parts.begin(), parts.end());
    split_in_signatures(model, t, parts);
    if (index.consumers(t).empty()) dead.push_back(static_cast<std::size_t>(joint));
    notes.push_back(fmt::format("output '{}' is given out in its {} parts",
                                ir::describe_name(graph.tensors[static_cast<std::size_t>(t)].name), parts.size()));
  }
  graph.outputs = std::move(outputs);
  std::sort(dead.rbegin(), dead.rend());
  for (const std::size_t op : dead) graph.operators.erase(graph.operators.begin() + static_cast<std::ptrdiff_t>(op));
  if (!notes.empty()) ir::drop_unused_tensors(model, 0);
  return notes;
}

std::vector<std::string> mixed_outputs(const ir::Model& model, const Calibration& calibration) {
  std::vector<std::string> notes;
  const GraphIndex index(model);
  const ir::Subgraph& graph = model.subgraphs[0];
  for (const std::int32_t t : graph.outputs) {
    const std::int32_t joint = joint_of(model, index, t);
    if (joint < 0) continue;
    float narrow = std::numeric_limits<float>::infinity(), wide = 0;
    for (const std::int32_t part : graph.operators[static_cast<std::size_t>(joint)].inputs) {
      const TensorStatistics& seen = calibration.tensors[static_cast<std::size_t>(part)];
      if (!seen.seen()) continue;
      narrow = std::min(narrow, seen.max - seen.min);
      wide = std::max(wide, seen.max - seen.min);
    }
    if (!(wide > kMixed * narrow)) continue;
    notes.push_back(
        fmt::format("output '{}' joins parts whose ranges are {:.3g} and {:.3g} wide at one scale; "
                    "--split-outputs gives each its own",
                    ir::describe_name(graph.tensors[static_cast<std::size_t>(t)].name), narrow, wide));
  }
  return notes;
}

}  // namespace reef::quantize
