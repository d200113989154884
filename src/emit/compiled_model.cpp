// SPDX-License-Identifier: Apache-2.0
#include "emit/compiled_model.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

#include "formats/darwinn/reader.h"
#include "formats/tflite/option_schema.h"
#include "graph/written_out_functions.h"
#include "ir/compact.h"
#include "ir/verify.h"
#include "ops/dependencies.h"

namespace reef::emit {
namespace {

constexpr char kDescription[] = "Exported from Subgraph.";

// What is true of the converted file only.
constexpr std::array<std::string_view, 2> kMetadataOfConversion = {"min_runtime_version", "CONVERSION_METADATA"};

// Orders operators and parts as TFLite does when a delegate takes some of them: whatever is ready runs, operators of
// the CPU first if the first one that is ready is one of them, then a part, and so on.
class Scheduler {
 public:
  Scheduler(const ir::Model& model, const std::vector<CompiledPart>& parts)
      : graph_(model.subgraphs[0]), order_(model), parts_(parts), part_of_(graph_.operators.size(), -1) {}

  Result<std::vector<ir::Operator>> run() {
    REEF_RETURN_IF_ERROR(assign_parts());
    std::size_t left = graph_.operators.size();
    is_done_.assign(left, false);
    while (left > 0) {
      const std::size_t before = left;
      for (std::size_t i = 0; i < graph_.operators.size() && left == before; ++i) {
        if (is_done_[i]) continue;
        if (part_of_[i] < 0 && is_ready(i)) {
          left -= take_cpu_operators();
        } else if (part_of_[i] >= 0 && is_ready(part_at(i))) {
          left -= take_part(part_at(i));
        }
      }
      REEF_REQUIRE(left < before, "a part of the model needs what is computed from its own results");
    }
    return std::move(result_);
  }

 private:
  const CompiledPart& part_at(std::size_t op) const { return parts_[at(part_of_[op])]; }

  Status assign_parts() {
    const auto tensors = static_cast<std::int32_t>(graph_.tensors.size());
    for (std::size_t p = 0; p < parts_.size(); ++p) {
      REEF_REQUIRE(!parts_[p].ops.empty(), "part {} has no operators", p);
      for (const std::int32_t op : parts_[p].ops) {
        REEF_REQUIRE(op >= 0 && static_cast<std::size_t>(op) < part_of_.size(), "part {} has operator {}", p, op);
        REEF_REQUIRE(part_of_[at(op)] < 0, "operator {} is in two parts", op);
        part_of_[at(op)] = static_cast<int>(p);
      }
      for (const auto* list : {&parts_[p].inputs, &parts_[p].outputs}) {
        for (const std::int32_t tensor : *list) {
          REEF_REQUIRE(tensor >= 0 && tensor < tensors, "part {} has tensor {}", p, tensor);
        }
      }
    }
    return ok_status();
  }

  // All that must come before has run, or belongs to the same part.
  bool is_ready(std::size_t op) const {
    const auto before = order_.predecessors(static_cast<std::int32_t>(op));
    return std::all_of(before.begin(), before.end(), [&](std::int32_t other) {
      const auto i = static_cast<std::size_t>(other);
      return is_done_[i] || (part_of_[op] >= 0 && part_of_[i] == part_of_[op]);
    });
  }
  bool is_ready(const CompiledPart& part) const {
    return std::all_of(part.ops.begin(), part.ops.end(),
                       [&](std::int32_t op) { return is_ready(static_cast<std::size_t>(op)); });
  }

  std::size_t finish(std::size_t op) {
    is_done_[op] = true;
    return 1;
  }

  // All that become ready. One pass is enough: a verified graph is in execution order.
  std::size_t take_cpu_operators() {
    std::size_t taken = 0;
    for (std::size_t i = 0; i < graph_.operators.size(); ++i) {
      if (is_done_[i] || part_of_[i] >= 0 || !is_ready(i)) continue;
      result_.push_back(graph_.operators[i]);
      taken += finish(i);
    }
    return taken;
  }

  std::size_t take_part(const CompiledPart& part) {
    ir::Operator op;
    op.type = darwinn::kCustomOpName;
    op.builtin_code = ir::kCustomBuiltinCode;
    op.inputs = part.inputs;
    op.outputs = part.outputs;
    op.custom_options = part.custom_options;
    result_.push_back(std::move(op));
    std::size_t taken = 0;
    for (const std::int32_t i : part.ops) taken += finish(static_cast<std::size_t>(i));
    return taken;
  }

  const ir::Subgraph& graph_;
  const ops::Dependencies order_;
  const std::vector<CompiledPart>& parts_;
  std::vector<int> part_of_;
  std::vector<bool> is_done_;
  std::vector<ir::Operator> result_;
};

// Copies what is still used, with new numbers.
class Exporter {
 public:
  Exporter(const ir::Model& source, const EmitOptions& options) : source_(source), options_(options) {}

  Result<ir::Model> run(ir::Subgraph main) {
    result_.version = source_.version;
    result_.description = kDescription;
    result_.external_buffer_groups = source_.external_buffer_groups;
    result_.external_buffers = source_.external_buffers;
    result_.buffers.emplace_back();
    export_graph(main);
    result_.subgraphs.push_back(std::move(main));
    for (std::size_t i = 1; i < source_.subgraphs.size(); ++i) {
      ir::Subgraph graph = source_.subgraphs[i];
      for (ir::Tensor& tensor : graph.tensors) tensor.buffer = export_buffer(tensor);
      forget_debug_data(graph);
      result_.subgraphs.push_back(std::move(graph));
    }
    export_metadata();
    if (options_.keep_signatures) export_signatures();
    REEF_RETURN_IF_ERROR(ir::verify(result_));
    return std::move(result_);
  }

 private:
  std::int32_t export_buffer(const ir::Tensor& tensor) {
    const ir::Buffer& buffer = source_.buffers[at(tensor.buffer)];
    if (buffer.data.empty() && !buffer.is_empty_constant) return 0;
    result_.buffers.push_back(buffer);
    return static_cast<std::int32_t>(result_.buffers.size()) - 1;
  }

  void export_tensor(ir::Tensor& tensor) {
    tensor.buffer = export_buffer(tensor);
    tensor.shape_signature.clear();
    tensor.has_rank = false;
    tensor.quantization.min.clear();
    tensor.quantization.max.clear();
    const bool has_details = !std::holds_alternative<std::monostate>(tensor.quantization.details);
    tensor.has_quantization = tensor.quantization.is_quantized() || has_details;
  }

  void export_graph(ir::Subgraph& graph) {
    new_number_ = ir::drop_unused_tensors(graph);
    for (ir::Tensor& tensor : graph.tensors) export_tensor(tensor);
    forget_debug_data(graph);
    for (ir::Operator& op : graph.operators) add_empty_options(op);
  }

  // TFLite's writer gives an operator its table of options also where the table has no fields (QuantizeOptions).
  static void add_empty_options(ir::Operator& op) {
    if (!op.options_type.empty() || op.is_custom() || op.opaque_options || op.opaque_options_2) return;
    std::string name;  // "ARG_MAX" -> "ArgMaxOptions"
    bool starts_word = true;
    for (const char c : op.type) {
      if (c != '_') name += starts_word ? c : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      starts_word = c == '_';
    }
    name += "Options";
    const tflite::OptionTable* table = tflite::find_option_table(name);
    if (table == nullptr || !table->describable || !table->fields.empty()) return;
    op.options_type = name;
  }

  // Of the conversion, and its metadata is not kept.
  static void forget_debug_data(ir::Subgraph& graph) {
    graph.debug_metadata_index = -1;
    for (ir::Operator& op : graph.operators) op.debug_metadata_index = -1;
  }

  std::int32_t number_of(std::int32_t tensor) const { return tensor < 0 ? tensor : new_number_[at(tensor)]; }

  void export_metadata() {
    for (const ir::Metadata& entry : source_.metadata) {
      const auto& dropped = kMetadataOfConversion;
      if (std::find(dropped.begin(), dropped.end(), entry.name) != dropped.end()) continue;
      result_.buffers.push_back(source_.buffers[at(entry.buffer)]);
      result_.metadata.push_back({entry.name, static_cast<std::int32_t>(result_.buffers.size()) - 1});
    }
    if (options_.remarks.empty()) return;
    std::vector<std::uint8_t> text;
    for (const std::string& remark : options_.remarks) {
      text.insert(text.end(), remark.begin(), remark.end());
      text.push_back('\n');
    }
    result_.buffers.emplace_back();
    result_.buffers.back().data = Bytes(std::move(text));
    result_.metadata.push_back({kRemarksName, static_cast<std::int32_t>(result_.buffers.size()) - 1});
  }

  void export_signatures() {
    result_.signatures = source_.signatures;
    for (ir::Signature& signature : result_.signatures) {
      if (signature.subgraph != 0) continue;
      for (auto* tensors : {&signature.inputs, &signature.outputs}) {
        for (ir::SignatureTensor& tensor : *tensors) tensor.tensor = number_of(tensor.tensor);
        std::erase_if(*tensors, [](const ir::SignatureTensor& tensor) { return tensor.tensor < 0; });
      }
    }
  }

  const ir::Model& source_;
  const EmitOptions& options_;
  ir::Model result_;
  std::vector<std::int32_t> new_number_;  // of subgraph 0's tensors; -1: dropped
};

}  // namespace

Result<ir::Model> compiled_model(const ir::Model& source, const std::vector<CompiledPart>& parts,
                                 const EmitOptions& options) {
  REEF_REQUIRE(!source.subgraphs.empty(), "the model has no subgraph");
  ir::Subgraph main = source.subgraphs.front();
  REEF_ASSIGN_OR_RETURN(main.operators, Scheduler(source, parts).run());
  REEF_ASSIGN_OR_RETURN(ir::Model result, Exporter(source, options).run(std::move(main)));
  REEF_RETURN_IF_ERROR(graph::write_out_functions(result));
  return result;
}

}  // namespace reef::emit
