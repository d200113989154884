// SPDX-License-Identifier: Apache-2.0
#include "prune/blocks.h"

#include <algorithm>
#include <set>

#include "ir/compact.h"
#include "ir/constants.h"
#include "ir/needed_operators.h"
#include "ir/op.h"
#include "ir/uses.h"
#include "prune/linear_layer.h"

namespace reef::prune {
namespace {

// The operators between `stream` and `branch`; empty: the branch reads something else, too, or others read parts of it.
std::vector<std::size_t> operators_between(const ir::Model& model, const ir::Uses& uses, std::int32_t stream,
                                           std::int32_t branch) {
  const ir::Subgraph& graph = model.subgraphs[0];
  std::set<std::size_t> found;
  std::vector<std::int32_t> open = {branch};
  while (!open.empty()) {
    const std::int32_t t = open.back();
    open.pop_back();
    if (t == stream || ir::is_constant(model, graph.tensors[at(t)])) continue;
    const std::int32_t producer = uses.producer(t);
    if (producer < 0) return {};
    const auto op = static_cast<std::size_t>(producer);
    if (!found.insert(op).second) continue;
    for (const std::int32_t input : graph.operators[op].inputs) {
      if (input >= 0) open.push_back(input);
    }
  }
  for (const std::size_t op : found) {
    for (const std::int32_t output : graph.operators[op].outputs) {
      if (uses.is_output(output)) return {};
      if (output == branch) continue;
      const std::vector<std::int32_t>& readers = uses.consumers(output);
      if (!std::all_of(readers.begin(), readers.end(),
                       [&](std::int32_t reader) { return found.contains(static_cast<std::size_t>(reader)); })) {
        return {};
      }
    }
  }
  return {found.begin(), found.end()};
}

}  // namespace

std::vector<Block> find_blocks(const ir::Model& model) {
  const ir::Subgraph& graph = model.subgraphs[0];
  const ir::Uses uses(model);
  std::vector<Block> blocks;
  for (std::size_t i = 0; i < graph.operators.size(); ++i) {
    const ir::Operator& op = graph.operators[i];
    if (op.type != Op::ADD || op.inputs.size() != 2 || op.inputs[0] < 0 || op.inputs[1] < 0) continue;
    for (const int side : {0, 1}) {
      Block block;
      block.sum = i;
      block.branch = op.inputs[at(side)];
      block.stream = op.inputs[at(1 - side)];
      const ir::Tensor& a = graph.tensors[at(block.branch)];
      const ir::Tensor& b = graph.tensors[at(block.stream)];
      if (block.branch == block.stream || a.shape != b.shape || a.shape.rank() < 2 || !a.shape.is_usable()) continue;
      if (a.type != ir::DataType::kFloat32 || !uses.has_one_use(block.branch)) continue;
      block.ops = operators_between(model, uses, block.stream, block.branch);
      const bool has_layer = std::any_of(block.ops.begin(), block.ops.end(),
                                         [&](std::size_t each) { return linear_layer(model, each).has_value(); });
      if (!has_layer) continue;
      blocks.push_back(std::move(block));
      break;
    }
  }
  return blocks;
}

void remove_block(const Block& block, const KeptIndices& kept, ir::Model& model) {
  ir::Subgraph& graph = model.subgraphs[0];
  const std::vector<bool>& channels = kept[at(block.branch)].back();
  std::vector<float> mean;
  for (std::size_t c = 0; c < channels.size(); ++c) {
    if (channels[c]) mean.push_back(block.mean[c]);
  }
  ir::Tensor constant;
  constant.name = graph.tensors[at(block.branch)].name + "/mean";
  constant.shape = ir::Shape({static_cast<std::int32_t>(mean.size())});
  ir::set_constant(model, constant, mean);
  graph.tensors.push_back(std::move(constant));
  ir::Operator& sum = graph.operators[block.sum];
  sum.inputs = {block.stream, static_cast<std::int32_t>(graph.tensors.size() - 1)};
}

void drop_unneeded(ir::Model& model) {
  ir::squeeze(model.subgraphs[0].operators, ir::needed_operators(model.subgraphs[0]));
  ir::drop_unused_tensors(model, 0);
  ir::drop_unused_buffers(model);
}

}  // namespace reef::prune
