// SPDX-License-Identifier: Apache-2.0
#include "compiler/file_verification.h"

#include <algorithm>

#include "compiler/front_end.h"
#include "compiler/index_inputs.h"
#include "compiler/partwise_evaluation.h"
#include "execute/cpu/evaluate.h"
#include "formats/darwinn/reader.h"
#include "ir/pseudo_random.h"
#include "runtime/edge_tpu_op.h"

namespace reef::compiler {
namespace {

TensorList made_inputs(const ir::Model& model, cpu::Interpreter& interpreter, std::uint32_t seed) {
  TensorList inputs;
  for (int i = 0; i < interpreter.input_count(); ++i) {
    std::vector<std::uint8_t>& bytes = inputs.emplace_back(interpreter.input_bytes(i).size());
    fill_made_up_input(model, i, interpreter.input(i).type, seed++, std::as_writable_bytes(std::span(bytes)));
  }
  return inputs;
}

Result<TensorList> results_of(cpu::Interpreter& interpreter, const TensorList& inputs) {
  interpreter.reset_variables();
  REEF_ASSIGN_OR_RETURN(std::vector<cpu::Value> values, cpu::run_once(interpreter, inputs));
  TensorList results;
  for (cpu::Value& value : values) results.push_back(std::move(value.bytes));
  return results;
}

// Edge TPU ops may stand in another order than parts were made in: a package names the tensors that it returns.
Result<std::vector<VerifiedPart>> in_order_of(const std::vector<darwinn::Package>& packages, const ir::Model& model,
                                              std::vector<VerifiedPart> parts) {
  REEF_REQUIRE(packages.size() == parts.size(), "the file has {} Edge TPU ops, {} were made", packages.size(),
               parts.size());
  std::vector<VerifiedPart> ordered;
  for (const darwinn::Package& package : packages) {
    REEF_ASSIGN_OR_RETURN(const auto loaded, device::LoadedPackage::load(package));
    const auto returns = [&](const VerifiedPart& part, const std::string& name) {
      return std::any_of(part.outputs.begin(), part.outputs.end(),
                         [&](std::int32_t t) { return t >= 0 && model.subgraphs[0].tensors[at(t)].name == name; });
    };
    const auto found = std::find_if(parts.begin(), parts.end(), [&](const VerifiedPart& part) {
      return !loaded->outputs().empty() && returns(part, loaded->outputs().front().name);
    });
    REEF_REQUIRE(found != parts.end(), "an Edge TPU op of the file returns no tensor of the model");
    ordered.push_back(std::move(*found));
    parts.erase(found);
  }
  return ordered;
}

}  // namespace

FileVerifier::FileVerifier(Budget budget)
    : budget_(std::move(budget)),
      device_(std::make_shared<device::Device>(device::Options{.budget = budget_})),
      parts_(budget_) {}

Status FileVerifier::add(const FileToVerify& file) {
  Loaded& loaded = files_.emplace_back();
  loaded.file = file;
  REEF_ASSIGN_OR_RETURN(FrontEndResult read, read_tflite_model(file.data));
  loaded.compiled = std::make_shared<const ir::Model>(std::move(read.model));
  for (const ir::Operator& op : loaded.compiled->subgraphs[0].operators) {
    if (!darwinn::is_edge_tpu_op(op)) continue;
    REEF_ASSIGN_OR_RETURN(darwinn::CustomOptions options, darwinn::read_custom_options(op.custom_options));
    loaded.generations.push_back(compiler_generation_of(options.package));
    loaded.packages.push_back(std::move(options.package));
  }
  REEF_ASSIGN_OR_RETURN(loaded.file.parts, in_order_of(loaded.packages, *file.model, file.parts));
  return prepare_whole(loaded);
}

// The source is prepared first: what it has that the CPU runtime does not run is no fault of the compiled file.
Status FileVerifier::prepare_whole(Loaded& loaded) const {
  cpu::InterpreterOptions options;
  options.budget = budget_;
  if (const auto source = cpu::prepared(loaded.file.model, options); !source.ok()) {
    if (source.status().code() == StatusCode::kResourceExhausted) return source.status();
    loaded.why_not_whole = source.status().message();
    return ok_status();
  }
  options.foreign_ops = {runtime::edge_tpu_op(device_)};
  REEF_ASSIGN_OR_RETURN(loaded.interpreter, cpu::prepared(loaded.compiled, options));
  return ok_status();
}

Result<FileComparison> FileVerifier::run(std::size_t file, std::uint32_t seed) {
  Loaded& loaded = files_[file];
  if (!loaded.was_audited) {
    for (const darwinn::Package& package : loaded.packages) REEF_RETURN_IF_ERROR(parts_.check_soundness(package));
    loaded.was_audited = true;
  }
  FileComparison comparison;
  if (loaded.interpreter != nullptr) REEF_RETURN_IF_ERROR(run_whole(loaded, seed, comparison));
  comparison.is_whole = loaded.interpreter != nullptr;
  comparison.why_not_whole = loaded.why_not_whole;
  REEF_RETURN_IF_ERROR(run_parts(loaded, seed, !comparison.is_whole));
  return comparison;
}

Status FileVerifier::run_whole(Loaded& loaded, std::uint32_t seed, FileComparison& comparison) {
  const ir::Model& model = *loaded.file.model;
  const TensorList inputs = made_inputs(model, *loaded.interpreter, seed);
  const auto expected = evaluate_with_parts(model, loaded.file.parts, loaded.generations, inputs, budget_);
  if (!expected.ok() && expected.status().code() == StatusCode::kResourceExhausted) return expected.status();
  if (!expected.ok()) {  // the reference does not know an operator, or the model cannot be run on such inputs
    loaded.interpreter = nullptr;
    loaded.why_not_whole = expected.status().message();
    return ok_status();
  }
  REEF_ASSIGN_OR_RETURN(const TensorList found, results_of(*loaded.interpreter, inputs));
  REEF_REQUIRE(found.size() == expected->size(), "the file has {} outputs, the model {}", found.size(),
               expected->size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto tensor = static_cast<std::size_t>(model.subgraphs[0].outputs[i]);
    REEF_ASSIGN_OR_RETURN(const TensorComparison output,
                          compare_tensors(model.subgraphs[0].tensors[tensor], found[i], (*expected)[i], 0));
    if (output.different > 0) {
      return internal_error("the compiled file does not compute what the model says: {}", output.to_string());
    }
    ++comparison.outputs;
    comparison.values += output.elements;
  }
  return ok_status();
}

bool FileVerifier::begins_with_inputs(const ir::Model& model, const VerifiedPart& part) {
  const std::vector<std::int32_t>& inputs = model.subgraphs[0].inputs;
  return std::all_of(part.inputs.begin(), part.inputs.end(), [&](std::int32_t tensor) {
    return std::find(inputs.begin(), inputs.end(), tensor) != inputs.end();
  });
}

Status FileVerifier::run_parts(Loaded& loaded, std::uint32_t seed, bool all) {
  const ir::Model& model = *loaded.file.model;
  for (std::size_t i = 0; i < loaded.packages.size(); ++i) {
    const VerifiedPart& part = loaded.file.parts[i];
    if (!all && begins_with_inputs(model, part)) continue;
    REEF_RETURN_IF_ERROR(parts_.verify(model, part, loaded.packages[i], seed));
  }
  return ok_status();
}

}  // namespace reef::compiler
