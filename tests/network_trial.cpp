// SPDX-License-Identifier: Apache-2.0
#include "network_trial.h"

#include <memory>
#include <random>
#include <vector>

#include <fmt/format.h>

#include "audit/audit.h"
#include "base/at.h"
#include "execute/cpu/evaluate.h"
#include "generated_code.h"
#include "kernels/simd/each_target.h"
#include "lower/builder.h"
#include "trials.h"

namespace reef::testing {
namespace {

bool rests_on_timing(const darwinn::Package& package) {
  const auto report = audit::audit(package);
  return report.ok() && !report->is_sound() && report->is_sound_as_googles();
}

std::vector<std::vector<std::uint8_t>> random_inputs(const ir::Model& model, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::vector<std::uint8_t>> inputs;
  for (const std::int32_t input : model.subgraphs[0].inputs) {
    const ir::Tensor& tensor = model.subgraphs[0].tensors[at(input)];
    std::vector<std::uint8_t>& bytes = inputs.emplace_back(at(*ir::byte_size(tensor.shape, tensor.type)));
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
  }
  return inputs;
}

Result<std::vector<cpu::Value>> values(const std::shared_ptr<const ir::Model>& model,
                                       const std::vector<std::vector<std::uint8_t>>& inputs, int threads,
                                       bool one_by_one) {
  cpu::InterpreterOptions options;
  options.threads = threads;
  options.one_by_one = one_by_one;
  REEF_ASSIGN_OR_RETURN(const auto interpreter, cpu::prepared(model, options));
  return cpu::run_once(*interpreter, inputs);
}

bool same(const std::vector<cpu::Value>& a, const std::vector<cpu::Value>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const cpu::Value& left, const cpu::Value& right) {
    return left.shape == right.shape && left.bytes == right.bytes;
  });
}

}  // namespace

bool has_code(std::string_view op) {
  return op == kAttentionBlock || op == kNormBlock || lower::find_lowering(std::string(op)) != nullptr;
}

Trial compile_and_run(const RandomNetwork& network, unsigned seed) {
  const auto model = network.build();
  if (!model) return {false, false, "no operator of it makes sense"};
  const auto level = static_cast<tiled::Level>(seed % 3);
  const auto package = compiler::generate_code_with(WholeModel(*model).part(1 + seed), {.level = level});
  if (!package.ok()) {
    const bool refused = package.status().code() == StatusCode::kUnsupported;
    return {!refused, false, package.status().message()};
  }
  // Where Google leaves an order to the speed of units, so do we at its level: any other order than that of these
  // speeds may change results, so only that one is tried.
  const device::Schedule schedule = schedule_of(seed);
  const bool by_timing = level == tiled::Level::kAsGoogle && rests_on_timing(*package);
  const Status runs = runs_as_chip_reference(*model, *package, seed, by_timing ? nullptr : &schedule);
  if (runs.code() == StatusCode::kUnsupported) return {false, false, "no reference: " + runs.message()};
  if (!runs.ok()) return {true, true, runs.message()};
  if (level != tiled::Level::kAsGoogle) {
    const Status sound = passes_audit(*package);
    if (!sound.ok()) return {true, true, sound.message()};
  }
  if (seed % 4 == 1 && level != tiled::Level::kAsGoogle) {
    const Status races = has_no_races(*package);
    if (!races.ok()) return {true, true, races.message()};
  }
  return {false, true, ""};
}

Trial compute_on_cpu(const RandomNetwork& network, unsigned seed) {
  const auto built = network.build();
  if (!built) return {false, false, "no operator of it makes sense"};
  const auto model = std::make_shared<const ir::Model>(*built);
  const auto inputs = random_inputs(*model, seed);
  const kernels::SimdTarget best = kernels::active_target();
  kernels::set_active_target(kernels::SimdTarget::kBaseline);
  const auto plain = values(model, inputs, 1, true);
  Trial result = {false, plain.ok(), plain.ok() ? "" : plain.status().message()};
  kernels::for_each_supported_target([&](kernels::SimdTarget target) {
    for (const int threads : {1, 3}) {
      const auto fast = values(model, inputs, threads, false);
      const bool alike = fast.ok() == plain.ok() && (!fast.ok() || same(*fast, *plain));
      if (alike || result.failed) continue;
      result.failed = true;
      result.message = fmt::format("'{}' on {} threads: {}", kernels::target_name(target), threads,
                                   fast.ok() ? "other bytes than plain loops give" : fast.status().message());
    }
  });
  kernels::set_active_target(best);
  return result;
}

RandomNetwork network_from_bytes(std::span<const std::uint8_t> bytes) {
  const auto next = [&bytes]() -> int {
    if (bytes.empty()) return 0;
    const std::uint8_t first = bytes.front();
    bytes = bytes.subspan(1);
    return first;
  };
  constexpr int kLargestSide = 36, kMostChannels = 70, kNumbers = 200;
  RandomNetwork network;
  network.is_signed = next() % 2 == 0;
  network.height = 1 + next() % kLargestSide;
  network.width = 1 + next() % kLargestSide;
  network.channels = 1 + next() % kMostChannels;
  network.zero_point = next();
  const std::vector<std::string>& ops = random_network_ops();
  while (!bytes.empty() && network.layers.size() < kMostFuzzedLayers) {
    RandomLayer layer;
    layer.op = ops[at(next()) % ops.size()];
    layer.a = next();
    layer.b = next();
    for (int& number : layer.numbers) number = next() % kNumbers;
    network.layers.push_back(std::move(layer));
  }
  return network;
}

}  // namespace reef::testing
