// SPDX-License-Identifier: Apache-2.0
// A model of which some operators are computed as the chip does, the others by the CPU runtime.
//
// The parts become custom ops, in the order in which the compiled file has them, and one interpreter runs the whole: so
// states and variables that operators of the CPU share are there, and are read and assigned in the file's order.
#include <algorithm>
#include <cstring>
#include <set>

#include <fmt/format.h>

#include "compiler/verification.h"
#include "emit/compiled_model.h"
#include "execute/cpu/evaluate.h"
#include "formats/darwinn/reader.h"

namespace reef::compiler {
namespace {

using Tensors = std::vector<std::vector<std::uint8_t>>;

Bytes part_number(std::size_t number) {
  const std::string text = std::to_string(number);
  return Bytes(std::vector<std::uint8_t>(text.begin(), text.end()));
}

// Outputs of a part that are states (-1 - tensor) stay inside of it.
std::vector<emit::CompiledPart> custom_ops(const std::vector<VerifiedPart>& parts) {
  std::vector<emit::CompiledPart> result;
  std::set<std::int32_t> taken;  // what two parts compute, each for itself, is done once in this model
  for (const VerifiedPart& part : parts) {
    emit::CompiledPart& made = result.emplace_back();
    std::copy_if(part.ops.begin(), part.ops.end(), std::back_inserter(made.ops),
                 [&](std::int32_t op) { return taken.insert(op).second; });
    made.inputs = part.inputs;
    std::copy_if(part.outputs.begin(), part.outputs.end(), std::back_inserter(made.outputs),
                 [](std::int32_t t) { return t >= 0; });
    made.custom_options = part_number(result.size() - 1);
  }
  return result;
}

// What stands for one part in the model with custom ops.
class ChipPart {
 public:
  ChipPart(const ir::Model& source, const emit::CompiledPart& part, int generation)
      : source_(source), part_(part), generation_(generation) {}

  Status run(ops::RunContext& ctx) const {
    reference::TensorBytes given;
    for (std::size_t i = 0; i < part_.inputs.size(); ++i) {
      const auto* bytes = reinterpret_cast<const std::uint8_t*>(ctx.input(static_cast<int>(i)).data);
      given[part_.inputs[i]] = {bytes, bytes + ctx.input(static_cast<int>(i)).bytes};
    }
    const reference::ChipReferenceOptions options{generation_};
    REEF_ASSIGN_OR_RETURN(const reference::TensorBytes found,
                          reference::evaluate_tensors_as_chip(source_, given, part_.outputs, options));
    for (std::size_t i = 0; i < part_.outputs.size(); ++i) {
      const ops::Tensor& output = ctx.output(static_cast<int>(i));
      const std::vector<std::uint8_t>& bytes = found.at(part_.outputs[i]);
      REEF_REQUIRE(bytes.size() == output.bytes, "tensor '{}' takes {} bytes, not {}", output.name, output.bytes,
                   bytes.size());
      if (!bytes.empty()) std::memcpy(output.data, bytes.data(), bytes.size());
    }
    return ok_status();
  }

 private:
  const ir::Model& source_;
  const emit::CompiledPart& part_;
  int generation_;
};

}  // namespace

Result<Tensors> evaluate_with_parts(const ir::Model& model, const std::vector<VerifiedPart>& parts,
                                    const std::vector<int>& generations, const Tensors& inputs) {
  const std::vector<emit::CompiledPart> chip = custom_ops(parts);
  REEF_ASSIGN_OR_RETURN(ir::Model compiled, emit::compiled_model(model, chip));
  cpu::InterpreterOptions options;
  options.foreign_ops.push_back({darwinn::kCustomOpName, [&](ops::PrepareContext& ctx) -> Result<ops::Kernel> {
                                   for (std::size_t i = 0; i < chip.size(); ++i) {
                                     if (!(ctx.op().custom_options == chip[i].custom_options)) continue;
                                     const ChipPart part(model, chip[i], generations[i]);
                                     return ops::Kernel([part](ops::RunContext& run) { return part.run(run); });
                                   }
                                   return invalid_input("the source is compiled for the Edge TPU itself");
                                 }});
  REEF_ASSIGN_OR_RETURN(const auto interpreter,
                        cpu::prepared(std::make_shared<const ir::Model>(std::move(compiled)), options));
  REEF_ASSIGN_OR_RETURN(std::vector<cpu::Value> values, cpu::run_once(*interpreter, inputs));
  Tensors results;
  for (cpu::Value& value : values) results.push_back(std::move(value.bytes));
  return results;
}

}  // namespace reef::compiler
