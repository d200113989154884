// SPDX-License-Identifier: Apache-2.0
#include "compiler/partwise_evaluation.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <set>

#include "emit/compiled_model.h"
#include "execute/cpu/evaluate.h"
#include "formats/darwinn/reader.h"
#include "ir/describe.h"

namespace reef::compiler {
namespace {

// A part's operator carries nothing but its number.
Bytes number_as_bytes(std::uint32_t number) {
  std::vector<std::uint8_t> bytes(sizeof number);
  std::memcpy(bytes.data(), &number, sizeof number);
  return Bytes(std::move(bytes));
}

}  // namespace

PartwiseEvaluation::PartwiseEvaluation(std::shared_ptr<const ir::Model> source, std::vector<VerifiedPart> parts,
                                       std::vector<int> generations, Budget budget)
    : source_(std::move(source)),
      parts_(std::move(parts)),
      generations_(std::move(generations)),
      budget_(std::move(budget)),
      part_inputs_(parts_.size()),
      part_outputs_(parts_.size()) {}

Result<std::unique_ptr<PartwiseEvaluation>> PartwiseEvaluation::create(std::shared_ptr<const ir::Model> source,
                                                                       std::vector<VerifiedPart> parts,
                                                                       std::vector<int> generations,
                                                                       cpu::InterpreterOptions options) {
  std::unique_ptr<PartwiseEvaluation> result(
      new PartwiseEvaluation(std::move(source), std::move(parts), std::move(generations), options.budget));
  std::vector<emit::CompiledPart> joined;
  std::set<std::int32_t> taken;  // an operator that two parts compute, each for itself, is taken out once
  for (std::size_t p = 0; p < result->parts_.size(); ++p) {
    emit::CompiledPart& part = joined.emplace_back();
    std::copy_if(result->parts_[p].ops.begin(), result->parts_[p].ops.end(), std::back_inserter(part.ops),
                 [&](std::int32_t op) { return taken.insert(op).second; });
    part.inputs = result->parts_[p].inputs;
    for (const std::int32_t t : result->parts_[p].outputs) {
      if (t >= 0) part.outputs.push_back(t);  // others are new values of variables, which are inputs
    }
    part.custom_options = number_as_bytes(static_cast<std::uint32_t>(p));
  }
  REEF_ASSIGN_OR_RETURN(ir::Model model, emit::compiled_model(*result->source_, joined));
  options.foreign_ops.push_back(
      {darwinn::kCustomOpName, [self = result.get()](ops::PrepareContext& context) -> Result<ops::Kernel> {
         return self->prepare_part(context);
       }});
  REEF_ASSIGN_OR_RETURN(result->interpreter_,
                        cpu::prepared(std::make_shared<const ir::Model>(std::move(model)), options));
  return result;
}

Result<ops::Kernel> PartwiseEvaluation::prepare_part(ops::PrepareContext& context) {
  const Bytes& options = context.op().custom_options;
  std::uint32_t part = 0;
  REEF_REQUIRE(options.size() == sizeof part, "the source is compiled itself: give the model that it was made from");
  std::memcpy(&part, options.data(), sizeof part);
  REEF_REQUIRE(part < parts_.size(), "there is no part {}", part);
  return ops::Kernel([this, part](ops::RunContext& run) { return run_part(part, run); });
}

Status PartwiseEvaluation::run_part(std::size_t number, ops::RunContext& run) {
  const VerifiedPart& part = parts_[number];
  reference::TensorBytes& given = part_inputs_[number];
  given.clear();
  for (std::size_t i = 0; i < part.inputs.size(); ++i) {
    const ops::Tensor& tensor = run.input(static_cast<int>(i));
    const auto* data = reinterpret_cast<const std::uint8_t*>(tensor.data);
    given[part.inputs[i]] = {data, data + tensor.bytes};
  }
  const reference::ChipReferenceOptions options{generations_[number], budget_};
  reference::TensorBytes& found = part_outputs_[number];
  REEF_ASSIGN_OR_RETURN(found, reference::evaluate_tensors_as_chip(*source_, given, part.outputs, options));
  int output = 0;
  for (const std::int32_t t : part.outputs) {
    std::byte* target = nullptr;
    std::size_t size = 0;
    if (t >= 0) {
      target = run.output(output).data;
      size = run.output(output++).bytes;
    } else {
      for (std::size_t i = 0; i < part.inputs.size(); ++i) {
        if (part.inputs[i] != -1 - t) continue;
        target = run.variable(static_cast<int>(i)).data;
        size = run.variable(static_cast<int>(i)).bytes;
      }
    }
    const std::vector<std::uint8_t>& bytes = found.at(t);
    REEF_REQUIRE(target != nullptr && size == bytes.size(), "a result of part {} has {} bytes, not {}", number,
                 bytes.size(), size);
    std::memcpy(target, bytes.data(), size);
  }
  return ok_status();
}

Result<TensorList> evaluate_with_parts(const ir::Model& model, const std::vector<VerifiedPart>& parts,
                                       const std::vector<int>& generations, const TensorList& inputs,
                                       const Budget& budget) {
  cpu::InterpreterOptions options;
  options.budget = budget;
  REEF_ASSIGN_OR_RETURN(const auto evaluation, PartwiseEvaluation::create(std::make_shared<const ir::Model>(model),
                                                                          parts, generations, options));
  REEF_ASSIGN_OR_RETURN(std::vector<cpu::Value> values, cpu::run_once(evaluation->interpreter(), inputs));
  TensorList results;
  for (cpu::Value& value : values) results.push_back(std::move(value.bytes));
  return results;
}

}  // namespace reef::compiler
