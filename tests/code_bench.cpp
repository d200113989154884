// SPDX-License-Identifier: Apache-2.0
// Generated code beside Google's on the same device model, and the time that compiling takes.
//
//   code_bench                      compile time of chains of 10 to 5,000 layers
//   code_bench FOLDER [WHAT]        besides, a row for every compiled file of the collection whose part Reef compiles
//   as
//                                   a whole and whose path contains WHAT: ours at each level, Google's. FOLDER has
//                                   pairs (compilers 15 and 16), or folders with source.tflite and
//                                   compiled_edgetpu.tflite. Then their compile times
//
// Cycles are simulated (from the host's call to its return over USB 3, parameters on the chip already); bytes are
// counted in the packages; milliseconds of compiling are measured.
//
// "to the bound" is the time divided by what no program can do without: the host's call, and the longest of the
// products at 4,096 a cycle, the bytes that come in and those that go out.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
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

constexpr double kProductsPerCycle = 4096;

struct Figures {
  double cycles = 0, late_cycles = 0;  // as ever; if a piece of instructions comes when the one before is done
  double bound = 0;                    // cycles
  std::int64_t instruction_bytes = 0, cached_bytes = 0, streamed_bytes = 0, narrow_bytes = 0;
};

Result<Figures> figures_of(const darwinn::Package& package, double products) {
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
  for (const bool late : {false, true}) {
    device::TimelineOptions options;
    if (late) options.timing.reading = *device::find_reading("instructions-in-turn");
    device::Timeline timeline(options);
    device.set_observer(&timeline);
    device.set_queue_depths(device::kShallowQueues);
    REEF_RETURN_IF_ERROR(device.run(loaded, inputs).status());
    const auto records = timeline.take_records();
    device.set_observer(nullptr);
    REEF_REQUIRE(records.size() == 1, "{} programs ran", records.size());
    const device::TimeReport& time = records.front().time;
    (late ? figures.late_cycles : figures.cycles) = time.cycles;
    const chip::LinkProfile& link = chip::link_profiles().front();
    std::uint64_t in = 0;
    for (const auto& tensor : tensors) in += tensor.size();
    const double cycles_in = static_cast<double>(in) / link.in_bytes_per_second * time.clock_hz;
    std::uint64_t out = 0;
    for (const darwinn::Layer& layer : loaded->outputs())
      out += static_cast<std::uint64_t>(device::tensor_bytes(layer));
    const double cycles_out = static_cast<double>(out) / link.out_bytes_per_second * time.clock_hz;
    figures.bound =
        link.overhead_us * 1e-6 * time.clock_hz + std::max({products / kProductsPerCycle, cycles_in, cycles_out});
  }
  return figures;
}

// Products of the part's convolutions and fully connected layers.
double products_of(const ir::Model& model, const std::vector<std::int32_t>& ops) {
  const ir::Subgraph& graph = model.subgraphs[0];
  double products = 0;
  for (const std::int32_t index : ops) {
    const ir::Operator& op = graph.operators[static_cast<std::size_t>(index)];
    const bool depthwise = op.type == "DEPTHWISE_CONV_2D";
    if (!depthwise && op.type != "CONV_2D" && op.type != "FULLY_CONNECTED") continue;
    const ir::Shape& weights = graph.tensors[static_cast<std::size_t>(op.inputs[1])].shape;
    const auto outputs = static_cast<double>(graph.tensors[static_cast<std::size_t>(op.outputs[0])].shape.elements());
    products += outputs * static_cast<double>(weights.elements()) / (depthwise ? weights.last() : weights[0]);
  }
  return products;
}

std::string row(const std::string& name, const char* whose, const Figures& figures, const Figures& google) {
  const auto ratio = [](double ours, double theirs) { return theirs == 0 ? 0 : ours / theirs; };
  return fmt::format(
      "| {} | {} | {:.0f} | {:.3f} | {:.3f} | {:.2f} | {} | {:.2f} | {} | {} | {} |\n", name, whose, figures.cycles,
      ratio(figures.cycles, google.cycles), ratio(figures.late_cycles, google.late_cycles),
      ratio(figures.cycles, figures.bound), figures.instruction_bytes,
      ratio(static_cast<double>(figures.instruction_bytes), static_cast<double>(google.instruction_bytes)),
      figures.cached_bytes, figures.streamed_bytes, figures.narrow_bytes);
}

// Pairs of the collection, or of a folder of files from elsewhere.
std::vector<Pair> pairs_in(const std::string& folder, const std::string& what) {
  namespace fs = std::filesystem;
  std::vector<Pair> pairs;
  if (fs::exists(folder + "/pairs")) {
    pairs = pairs_of(folder);
    std::erase_if(pairs, [](const Pair& pair) { return pair.generation < 15; });
  } else {
    for (const auto& entry : fs::directory_iterator(folder)) {
      Pair pair;
      pair.name = entry.path().filename().string();
      pair.compiled = (entry.path() / "compiled_edgetpu.tflite").string();
      pair.source = (entry.path() / "source.tflite").string();
      if (fs::exists(pair.compiled) && fs::exists(pair.source)) pairs.push_back(pair);
    }
  }
  std::erase_if(pairs, [&](const Pair& pair) { return pair.compiled.find(what) == std::string::npos; });
  std::sort(pairs.begin(), pairs.end(), [](const Pair& a, const Pair& b) { return a.name < b.name; });
  return pairs;
}

constexpr std::pair<tiled::Level, const char*> kLevels[] = {
    {tiled::Level::kAsGoogle, "-O0"}, {tiled::Level::kBetter, "-O1"}, {tiled::Level::kFast, "-O2"}};

void compare_with_google(const std::vector<Pair>& pairs) {
  fmt::print(
      "| compiled file | whose | cycles (simulated) | to Google's | the same, instructions in turn | to the bound | "
      "instruction bytes | to Google's | cached bytes | streamed bytes | narrow bytes |\n"
      "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n");
  for (const Pair& pair : pairs) {
    const auto source = tflite::load_model(pair.source);
    const auto theirs = package_of(pair.compiled);
    if (!source.ok() || !theirs.ok()) continue;
    const auto mapped = MappedPart::of(*source, *theirs);
    if (!mapped.ok()) continue;
    std::string rows;
    const double products = products_of(*source, mapped->ops);
    const auto google = figures_of(*theirs, products);
    if (!google.ok()) continue;
    for (const auto& [level, name] : kLevels) {
      const auto package = compiler::generate_code_with(mapped->part(*source, 1, 14), {.level = level});
      if (!package.ok()) break;
      const auto ours = figures_of(*package, products);
      if (!ours.ok()) {
        rows += fmt::format("| {} | {} | {} | | | | | | | | |\n", pair.name, name, ours.status().message());
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
  for (const int layers : {10, 30, 100, 300, 1000, 5000}) {
    QuantizedModel model;
    std::int32_t x = model.input({1, 16, 16, 8});
    for (int i = 0; i < layers; ++i) x = i % 3 == 2 ? model.depthwise(x) : model.conv(x, 8, 1 + 2 * (i % 2));
    const ir::Model chain = model.finish({x});
    const WholeModel whole(chain);
    if (const auto ms = compile_ms(whole.part(1))) fmt::print("| {} | {:.1f} | {:.3f} |\n", layers, *ms, *ms / layers);
  }
}

void compile_networks(const std::vector<Pair>& pairs) {
  fmt::print("\n| network | ms to compile (measured) |\n| --- | ---: |\n");
  for (const Pair& pair : pairs) {
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
  const auto pairs =
      argc > 1 ? reef::testing::pairs_in(argv[1], argc > 2 ? argv[2] : "") : std::vector<reef::testing::Pair>();
  if (argc > 1) reef::testing::compare_with_google(pairs);
  if (argc <= 2) reef::testing::compile_chains();
  if (argc > 1) reef::testing::compile_networks(pairs);
  return 0;
}
