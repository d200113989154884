// SPDX-License-Identifier: Apache-2.0
#include "partition/advice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ir/describe.h"
#include "ir/op.h"
#include "ops/dependencies.h"

namespace reef::partition {
namespace {

bool is_8_bit(const ir::Tensor& tensor) {
  return tensor.type == ir::DataType::kInt8 || tensor.type == ir::DataType::kUInt8;
}

std::string tensor_name(const ir::Subgraph& graph, std::int32_t tensor) {
  return ir::describe_name(graph.tensors[at(tensor)].name);
}

// A tensor of small numbers joined with one of large numbers gets the large one's scale: detectors that concatenate
// boxes in pixels with scores below 1 lose the scores. Converters put a QUANTIZE in between, which is where it shows.
constexpr double kLevelsThatHurt = 16;  // out of 256: less than this is left of a tensor

void mixed_ranges(const ops::Dependencies& graph, std::vector<std::string>& notes) {
  const ir::Subgraph& ops = graph.graph();
  for (std::int32_t op = 0; op < graph.op_count(); ++op) {
    if (ops.operators[at(op)].type != Op::CONCATENATION) continue;
    for (const std::int32_t tensor : ops.operators[at(op)].inputs) {
      if (!graph.is_computed(tensor) || graph.producer(tensor) < 0) continue;
      const ir::Operator& before = ops.operators[at(graph.producer(tensor))];
      if (before.type != Op::QUANTIZE || before.inputs.empty() || before.inputs[0] < 0) continue;
      const ir::Tensor& fine = ops.tensors[at(before.inputs[0])];
      const ir::Tensor& coarse = ops.tensors[at(tensor)];
      if (!is_8_bit(fine) || !is_8_bit(coarse)) continue;
      if (fine.quantization.scale.size() != 1 || coarse.quantization.scale.size() != 1) continue;
      const double levels = 256.0 * fine.quantization.scale[0] / coarse.quantization.scale[0];
      if (!(levels > 0 && levels < kLevelsThatHurt)) continue;
      notes.push_back(fmt::format(
          "op {} CONCATENATION '{}' mixes ranges: '{}' has steps of {:.4g}, but in the result a step is {:.4g}, which "
          "leaves it about {:.1f} of its 256 levels. Give the model separate outputs: end it before the concatenation, "
          "or cut there with -i.",
          op, tensor_name(ops, ops.operators[at(op)].outputs.at(0)), ir::describe_name(fine.name),
          fine.quantization.scale[0], coarse.quantization.scale[0], levels));
    }
  }
}

// Operators at the end of a part can cost more there than on the CPU, because of what the link carries for them: their
// result is larger than what it is made of, their parameters do not fit into the chip's memory, or their instructions
// are many. They are given up one by one, from the end; the cut with the smallest prediction wins.
constexpr double kWorthSaying = 0.9;    // of the prediction
constexpr double kWorthSayingUs = 500;  // small models are dominated by what every inference costs
constexpr int kMostGivenUp = 64;

// Why `count` operators at the end cost so much: what the link carries less of without them.
std::string reason_of(std::size_t count, const PartCost& with, const PartCost& without) {
  const std::string_view s = count == 1 ? "s" : "";
  if (with.streaming - without.streaming >= with.transfer - without.transfer) {
    return fmt::format("ha{} parameters that do not fit into its memory and are sent with every inference",
                       count == 1 ? "s" : "ve");
  }
  if (with.instruction_bytes - without.instruction_bytes > with.output_bytes - without.output_bytes) {
    return fmt::format("need{} {} of instructions with every inference", s,
                       ir::describe_bytes(with.instruction_bytes - without.instruction_bytes));
  }
  return fmt::format("give{} {} to send back instead of {}", s, ir::describe_bytes(with.output_bytes),
                     ir::describe_bytes(without.output_bytes));
}

void cheaper_cut(const ops::Dependencies& graph, const Costs& costs, const Partition& partition,
                 std::vector<std::string>& notes) {
  if (partition.parts.size() != 1) return;
  const Part& part = partition.parts[0];
  const double rest = partition.predicted_us - part.cost.total();
  std::vector<std::int32_t> ops = part.ops, best_ops;
  PartCost best_cost;
  double cpu = 0, best = partition.predicted_us;
  for (int given_up = 0; given_up < kMostGivenUp && ops.size() > 1; ++given_up) {
    // The last operator has no successor inside.
    cpu += costs.op(ops.back()).cpu;
    ops.pop_back();
    const ops::Dependencies::Border border = graph.border(ops);
    const PartCost cost = costs.part(ops, border.inputs, border.outputs, -1);
    const double now = rest + cpu + cost.total();
    if (now >= best) continue;
    best = now;
    best_cost = cost;
    best_ops = ops;
  }
  if (best_ops.empty() || best > kWorthSaying * partition.predicted_us) return;
  if (partition.predicted_us - best < kWorthSayingUs) return;
  std::vector<std::string> names;
  for (const std::int32_t tensor : graph.border(best_ops).outputs) {
    names.push_back(graph.graph().tensors[at(tensor)].name);
  }
  const std::size_t count = part.ops.size() - best_ops.size();
  notes.push_back(fmt::format(
      "the last {} on the chip {}, which costs more than computing on the CPU: with the part ending earlier {:.2f} ms "
      "are predicted instead of {:.2f} ms (estimated): -i '{}'.",
      count == 1 ? "operator" : fmt::format("{} operators", count), reason_of(count, part.cost, best_cost), best / 1000,
      partition.predicted_us / 1000, fmt::join(names, ",")));
}

}  // namespace

bool ends_too_late(const ir::Model& model, const Costs& costs, const Partition& partition) {
  std::vector<std::string> notes;
  cheaper_cut(ops::Dependencies(model), costs, partition, notes);
  return !notes.empty();
}

std::vector<std::string> advise(const ir::Model& model, const Costs& costs, const Partition& partition) {
  const ops::Dependencies graph(model);
  std::vector<std::string> notes;
  mixed_ranges(graph, notes);
  cheaper_cut(graph, costs, partition, notes);
  return notes;
}

}  // namespace reef::partition
