// SPDX-License-Identifier: Apache-2.0
// One import of a model: the state that the steps share. importer.cpp has the course of it, import_border.cpp inputs
// and outputs, import_nodes.cpp nodes, inner graphs and functions.
#pragma once

#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "import/onnx/borders.h"
#include "import/onnx/converter.h"
#include "import/onnx/importer.h"

namespace reef::import {

// Values by name; names of an inner graph hide those of the graphs around it.
struct Scope {
  Scope* parent = nullptr;
  std::unordered_map<std::string, Value> values;
  std::unordered_map<std::string, const onnx::Tensor*> initializers;  // converted when they are first read
  std::int64_t opset = 0;
  const std::vector<onnx::OpsetImport>* opsets = nullptr;
};

class Importer {
 public:
  Importer(const onnx::Model& model, const ImportOptions& options, ImportFailure* failure)
      : model_(model), options_(options), failure_(failure) {
    conversion_.pad_selections = options.pad_selections;
    conversion_.unroll = options.unroll;
    for (const onnx::Function& function : model.functions) functions_[{function.domain, function.name}] = &function;
  }

  Result<ImportResult> run();
  // After a failure of run(): a size was missing, and NonMaxSuppression is there, which could give one of fixed size.
  bool lacks_size_of_selection() const;

 private:
  Status add_inputs(Scope& scope);
  Status add_input(const onnx::ValueInfo& info, Scope& scope);
  Result<std::vector<std::int64_t>> input_shape(const onnx::ValueInfo& info);
  Status set_outputs(Scope& scope);
  void find_read_names(const std::vector<onnx::Node>& nodes);
  Status convert_nodes(const std::vector<onnx::Node>& nodes, Scope& scope, int depth);
  Status convert_node(const onnx::Node& node, Scope& scope, int depth);
  Status call_function(const onnx::Function& function, const onnx::Node& node, Scope& scope, int depth);
  Result<std::vector<Value>> run_graph(const onnx::Graph& graph, const std::vector<Value>& inputs, Scope& outer,
                                       int depth);
  Result<Value> read(const std::string& name, Scope& scope);
  void bind(const std::string& name, Value value, Scope& scope, Id first_new);
  Status explain_needed(const Status& status, const std::string& value, bool is_size = false);
  Status explain_open_size(Status status);
  bool keeps_nchw(const std::string& name) const;

  const onnx::Model& model_;
  const ImportOptions& options_;
  ImportFailure* failure_;
  GraphBuilder b_;
  std::map<std::pair<std::string, std::string>, const onnx::Function*> functions_;
  ImageBorders borders_;
  std::set<std::string> value_names_;
  Conversion conversion_;
  std::int64_t node_count_ = 0;
};

}  // namespace reef::import
