// SPDX-License-Identifier: Apache-2.0
#include "execute/cpu/evaluate.h"

#include <chrono>
#include <cstring>

namespace reef::cpu {
namespace {

// Making an interpreter takes microseconds an operator, whatever it computes.
constexpr double kWorkToPrepare = 10'000;

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

Result<std::unique_ptr<Interpreter>> prepared(std::shared_ptr<const ir::Model> model,
                                              const InterpreterOptions& options) {
  REEF_ASSIGN_OR_RETURN(auto interpreter, Interpreter::create(std::move(model), options));
  REEF_RETURN_IF_ERROR(interpreter->prepare());
  return interpreter;
}

Status check_operators(const ir::Model& model) {
  return Interpreter::create(std::make_shared<const ir::Model>(model)).status();
}

Result<std::vector<Value>> run_once(Interpreter& interpreter, std::span<const std::vector<std::uint8_t>> inputs) {
  REEF_REQUIRE(inputs.size() == static_cast<std::size_t>(interpreter.input_count()), "{} inputs are given, {} needed",
               inputs.size(), interpreter.input_count());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::span<std::byte> to = interpreter.input_bytes(static_cast<int>(i));
    REEF_REQUIRE(to.size() == inputs[i].size(), "input {} takes {} bytes, {} are given", i, to.size(),
                 inputs[i].size());
    if (!to.empty()) std::memcpy(to.data(), inputs[i].data(), to.size());
  }
  REEF_RETURN_IF_ERROR(interpreter.invoke());
  std::vector<Value> outputs;
  for (int i = 0; i < interpreter.output_count(); ++i) {
    const ops::Tensor& tensor = interpreter.output(i);
    const auto* data = reinterpret_cast<const std::uint8_t*>(tensor.data);
    outputs.push_back({tensor.shape, {data, data + tensor.bytes}});
  }
  return outputs;
}

Result<std::vector<Value>> Evaluator::operator()(ir::Model model, std::span<const std::vector<std::uint8_t>> inputs) {
  for (const ir::Subgraph& graph : model.subgraphs) {
    left_.work -= kWorkToPrepare * static_cast<double>(graph.operators.size());
  }
  if (left_.work <= 0 || left_.seconds <= 0) {
    return make_error(StatusCode::kResourceExhausted, "computing this model's constants takes more than is allowed");
  }
  const auto start = std::chrono::steady_clock::now();
  InterpreterOptions options;
  options.max_memory_bytes = left_.memory_bytes;
  options.time_limit_seconds = left_.seconds;
  options.max_work = left_.work;
  REEF_ASSIGN_OR_RETURN(const auto interpreter,
                        Interpreter::create(std::make_shared<const ir::Model>(std::move(model)), options));
  const Status status = interpreter->prepare();
  Result<std::vector<Value>> outputs =
      status.ok() ? run_once(*interpreter, inputs) : Result<std::vector<Value>>(status);
  left_.work -= interpreter->work_done();
  left_.seconds -= seconds_since(start);
  return outputs;
}

}  // namespace reef::cpu
