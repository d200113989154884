// SPDX-License-Identifier: Apache-2.0
#include "micro/assess.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "formats/darwinn/reader.h"
#include "ir/describe.h"
#include "ir/metadata.h"
#include "ir/op.h"
#include "micro/board_memory.h"
#include "micro/cpu_time.h"
#include "micro/edge_tpu_rules.h"
#include "micro/offline_plan.h"
#include "micro/rounding.h"
#include "micro/rules.h"
#include "micro/sdk_ops.h"
#include "partition/dynamic_shapes.h"

namespace reef::micro {
namespace {

// TFLite Micro's model files keep all data in the FlatBuffers part.
constexpr std::string_view kSeparateData = "the data of a tensor stands behind the FlatBuffers part or in another file";

std::string_view release_name(Releases release) {
  return release == kCoral ? "the TFLite Micro in Coral's SDK" : "TFLite Micro";
}

// Operators that run subgraphs take any types.
bool is_control_flow(std::string_view op) { return op == Op::IF || op == Op::WHILE || op == Op::CALL_ONCE; }

class Assessor {
 public:
  Assessor(const ir::Model& model, const AssessOptions& options)
      : model_(model), options_(options), ops_(model), dynamic_(model, ops_) {
    result_.target = options.target;
  }

  Assessment run() {
    check_tensors();
    for (const std::string& shape : options_.wrong_shapes) {
      refuse(0, -1, "declared-shapes", fmt::format("TFLite Micro allocates what a file declares, and {}.", shape),
             fmt::format("Write the model with its true shapes: `reef check --target {} --write-rewritten FILE`.",
                         options_.target == Target::kMicro ? "micro" : "tflm"));
    }
    check_metadata();
    for (std::size_t g = 0; g < model_.subgraphs.size(); ++g) check_operators(g);
    list_resolver();
    predict_memory();
    if (options_.target == Target::kMicro) check_unread_inputs();
    result_.cpu_us = cortex_m7_microseconds(model_, options_.target);
    note_rounding();
    note_stored_inputs();
    return std::move(result_);
  }

 private:
  void refuse(std::size_t subgraph, std::int32_t op, std::string_view rule, std::string reason, std::string remedy) {
    result_.refusals.push_back(
        {static_cast<std::int32_t>(subgraph), op, std::string(rule), std::move(reason), std::move(remedy)});
  }

  // ---- Tensors ----

  void check_tensors() {
    for (std::size_t g = 0; g < model_.subgraphs.size(); ++g) {
      for (const ir::Tensor& tensor : model_.subgraphs[g].tensors) check_tensor(g, tensor);
    }
    const bool is_external = std::any_of(model_.buffers.begin(), model_.buffers.end(),
                                         [](const ir::Buffer& buffer) { return buffer.is_external; });
    if (is_external || !model_.external_buffers.empty()) {
      refuse(0, -1, "separate-data", fmt::format("TFLite Micro reads one FlatBuffers file, and {}.", kSeparateData),
             "Models over 2 GB are stored so; no microcontroller holds them.");
    }
  }

  void check_tensor(std::size_t g, const ir::Tensor& tensor) {
    const std::string name = ir::describe_name(tensor.name);
    if (tensor.type == ir::DataType::kString || tensor.type == ir::DataType::kVariant) {
      refuse(g, -1, "tensor-type",
             fmt::format("Tensor '{}' is of type {}, for which TFLite Micro has no memory.", name,
                         ir::type_name(tensor.type)),
             "Cut the model where it holds numbers only.");
      return;
    }
    if (tensor.sparsity) {
      refuse(g, -1, "sparse-tensor", fmt::format("Tensor '{}' is sparse, which TFLite Micro does not read.", name),
             "Convert the model without sparsity.");
    }
    if (g == 0 && is_dynamic(tensor)) {
      refuse(g, -1, "dynamic-shape",
             fmt::format(
                 "Tensor '{}' has a size that is known only while the model runs, and TFLite Micro allocates before.",
                 name),
             "Export the model with fixed sizes.");
      return;
    }
    const bool is_open = std::any_of(tensor.shape.begin(), tensor.shape.end(), [](std::int32_t d) { return d < 0; });
    if (!is_open) return;
    refuse(g, -1, "dynamic-shape",
           fmt::format("Tensor '{}' has shape {}, and TFLite Micro needs sizes that are known.", name,
                       tensor.shape.to_string()),
           "Export the model with a fixed input shape and batch 1, or give `--input-shape`.");
  }

  bool is_dynamic(const ir::Tensor& tensor) const {
    return dynamic_.is_dynamic(static_cast<std::int32_t>(&tensor - model_.subgraphs[0].tensors.data()));
  }

  // Coral's release lets the memory of such an input be used by other tensors from the start, so that whoever fills it
  // writes over them: in the main graph over other inputs, if the plan has it so, in others over anything.
  void check_unread_inputs() {
    const bool is_harmless = result_.arena_coral && !result_.arena_coral->inputs_overlap;
    for (std::size_t g = is_harmless ? 1 : 0; g < model_.subgraphs.size(); ++g) {
      const ir::Subgraph& graph = model_.subgraphs[g];
      for (const std::int32_t input : graph.inputs) {
        const ir::Tensor& tensor = graph.tensors[at(input)];
        const bool is_read = std::any_of(graph.operators.begin(), graph.operators.end(), [&](const ir::Operator& op) {
          return std::find(op.inputs.begin(), op.inputs.end(), input) != op.inputs.end();
        });
        const bool is_given = std::find(graph.outputs.begin(), graph.outputs.end(), input) != graph.outputs.end();
        if (is_read || is_given || ir::is_constant(model_, tensor)) continue;
        refuse(
            g, -1, "coral-unread-input",
            fmt::format("No operator reads input '{}'{}, and the TFLite Micro in Coral's SDK gives its memory to other "
                        "tensors as well.",
                        ir::describe_name(tensor.name), g == 0 ? "" : fmt::format(" of subgraph {}", g)),
            "Export the model without this input.");
      }
    }
  }

  // Checks the metadata that TFLite Micro reads beside the graph.
  void check_metadata() {
    const Result<OfflinePlan> plan = read_offline_plan(model_);
    if (!plan.ok()) {
      refuse(
          0, -1, "offline-plan", fmt::format("TFLite Micro does not take this model: {}.", plan.status().message()),
          "Make the plan again for this model, or take the metadata out: `reef check --target tflm --write-rewritten "
          "FILE`.");
    } else if (plan->is_there()) {
      note("The model brings its own plan of memory (metadata OfflineMemoryAllocation), which TFLite Micro follows.");
    }
    if (ir::find_metadata(model_, "COMPRESSION_METADATA") != nullptr) {
      refuse(
          0, -1, "compressed-tensors",
          "The model's tensors are compressed (metadata COMPRESSION_METADATA), which only builds of TFLite Micro for "
          "PCs and Xtensa read.",
          "Take the model as it was before its compression.");
    }
  }

  // ---- Operators ----

  void check_operators(std::size_t g) {
    const ir::Subgraph& graph = model_.subgraphs[g];
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
      const ir::Operator& op = graph.operators[i];
      const bool is_sdk_op = options_.target == Target::kMicro && g == 0 && find_sdk_op(op) != nullptr;
      if (is_sdk_op && darwinn::is_edge_tpu_op(op)) {
        add(g, i, check_edge_tpu_op(model_, i));
      } else if (is_sdk_op) {
        add(g, i, check_sdk_op(OpView(model_, graph, op)));
      } else {
        check_operator(g, i);
      }
    }
  }

  // What a subgraph gives must be what the operator that runs it declares: nothing is resized.
  void check_control_flow(std::size_t g, std::size_t i) {
    const ir::Subgraph& graph = model_.subgraphs[g];
    const ir::Operator& op = graph.operators[i];
    for (const std::string_view name : {"then_subgraph_index", "else_subgraph_index", "body_subgraph_index"}) {
      const std::int64_t called = op.attributes.get_int(name, -1);
      if (called < 0 || called >= static_cast<std::int64_t>(model_.subgraphs.size())) continue;
      const ir::Subgraph& body = model_.subgraphs[at(called)];
      for (std::size_t k = 0; k < std::min(body.outputs.size(), op.outputs.size()); ++k) {
        if (op.outputs[k] < 0 || body.outputs[k] < 0) continue;
        const ir::Shape& given = body.tensors[at(body.outputs[k])].shape;
        const ir::Shape& declared = graph.tensors[at(op.outputs[k])].shape;
        if (given == declared) continue;
        refuse(g, static_cast<std::int32_t>(i), "control-flow-shapes",
               fmt::format(
                   "TFLite Micro resizes nothing, and output {} of the {} is declared {} but its subgraph gives {}.", k,
                   op.type, declared.to_string(), given.to_string()),
               "Export the model with fixed shapes in all branches.");
        return;
      }
    }
  }

  void add(std::size_t g, std::size_t i, std::vector<Finding> findings) {
    for (Finding& finding : findings) {
      refuse(g, static_cast<std::int32_t>(i), finding.rule, std::move(finding.particulars), std::move(finding.remedy));
    }
  }

  void check_operator(std::size_t g, std::size_t i) {
    const ir::Subgraph& graph = model_.subgraphs[g];
    const ir::Operator& op = graph.operators[i];
    const auto number = static_cast<std::int32_t>(i);
    const Releases wanted = releases_of(options_.target);
    const MicroOp* known = find_micro_op(op.type);
    const Releases missing = known == nullptr ? wanted : wanted & ~known->releases;
    if (missing != 0) {
      refuse(g, number, "operator",
             fmt::format("{} has no {}.", release_name(missing & kTflm ? kTflm : kCoral), op.type), missing_remedy(op));
      return;
    }
    const std::string types = operand_types(graph, op);
    if (!is_control_flow(op.type) && !accepts_types(op.type, types, wanted)) {
      refuse(
          g, number, "types",
          fmt::format("{} does not run {} with {}; it ran it with {}.", release_name(wanted & kCoral ? kCoral : kTflm),
                      op.type, types, fmt::join(types_of(op.type, wanted), "  ")),
          types_remedy(types));
      return;
    }
    if (is_control_flow(op.type)) check_control_flow(g, i);
    add(g, i, check_parameters(OpView(model_, graph, op), wanted));
  }

  std::string missing_remedy(const ir::Operator& op) const {
    if (darwinn::is_edge_tpu_op(op)) {
      return "It is an Edge TPU's program: check it with `--target micro`, or take the model that was not compiled.";
    }
    if (find_sdk_op(op) != nullptr) {
      return "Coral's SDK brings it: check with `--target micro`, or leave it to the application.";
    }
    if (op.is_custom()) return "Write a kernel for it and add it with AddCustom(), or leave it to the application.";
    return "Leave it to the application (`reef compile -i TENSOR` ends the part before it), or replace the layer.";
  }

  static std::string types_remedy(std::string_view types) {
    if (types.find("uint8") != std::string_view::npos) {
      return "TFLite Micro computes on int8: quantize again with `reef quantize`, which writes int8.";
    }
    if (types.find("int64") != std::string_view::npos || types.find("float64") != std::string_view::npos) {
      return "64-bit tensors are rarely needed: convert the model with int32 indices and results (ARG_MAX, SHAPE and "
             "CAST "
             "have an output type), or leave the layer to the application.";
    }
    if (types.find("float") != std::string_view::npos) return "Quantize the model with `reef quantize`.";
    return "Convert the model with other types for this layer.";
  }

  // Each sentence once, however many operators it is about.
  void note_rounding() {
    for (std::size_t g = 0; g < model_.subgraphs.size(); ++g) {
      const ir::Subgraph& graph = model_.subgraphs[g];
      for (std::size_t i = 0; i < graph.operators.size(); ++i) {
        const std::optional<Rounding> rounding =
            rounding_of(OpView(model_, graph, graph.operators[i]), releases_of(options_.target));
        if (!rounding) continue;
        result_.rounding.push_back(
            {static_cast<std::int32_t>(g), static_cast<std::int32_t>(i), std::string(rounding->as)});
        note(rounding->why);
      }
    }
  }

  void note(std::string_view sentence) {
    if (std::find(result_.notes.begin(), result_.notes.end(), sentence) == result_.notes.end()) {
      result_.notes.emplace_back(sentence);
    }
  }

  // They stand in the model's bytes, which are in flash or shared: a program that fills all inputs writes there.
  void note_stored_inputs() {
    for (const std::int32_t input : model_.subgraphs[0].inputs) {
      const ir::Tensor& tensor = model_.subgraphs[0].tensors[at(input)];
      if (!ir::is_constant(model_, tensor)) continue;
      note(fmt::format("Input '{}' has a value in the file, which TFLite Micro takes for a constant: leave it alone.",
                       ir::describe_name(tensor.name)));
    }
  }

  // ---- What the program needs ----

  void list_resolver() {
    std::map<std::string, std::string> lines;
    for (const ir::Subgraph& graph : model_.subgraphs) {
      for (const ir::Operator& op : graph.operators) {
        if (const SdkOp* brought = find_sdk_op(op)) {
          lines[op.type] = brought->resolver;
        } else if (const MicroOp* known = find_micro_op(op.type)) {
          lines[op.type] = fmt::format("{}()", known->function);
        }
      }
    }
    for (auto& [op, code] : lines) result_.resolver.push_back({op, std::move(code)});
  }

  std::optional<ArenaSize> arena(Build build) {
    auto size = predict_arena(model_, build);
    if (size.ok()) return *size;
    if (build == Build::kTflm32)
      result_.notes.push_back(fmt::format("No arena is predicted: {}.", size.status().message()));
    return std::nullopt;
  }

  void predict_memory() {
    result_.arena_32 = arena(Build::kTflm32);
    result_.arena_64 = arena(Build::kTflm64);
    if (options_.target == Target::kMicro) result_.arena_coral = arena(Build::kCoral);
    check_board();
  }

  void check_board() {
    for (MemoryNeed& need : memory_needs(model_, options_, result_.arena_bytes())) {
      const MemoryUse& use = result_.memory.emplace_back(need.use);
      if (need.fits()) continue;
      refuse(0, -1, "memory",
             fmt::format("The {} takes {} ({} bytes{}), and the board's {} has {}.", use.what,
                         ir::describe_bytes(use.bytes), use.bytes, use.is_exact ? "" : ", estimated", use.where,
                         ir::describe_bytes(use.limit)),
             std::move(need.remedy));
    }
  }

  const ir::Model& model_;
  const AssessOptions& options_;
  const ops::StaticOps ops_;
  const partition::DynamicShapes dynamic_;
  Assessment result_;
};

}  // namespace

std::string_view target_name(Target target) {
  return target == Target::kMicro ? "Dev Board Micro with Coral's SDK" : "a board with TFLite Micro";
}

Releases releases_of(Target target) { return target == Target::kMicro ? kTflm | kCoral : kTflm; }

std::optional<std::int64_t> Assessment::arena_bytes() const {
  if (target == Target::kTflm) return arena_32 ? std::optional(arena_32->bytes) : std::nullopt;
  if (!arena_32 || !arena_coral) return std::nullopt;
  return arena_coral->bytes;
}

Assessment assess(const ir::Model& model, const AssessOptions& options) { return Assessor(model, options).run(); }

std::vector<bool> runs_on_micro(const ir::Model& model, Target target) {
  const ir::Subgraph& graph = model.subgraphs[0];
  const Releases wanted = releases_of(target);
  std::vector<bool> runs;
  for (const ir::Operator& op : graph.operators) {
    const MicroOp* known = find_micro_op(op.type);
    const bool has_it = known != nullptr && (known->releases & wanted) == wanted;
    const OpView view(model, graph, op);
    const bool is_brought = target == Target::kMicro && find_sdk_op(op) != nullptr && check_sdk_op(view).empty();
    runs.push_back(is_brought ||
                   (has_it && (is_control_flow(op.type) || accepts_types(op.type, operand_types(graph, op), wanted)) &&
                    check_parameters(view, wanted).empty()));
  }
  return runs;
}

}  // namespace reef::micro
