// SPDX-License-Identifier: Apache-2.0
// Time of every op of a model on the CPU, one thread, beside what this CPU's multipliers could do at most.
//
//   build/layer_bench MODEL [RUNS]
//
// Each op's time is the least of RUNS runs (default 200), which a busy machine disturbs little; 0: another op does its
// work, or there is none. The limits are measured first, by loops that do nothing but multiply and add: bytes (VNNI, or
// pairs in 16 bits with AVX2 and SSE4, which only layers with small weights can use) and floats.
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

struct Measured {
  std::vector<Layer> layers;
  double best_total = 1e9;
  reef::cpu::MemoryReport memory;
};

using ModelPtr = std::shared_ptr<const reef::ir::Model>;

// The ops of one run, by their number in the main subgraph.
reef::Status find_layers(const ModelPtr& model, std::map<std::int32_t, Layer>& layers) {
  reef::cpu::InterpreterOptions options;
  options.after_op = [&](const reef::cpu::OpRun& run) {
    if (run.subgraph != 0 || run.outputs.empty()) return reef::ok_status();
    layers[run.op_index] = {run.op->type, std::string(run.outputs[0]->name), products_of(run),
                            run.outputs[0]->type == reef::ir::DataType::kFloat32};
    return reef::ok_status();
  };
  REEF_ASSIGN_OR_RETURN(auto interpreter, reef::cpu::Interpreter::create(model, options));
  REEF_RETURN_IF_ERROR(interpreter->prepare());
  REEF_RETURN_IF_ERROR(fill_inputs(*interpreter));
  return interpreter->invoke();
}

reef::Status measure(const char* path, int runs, Measured& measured) {
  REEF_ASSIGN_OR_RETURN(reef::ir::Model loaded, reef::tflite::load_model(path));
  const auto model = std::make_shared<const reef::ir::Model>(std::move(loaded));
  std::map<std::int32_t, Layer> layers;
  REEF_RETURN_IF_ERROR(find_layers(model, layers));
  reef::cpu::InterpreterOptions options;
  for (const bool profile : {false, true}) {
    options.profile = profile;
    REEF_ASSIGN_OR_RETURN(auto interpreter, reef::cpu::Interpreter::create(model, options));
    REEF_RETURN_IF_ERROR(interpreter->prepare());
    REEF_RETURN_IF_ERROR(fill_inputs(*interpreter));
    for (int i = 0; i < runs; ++i) {
      const auto start = Clock::now();
      REEF_RETURN_IF_ERROR(interpreter->invoke());
      const double ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
      if (!profile) measured.best_total = std::min(measured.best_total, ms);
    }
    measured.memory = interpreter->memory();
    for (const reef::cpu::OpTiming& timing : interpreter->timings()) {
      if (timing.subgraph != 0 || !layers.contains(timing.op_index)) continue;
      measured.layers.push_back(layers[timing.op_index]);
      measured.layers.back().best_ms = timing.least_ms;
    }
  }
  return reef::ok_status();
}

void report(const Measured& measured, double byte_limit, double float_limit) {
  double sum = 0, products = 0, least = 0;
  std::map<std::string, double> by_type;
  std::printf(
      "| op | ms | million products | GMAC/s | of the limit | output |\n| --- | ---: | ---: | ---: | ---: | --- |\n");
  for (const Layer& layer : measured.layers) {
    const double rate = layer.best_ms > 0 ? layer.products / layer.best_ms / 1e6 : 0,
                 limit = layer.is_float ? float_limit : byte_limit;
    std::printf("| %s | %.4f | %.2f | %.1f | %.0f %% | %.48s |\n", layer.type.c_str(), layer.best_ms,
                layer.products / 1e6, rate, 100 * rate / limit, layer.name.c_str());
    sum += layer.best_ms;
    products += layer.products;
    least += layer.products / limit / 1e6;
    by_type[layer.type] += layer.best_ms;
  }
  std::printf("\nbest run %.3f ms; sum of each op's best %.3f ms; %.1f million products, at the limit %.3f ms\n",
              measured.best_total, sum, products / 1e6, least);
  std::printf("arena %lld bytes, %.3f times the largest live set\n",
              static_cast<long long>(measured.memory.arena_bytes),
              static_cast<double>(measured.memory.arena_bytes) /
                  static_cast<double>(std::max<std::int64_t>(measured.memory.largest_live_set_bytes, 1)));
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
  Measured measured;
  const reef::Status status = measure(argv[1], argc > 2 ? std::atoi(argv[2]) : 200, measured);
  if (!status.ok()) {
    std::fprintf(stderr, "layer_bench: %s\n", std::string(status.message()).c_str());
    return 1;
  }
  report(measured, limits.bytes, limits.floats);
  return 0;
}
