// SPDX-License-Identifier: Apache-2.0
#include "zoo_pairs.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <memory>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "execute/cpu/interpreter.h"
#include "execute/device/device.h"
#include "formats/darwinn/reader.h"
#include "formats/tflite/reader.h"
#include "ir/verify.h"
#include "ops/chip_support.h"
#include "zoo.h"

namespace reef::testing {
namespace {

// The part of `model` between the tensors `given` and `wanted`.
Result<ir::Model> cut(ir::Model model, const NamedBytes& given, const std::vector<std::string>& wanted) {
  ir::Subgraph& graph = model.subgraphs[0];
  model.signatures.clear();
  graph.inputs.clear();
  graph.outputs.clear();
  std::vector<bool> is_needed(graph.tensors.size());
  for (std::size_t i = 0; i < graph.tensors.size(); ++i) {
    const std::string& name = graph.tensors[i].name;
    if (given.contains(name) && !graph.tensors[i].is_variable) graph.inputs.push_back(static_cast<std::int32_t>(i));
    if (std::find(wanted.begin(), wanted.end(), name) == wanted.end()) continue;
    graph.outputs.push_back(static_cast<std::int32_t>(i));
    is_needed[i] = true;
  }
  std::vector<ir::Operator> kept;
  for (auto op = graph.operators.rbegin(); op != graph.operators.rend(); ++op) {
    const auto needed = [&](std::int32_t t) { return t >= 0 && is_needed[static_cast<std::size_t>(t)]; };
    if (std::none_of(op->outputs.begin(), op->outputs.end(), needed)) continue;
    for (const std::int32_t t : op->inputs) {
      if (t >= 0 && std::find(graph.inputs.begin(), graph.inputs.end(), t) == graph.inputs.end()) {
        is_needed[static_cast<std::size_t>(t)] = true;
      }
    }
    kept.insert(kept.begin(), *op);
  }
  graph.operators = std::move(kept);
  REEF_RETURN_IF_ERROR(ir::verify(model));
  return model;
}

bool is_16_bit(const ir::Tensor& tensor) { return ir::bits_per_element(tensor.type) == 16; }

}  // namespace

std::vector<Pair> pairs_of(const std::string& zoo) {
  namespace fs = std::filesystem;
  std::vector<Pair> pairs;
  for (const std::string& path : tflite_files(zoo + "/pairs")) {
    const fs::path file = path;
    if (!file.filename().string().starts_with('v')) continue;
    Pair pair;
    pair.name = file.parent_path().filename().string() + "/" + file.stem().string();
    pair.compiled = path;
    pair.generation = std::atoi(file.filename().string().c_str() + 1);
    const fs::path old = file.parent_path() / "source_old.tflite";
    pair.source = (pair.generation < 15 && fs::exists(old) ? old : file.parent_path() / "source.tflite").string();
    pairs.push_back(pair);
  }
  return pairs;
}

std::vector<std::uint8_t> picture(Picture kind, const darwinn::Layer& layer, std::mt19937& random) {
  if (layer.data_type == darwinn::DataType::kInt16) kind = Picture::kNoise;
  const std::uint8_t lowest = layer.data_type == darwinn::DataType::kInt8 ? 0x80 : 0;
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(device::tensor_bytes(layer)));
  const auto depth = static_cast<std::size_t>(layer.z_dim), width = static_cast<std::size_t>(layer.x_dim);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const auto c = static_cast<double>(i % depth), x = static_cast<double>(i / depth % width),
               y = static_cast<double>(i / depth / width);
    switch (kind) {
      case Picture::kNoise:
        bytes[i] = static_cast<std::uint8_t>(random());
        break;
      case Picture::kSmooth:
        bytes[i] =
            static_cast<std::uint8_t>(127.5 + 120 * std::sin(0.05 * x + 0.9 * c) * std::cos(0.037 * y + 0.01 * c));
        break;
      case Picture::kExtremes:
        bytes[i] = random() % 2 == 0 ? 0 : 255;
        break;
    }
    bytes[i] ^= lowest;
  }
  return bytes;
}

std::vector<std::uint8_t> state_at_rest(const ir::Tensor& tensor) {
  const auto zero = static_cast<std::uint64_t>(tensor.quantization.zero_point.at(0));
  const auto size = static_cast<std::size_t>(ir::bits_per_element(tensor.type) / 8);
  std::vector<std::uint8_t> bytes;
  for (std::int64_t i = 0; i < tensor.shape.elements(); ++i) {
    for (std::size_t b = 0; b < size; ++b) bytes.push_back(static_cast<std::uint8_t>(zero >> (8 * b)));
  }
  return bytes;
}

const ir::Tensor* find_tensor(const ir::Model& model, const std::string& name) {
  for (const ir::Tensor& tensor : model.subgraphs[0].tensors) {
    if (tensor.name == name) return &tensor;
  }
  return nullptr;
}

Result<NamedBytes> evaluate_as_tflite(const ir::Model& source, const NamedBytes& given,
                                      const std::vector<std::string>& wanted) {
  REEF_ASSIGN_OR_RETURN(ir::Model part, cut(source, given, wanted));
  cpu::InterpreterOptions options;
  options.tflite_release = ops::TfliteRelease::kCurrent;  // 2.9 ignores the scales per channel of FULLY_CONNECTED
  REEF_ASSIGN_OR_RETURN(auto interpreter,
                        cpu::Interpreter::create(std::make_shared<const ir::Model>(std::move(part)), options));
  REEF_RETURN_IF_ERROR(interpreter->prepare());
  for (int i = 0; i < interpreter->input_count(); ++i) {
    const std::vector<std::uint8_t>& bytes = given.at(std::string(interpreter->input(i).name));
    const std::span<std::byte> to = interpreter->input_bytes(i);
    REEF_REQUIRE(to.size() == bytes.size(), "input {} takes {} bytes", i, to.size());
    std::memcpy(to.data(), bytes.data(), to.size());
  }
  REEF_RETURN_IF_ERROR(interpreter->invoke());
  NamedBytes results;
  for (int i = 0; i < interpreter->output_count(); ++i) {
    const ops::Tensor& tensor = interpreter->output(i);
    const auto* data = reinterpret_cast<const std::uint8_t*>(tensor.data);
    results[std::string(tensor.name)] = {data, data + tensor.bytes};
  }
  return results;
}

std::vector<int> elements(const ir::Tensor& tensor, const std::vector<std::uint8_t>& bytes) {
  std::vector<int> result;
  if (is_16_bit(tensor)) {
    for (std::size_t i = 0; i + 1 < bytes.size(); i += 2) {
      result.push_back(static_cast<std::int16_t>(bytes[i] | bytes[i + 1] << 8));
    }
    return result;
  }
  for (const std::uint8_t byte : bytes) {
    result.push_back(tensor.type == ir::DataType::kInt8 ? static_cast<std::int8_t>(byte) : byte);
  }
  return result;
}

void Differences::add(int a, int b) {
  const int difference = std::abs(a - b);
  ++counts[std::min(difference, 3)];
  largest = std::max(largest, difference);
}

void Differences::add(const Differences& others) {
  for (int k = 0; k < 4; ++k) counts[k] += others.counts[k];
  largest = std::max(largest, others.largest);
}

double Differences::share(int at_most) const {
  std::int64_t within = 0;
  for (int k = 0; k <= at_most; ++k) within += counts[k];
  return all() == 0 ? 1 : static_cast<double>(within) / static_cast<double>(all());
}

std::string Differences::to_string() const {
  std::string text;
  for (const std::int64_t count : counts) {
    text += fmt::format(" {:7.3f}", all() == 0 ? 0 : 100.0 * static_cast<double>(count) / static_cast<double>(all()));
  }
  return text + fmt::format(" {:3}", largest);
}

std::vector<Mapping> mappings_of(const std::string& truth) {
  std::vector<Mapping> result;
  std::ifstream file(truth + "/mapping.json");
  const nlohmann::json entries = nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
  EXPECT_TRUE(entries.is_array() && !entries.empty()) << truth << "/mapping.json";
  if (!entries.is_array()) return result;
  for (const nlohmann::json& entry : entries) {
    const auto runtimes = entry.at("min_runtime_version").get<std::vector<int>>();  // one for each part
    result.push_back({entry.at("compiled_file"), entry.at("compiled_sha256"),
                      runtimes.empty() ? ops::kNewestRuntime : runtimes[0],
                      entry.at("mapped").get<std::vector<std::int32_t>>()});
  }
  return result;
}

Result<darwinn::Package> package_of(const std::string& path) {
  REEF_ASSIGN_OR_RETURN(const ir::Model model, tflite::load_model(path));
  for (const ir::Operator& op : model.subgraphs[0].operators) {
    if (!darwinn::is_edge_tpu_op(op)) continue;
    REEF_ASSIGN_OR_RETURN(darwinn::CustomOptions options, darwinn::read_custom_options(op.custom_options));
    return std::move(options.package);
  }
  return invalid_input("'{}' has no Edge TPU op", path);
}

}  // namespace reef::testing
