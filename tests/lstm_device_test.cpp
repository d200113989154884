// SPDX-License-Identifier: Apache-2.0
// Generated LSTMs, with other operators around them, through the code generator and the virtual device: outputs and
// states must be those of the chip reference to the last bit. That the reference computes what Google's program for the
// one LSTM known does: zoo_device_test.cpp; that ours does, here.
#include <algorithm>
#include <cstdlib>
#include <random>

#include <gtest/gtest.h>

#include "compiler/code_generator.h"
#include "execute/device/device.h"
#include "formats/tflite/reader.h"
#include "generated_code.h"
#include "lstm_model.h"
#include "trials.h"
#include "zoo.h"
#include "zoo_pairs.h"

namespace reef::testing {
namespace {

class RandomNetwork {
 public:
  explicit RandomNetwork(unsigned seed)
      : choice_(seed), model_(Quantized{ir::DataType::kInt8, 0.02f, choice_.zero_point(ir::DataType::kInt8)}) {}

  ir::Model make() {
    const LstmOf first = random_lstm(choice_, 130);
    const int time = choice_.likely(30) ? choice_.between(1, 3) : choice_.between(1, 40),
              width = choice_.between(1, 80);
    std::int32_t x = model_.input(shape(first, time, width));
    if (choice_.likely(25)) x = model_.logistic(x);
    x = add_lstm(model_, x, first, choice_);
    if (choice_.likely(20)) {  // another one behind it
      LstmOf second = random_lstm(choice_, 80);
      second.time_major = first.time_major;
      x = add_lstm(model_, x, second, choice_, "second");
    }
    const ir::Shape sequence = model_.shape(x);
    switch (choice_.between(0, 3)) {
      case 0:  // all outputs into one layer
        x = model_.reshape(x, {1, static_cast<std::int32_t>(sequence.elements())});
        return model_.finish({model_.fully_connected(x, choice_.between(1, 20))});
      case 1:  // a layer for each
        x = model_.reshape(x, {time, sequence[2]});
        return model_.finish({model_.fully_connected(x, choice_.between(1, 20))});
      case 2:
        return model_.finish({last_of(x, first.time_major, time)});
      default:
        return model_.finish({x});
    }
  }

 private:
  static ir::Shape shape(const LstmOf& lstm, int time, int width) {
    return lstm.time_major ? ir::Shape{time, 1, width} : ir::Shape{1, time, width};
  }

  // Of an LSTM that does not return sequences.
  std::int32_t last_of(std::int32_t x, bool time_major, int time) {
    const ir::Shape sequence = model_.shape(x);
    const Quantized like{ir::DataType::kInt8, model_.tensor(x).quantization.scale[0],
                         model_.tensor(x).quantization.zero_point[0]};
    const std::size_t axis = time_major ? 0 : 1;
    std::vector<std::int32_t> begin(3, 0), end = {sequence[0], sequence[1], sequence[2]};
    begin[axis] = time - 1;
    end[axis] = time;
    return model_.op("STRIDED_SLICE", {x, model_.ints(begin), model_.ints(end), model_.ints({1, 1, 1})},
                     {model_.computed({1, 1, sequence[2]}, like)}, "StridedSliceOptions");
  }

  RandomChoice choice_;
  QuantizedModel model_;
};

Result<darwinn::Package> compiled(const ir::Model& model, tiled::Level level) {
  return compiler::generate_code_with(WholeModel(model).part(7), {.level = level});
}

TEST(LstmOnDevice, RandomNetworksAreBitExact) {
  const auto [begin, end] = seeds_to_try(60);
  int ran = 0;
  for (unsigned seed = begin; seed < end; ++seed) {
    const ir::Model model = RandomNetwork(seed).make();
    SCOPED_TRACE(fmt::format("seed {}: {}", seed, describe(model)));
    const auto ours = compiled(model, tiled::Level::kBetter);
    ASSERT_TRUE(ours.ok()) << ours.status().message();
    const device::Schedule schedule = schedule_of(seed);
    const Status status = runs_as_chip_reference(model, *ours, seed, &schedule);
    EXPECT_TRUE(status.ok()) << status.message();
    const Status audited = passes_audit(*ours);
    EXPECT_TRUE(audited.ok()) << audited.message();
    if (seed % 4 == 0) {
      const Status races = has_no_races(*ours);
      EXPECT_TRUE(races.ok()) << races.message();
    }
    if (seed % 3 == 0) {
      const auto googles = compiled(model, tiled::Level::kAsGoogle);
      ASSERT_TRUE(googles.ok()) << googles.status().message();
      const Status google_status = runs_as_chip_reference(model, *googles, seed);
      EXPECT_TRUE(google_status.ok()) << google_status.message();
    }
    ++ran;
  }
  std::printf("%d networks ran\n", ran);
}

ir::Model single(const LstmOf& lstm, int time, int width) {
  RandomChoice choice(1);
  QuantizedModel model({ir::DataType::kInt8, 0.02f, 3});
  const std::int32_t x = model.input(lstm.time_major ? ir::Shape{time, 1, width} : ir::Shape{1, time, width});
  return model.finish({add_lstm(model, x, lstm, choice)});
}

void expect_exact(const ir::Model& model) {
  const auto package = compiled(model, tiled::Level::kBetter);
  ASSERT_TRUE(package.ok()) << package.status().message();
  const Status runs = runs_as_chip_reference(model, *package, 1);
  EXPECT_TRUE(runs.ok()) << runs.message();
  const Status audited = passes_audit(*package);
  EXPECT_TRUE(audited.ok()) << audited.message();
}

TEST(LstmOnDevice, Sizes) {
  for (const int cells : {1, 3, 4, 63, 64, 65, 128, 129, 300}) {
    SCOPED_TRACE(fmt::format("{} cells", cells));
    expect_exact(single({.cells = cells}, 3, 7));
  }
}

// More time steps than one loop has, on one tile and on several.
TEST(LstmOnDevice, LongSequences) {
  expect_exact(single({.cells = 5}, 1100, 6));
  expect_exact(single({.cells = 70}, 150, 6));
}

// Weights that take most of the memory of a tile.
TEST(LstmOnDevice, ManyInputsAndCells) { expect_exact(single({.cells = 512}, 2, 800)); }

std::string refusal(const ir::Model& model) {
  const auto package = compiled(model, tiled::Level::kBetter);
  EXPECT_FALSE(package.ok());
  if (package.ok()) return "";
  EXPECT_EQ(package.status().code(), StatusCode::kUnsupported);
  return package.status().message();
}

TEST(LstmOnDevice, OtherFormsAreRefused) {
  const auto changed = [](auto change) {
    ir::Model model = single({.cells = 4}, 2, 4);
    change(model.subgraphs[0], model.subgraphs[0].operators[0]);
    return refusal(model);
  };
  const auto operand = [](ir::Subgraph& graph, const ir::Operator& op, std::size_t k) -> ir::Tensor& {
    return graph.tensors[static_cast<std::size_t>(op.inputs[k])];
  };
  EXPECT_NE(changed([](auto&, auto& op) { op.inputs[9] = op.inputs[12]; }).find("peepholes"), std::string::npos);
  EXPECT_NE(changed([](auto&, auto& op) { op.inputs[16] = op.inputs[5]; }).find("projection"), std::string::npos);
  EXPECT_NE(changed([](auto&, auto& op) { op.inputs[20] = op.inputs[12]; }).find("layer normalization"),
            std::string::npos);
  EXPECT_NE(changed([](auto&, auto& op) { op.inputs[1] = -1; }).find("coupled"), std::string::npos);
  EXPECT_NE(changed([](auto&, auto& op) {
              op.attributes.set("fused_activation_function", ir::EnumName{"RELU"});
            }).find("TANH"),
            std::string::npos);
  EXPECT_NE(changed([&](auto& graph, auto& op) { operand(graph, op, 19).type = ir::DataType::kFloat32; }).find("int8"),
            std::string::npos);
  EXPECT_NE(changed([&](auto& graph, auto& op) { operand(graph, op, 19).quantization.zero_point = {1}; }).find("zero"),
            std::string::npos);
  EXPECT_NE(changed([&](auto& graph, auto& op) {
              operand(graph, op, 18).quantization.scale = {0.5f};
            }).find("quantized differently"),
            std::string::npos);
  EXPECT_NE(changed([&](auto& graph, auto& op) { operand(graph, op, 0).type = ir::DataType::kFloat32; }).find("int8"),
            std::string::npos);
  EXPECT_NE(refusal(single({.cells = 1025}, 1, 1)).find("1025"), std::string::npos);
}

std::vector<std::uint8_t> noise(std::int64_t count, std::mt19937& random) {
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(count));
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
  return bytes;
}

// Results of inferences in a row, by name; each begins with the states that the one before has left.
Result<std::vector<NamedBytes>> inferences(const darwinn::Package& package, const ir::Model& source) {
  REEF_ASSIGN_OR_RETURN(const auto loaded, device::LoadedPackage::load(package));
  device::Device device({.threads = 1});
  NamedBytes states;
  std::vector<NamedBytes> results;
  for (unsigned seed = 1; seed <= 4; ++seed) {
    std::mt19937 random(seed);
    std::vector<std::vector<std::uint8_t>> tensors;
    for (const darwinn::Layer& layer : loaded->inputs()) {
      const ir::Tensor* tensor = find_tensor(source, layer.name);
      REEF_REQUIRE(tensor != nullptr, "the source has no tensor '{}'", layer.name);
      const auto state = states.find(layer.name + kVariableOutputSuffix);
      tensors.push_back(!tensor->is_variable    ? noise(device::tensor_bytes(layer), random)
                        : state == states.end() ? state_at_rest(*tensor)
                                                : state->second);
    }
    REEF_ASSIGN_OR_RETURN(const auto found, device.run(loaded, {tensors.begin(), tensors.end()}));
    NamedBytes named;
    for (std::size_t i = 0; i < found.size(); ++i) named[loaded->outputs()[i].name] = found[i];
    states = named;
    results.push_back(std::move(named));
  }
  return results;
}

TEST(LstmOnDevice, ComputesWhatGooglesProgramsDo) {
  REEF_SKIP_WITHOUT_ZOO(zoo);
  int compared = 0;
  for (const Pair& pair : pairs_of(zoo)) {
    const auto source = tflite::load_model(pair.source);
    ASSERT_TRUE(source.ok()) << source.status().message();
    const auto& ops = source->subgraphs[0].operators;
    const auto is_lstm = [](const ir::Operator& op) { return op.type == "UNIDIRECTIONAL_SEQUENCE_LSTM"; };
    if (std::none_of(ops.begin(), ops.end(), is_lstm)) continue;
    SCOPED_TRACE(pair.name);
    const auto theirs = package_of(pair.compiled);
    ASSERT_TRUE(theirs.ok()) << theirs.status().message();
    const auto expected = inferences(*theirs, *source);
    ASSERT_TRUE(expected.ok()) << expected.status().message();
    for (const tiled::Level level : {tiled::Level::kAsGoogle, tiled::Level::kBetter}) {
      const auto ours = compiler::generate_code_with(
          WholeModel(*source).part(7), {.level = level, .lstm_arguments = numeric::LstmArguments::kGoogles});
      ASSERT_TRUE(ours.ok()) << ours.status().message();
      const auto found = inferences(*ours, *source);
      ASSERT_TRUE(found.ok()) << found.status().message();
      EXPECT_EQ(*found, *expected);
    }
    ++compared;
  }
  std::printf("%d compiled files with an LSTM\n", compared);
  EXPECT_GE(compared, 1);
}

}  // namespace
}  // namespace reef::testing
