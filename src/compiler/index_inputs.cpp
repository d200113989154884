// SPDX-License-Identifier: Apache-2.0
#include "compiler/index_inputs.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "ir/pseudo_random.h"
#include "ops/registry.h"

namespace reef::compiler {
namespace {

template <typename T>
void wrap(std::int64_t rows, std::span<std::byte> values) {
  for (std::size_t i = 0; i + sizeof(T) <= values.size(); i += sizeof(T)) {
    T value;
    std::memcpy(&value, values.data() + i, sizeof(T));
    const std::int64_t rest = static_cast<std::int64_t>(value) % rows;
    value = static_cast<T>(rest < 0 ? rest + rows : rest);
    std::memcpy(values.data() + i, &value, sizeof(T));
  }
}

// Rows of the table if `op` selects with its operand `k`, else 0.
std::int64_t rows_of_table(const ir::Subgraph& graph, const ir::Operator& op, std::size_t k) {
  const bool is_gather = op.type == Op::GATHER && k == 1;
  const bool is_lookup = op.type == Op::EMBEDDING_LOOKUP && k == 0;
  if ((!is_gather && !is_lookup) || op.inputs.size() < 2) return 0;
  const ir::Shape& table = graph.tensors[at(op.inputs[is_gather ? 0 : 1])].shape;
  std::int64_t axis = is_gather ? op.attributes.get_int("axis", 0) : 0;
  if (axis < 0) axis += table.rank();
  return axis >= 0 && axis < table.rank() ? table[static_cast<int>(axis)] : 0;
}

// Its results have values of its operands. SELECT among them: Keras counts negative indices from the end by it.
bool keeps_values(const ir::Operator& op) {
  return op.type == Op::CAST || op.type == Op::SELECT || op.type == Op::SELECT_V2 ||
         ops::form_of(op) == ops::Form::kMove;
}

}  // namespace

std::int64_t rows_selected_by(const ir::Model& model, int input) {
  const ir::Subgraph& graph = model.subgraphs[0];
  std::set<std::int32_t> same = {graph.inputs[at(input)]};
  std::int64_t rows = 0;
  for (const ir::Operator& op : graph.operators) {  // in the order of execution
    for (std::size_t k = 0; k < op.inputs.size(); ++k) {
      if (!same.contains(op.inputs[k])) continue;
      if (keeps_values(op)) same.insert(op.outputs.begin(), op.outputs.end());
      const std::int64_t table = rows_of_table(graph, op, k);
      if (table > 0) rows = rows == 0 ? table : std::min(rows, table);
    }
  }
  return rows;
}

void wrap_indices(ir::DataType type, std::int64_t rows, std::span<std::byte> values) {
  if (type == ir::DataType::kInt32) wrap<std::int32_t>(rows, values);
  if (type == ir::DataType::kInt64) wrap<std::int64_t>(rows, values);
}

void fill_made_up_input(const ir::Model& model, int input, ir::DataType type, std::uint32_t seed,
                        std::span<std::byte> values) {
  ir::fill_pseudo_random(type, seed, values);
  if (const std::int64_t rows = rows_selected_by(model, input); rows > 0) wrap_indices(type, rows, values);
}

}  // namespace reef::compiler
