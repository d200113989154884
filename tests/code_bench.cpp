// SPDX-License-Identifier: Apache-2.0
// Generated code beside Google's on the same device model, and the time that compiling takes.
//
//   code_bench            compile time of chains of 10 to 1,000 layers
//   code_bench ZOO        besides, a row for every compiled file of the collection by compiler 15 or 16 whose part Reef
//                         compiles as a whole: ours at -O0 and -O1, Google's; and MobileNet v2's compile time
//
// Cycles are simulated (from the host's call to its return over USB 3, parameters on the chip already); bytes are
// counted in the packages; milliseconds are measured.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <optional>

#include <fmt/format.h>

#include "execute/device/timeline.h"
#include "formats/tflite/reader.h"
#include "generated_code.h"
#include "google_choices.h"
#include "quantized_model.h"
#include "zoo_pairs.h"

namespace reef::testing {
namespace {

struct Figures {
  double cycles = 0;
  std::int64_t instruction_bytes = 0, cached_bytes = 0, streamed_bytes = 0, narrow_bytes = 0;
};

Result<Figures> figures_of(const darwinn::Package& package) {
  Figures figures;
  for (const darwinn::Executable& executable : package.executables) {
    const auto parameters = static_cast<std::int64_t>(executable.parameters.size());
    if (executable.type == darwinn::ExecutableType::kParameterCaching) {
      figures.cached_bytes = parameters;
      continue;
    }
    figures.streamed_bytes = parameters;
    figures.narrow_bytes = executable.used_narrow_memory_bytes;
    for (const darwinn::InstructionChunk& chunk : executable.instruction_chunks) {
      figures.instruction_bytes += static_cast<std::int64_t>(chunk.bitstream.size());
    }
  }
  REEF_ASSIGN_OR_RETURN(const auto loaded, device::LoadedPackage::load(package));
  std::vector<std::vector<std::uint8_t>> tensors;
  for (const darwinn::Layer& layer : loaded->inputs()) {
    tensors.emplace_back(static_cast<std::size_t>(device::tensor_bytes(layer)), std::uint8_t{100});
  }
  const std::vector<std::span<const std::uint8_t>> inputs(tensors.begin(), tensors.end());
  device::Device device({.threads = 1});
  REEF_RETURN_IF_ERROR(device.run(loaded, inputs).status());  // brings the parameters
  device::Timeline timeline({});
  device.set_observer(&timeline);
  device.set_queue_depths(device::kShallowQueues);
  REEF_RETURN_IF_ERROR(device.run(loaded, inputs).status());
  const auto records = timeline.take_records();
  REEF_REQUIRE(records.size() == 1, "{} programs ran", records.size());
  figures.cycles = records.front().time.cycles;
  return figures;
}

std::string row(const std::string& name, const char* whose, const Figures& figures, const Figures& google) {
  const auto ratio = [](double ours, double theirs) { return theirs == 0 ? 0 : ours / theirs; };
  return fmt::format(
      "| {} | {} | {:.0f} | {:.2f} | {} | {:.2f} | {} | {} | {} |\n", name, whose, figures.cycles,
      ratio(figures.cycles, google.cycles), figures.instruction_bytes,
      ratio(static_cast<double>(figures.instruction_bytes), static_cast<double>(google.instruction_bytes)),
      figures.cached_bytes, figures.streamed_bytes, figures.narrow_bytes);
}

void compare_with_google(const std::string& zoo) {
  fmt::print(
      "| compiled file | whose | cycles (simulated) | to Google's | instruction bytes | to Google's | cached bytes | "
      "streamed bytes | narrow bytes |\n| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n");
  for (const Pair& pair : pairs_of(zoo)) {
    if (pair.generation < 15) continue;
    const auto source = tflite::load_model(pair.source);
    const auto theirs = package_of(pair.compiled);
    if (!source.ok() || !theirs.ok()) continue;
    const auto mapped = MappedPart::of(*source, *theirs);
    if (!mapped.ok()) continue;
    std::string rows;
    const auto google = figures_of(*theirs);
    if (!google.ok()) continue;
    for (const auto& [level, name] :
         {std::pair{tiled::Level::kAsGoogle, "-O0"}, std::pair{tiled::Level::kBetter, "-O1"}}) {
      const auto package = compiler::generate_code_with(mapped->part(*source, 1, 14), {.level = level});
      if (!package.ok()) break;
      const auto ours = figures_of(*package);
      if (!ours.ok()) {
        rows += fmt::format("| {} | {} | {} | | | | | | |\n", pair.name, name, ours.status().message());
        continue;
      }
      rows += row(pair.name, name, *ours, *google);
    }
    if (!rows.empty()) fmt::print("{}{}", rows, row(pair.name, "Google", *google, *google));
    std::fflush(stdout);
  }
}

// Median of some runs, in milliseconds. Nothing: it does not compile.
std::optional<double> compile_ms(const compiler::PartProgram& part) {
  constexpr int kRuns = 5;
  std::vector<double> times;
  for (int i = 0; i < kRuns; ++i) {
    const auto start = std::chrono::steady_clock::now();
    const auto package = compiler::generate_code(part);
    times.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
    if (!package.ok()) {
      fmt::print("no code: {}\n", package.status().message());
      return std::nullopt;
    }
  }
  std::sort(times.begin(), times.end());
  return times[kRuns / 2];
}

void compile_chains() {
  fmt::print("\n| layers | ms to compile (measured) | ms a layer |\n| ---: | ---: | ---: |\n");
  for (const int layers : {10, 30, 100, 300, 1000}) {
    QuantizedModel model;
    std::int32_t x = model.input({1, 16, 16, 8});
    for (int i = 0; i < layers; ++i) x = i % 3 == 2 ? model.depthwise(x) : model.conv(x, 8, 1 + 2 * (i % 2));
    const ir::Model chain = model.finish({x});
    const WholeModel whole(chain);
    if (const auto ms = compile_ms(whole.part(1))) fmt::print("| {} | {:.1f} | {:.3f} |\n", layers, *ms, *ms / layers);
  }
}

void compile_networks(const std::string& zoo) {
  fmt::print("\n| network | ms to compile (measured) |\n| --- | ---: |\n");
  for (const Pair& pair : pairs_of(zoo)) {
    if (pair.name.find("mobilenet") == std::string::npos) continue;
    const auto source = tflite::load_model(pair.source);
    const auto theirs = package_of(pair.compiled);
    if (!source.ok() || !theirs.ok()) continue;
    const auto mapped = MappedPart::of(*source, *theirs);
    if (!mapped.ok()) continue;
    if (const auto ms = compile_ms(mapped->part(*source, 1, 14))) fmt::print("| {} | {:.1f} |\n", pair.name, *ms);
  }
}

}  // namespace
}  // namespace reef::testing

int main(int argc, char** argv) {
  if (argc > 1) reef::testing::compare_with_google(argv[1]);
  reef::testing::compile_chains();
  if (argc > 1) reef::testing::compile_networks(argv[1]);
  return 0;
}
