// SPDX-License-Identifier: Apache-2.0
#include "graph/written_out_functions.h"

#include <algorithm>

#include "graph/graph.h"
#include "graph/op_list.h"
#include "ops/table_functions.h"

namespace reef::graph {
namespace {

bool is_function(const ir::Operator& op) { return op.is_custom() && op.type == name_of(Op::ReefFunction); }

// int8 and uint8 numbers as indices of a table that begins with the lowest of them.
TensorId indices_of(Graph& graph, OpList& list, TensorId x) {
  const ir::Shape shape = graph.shape(x);
  const ir::DataType type = graph.tensor(x).type;
  const TensorId wide = list.tensor(ir::DataType::kInt32, shape, {});
  ir::Attributes types;
  types.set("in_data_type", ir::EnumName{type == ir::DataType::kInt8 ? "INT8" : "UINT8"});
  types.set("out_data_type", ir::EnumName{"INT32"});
  list.add(Op::CAST, "CastOptions", std::move(types), {x}, {wide}, type);
  if (type != ir::DataType::kInt8) return wide;
  const TensorId indices = list.tensor(ir::DataType::kInt32, shape, {});
  ir::Attributes attributes;
  attributes.set("fused_activation_function", ir::EnumName{"NONE"});
  list.add(Op::ADD, "AddOptions", std::move(attributes), {wide, list.int_scalar(128)}, {indices}, ir::DataType::kInt32);
  return indices;
}

void write_out(Graph& graph, OpId id) {
  const TensorId x = graph.op(id).inputs[0], y = graph.op(id).outputs[0];
  const std::vector<std::int64_t> codes = graph.op(id).attributes.get_ints(ops::kCodes);
  ir::Tensor table = graph.tensor(y);
  table.name += "/table";
  table.shape = {static_cast<std::int32_t>(codes.size())};
  table.shape_signature.clear();
  const ir::DataType type = table.type;
  const TensorId results = graph.add_constant(std::move(table), {codes.begin(), codes.end()});
  OpList list(graph, graph.tensor(y).name);
  const TensorId indices = indices_of(graph, list, x);
  ir::Attributes attributes;
  attributes.set("axis", std::int64_t{0});
  list.add(Op::GATHER, "GatherOptions", std::move(attributes), {results, indices}, {y}, type);
  graph.substitute(id, list.take());
}

}  // namespace

Status write_out_functions(ir::Model& model) {
  if (model.subgraphs.empty()) return ok_status();
  const std::vector<ir::Operator>& ops = model.subgraphs[0].operators;
  if (std::none_of(ops.begin(), ops.end(), is_function)) return ok_status();
  Graph graph(model);
  for (OpId id = 0, end = graph.op_slots(); id < end; ++id) {
    if (is_function(graph.op(id))) write_out(graph, id);
  }
  return graph.finish();
}

}  // namespace reef::graph
