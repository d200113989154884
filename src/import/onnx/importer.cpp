// SPDX-License-Identifier: Apache-2.0
#include "import/onnx/importer.h"

#include <algorithm>
#include <new>

#include "import/onnx/import_run.h"
#include "import/onnx/patterns.h"
#include "ir/verify.h"

namespace reef::import {

Result<ImportResult> Importer::run() {
  Scope scope;
  scope.opset = model_.opset("");
  if (scope.opset == 0) scope.opset = 1;
  if (model_.graph.sparse_initializers > 0) {
    return unsupported("the model has sparse constants; export it with dense ones");
  }
  for (const onnx::Tensor& tensor : model_.graph.initializers) {
    scope.initializers[tensor.name] = &tensor;
    value_names_.insert(tensor.name);
  }
  borders_ = find_image_borders(model_.graph, model_.functions);
  REEF_RETURN_IF_ERROR(add_inputs(scope));
  const std::vector<onnx::Node> nodes = with_patterns(model_.graph);
  find_read_names(nodes);
  REEF_RETURN_IF_ERROR(explain_open_size(convert_nodes(nodes, scope, 0)));
  REEF_RETURN_IF_ERROR(set_outputs(scope));
  REEF_RETURN_IF_ERROR(b_.finish());
  ImportResult result;
  result.model = b_.take();
  result.model.description =
      fmt::format("converted from ONNX by Reef{}{}", model_.producer.empty() ? "" : "; made by ", model_.producer);
  ir::Signature signature;
  signature.key = "serving_default";
  const ir::Subgraph& graph = result.model.subgraphs[0];
  for (const std::int32_t id : graph.inputs) signature.inputs.push_back({graph.tensors[at(id)].name, id});
  for (const std::int32_t id : graph.outputs) signature.outputs.push_back({graph.tensors[at(id)].name, id});
  result.model.signatures.push_back(std::move(signature));
  const Status verified = ir::verify(result.model);
  if (!verified.ok()) return internal_error("the converted model is not sound: {}", verified.message());
  result.value_names.assign(value_names_.begin(), value_names_.end());
  result.notes = std::move(conversion_.notes);
  return result;
}

Result<ImportResult> import_onnx(const onnx::Model& model, const ImportOptions& options, ImportFailure* failure) {
  try {
    Importer first(model, options, failure);
    auto result = first.run();
    if (result.ok() || !first.lacks_size_of_selection()) return result;
    // Operators behind NonMaxSuppression need to know how much it gives.
    ImportOptions padded = options;
    padded.pad_selections = true;
    auto again = Importer(model, padded, nullptr).run();
    if (!again.ok()) return result;
    if (failure != nullptr) failure->needed_inputs.clear();
    again->notes.emplace_back(
        "NonMaxSuppression gives as many rows as it could choose, because what follows it needs a fixed size "
        "(--pad-nms): those it did not choose are last and -1, and a further output says how many it chose");
    return again;
  } catch (const std::bad_alloc&) {
    return Status(StatusCode::kResourceExhausted, "not enough memory to import the model");
  }
}

Result<onnx::Tensor> input_value(const onnx::Model& model, const std::string& name,
                                 const std::vector<double>& numbers) {
  for (const onnx::ValueInfo& info : model.graph.inputs) {
    if (info.name != name) continue;
    onnx::Tensor tensor;
    tensor.name = name;
    tensor.type = info.type;
    const auto append = [&](auto zero, std::vector<std::uint8_t>& bytes) {
      for (const double number : numbers) {
        const auto element = static_cast<decltype(zero)>(number);
        const auto* raw = reinterpret_cast<const std::uint8_t*>(&element);
        bytes.insert(bytes.end(), raw, raw + sizeof element);
      }
    };
    std::vector<std::uint8_t> bytes;
    if (info.type == onnx::ElementType::kInt64) {
      append(std::int64_t{}, bytes);
    } else if (info.type == onnx::ElementType::kInt32) {
      append(std::int32_t{}, bytes);
    } else if (info.type == onnx::ElementType::kFloat) {
      append(float{}, bytes);
    } else if (info.type == onnx::ElementType::kBool) {
      append(std::uint8_t{}, bytes);
    } else {
      return unsupported("input '{}' is of type {}; values can be given for int64, int32, float32 and bool", name,
                         onnx::element_type_name(info.type));
    }
    if (!info.has_shape || !info.dims.empty()) tensor.dims = {static_cast<std::int64_t>(numbers.size())};
    REEF_REQUIRE(!tensor.dims.empty() || numbers.size() == 1, "input '{}' is one number; {} are given", name,
                 numbers.size());
    tensor.data = Bytes(std::move(bytes));
    return tensor;
  }
  return invalid_input("--input-value names '{}', but the model has no such input", name);
}

std::string origin_of(const std::vector<std::string>& value_names, const std::string& tensor_name) {
  const auto is_value = [&](const std::string& name) {
    return std::binary_search(value_names.begin(), value_names.end(), name);
  };
  std::string name = tensor_name;
  while (true) {
    if (is_value(name)) return name;
    const std::size_t end = name.rfind('/');
    if (end == std::string::npos || name.find_first_not_of("0123456789:", end + 1) != std::string::npos) return {};
    name.resize(end);
  }
}

}  // namespace reef::import
