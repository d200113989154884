// SPDX-License-Identifier: Apache-2.0
// Retargeting every compiled file of the collection: to its own source, to a model with other weights and back, and
// between two models that Google compiled both.
#include <cstring>
#include <filesystem>
#include <functional>
#include <iostream>
#include <random>

#include <gtest/gtest.h>

#include "base/file.h"
#include "formats/darwinn/reader.h"
#include "formats/tflite/reader.h"
#include "formats/tflite/writer.h"
#include "ir/verify.h"
#include "model_variation.h"
#include "ops/settled_shapes.h"
#include "retarget/retarget.h"
#include "zoo.h"

namespace reef {
namespace {

namespace fs = std::filesystem;

struct Pair {
  std::string name;
  std::string compiled, source;
};

// Compilers before the present one got older sources, where the collection has them.
std::vector<Pair> all_pairs(const std::string& zoo) {
  std::vector<Pair> pairs;
  for (const std::string& path : testing::tflite_files(zoo + "/pairs")) {
    const fs::path file(path);
    const std::string name = file.filename().string();
    if (name.find("_edgetpu.tflite") == std::string::npos) continue;
    fs::path source = file.parent_path() / "source.tflite";
    const fs::path old = file.parent_path() / "source_old.tflite";
    if (name.starts_with("v2_") && fs::exists(old)) source = old;
    pairs.push_back({file.parent_path().filename().string() + "/" + name, path, source.string()});
  }
  return pairs;
}

Bytes read(const std::string& path) {
  auto file = read_file(path, tflite::kMaxFileBytes);
  EXPECT_TRUE(file.ok()) << path;
  return file.ok() ? *file : Bytes();
}

ir::Model load(const std::string& path) {
  auto model = tflite::load_model(path);
  EXPECT_TRUE(model.ok()) << path << ": " << model.status().message();
  return model.ok() ? std::move(model).value() : ir::Model();
}

Bytes with_token(std::vector<std::uint8_t> file, std::uint64_t from, std::uint64_t to) {
  for (std::size_t i = 0; i + 8 <= file.size(); ++i) {
    if (std::memcmp(&file[i], &from, 8) == 0) std::memcpy(&file[i], &to, 8);
  }
  return Bytes(std::move(file));
}

TEST(ZooRetarget, OwnSourceGivesTheFileAgain) {
  REEF_SKIP_WITHOUT_ZOO(zoo);
  int files = 0, equal = 0;
  std::int64_t tensor_ops = 0, copies = 0, bytes = 0, replaced = 0, constants = 0;
  for (const Pair& pair : all_pairs(zoo)) {
    const Bytes compiled = read(pair.compiled);
    const auto result = retarget::retarget(compiled, load(pair.source));
    ++files;
    ASSERT_TRUE(result.ok()) << pair.name << ": " << result.status().message();
    const retarget::Report& report = result->report;
    EXPECT_NE(report.new_token, report.old_token) << pair.name;
    const bool is_equal = with_token(result->file, report.new_token, report.old_token) == compiled;
    EXPECT_TRUE(is_equal) << pair.name;
    equal += is_equal;
    tensor_ops += report.tensor_ops;
    copies += report.copies;
    bytes += report.parameter_bytes;
    replaced += report.replaced_parameter_bytes;
    constants += report.constants;
  }
  std::cout << equal << " of " << files << " files come out as they were but for the token; " << tensor_ops
            << " tensor ops, of which " << copies << " copies, " << constants << " constants computed, " << replaced
            << " of " << bytes << " parameter bytes computed\n";
  EXPECT_GE(files, 58);
}

// REEF_RETARGET=full takes the five files as well that take most of the time.
constexpr std::int64_t kQuickSteps = 20'000'000;

TEST(ZooRetarget, ThereAndBack) {
  REEF_SKIP_WITHOUT_ZOO(zoo);
  const char* mode = std::getenv("REEF_RETARGET");
  const bool is_full = mode != nullptr && std::string_view(mode) == "full";
  int files = 0, left_out = 0;
  for (const Pair& pair : all_pairs(zoo)) {
    const Bytes compiled = read(pair.compiled);
    const ir::Model source = load(pair.source);
    const ir::Model other = testing::vary(source, static_cast<std::uint32_t>(files + left_out));
    ASSERT_TRUE(ir::verify(other).ok()) << pair.name;
    retarget::Options limits;
    if (!is_full) limits.max_steps = kQuickSteps;
    const auto there = retarget::retarget(compiled, other, limits);
    if (!is_full && there.status().code() == StatusCode::kResourceExhausted) {
      ++left_out;
      continue;
    }
    ASSERT_TRUE(there.ok()) << pair.name << ": " << there.status().message();
    EXPECT_NE(Bytes(there->file), compiled) << pair.name;
    const auto back = retarget::retarget(Bytes(there->file), source);
    ASSERT_TRUE(back.ok()) << pair.name << ": " << back.status().message();
    EXPECT_EQ(with_token(back->file, back->report.new_token, there->report.old_token), compiled) << pair.name;
    ++files;
  }
  std::cout << files << " files there and back, " << left_out << " left to REEF_RETARGET=full\n";
  EXPECT_GE(files, is_full ? 58 : 50);
}

TEST(ZooRetarget, KnowingTheSourceGivesTheSame) {
  REEF_SKIP_WITHOUT_ZOO(zoo);
  for (const std::string name : {"color_red_64x64/v16", "mobilenetv2_small_50/v16", "posenet_353_481/v15",
                                 "keras_lstm_mnist_ptq/v15", "asr_tflite_model_ASR_Model/v2"}) {
    const std::string folder = zoo + "/pairs/" + name.substr(0, name.find('/'));
    const Bytes compiled = read(zoo + "/pairs/" + name + "_edgetpu.tflite");
    const ir::Model source = load(folder + "/source.tflite");
    const ir::Model other = testing::vary(source, 7);
    retarget::Options options;
    options.source = &source;
    const auto with = retarget::retarget(compiled, other, options);
    ASSERT_TRUE(with.ok()) << name << ": " << with.status().message();
    EXPECT_EQ(with->file, retarget::retarget(compiled, other)->file) << name;
    options.source = &other;
    EXPECT_FALSE(retarget::retarget(compiled, other, options).ok()) << name;
  }
}

// Instructions and parameters of all programs of a compiled file.
std::vector<Bytes> programs(const Bytes& file) {
  std::vector<Bytes> parts;
  const auto model = tflite::read_model(file);
  for (const ir::Operator& op : model->subgraphs[0].operators) {
    if (op.type != darwinn::kCustomOpName) continue;
    const auto options = darwinn::read_custom_options(op.custom_options);
    for (const darwinn::Executable& executable : options->package.executables) {
      for (const auto& chunk : executable.instruction_chunks) parts.push_back(chunk.bitstream);
      parts.push_back(executable.parameters);
      for (const auto* layers : {&executable.input_layers, &executable.output_layers}) {
        for (const darwinn::Layer& layer : *layers) {
          parts.push_back(Bytes::copy_of({reinterpret_cast<const std::uint8_t*>(&layer.numerics->zero_point), 4}));
          parts.push_back(
              Bytes::copy_of({reinterpret_cast<const std::uint8_t*>(&layer.numerics->dequantization_factor), 4}));
        }
      }
    }
  }
  return parts;
}

// Google compiled both colour trackers: one as template for the other gives the other's program.
TEST(ZooRetarget, GivesGooglesOwnProgram) {
  REEF_SKIP_WITHOUT_ZOO(zoo);
  const std::string red = zoo + "/pairs/color_red_64x64/", blue = zoo + "/pairs/color_blue_64x64/";
  for (const auto& [from, to] : {std::pair(red, blue), std::pair(blue, red)}) {
    const auto result = retarget::retarget(read(from + "v16_edgetpu.tflite"), load(to + "source.tflite"));
    ASSERT_TRUE(result.ok()) << result.status().message();
    EXPECT_EQ(programs(Bytes(result->file)), programs(read(to + "v16_edgetpu.tflite")));
    EXPECT_NE(programs(Bytes(result->file)), programs(read(from + "v16_edgetpu.tflite")));
  }
}

void expect_refusal(const std::string& compiled, const ir::Model& model, const std::vector<std::string>& words) {
  const auto result = retarget::retarget(read(compiled), model);
  ASSERT_FALSE(result.ok());
  for (const std::string& word : words) {
    EXPECT_NE(result.status().message().find(word), std::string::npos) << word << " in: " << result.status().message();
  }
}

TEST(ZooRetarget, SaysWhatDiffers) {
  REEF_SKIP_WITHOUT_ZOO(zoo);
  const std::string pairs = zoo + "/pairs/";
  const std::string imagenet = pairs + "mobilenet_v2_1.0_224_quant/", birds = pairs + "mobilenet_v2_inat_bird/";
  expect_refusal(imagenet + "v2_edgetpu.tflite", load(birds + "source.tflite"), {"[1, 1001]", "[1, 965]"});
  expect_refusal(birds + "v2_edgetpu.tflite", load(imagenet + "source.tflite"), {"[1, 1001]", "[1, 965]"});
  const std::string small = pairs + "mobilenet_v1_0.25_128_quant/";
  const ir::Model model = load(small + "source.tflite");
  const auto changed = [&](std::size_t op, const char* name, ir::AttributeValue value) {
    ir::Model other = model;
    other.subgraphs[0].operators[op].attributes.set(name, std::move(value));
    ops::settle_shapes(other);  // as where a model enters
    return other;
  };
  // The map is twice as wide behind it, up to the pool over all of it.
  ir::Model wider = changed(3, "stride_w", std::int64_t{1});
  for (ir::Operator& op : wider.subgraphs[0].operators) {
    if (op.type == "AVERAGE_POOL_2D") op.attributes.set("filter_width", 2 * op.attributes.get_int("filter_width"));
  }
  ops::settle_shapes(wider);
  expect_refusal(small + "v15_edgetpu.tflite", wider, {"op 3 DEPTHWISE_CONV_2D", "stride 2x1"});
  ir::Model dilated = changed(5, "dilation_w_factor", std::int64_t{2});
  dilated.subgraphs[0].operators[5].attributes.set("dilation_h_factor", std::int64_t{2});
  expect_refusal(small + "v15_edgetpu.tflite", dilated, {"op 5 DEPTHWISE_CONV_2D", "dilation 2x2"});
  expect_refusal(small + "v15_edgetpu.tflite", changed(5, "padding", ir::EnumName{"VALID"}),
                 {"op 5 DEPTHWISE_CONV_2D", "padded by 0 rows"});
  ir::Model requantized = load(pairs + "dense_256/source.tflite");
  requantized.subgraphs[0]
      .tensors[static_cast<std::size_t>(requantized.subgraphs[0].operators[0].outputs[0])]
      .quantization.scale = {0.01f};
  expect_refusal(pairs + "dense_256/v16_edgetpu.tflite", requantized, {"op 0 QUANTIZE", "changes the quantization"});
}

// Two branches of one shape that are joined in the other order: the layers change places.
TEST(ZooRetarget, TellsEqualBranchesApart) {
  REEF_SKIP_WITHOUT_ZOO(zoo);
  const std::string folder = zoo + "/pairs/color_red_64x64/";
  const ir::Model model = load(folder + "source.tflite");
  ir::Model swapped = model;
  std::vector<std::size_t> dense;
  ir::Operator* concat = nullptr;
  for (std::size_t i = 0; i < swapped.subgraphs[0].operators.size(); ++i) {
    ir::Operator& op = swapped.subgraphs[0].operators[i];
    if (op.type == "FULLY_CONNECTED") dense.push_back(i);
    if (op.type == "CONCATENATION") concat = &op;
  }
  ASSERT_TRUE(dense.size() == 2 && concat != nullptr);
  std::swap(concat->inputs[0], concat->inputs[1]);
  // The same network, written another way: the layers' parameters are exchanged instead.
  ir::Model exchanged = model;
  std::swap(exchanged.subgraphs[0].operators[dense[0]].inputs, exchanged.subgraphs[0].operators[dense[1]].inputs);
  const Bytes compiled = read(folder + "v16_edgetpu.tflite");
  const auto a = retarget::retarget(compiled, swapped), b = retarget::retarget(compiled, exchanged);
  ASSERT_TRUE(a.ok() && b.ok()) << a.status().message() << b.status().message();
  EXPECT_EQ(programs(Bytes(a->file)), programs(Bytes(b->file)));
  EXPECT_NE(programs(Bytes(a->file)), programs(compiled));
}

// What carries a state to the next invocation has the state's quantization.
TEST(ZooRetarget, StatesAreLayersToo) {
  REEF_SKIP_WITHOUT_ZOO(zoo);
  const std::string folder = zoo + "/pairs/keras_lstm_mnist_ptq/";
  const ir::Model model = testing::vary(load(folder + "source.tflite"), 3);
  const auto result = retarget::retarget(read(folder + "v15_edgetpu.tflite"), model);
  ASSERT_TRUE(result.ok()) << result.status().message();
  const auto compiled = tflite::read_model(Bytes(result->file));
  const auto options = darwinn::read_custom_options(compiled->subgraphs[0].operators[0].custom_options);
  const darwinn::Executable& executable = options->package.executables[0];
  int states = 0;
  for (const darwinn::Layer& output : executable.output_layers) {
    for (const darwinn::Layer& input : executable.input_layers) {
      if (output.name != input.name + "_variable_output") continue;
      EXPECT_EQ(output.numerics, input.numerics);
      ++states;
    }
  }
  EXPECT_EQ(states, 2);
}

// Damaged instructions end with a message or a result, whatever they say.
TEST(ZooRetarget, SurvivesDamage) {
  REEF_SKIP_WITHOUT_ZOO(zoo);
  std::mt19937 random(1);
  for (const std::string name : {"bright_16x16/v16", "split_concat/v15", "mnist_dense/v1"}) {
    const std::string folder = zoo + "/pairs/" + name.substr(0, name.find('/'));
    const ir::Model model = load(folder + "/source.tflite");
    auto compiled = tflite::read_model(read(zoo + "/pairs/" + name + "_edgetpu.tflite"));
    ASSERT_TRUE(compiled.ok());
    const Bytes intact = compiled->subgraphs[0].operators[0].custom_options;
    for (int k = 0; k < 30; ++k) {
      std::vector<std::uint8_t> bytes(intact.span().begin(), intact.span().end());
      for (int n = 0; n < 20; ++n) bytes[random() % bytes.size()] ^= static_cast<std::uint8_t>(1u << random() % 8);
      compiled->subgraphs[0].operators[0].custom_options = Bytes(std::move(bytes));
      retarget::Options limits;
      limits.max_steps = 3'000'000;
      const auto file = tflite::write_model(*compiled);
      ASSERT_TRUE(file.ok());
      static_cast<void>(retarget::retarget(Bytes(*file), model, limits).ok());
    }
  }
}

}  // namespace
}  // namespace reef
