// SPDX-License-Identifier: Apache-2.0
// The source models' tensors as the virtual device computes them, against the chip reference (chip_reference.h), layer
// by layer. Every tensor that is given must be equal to the last byte; how many are given is counted.
//
// A few files in the usual run; all of them with REEF_ALL_LAYERS=1. REEF_LAYERS=NAME takes the files whose name
// contains NAME.
#include <cstdlib>
#include <map>
#include <random>

#include <gtest/gtest.h>

#include "chip_reference.h"
#include "execute/device/device.h"
#include "formats/darwinn/reader.h"
#include "formats/tflite/reader.h"
#include "ir/verify.h"
#include "runtime/layer_tensors.h"
#include "zoo.h"

namespace reef::testing {
namespace {

namespace fs = std::filesystem;
using runtime::LayerTensor;

struct Counts {
  std::map<LayerTensor::State, int> tensors;
  std::int64_t elements = 0;
};

std::string reference_source(const fs::path& compiled, int generation) {
  const fs::path old = compiled.parent_path() / "source_old.tflite";
  return (generation < 15 && fs::exists(old) ? old : compiled.parent_path() / "source.tflite").string();
}

std::vector<std::uint8_t> noise(std::size_t bytes, std::mt19937& random) {
  std::vector<std::uint8_t> result(bytes);
  for (std::uint8_t& byte : result) byte = static_cast<std::uint8_t>(random());
  return result;
}

Result<std::shared_ptr<const device::LoadedPackage>> package_in(const ir::Model& compiled) {
  for (const ir::Operator& op : compiled.subgraphs[0].operators) {
    if (op.type != darwinn::kCustomOpName) continue;
    REEF_ASSIGN_OR_RETURN(darwinn::CustomOptions options, darwinn::read_custom_options(op.custom_options));
    return device::LoadedPackage::load(std::move(options.package));
  }
  return invalid_input("no Edge TPU op");
}

const ir::Tensor& named(const ir::Model& model, const std::string& name) {
  for (const ir::Tensor& tensor : model.subgraphs[0].tensors) {
    if (tensor.name == name) return tensor;
  }
  return model.subgraphs[0].tensors[0];
}

Status compare(const std::string& path, bool is_verbose, Counts& counts) {
  const int generation = std::atoi(fs::path(path).filename().string().c_str() + 1);
  REEF_ASSIGN_OR_RETURN(const ir::Model compiled, tflite::load_model(path));
  REEF_ASSIGN_OR_RETURN(const ir::Model source, tflite::load_model(reference_source(path, generation)));
  REEF_ASSIGN_OR_RETURN(const auto layers, runtime::LayerTensors::create(compiled, source));
  REEF_ASSIGN_OR_RETURN(const auto package, package_in(compiled));
  std::mt19937 random(11);
  NamedBytes given;
  std::vector<std::span<const std::uint8_t>> inputs;
  for (const darwinn::Layer& layer : package->inputs()) {
    given[layer.name] = noise(static_cast<std::size_t>(device::tensor_bytes(layer)), random);
    if (named(source, layer.name).is_variable) std::fill(given[layer.name].begin(), given[layer.name].end(), 0);
    inputs.emplace_back(given[layer.name]);
  }
  device::Device device;
  device.set_observer(&layers->observer());
  REEF_RETURN_IF_ERROR([&]() -> Status { return device.run(package, inputs).status(); }());
  const std::vector<LayerTensor> found = layers->tensors();
  const ir::Subgraph& graph = source.subgraphs[0];
  std::vector<std::string> names;
  for (const LayerTensor& layer : found) {
    if (layer.has_bytes()) names.push_back(graph.tensors[static_cast<std::size_t>(layer.tensor)].name);
  }
  REEF_ASSIGN_OR_RETURN(const NamedBytes expected,
                        evaluate_as_chip(source, given, names, {.compiler_generation = generation}));
  for (const LayerTensor& layer : found) {
    ++counts.tensors[layer.state];
    const ir::Tensor& tensor = graph.tensors[static_cast<std::size_t>(layer.tensor)];
    const std::string& type = graph.operators[static_cast<std::size_t>(layer.op)].type;
    if (!layer.has_bytes()) {
      if (is_verbose) fmt::print("  {} '{}': {}\n", type, tensor.name, layer.reason);
      continue;
    }
    counts.elements += static_cast<std::int64_t>(layer.bytes.size());
    if (layer.bytes == expected.at(tensor.name)) continue;
    ADD_FAILURE() << path << ": " << type << " '" << tensor.name << "' differs from the reference";
  }
  return ok_status();
}

// What takes long on the device or in the reference.
bool is_large(const std::string& path) {
  for (const char* part : {"deeplabv3_", "posenet_", "mobilenet_v1_1.0_", "mobilenet_v2_", "op_model_mat_Add",
                           "op_model_conv_", "_512x256x3", "_256x256x3", "_p128_"}) {
    if (path.find(part) != std::string::npos) return true;
  }
  return false;
}

// Ten layers over a picture that is padding but for four pixels: which of the results that no pixel reaches is which
// cannot be told.
constexpr std::string_view kMostlyPadding = "op_model_conv_128x128x3x32x7x10";

TEST(ZooLayers, TensorsEqualTheChipReference) {
  REEF_SKIP_WITHOUT_ZOO(zoo);
  const char* wanted = std::getenv("REEF_LAYERS");
  const bool all = std::getenv("REEF_ALL_LAYERS") != nullptr;
  int tensors = 0, found = 0;
  for (const std::string& path : tflite_files(zoo + "/pairs")) {
    const fs::path file = path;
    if (!file.filename().string().starts_with('v')) continue;
    if (wanted != nullptr ? path.find(wanted) == std::string::npos : !all && is_large(path)) continue;
    Counts counts;
    const Status status = compare(path, wanted != nullptr, counts);
    EXPECT_TRUE(status.ok()) << path << ": " << status.message();
    using State = LayerTensor::State;
    fmt::print("{:<70} computed {:3} moved {:3} returned {:2} not on the chip {:2} not located {:2}, {} elements\n",
               file.parent_path().filename().string() + "/" + file.stem().string(), counts.tensors[State::kComputed],
               counts.tensors[State::kMoved], counts.tensors[State::kReturned], counts.tensors[State::kNotOnChip],
               counts.tensors[State::kNotLocated], counts.elements);
    std::fflush(stdout);
    const bool is_mostly_padding = path.find(kMostlyPadding) != std::string::npos;
    EXPECT_EQ(counts.tensors[State::kNotLocated], is_mostly_padding ? 10 : 0) << path;
    for (const auto& [state, count] : counts.tensors) {
      tensors += count;
      if (state != State::kNotOnChip && state != State::kNotLocated) found += count;
    }
  }
  fmt::print("{} of {} tensors, all equal to the reference's\n", found, tensors);
  EXPECT_GT(found, 0);
}

}  // namespace
}  // namespace reef::testing
