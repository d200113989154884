// SPDX-License-Identifier: Apache-2.0
#include "compiler/source_of_compiled.h"

#include <algorithm>

#include "compiler/plan.h"
#include "compiler/recorded_rewrites.h"
#include "compiler/source_alignment.h"
#include "formats/darwinn/reader.h"
#include "ir/op.h"

namespace reef::compiler {
namespace {

using ModelPointer = std::shared_ptr<const ir::Model>;

Result<std::vector<darwinn::Package>> packages_of(const ir::Model& compiled) {
  std::vector<darwinn::Package> packages;
  for (const ir::Operator& op : compiled.subgraphs[0].operators) {
    if (!darwinn::is_edge_tpu_op(op)) continue;
    REEF_ASSIGN_OR_RETURN(darwinn::CustomOptions options, darwinn::read_custom_options(op.custom_options));
    packages.push_back(std::move(options.package));
  }
  return packages;
}

// The DEQUANTIZE whose result has this name; nullptr: there is none, or another tensor has the name too.
const ir::Operator* dequantize_named(const ir::Subgraph& graph, const std::string& name) {
  const auto named = [&](const ir::Tensor& tensor) { return tensor.name == name; };
  const auto tensor = std::find_if(graph.tensors.begin(), graph.tensors.end(), named);
  if (tensor == graph.tensors.end() || tensor->type != ir::DataType::kFloat32) return nullptr;
  if (std::any_of(tensor + 1, graph.tensors.end(), named)) return nullptr;
  const auto index = static_cast<std::int32_t>(tensor - graph.tensors.begin());
  const auto gives = [&](const ir::Operator& op) {
    return op.type == Op::DEQUANTIZE && op.inputs.size() == 1 && op.inputs[0] >= 0 && op.outputs.size() == 1 &&
           op.outputs[0] == index;
  };
  const auto found = std::find_if(graph.operators.begin(), graph.operators.end(), gives);
  return found == graph.operators.end() ? nullptr : &*found;
}

// Google's compiler may call a part's result as the source calls the floats that DEQUANTIZE makes of it (Coral's
// PoseNet of 2020). A part cannot give floats, so what it gives is what DEQUANTIZE reads: the source with these names
// exchanged.
ModelPointer with_names_of_results(const ModelPointer& source, const std::vector<darwinn::Package>& packages) {
  std::shared_ptr<ir::Model> changed;
  for (const darwinn::Package& package : packages) {
    for (const darwinn::Executable& executable : package.executables) {
      for (const darwinn::Layer& layer : executable.output_layers) {
        const ir::Operator* op = dequantize_named((changed ? *changed : *source).subgraphs[0], layer.name);
        if (op == nullptr) continue;
        const auto from = static_cast<std::size_t>(op->inputs[0]), to = static_cast<std::size_t>(op->outputs[0]);
        if (!changed) changed = std::make_shared<ir::Model>(*source);
        std::swap(changed->subgraphs[0].tensors[from].name, changed->subgraphs[0].tensors[to].name);
      }
    }
  }
  return changed ? changed : source;
}

Result<SourceView> view_of(ModelPointer model, const ir::Model& compiled,
                           const std::vector<darwinn::Package>& packages) {
  SourceView view;
  REEF_ASSIGN_OR_RETURN(view.parts, parts_of(compiled, *model, packages));
  for (const darwinn::Package& package : packages) view.generations.push_back(compiler_generation_of(package));
  view.model = std::move(model);
  view.packages = packages;
  return view;
}

Result<SourceView> rewritten_view(const ModelPointer& source, const PlanOptions& options, const ir::Model& compiled,
                                  const std::vector<darwinn::Package>& packages) {
  REEF_ASSIGN_OR_RETURN(const Plan plan, make_plan(source, options));
  return view_of(plan.model, compiled, packages);
}

// Packages for runtime 12 come from two compilers that round averages over whole maps otherwise, and nothing in them
// says from which: MobileNet v1 0.75 192 of 2020 (Coral's test_data) multiplies by 0x1.c71c72p-6, which is the older
// order (numeric/chip_requantize.h), DeepLab of 2021 by what the newer order gives.
void add_older_compiler(std::vector<SourceView>& views) {
  constexpr int kNewer = 15, kOlder = 14;
  if (views.empty()) return;
  SourceView older = views.front();
  bool is_other = false;
  for (std::size_t i = 0; i < older.packages.size(); ++i) {
    if (older.generations[i] != kNewer || older.packages[i].min_runtime_version != 12) continue;
    older.generations[i] = kOlder;
    is_other = true;
  }
  if (is_other) views.push_back(std::move(older));
}

}  // namespace

ModelPointer with_border_of(const ModelPointer& source, const ir::Model& compiled) {
  const auto recorded = recorded_rewrites(compiled);
  if (!recorded) return source;
  const auto plan = make_plan(source, *recorded);
  if (!plan.ok()) return source;
  const auto is_other = [&](const auto& list) {
    const auto &before = source->subgraphs[0], &after = plan->model->subgraphs[0];
    if (list(before).size() != list(after).size()) return true;
    for (std::size_t i = 0; i < list(before).size(); ++i) {
      const ir::Tensor& a = before.tensors[at(list(before)[i])];
      const ir::Tensor& b = after.tensors[at(list(after)[i])];
      if (a.type != b.type || a.shape != b.shape) return true;
    }
    return false;
  };
  const bool inputs = is_other([](const ir::Subgraph& graph) -> const auto& { return graph.inputs; });
  const bool outputs = is_other([](const ir::Subgraph& graph) -> const auto& { return graph.outputs; });
  return inputs || outputs ? plan->model : source;
}

SourceViews views_of_source(const std::shared_ptr<const ir::Model>& source, const ir::Model& compiled) {
  SourceViews result;
  const auto packages = packages_of(compiled);
  if (!packages.ok()) {
    result.why = packages.status();
    return result;
  }
  const auto add = [&](Result<SourceView> view) {
    if (view.ok()) {
      result.views.push_back(std::move(view).value());
    } else if (result.why.ok()) {
      result.why = view.status();
    }
  };
  if (const auto recorded = recorded_rewrites(compiled)) {
    add(rewritten_view(source, *recorded, compiled, *packages));
    if (!result.views.empty()) return result;
  }
  add(view_of(with_names_of_results(source, *packages), compiled, *packages));
  add_older_compiler(result.views);
  const bool is_reefs = std::any_of(packages->begin(), packages->end(), [](const darwinn::Package& package) {
    return package.compiler_version.starts_with("reef");
  });
  if (is_reefs) add(rewritten_view(source, {}, compiled, *packages));
  return result;
}

}  // namespace reef::compiler
