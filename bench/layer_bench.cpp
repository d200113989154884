// SPDX-License-Identifier: Apache-2.0
// Time of every op of a model on the CPU, one thread, beside what this CPU's multipliers could do at most.
//
//   build/layer_bench MODEL [RUNS]
//
// Each op's time is the least of RUNS runs (default 200), which a busy machine disturbs little. The limits are measured
// first, by loops that do nothing but multiply and add: bytes (VNNI, or 16-bit pairs with AVX2) and floats.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "bench/multiply_limits.h"
#include "execute/cpu/interpreter.h"
#include "formats/tflite/reader.h"
#include "kernels/simd/targets.h"

namespace {

using Clock = std::chrono::steady_clock;

struct Layer {
  std::string type, name;
  double products = 0;
  bool is_float = false;
  double best_ms = 1e9;
};

// Multiplications that an op cannot do without; 0 for ops that hardly multiply.
double products_of(const reef::cpu::OpRun& run) {
  const std::string& type = run.op->type;
  if (run.inputs.size() < 2 || run.inputs[1] == nullptr || run.outputs.empty()) return 0;
  const auto outputs = static_cast<double>(run.outputs[0]->elements());
  const reef::ir::Shape& weights = run.inputs[1]->shape;
  if (type == "CONV_2D" && weights.rank() == 4) return outputs * static_cast<double>(weights.product(1, 4));
  if (type == "DEPTHWISE_CONV_2D" && weights.rank() == 4) return outputs * static_cast<double>(weights.product(1, 3));
  if (type == "FULLY_CONNECTED" && weights.rank() == 2) return outputs * static_cast<double>(weights[1]);
  return 0;
}

reef::Status fill_inputs(reef::cpu::Interpreter& interpreter) {
  std::mt19937 random(1);
  for (int i = 0; i < interpreter.input_count(); ++i) {
    const std::span<std::byte> bytes = interpreter.input_bytes(i);
    if (interpreter.input(i).type == reef::ir::DataType::kFloat32) {
      auto* values = reinterpret_cast<float*>(bytes.data());
      for (std::size_t k = 0; k < bytes.size() / 4; ++k) values[k] = static_cast<float>(random() % 256) / 128.0f - 1.0f;
    } else {
      for (std::byte& byte : bytes) byte = static_cast<std::byte>(random() % 100);
    }
  }
  return reef::ok_status();
}

reef::Status measure(const char* path, int runs, std::vector<Layer>& layers, double& best_total) {
  REEF_ASSIGN_OR_RETURN(reef::ir::Model model, reef::tflite::load_model(path));
  reef::cpu::InterpreterOptions options;
  Clock::time_point last;
  std::size_t next = 0;
  options.after_op = [&](const reef::cpu::OpRun& run) {
    const auto now = Clock::now();
    if (next == layers.size()) {
      layers.push_back({run.op->type, std::string(run.outputs[0]->name), products_of(run),
                        run.outputs[0]->type == reef::ir::DataType::kFloat32});
    }
    Layer& layer = layers[next++];
    layer.best_ms = std::min(layer.best_ms, std::chrono::duration<double, std::milli>(now - last).count());
    last = Clock::now();
    return reef::ok_status();
  };
  REEF_ASSIGN_OR_RETURN(auto interpreter, reef::cpu::Interpreter::create(
                                              std::make_shared<const reef::ir::Model>(std::move(model)), options));
  REEF_RETURN_IF_ERROR(interpreter->prepare());
  REEF_RETURN_IF_ERROR(fill_inputs(*interpreter));
  best_total = 1e9;
  for (int i = 0; i < runs; ++i) {
    next = 0;
    const auto start = last = Clock::now();
    REEF_RETURN_IF_ERROR(interpreter->invoke());
    best_total = std::min(best_total, std::chrono::duration<double, std::milli>(Clock::now() - start).count());
  }
  return reef::ok_status();
}

void report(const std::vector<Layer>& layers, double best_total, double byte_limit, double float_limit) {
  double sum = 0, products = 0, least = 0;
  std::map<std::string, double> by_type;
  std::printf(
      "| op | ms | million products | GMAC/s | of the limit | output |\n| --- | ---: | ---: | ---: | ---: | --- |\n");
  for (const Layer& layer : layers) {
    const double rate = layer.products / layer.best_ms / 1e6, limit = layer.is_float ? float_limit : byte_limit;
    std::printf("| %s | %.4f | %.2f | %.1f | %.0f %% | %.48s |\n", layer.type.c_str(), layer.best_ms,
                layer.products / 1e6, rate, 100 * rate / limit, layer.name.c_str());
    sum += layer.best_ms;
    products += layer.products;
    least += layer.products / limit / 1e6;
    by_type[layer.type] += layer.best_ms;
  }
  std::printf("\nbest run %.3f ms; sum of each op's best %.3f ms; %.1f million products, at the limit %.3f ms\n",
              best_total, sum, products / 1e6, least);
  for (const auto& [type, ms] : by_type) std::printf("  %-24s %.3f ms\n", type.c_str(), ms);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: layer_bench MODEL [RUNS]\n");
    return 2;
  }
  const reef::bench::MultiplyLimits limits = reef::bench::multiply_limits();
  std::printf("measured; target %s, limits of one core: %.1f GMAC/s for bytes, %.1f for floats\n\n",
              std::string(reef::kernels::target_name(reef::kernels::active_target())).c_str(), limits.bytes,
              limits.floats);
  std::vector<Layer> layers;
  double best_total = 0;
  const reef::Status status = measure(argv[1], argc > 2 ? std::atoi(argv[2]) : 200, layers, best_total);
  if (!status.ok()) {
    std::fprintf(stderr, "layer_bench: %s\n", std::string(status.message()).c_str());
    return 1;
  }
  report(layers, best_total, limits.bytes, limits.floats);
  return 0;
}
