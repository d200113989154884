// SPDX-License-Identifier: Apache-2.0
#include "compiler/evaluator.h"

#include <cstring>
#include <memory>

#include "execute/cpu/interpreter.h"

namespace reef::compiler {
namespace {

using RawTensors = std::vector<std::vector<std::uint8_t>>;

Result<RawTensors> evaluate(const ir::Model& model, std::span<const std::vector<std::uint8_t>> inputs, double seconds) {
  cpu::InterpreterOptions options;
  options.time_limit_seconds = seconds;
  options.tflite_release = ops::TfliteRelease::kCurrent;
  REEF_ASSIGN_OR_RETURN(const auto interpreter,
                        cpu::Interpreter::create(std::make_shared<const ir::Model>(model), options));
  REEF_RETURN_IF_ERROR(interpreter->prepare());
  REEF_REQUIRE(static_cast<std::size_t>(interpreter->input_count()) == inputs.size(),
               "the model has {} inputs, {} were given", interpreter->input_count(), inputs.size());
  for (int i = 0; i < interpreter->input_count(); ++i) {
    const std::span<std::byte> bytes = interpreter->input_bytes(i);
    const std::vector<std::uint8_t>& given = inputs[static_cast<std::size_t>(i)];
    REEF_REQUIRE(bytes.size() == given.size(), "input {} has {} bytes, {} were given", i, bytes.size(), given.size());
    if (!given.empty()) std::memcpy(bytes.data(), given.data(), given.size());
  }
  REEF_RETURN_IF_ERROR(interpreter->invoke());
  RawTensors outputs;
  for (int i = 0; i < interpreter->output_count(); ++i) {
    const auto* data = reinterpret_cast<const std::uint8_t*>(interpreter->output(i).data);
    outputs.emplace_back(data, data + interpreter->output(i).bytes);
  }
  return outputs;
}

}  // namespace

rewrite::Evaluator cpu_evaluator(double seconds) {
  return [seconds](const ir::Model& model, std::span<const std::vector<std::uint8_t>> inputs) {
    return evaluate(model, inputs, seconds);
  };
}

}  // namespace reef::compiler
