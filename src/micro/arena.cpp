// SPDX-License-Identifier: Apache-2.0
#include "micro/arena.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ir/describe.h"
#include "ir/op.h"
#include "micro/greedy_plan.h"
#include "micro/offline_plan.h"
#include "micro/operator_memory.h"

namespace reef::micro {
namespace {

constexpr std::int64_t kAlignment = 16;     // of tensors and of what kernels keep
constexpr std::int64_t kIntBytes = 4;       // of an int, on all of them
constexpr std::int64_t kScratchPerOp = 12;  // requests that are reserved for the next operator
constexpr std::int64_t kPlannerEntryBytes = 40;
constexpr std::size_t kMostBuffers = 1 << 15;  // planning takes time by the square of them

// Sizes of TFLite Micro's structures, measured with sizeof in each build.
struct Layout {
  std::int64_t pointer, allocator, planner, micro_allocator, data_allocator, subgraph, eval_tensor, node,
      scratch_request, allocation_info, tensor, quantization, variables, variable;
};
constexpr Layout kLayouts[] = {
    {4, 36, 44, 36, 8, 8, 12, 32, 12, 24, 40, 12, 12, 20},      // kTflm32
    {8, 104, 72, 272, 16, 24, 24, 64, 16, 32, 64, 24, 16, 40},  // kTflm64
    {4, 40, 44, 40, 8, 8, 12, 32, 12, 24, 40, 12, 12, 16},      // kCoral
};

std::int64_t aligned(std::int64_t bytes, std::int64_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

// Bytes of a tensor as TFLite Micro counts them: elements of 4 bits take a byte each.
Result<std::int64_t> tensor_bytes(const ir::Tensor& tensor) {
  const std::optional<std::int64_t> elements = tensor.shape.checked_elements();
  REEF_REQUIRE(elements.has_value(), "tensor '{}' has no fixed size", ir::describe_name(tensor.name));
  if (tensor.type == ir::DataType::kResource) return *elements * kIntBytes;
  const int bits = ir::bits_per_element(tensor.type);
  REEF_REQUIRE(bits > 0, "tensor '{}' is of type {}, which has no fixed size", ir::describe_name(tensor.name),
               ir::type_name(tensor.type));
  return *elements * std::max(bits / 8, 1);
}

class ArenaWalk {
 public:
  ArenaWalk(const ir::Model& model, Build build) : model_(model), build_(build), sizes_(kLayouts[reef::at(build)]) {}

  Result<ArenaSize> run() {
    std::size_t tensors = 0;
    for (const ir::Subgraph& graph : model_.subgraphs) tensors += graph.tensors.size();
    REEF_REQUIRE(tensors <= kMostBuffers, "{} tensors are more than are planned", tensors);
    REEF_ASSIGN_OR_RETURN(offline_, read_offline_plan(model_));
    keep_allocators();
    REEF_RETURN_IF_ERROR(keep_operators());
    REEF_RETURN_IF_ERROR(find_tensors());
    visit(0);
    REEF_RETURN_IF_ERROR(keep_variables());
    const std::int64_t before_plan = aligned(kept_, kAlignment);
    keep_interface();
    ArenaSize result;
    std::vector<PlannedBuffer> planned = buffers_to_plan();
    result.planning = planning_bytes(planned.size());
    result.tensors = plan_greedily(planned);
    result.inputs_overlap = inputs_overlap(planned);
    result.structures = kept_;
    const std::int64_t needed =
        std::max({result.tensors + kept_, result.planning + before_plan, most_while_preparing_});
    result.bytes = aligned(needed, kAlignment);
    return result;
  }

 private:
  void keep(std::int64_t bytes, std::int64_t alignment) { kept_ = aligned(kept_ + bytes, alignment); }
  void keep_for_kernel(std::int64_t bytes) { keep(bytes, kAlignment); }

  void keep_allocators() {
    const std::int64_t word = sizes_.pointer;
    keep(sizes_.allocator, word);
    keep(sizes_.planner, word);
    keep(sizes_.micro_allocator, word);
    if (const std::int64_t variables = resource_variables(); variables > 0) {
      keep_for_kernel(sizes_.variables);
      keep_for_kernel(sizes_.variable * variables);
    }
    keep(sizes_.data_allocator, word);
    keep(sizes_.subgraph * static_cast<std::int64_t>(model_.subgraphs.size()), word);
    for (const ir::Subgraph& graph : model_.subgraphs) {
      keep(sizes_.eval_tensor * static_cast<std::int64_t>(graph.tensors.size()), word);
    }
    for (const ir::Subgraph& graph : model_.subgraphs) {
      keep(sizes_.node * static_cast<std::int64_t>(graph.operators.size()), word);
    }
  }

  std::int64_t resource_variables() const {
    std::set<std::string> names;
    for (const ir::Subgraph& graph : model_.subgraphs) {
      for (const ir::Operator& op : graph.operators) {
        if (op.type == Op::VAR_HANDLE) names.insert(std::string(op.attributes.get_string("shared_name")));
      }
    }
    return static_cast<std::int64_t>(names.size());
  }

  Status keep_operators() {
    for (const ir::Subgraph& graph : model_.subgraphs) {
      memory_.emplace_back();
      for (const ir::Operator& op : graph.operators) {
        auto memory = operator_memory(OpView(model_, graph, op), build_);
        REEF_REQUIRE(memory.has_value(), "how much memory the kernel of {} takes is not known", op.type);
        memory_.back().push_back(std::move(*memory));
      }
    }
    for (const auto& graph : memory_) {
      for (const OperatorMemory& op : graph) {
        if (op.parameters > 0) keep(op.parameters, op.has_pointers ? sizes_.pointer : kIntBytes);
      }
    }
    for (const auto& graph : memory_) {
      for (const OperatorMemory& op : graph) {
        if (op.at_start > 0) keep_for_kernel(op.at_start);
      }
    }
    for (std::size_t g = 0; g < memory_.size(); ++g) {
      for (std::size_t i = 0; i < memory_[g].size(); ++i) prepare(model_.subgraphs[g], g, i);
    }
    if (build_ != Build::kCoral) keep_handles();
    return ok_status();
  }

  // Where each scratch buffer is.
  void keep_handles() {
    if (!scratch_.empty()) keep(sizes_.pointer * static_cast<std::int64_t>(scratch_.size()), sizes_.pointer);
  }

  // The first operator that reads or writes a variable makes its memory.
  void keep_variable(const ir::Subgraph& graph, const ir::Operator& op) {
    const bool assigns = op.type == Op::ASSIGN_VARIABLE;
    if (!assigns && op.type != Op::READ_VARIABLE) return;
    const std::vector<std::int32_t>& values = assigns ? op.inputs : op.outputs;
    const std::size_t at = assigns ? 1 : 0;
    if (op.inputs.empty() || values.size() <= at || values[at] < 0) return;
    for (const ir::Operator& maker : graph.operators) {
      if (maker.type != Op::VAR_HANDLE || maker.outputs.empty() || maker.outputs[0] != op.inputs[0]) continue;
      if (!kept_variables_.insert(std::string(maker.attributes.get_string("shared_name"))).second) return;
    }
    const auto bytes = tensor_bytes(graph.tensors[reef::at(values[at])]);
    if (bytes.ok()) keep_for_kernel(*bytes);
  }

  void prepare(const ir::Subgraph& graph, std::size_t g, std::size_t i) {
    for (const std::int64_t bytes : memory_[g][i].at_prepare) keep_for_kernel(bytes);
    keep_variable(graph, graph.operators[i]);
    most_while_preparing_ =
        std::max(most_while_preparing_, kept_ + requests_bytes() + looked_at(graph, graph.operators[i]));
    for (const std::int64_t bytes : memory_[g][i].scratch) {
      scratch_.push_back({bytes, static_cast<std::int32_t>(g), static_cast<std::int32_t>(i), -1, -1});
    }
  }

  // Operands that a kernel looks at stand in the middle of the arena until it is prepared, some of them twice: what it
  // lets go is not free before.
  std::int64_t looked_at(const ir::Subgraph& graph, const ir::Operator& op) const {
    std::int64_t bytes = 0;
    for (const ir::Tensor* tensor : prepared_tensors(OpView(model_, graph, op), build_)) {
      bytes += aligned(described_bytes(*tensor), sizes_.pointer);
    }
    return bytes;
  }

  // Of a tensor with its scales, as kernels and the application see it.
  std::int64_t described_bytes(const ir::Tensor& tensor) const {
    std::int64_t bytes = sizes_.tensor;
    const auto scales = static_cast<std::int64_t>(tensor.quantization.scale.size());
    if (scales > 0 && !tensor.quantization.zero_point.empty()) bytes += sizes_.quantization + kIntBytes * (1 + scales);
    return bytes;
  }

  std::int64_t requests_bytes() const {
    return sizes_.scratch_request * (static_cast<std::int64_t>(scratch_.size()) + kScratchPerOp);
  }

  // ---- Lifetimes ----

  Status find_tensors() {
    for (const ir::Subgraph& graph : model_.subgraphs) {
      first_tensor_.push_back(lives_.size());
      for (const ir::Tensor& tensor : graph.tensors) {
        Life life;
        REEF_ASSIGN_OR_RETURN(life.bytes, tensor_bytes(tensor));
        life.is_planned = !ir::is_constant(model_, tensor) && !tensor.is_variable && life.bytes > 0;
        life.placed = offline_.of(lives_.size());
        if (tensor.is_variable && life.placed) life.is_planned = true;
        lives_.push_back(life);
      }
      for (const ir::Operator& op : graph.operators) {  // handles stand in what VAR_HANDLE keeps
        if (op.type == Op::VAR_HANDLE && !op.outputs.empty() && op.outputs[0] >= 0) {
          lives_[first_tensor_.back() + static_cast<std::size_t>(op.outputs[0])].is_planned = false;
        }
      }
    }
    return ok_status();
  }

  struct Life {
    std::int64_t bytes = 0;
    bool is_planned = false;
    std::int32_t first = -1, last = -1;
    std::optional<std::int64_t> placed = {};  // by the file
  };
  struct Scratch {
    std::int64_t bytes;
    std::int32_t subgraph, op, first, last;
  };

  void begin(std::size_t subgraph, std::int32_t tensor) {
    if (tensor < 0) return;
    Life& life = lives_[first_tensor_[subgraph] + static_cast<std::size_t>(tensor)];
    if (life.first < 0) life.first = step_;
  }
  void use(std::size_t subgraph, std::int32_t tensor) {
    if (tensor >= 0) lives_[first_tensor_[subgraph] + static_cast<std::size_t>(tensor)].last = step_;
  }

  // Subgraphs that an operator runs, in the order in which their tensors live.
  static std::vector<std::int64_t> called(const ir::Operator& op) {
    if (op.type == Op::IF) {
      return {op.attributes.get_int("then_subgraph_index", -1), op.attributes.get_int("else_subgraph_index", -1)};
    }
    if (op.type == Op::WHILE) {
      return {op.attributes.get_int("cond_subgraph_index", -1), op.attributes.get_int("body_subgraph_index", -1)};
    }
    if (op.type == Op::CALL_ONCE) return {op.attributes.get_int("init_subgraph_index", -1)};
    return {};
  }

  // A file may hold subgraphs that call each other without end.
  static constexpr int kDeepest = 16, kMostVisits = 1000;

  void visit(std::size_t subgraph, int depth = 0) {
    if (++visits_ > kMostVisits) return;
    const ir::Subgraph& graph = model_.subgraphs[subgraph];
    for (const std::int32_t tensor : graph.inputs) {
      begin(subgraph, tensor);
      if (build_ != Build::kCoral) use(subgraph, tensor);
    }
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
      const ir::Operator& op = graph.operators[i];
      ++step_;
      for (const std::int32_t tensor : op.outputs) begin(subgraph, tensor);
      const std::int32_t start = step_;
      for (const std::int64_t other : called(op)) {
        if (other < 0 || other >= static_cast<std::int64_t>(model_.subgraphs.size()) || depth >= kDeepest) continue;
        ++step_;
        visit(static_cast<std::size_t>(other), depth + 1);
      }
      for (const std::int32_t tensor : op.inputs) use(subgraph, tensor);
      for (const std::int32_t tensor : op.outputs) use(subgraph, tensor);
      for (Scratch& scratch : scratch_) {
        if (scratch.subgraph != static_cast<std::int32_t>(subgraph) || scratch.op != static_cast<std::int32_t>(i))
          continue;
        if (scratch.first < 0) scratch.first = start;
        scratch.last = step_;
      }
    }
    for (const std::int32_t tensor : graph.outputs) {
      if (build_ != Build::kCoral) begin(subgraph, tensor);
      use(subgraph, tensor);
    }
  }

  std::vector<PlannedBuffer> buffers_to_plan() const {
    std::vector<PlannedBuffer> planned;
    for (const Life& life : lives_) {
      if (life.is_planned) planned.push_back({aligned(life.bytes, kAlignment), life.first, life.last, 0, life.placed});
    }
    for (const Scratch& scratch : scratch_) {
      planned.push_back({aligned(scratch.bytes, kAlignment), scratch.first, scratch.last});
    }
    return planned;
  }

  // `planned` has all tensors that are planned, in their order.
  bool inputs_overlap(const std::vector<PlannedBuffer>& planned) const {
    const std::vector<std::int32_t>& inputs = model_.subgraphs[0].inputs;
    std::vector<const PlannedBuffer*> places;
    std::size_t at = 0;
    for (std::size_t i = 0; i < lives_.size(); ++i) {
      if (!lives_[i].is_planned) continue;
      const bool is_input = i < model_.subgraphs[0].tensors.size() &&
                            std::find(inputs.begin(), inputs.end(), static_cast<std::int32_t>(i)) != inputs.end();
      if (is_input) places.push_back(&planned[at]);
      ++at;
    }
    std::sort(places.begin(), places.end(),
              [](const PlannedBuffer* a, const PlannedBuffer* b) { return a->offset < b->offset; });
    for (std::size_t i = 1; i < places.size(); ++i) {
      if (places[i - 1]->offset + places[i - 1]->bytes > places[i]->offset) return true;
    }
    return false;
  }

  std::int64_t planning_bytes(std::size_t planned) const {
    const auto infos = static_cast<std::int64_t>(lives_.size() + scratch_.size());
    std::int64_t bytes = aligned(requests_bytes(), sizes_.pointer);
    bytes += sizes_.pointer * static_cast<std::int64_t>(model_.subgraphs.size());
    bytes = aligned(bytes, sizes_.pointer) + sizes_.allocation_info * infos;
    return aligned(bytes, kAlignment) + aligned(kPlannerEntryBytes * static_cast<std::int64_t>(planned), kAlignment);
  }

  // ---- The rest ----

  // Tensors that keep their values. Coral's release makes the scratch buffers' handles once more for every subgraph.
  Status keep_variables() {
    for (const ir::Subgraph& graph : model_.subgraphs) {
      if (build_ == Build::kCoral) keep_handles();
      for (std::size_t i = 0; i < graph.tensors.size(); ++i) {
        const ir::Tensor& tensor = graph.tensors[i];
        // The allocator looks for the place of a subgraph's variable at its number in that subgraph.
        if (!tensor.is_variable || offline_.of(i)) continue;
        REEF_ASSIGN_OR_RETURN(const std::int64_t bytes, tensor_bytes(tensor));
        keep_for_kernel(bytes);
      }
    }
    return ok_status();
  }

  void keep_interface() {
    const ir::Subgraph& graph = model_.subgraphs[0];
    for (const std::vector<std::int32_t>* tensors : {&graph.inputs, &graph.outputs}) {
      keep_for_kernel(sizes_.pointer * static_cast<std::int64_t>(tensors->size()));
      for (const std::int32_t index : *tensors) {
        keep(described_bytes(graph.tensors[reef::at(index)]), sizes_.pointer);
      }
    }
  }

  const ir::Model& model_;
  const Build build_;
  const Layout& sizes_;
  std::int64_t kept_ = 0;
  std::int64_t most_while_preparing_ = 0;
  OfflinePlan offline_;
  std::vector<std::vector<OperatorMemory>> memory_;  // by subgraph and operator
  std::vector<std::size_t> first_tensor_;            // of each subgraph in lives_
  std::vector<Life> lives_;
  std::vector<Scratch> scratch_;
  std::set<std::string> kept_variables_;
  std::int32_t step_ = 0;
  int visits_ = 0;
};

}  // namespace

Result<ArenaSize> predict_arena(const ir::Model& model, Build build) {
  REEF_REQUIRE(!model.subgraphs.empty(), "the model has no subgraph");
  return ArenaWalk(model, build).run();
}

}  // namespace reef::micro
