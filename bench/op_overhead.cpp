// SPDX-License-Identifier: Apache-2.0
// What the interpreter adds to the arithmetic: chains of 100 tiny ops of one kind, nanoseconds for one op (measured,
// the least of many runs, which a busy machine disturbs least).
//
//   build/op_overhead [ROUNDS]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "execute/cpu/interpreter.h"
#include "ir/model.h"

namespace {

using reef::ir::DataType;

constexpr int kOps = 100;

struct Chain {
  const char* what;
  std::string type;
  DataType data = DataType::kFloat32;
  reef::ir::Shape shape;
  reef::ir::Shape operand;  // of the second input, a constant; empty: none
  std::vector<std::pair<const char*, std::int64_t>> attributes;
};

reef::ir::Tensor tensor_of(const Chain& chain, const reef::ir::Shape& shape) {
  reef::ir::Tensor tensor;
  tensor.type = chain.data;
  tensor.shape = shape;
  if (chain.data == DataType::kInt8) {
    tensor.quantization.scale = {0.5f};
    tensor.quantization.zero_point = {0};
  }
  return tensor;
}

reef::ir::Model model_of(const Chain& chain) {
  reef::ir::Model model;
  model.buffers.resize(2);
  reef::ir::Subgraph graph;
  graph.tensors.push_back(tensor_of(chain, chain.shape));
  if (chain.operand.rank() > 0) {
    const std::size_t width = chain.data == DataType::kFloat32 ? 4 : 1;
    const std::vector<std::uint8_t> zeros(static_cast<std::size_t>(chain.operand.elements()) * width, 0);
    model.buffers[1].data = reef::Bytes::copy_of(zeros);
    graph.tensors.push_back(tensor_of(chain, chain.operand));
    graph.tensors.back().buffer = 1;
  }
  graph.inputs = {0};
  std::int32_t last = 0;
  for (int i = 0; i < kOps; ++i) {
    reef::ir::Operator op;
    op.type = chain.type;
    op.inputs = {last};
    if (chain.operand.rank() > 0) op.inputs.push_back(1);
    last = static_cast<std::int32_t>(graph.tensors.size());
    op.outputs = {last};
    for (const auto& [name, value] : chain.attributes) op.attributes.set(name, value);
    if (chain.type == "RESHAPE") {
      const reef::ir::Shape& shape = chain.shape;
      op.attributes.set("new_shape", std::vector<std::int64_t>(shape.begin(), shape.end()));
    }
    graph.tensors.push_back(tensor_of(chain, chain.shape));
    graph.operators.push_back(std::move(op));
  }
  graph.outputs = {last};
  model.subgraphs.push_back(std::move(graph));
  return model;
}

reef::Status measure(const Chain& chain, int rounds) {
  REEF_ASSIGN_OR_RETURN(auto interpreter,
                        reef::cpu::Interpreter::create(std::make_shared<const reef::ir::Model>(model_of(chain)), {}));
  REEF_RETURN_IF_ERROR(interpreter->prepare());
  double best = 1e9;
  for (int i = 0; i < rounds; ++i) {
    const auto start = std::chrono::steady_clock::now();
    REEF_RETURN_IF_ERROR(interpreter->invoke());
    best = std::min(best, std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count());
  }
  std::printf("| %s | %.1f |\n", chain.what, best / kOps);
  return reef::ok_status();
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 20000;
  const Chain chains[] = {
      {"RESHAPE, 16 bytes", "RESHAPE", DataType::kFloat32, {4}, {}, {}},
      {"RELU, 4 floats", "RELU", DataType::kFloat32, {4}, {}, {}},
      {"RELU, 16 bytes by table", "RELU", DataType::kInt8, {16}, {}, {}},
      {"ADD, 4 floats", "ADD", DataType::kFloat32, {4}, {4}, {}},
      {"ADD, 8 int8", "ADD", DataType::kInt8, {8}, {8}, {}},
      {"MUL, 2x4 floats by a scalar", "MUL", DataType::kFloat32, {2, 4}, {1}, {}},
      {"FULLY_CONNECTED, 8 to 8 int8", "FULLY_CONNECTED", DataType::kInt8, {1, 8}, {8, 8}, {}},
      {"FULLY_CONNECTED, 8 to 8 floats", "FULLY_CONNECTED", DataType::kFloat32, {1, 8}, {8, 8}, {}},
      {"CONV_2D 1x1, 8 to 8 int8",
       "CONV_2D",
       DataType::kInt8,
       {1, 1, 1, 8},
       {8, 1, 1, 8},
       {{"stride_h", 1}, {"stride_w", 1}}},
      {"SOFTMAX, 8 floats", "SOFTMAX", DataType::kFloat32, {1, 8}, {}, {}},
  };
  std::printf("| chain of %d | ns an op (measured) |\n| --- | ---: |\n", kOps);
  for (const Chain& chain : chains) {
    const reef::Status status = measure(chain, rounds);
    if (status.ok()) continue;
    std::fprintf(stderr, "op_overhead: %s: %s\n", chain.what, status.message().c_str());
    return 1;
  }
  return 0;
}
