// SPDX-License-Identifier: Apache-2.0
// How far the chip's numerics are from TFLite's, layer by layer: every op of every source is computed both ways from
// the same inputs, which are the chip's own values behind the layers before. (That the virtual device gives the chip
// reference's bytes is shown by zoo_device_test.cpp; how far whole networks drift apart is printed there.)
#include <atomic>
#include <future>
#include <map>

#include <gtest/gtest.h>

#include "formats/darwinn/reader.h"
#include "formats/tflite/reader.h"
#include "zoo.h"
#include "zoo_pairs.h"

namespace reef::testing {
namespace {

struct Comparison {
  Pair pair;
  Status status;
  std::map<std::string, Differences> by_op;
};

Result<darwinn::Package> package_of(const std::string& path) {
  REEF_ASSIGN_OR_RETURN(const ir::Model model, tflite::load_model(path));
  for (const ir::Operator& op : model.subgraphs[0].operators) {
    if (!darwinn::is_edge_tpu_op(op)) continue;
    REEF_ASSIGN_OR_RETURN(darwinn::CustomOptions options, darwinn::read_custom_options(op.custom_options));
    return std::move(options.package);
  }
  return invalid_input("'{}' has no Edge TPU op", path);
}

// The values of one op's outputs both ways.
Status compare_op(const ir::Model& source, const ir::Operator& op, const Pair& pair, NamedBytes& values,
                  std::map<std::string, Differences>& by_op) {
  const auto& tensors = source.subgraphs[0].tensors;
  NamedBytes given;
  for (const std::int32_t input : op.inputs) {
    if (input < 0) continue;
    const std::string& name = tensors[static_cast<std::size_t>(input)].name;
    if (const auto known = values.find(name); known != values.end()) given.insert(*known);
  }
  std::vector<std::string> wanted;
  for (const std::int32_t output : op.outputs) wanted.push_back(tensors[static_cast<std::size_t>(output)].name);
  REEF_ASSIGN_OR_RETURN(const NamedBytes chip,
                        evaluate_as_chip(source, given, wanted, {.compiler_generation = pair.generation}));
  REEF_ASSIGN_OR_RETURN(const NamedBytes tflite, evaluate_as_tflite(source, given, wanted));
  for (const std::string& name : wanted) {
    const ir::Tensor& tensor = *find_tensor(source, name);
    const std::vector<int> a = elements(tensor, chip.at(name)), b = elements(tensor, tflite.at(name));
    for (std::size_t i = 0; i < a.size(); ++i) by_op[op.type].add(a[i], b[i]);
    values[name] = chip.at(name);
  }
  return ok_status();
}

// Ops that the package covers: those on the way from its inputs to its outputs.
Status compare(Comparison& comparison) {
  REEF_ASSIGN_OR_RETURN(const ir::Model source, tflite::load_model(comparison.pair.source));
  REEF_ASSIGN_OR_RETURN(const darwinn::Package package, package_of(comparison.pair.compiled));
  const darwinn::Executable* execution = package.find(darwinn::ExecutableType::kExecutionOnly);
  if (execution == nullptr) execution = package.find(darwinn::ExecutableType::kStandAlone);
  REEF_REQUIRE(execution != nullptr, "no program");
  NamedBytes values;
  std::mt19937 random(3);
  for (const darwinn::Layer& layer : execution->input_layers) {
    const ir::Tensor* tensor = find_tensor(source, layer.name);
    REEF_REQUIRE(tensor != nullptr, "the source has no tensor '{}'", layer.name);
    values[layer.name] = tensor->is_variable ? state_at_rest(*tensor) : picture(Picture::kSmooth, layer, random);
  }
  const auto& graph = source.subgraphs[0];
  for (const ir::Operator& op : graph.operators) {
    bool is_reached = false, is_complete = true;
    for (const std::int32_t input : op.inputs) {
      if (input < 0) continue;
      const ir::Tensor& tensor = graph.tensors[static_cast<std::size_t>(input)];
      const bool is_known = values.contains(tensor.name);
      is_reached |= is_known;
      is_complete &= is_known || !ir::constant_data(source, tensor).empty();
    }
    if (!is_reached || !is_complete) continue;  // it comes from ops that were left to the CPU
    const Status status = compare_op(source, op, comparison.pair, values, comparison.by_op);
    if (status.code() == StatusCode::kUnsupported) continue;  // an op that was left to the CPU
    if (!status.ok()) return status.in(op.type);
  }
  return ok_status();
}

void compare_all(std::vector<Comparison>& comparisons) {
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < comparisons.size(); i = next++) comparisons[i].status = compare(comparisons[i]);
  };
  auto other = std::async(std::launch::async, work);
  work();
  other.wait();
}

TEST(ZooNumerics, LayersDifferFromTfliteByAtMostOne) {
  REEF_SKIP_WITHOUT_ZOO(zoo);
  std::vector<Comparison> comparisons;
  for (Pair& pair : pairs_of(zoo)) {
    if (pair.name.find("cocompiled") != std::string::npos) continue;  // the same source
    comparisons.push_back({std::move(pair), ok_status(), {}});
  }
  compare_all(comparisons);
  std::map<std::string, Differences> by_op;
  Differences all;
  for (const Comparison& comparison : comparisons) {
    ASSERT_TRUE(comparison.status.ok()) << comparison.pair.name << ": " << comparison.status.message();
    for (const auto& [op, differences] : comparison.by_op) {
      by_op[op].add(differences);
      all.add(differences);
      if (differences.largest > 1)
        fmt::print("beyond one: {} {} {}\n", comparison.pair.name, op, differences.to_string());
    }
  }
  fmt::print("op, values, % equal, one apart, two apart, further, and the furthest\n");
  for (const auto& [op, differences] : by_op)
    fmt::print("{:<26} {:9} {}\n", op, differences.all(), differences.to_string());
  fmt::print("{:<26} {:9} {}\n", "all", all.all(), all.to_string());
  for (const auto& [op, differences] : by_op) {
    // Google's program rounds the gates' arguments to 8 bits between -1 and 1, 28 times in a row.
    if (op == "UNIDIRECTIONAL_SEQUENCE_LSTM") continue;
    EXPECT_LE(differences.largest, 1) << op;
    EXPECT_GE(differences.share(0), 0.975) << op;
  }
  EXPECT_GE(all.share(0), 0.99);
  EXPECT_GE(by_op.size(), 15u);
}

}  // namespace
}  // namespace reef::testing
