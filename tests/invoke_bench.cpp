// SPDX-License-Identifier: Apache-2.0
// What an invocation costs beside the arithmetic: a model of one op on four numbers, through libreef's C interface.
//   invoke_bench            microseconds for one reef_interpreter_invoke
//   invoke_bench FILE       writes the model to FILE, for other runtimes to be measured with (bench/invoke_overhead.py)
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "base/file.h"
#include "formats/tflite/writer.h"
#include "reef/reef.h"

namespace {

reef::ir::Model one_op_model() {
  reef::ir::Model model;
  model.buffers.resize(2);
  const std::vector<float> ones(4, 1.0f);
  model.buffers[1].data =
      reef::Bytes::copy_of({reinterpret_cast<const std::uint8_t*>(ones.data()), ones.size() * sizeof(float)});
  reef::ir::Subgraph graph;
  for (const char* name : {"x", "ones", "y"}) {
    reef::ir::Tensor tensor;
    tensor.name = name;
    tensor.shape = {4};
    graph.tensors.push_back(std::move(tensor));
  }
  graph.tensors[1].buffer = 1;
  graph.inputs = {0};
  graph.outputs = {2};
  reef::ir::Operator op;
  op.type = "ADD";
  op.options_type = "AddOptions";
  op.inputs = {0, 1};
  op.outputs = {2};
  graph.operators.push_back(std::move(op));
  model.subgraphs.push_back(std::move(graph));
  return model;
}

int fail(const char* message) {
  std::fprintf(stderr, "%s\n", message);
  return 1;
}

}  // namespace

int main(int count, char** arguments) {
  const auto bytes = reef::tflite::write_model(one_op_model());
  if (!bytes.ok()) return fail(bytes.status().message().c_str());
  if (count > 1) {
    const reef::Status status = reef::write_file(arguments[1], *bytes);
    return status.ok() ? 0 : fail(status.message().c_str());
  }
  reef_model* model = nullptr;
  reef_interpreter* interpreter = nullptr;
  if (reef_model_read(bytes->data(), bytes->size(), &model) != REEF_OK ||
      reef_interpreter_create(model, nullptr, &interpreter) != REEF_OK ||
      reef_interpreter_prepare(interpreter) != REEF_OK) {
    return fail(reef_error_message());
  }
  constexpr int kRounds = 200, kRuns = 1000;
  std::vector<double> times;
  for (int round = 0; round < kRounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kRuns; ++i) {
      if (reef_interpreter_invoke(interpreter) != REEF_OK) return fail(reef_error_message());
    }
    times.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count() /
                    kRuns);
  }
  std::sort(times.begin(), times.end());
  std::printf("%.3f %.3f\n", times[times.size() / 2], times.front());
  reef_interpreter_free(interpreter);
  reef_model_free(model);
  return 0;
}
