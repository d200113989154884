// SPDX-License-Identifier: Apache-2.0
// Code that Reef generates for models of the collection, beside what Google's newest compiler made of them.
#include <algorithm>
#include <map>

#include <gtest/gtest.h>

#include "base/file.h"
#include "emit/compiled_model.h"
#include "formats/tflite/reader.h"
#include "generated_code.h"
#include "google_choices.h"
#include "ops/dependencies.h"
#include "zoo.h"
#include "zoo_pairs.h"

namespace reef::testing {
namespace {

using darwinn::ExecutableType;

bool belongs_to(const Pair& pair, std::string_view family) {
  return pair.generation == 16 && pair.name.starts_with(family);
}

// Complete files, given the caching token.
TEST(ZooCodegen, SingleLayersEqualGooglesFiles) {
  REEF_SKIP_WITHOUT_ZOO(zoo);
  int files = 0;
  for (const Pair& pair : pairs_of(zoo)) {
    if (!belongs_to(pair, "conv_k3_") && !belongs_to(pair, "gabor_") && !belongs_to(pair, "dense_")) continue;
    SCOPED_TRACE(pair.name);
    const auto source = tflite::load_model(pair.source);
    ASSERT_TRUE(source.ok());
    const auto theirs = package_of(pair.compiled);
    ASSERT_TRUE(theirs.ok());
    const WholeModel whole(*source);
    const auto package = compiler::generate_code_with(whole.part(theirs->executables[0].parameter_caching_token),
                                                      {.compiler_version = theirs->compiler_version});
    ASSERT_TRUE(package.ok()) << package.status().message();
    for (const auto type : {ExecutableType::kExecutionOnly, ExecutableType::kParameterCaching}) {
      const auto comparison = compare_programs(program_of(*package, type).value(), program_of(*theirs, type).value());
      EXPECT_EQ(comparison.first_difference, "");
      EXPECT_EQ(comparison.equal, comparison.rows);
    }
    const auto ours = whole.file(*package);
    ASSERT_TRUE(ours.ok()) << ours.status().message();
    const auto expected = read_file(pair.compiled, std::uint64_t{1} << 30);
    ASSERT_TRUE(expected.ok());
    EXPECT_EQ(ours->size(), expected->size());
    EXPECT_TRUE(std::ranges::equal(*ours, expected->span()));
    const Status runs = runs_as_chip_reference(*source, *package, 1);
    EXPECT_TRUE(runs.ok()) << runs.message();
    ++files;
  }
  EXPECT_GE(files, 10);
}

// Tile and host-queue instructions: compilers before the newest compute host addresses by other scalar code.
isa::Program without_scalar_code(const isa::Program& program) {
  isa::Program result;
  for (const isa::Instruction& instruction : program) {
    if (instruction.opcode() != isa::Opcode::kScalar && instruction.opcode() != isa::Opcode::kStart) {
      result.push_back(instruction);
    }
  }
  return result;
}

// What can be compared: everything, but for the scalar code of older compilers.
isa::Program comparable(const isa::Program& program, const Pair& pair) {
  return pair.generation < 16 ? without_scalar_code(program) : program;
}

// Networks whose whole execution program must equal Google's, word for word, with its places in memory.
bool must_be_equal(const Pair& pair) {
  const auto is_one_of = [&](std::initializer_list<std::string_view> families) {
    return std::any_of(families.begin(), families.end(),
                       [&](std::string_view family) { return pair.name.starts_with(family); });
  };
  if (pair.generation == 15) return is_one_of({"mobilenet_v1_"});
  return pair.generation == 16 && is_one_of({"conv_k3_", "gabor_", "dense_", "mobilenetv2_small_50", "rl_mlp_tanh"});
}

// As many of the part's operators, from the first, as there is code for.
Result<LikeGoogle> longest_beginning(const ir::Model& source, MappedPart& mapped, const darwinn::Package& theirs) {
  while (!mapped.ops.empty()) {
    auto code = generate_like_google(mapped.part(source, 1, std::max(theirs.min_runtime_version, 13)), theirs);
    if (code.ok()) return code;
    mapped.ops.pop_back();
    const auto border = ops::Dependencies(source).border(mapped.ops);
    mapped.inputs = border.inputs;
    mapped.outputs = border.outputs;
  }
  return unsupported("not even the first operator");
}

// Every file of the newer compilers beside ours, with its places in memory. Where there is no code for the whole, what
// there is code for is compared with the beginning of theirs.
TEST(ZooCodegen, ProgramsBesideGoogles) {
  REEF_SKIP_WITHOUT_ZOO(zoo);
  const char* only = std::getenv("REEF_PAIR");  // a part of a pair's name, to see its first differences
  int whole_programs = 0;
  for (const Pair& pair : pairs_of(zoo)) {
    if (pair.generation < 15 || (only != nullptr && pair.name.find(only) == std::string::npos)) continue;
    SCOPED_TRACE(pair.name);
    const auto source = tflite::load_model(pair.source);
    const auto theirs = package_of(pair.compiled);
    ASSERT_TRUE(source.ok() && theirs.ok());
    auto mapped = MappedPart::of(*source, *theirs);
    if (!mapped.ok()) {
      std::printf("%-45.45s %s\n", pair.name.c_str(), mapped.status().message().c_str());
      continue;
    }
    const std::size_t ops = mapped->ops.size();
    const auto why = compiler::generate_code(mapped->part(*source, 1, 14));
    const auto code = longest_beginning(*source, *mapped, *theirs);
    if (!code.ok()) {
      std::printf("%-45.45s no code: %.90s\n", pair.name.c_str(), why.status().message().c_str());
      EXPECT_FALSE(must_be_equal(pair)) << why.status().message();
      continue;
    }
    bool equal = mapped->ops.size() == ops;
    for (const darwinn::Executable& execution : theirs->executables) {
      const darwinn::Executable* ours = code->code.package.find(execution.type);
      if (ours == nullptr) continue;
      const Likeness found =
          likeness(comparable(whole_program(*ours).value(), pair), comparable(whole_program(execution).value(), pair));
      equal = equal && found.identical;
      if (execution.type == ExecutableType::kParameterCaching && mapped->ops.size() < ops) continue;
      std::printf("%-45.45s %-17s %3zu of %3zu ops, %6d of %6d rows equal%s%s\n", pair.name.c_str(),
                  std::string(darwinn::name_of(execution.type)).c_str(), mapped->ops.size(), ops, found.equal,
                  found.rows, found.identical ? ", identical" : "",
                  code->options.parameter_places ? "" : ", own places");
      if (only != nullptr) {
        for (const std::string& difference : found.differences) std::printf("%s\n", difference.c_str());
      }
      if (must_be_equal(pair)) {
        EXPECT_EQ(found.first_difference(), "");
      }
    }
    if (!why.ok() && only != nullptr) std::printf("no code for all: %s\n", why.status().message().c_str());
    whole_programs += equal;
    EXPECT_TRUE(equal || !must_be_equal(pair));
  }
  std::printf("%d packages identical\n", whole_programs);
}

// The convolutions that networks begin with, up to the first operator that there is no code for. What is left of the
// programs then differs of necessity: ours sends its result to the host.
TEST(ZooCodegen, FirstLayersOfNetworksEqualGoogles) {
  REEF_SKIP_WITHOUT_ZOO(zoo);
  const std::map<std::string, double> families = {{"mobilenet_v1_0.25_128_quant/v15_edgetpu", 0.99},
                                                  {"mobilenet_v1_0.5_160_quant/v15_edgetpu", 0.99},
                                                  {"mobilenet_v1_1.0_224_quant_embedding_extractor/v15_edgetpu", 0.99},
                                                  {"mobilenetv2_small_50/v16_edgetpu", 0.9}};
  for (const Pair& pair : pairs_of(zoo)) {
    const auto family = families.find(pair.name);
    if (family == families.end()) continue;
    SCOPED_TRACE(pair.name);
    const auto source = tflite::load_model(pair.source);
    const auto theirs = package_of(pair.compiled);
    ASSERT_TRUE(source.ok() && theirs.ok());
    auto places = parameter_places(program_of(*theirs, ExecutableType::kParameterCaching).value());
    WholeModel first(*source);
    std::size_t layers = 0;
    for (std::size_t i = 0; i < first.ops.size(); ++i) {
      const std::string& type = source->subgraphs[0].operators[i].type;
      const bool computes = type == "CONV_2D" || type == "DEPTHWISE_CONV_2D";
      const bool averages = type == "AVERAGE_POOL_2D" || type == "MEAN";
      if (!computes && !averages && type != "QUANTIZE" && type != "PAD" && type != "ADD") {
        first.ops.resize(i);
        break;
      }
      layers += computes;
      if (averages) {
        first.ops.resize(i + 1);
        break;
      }
    }
    const ops::Dependencies::Border border = ops::Dependencies(*source).border(first.ops);
    first.inputs = border.inputs;
    first.outputs = border.outputs;
    places.resize(layers);
    const auto package = compiler::generate_code_with(first.part(1), {.parameter_places = places});
    ASSERT_TRUE(package.ok()) << package.status().message();
    const auto ours = program_of(*package, ExecutableType::kExecutionOnly).value();
    const auto comparison = compare_programs(
        without_scalar_code(ours), without_scalar_code(program_of(*theirs, ExecutableType::kExecutionOnly).value()));
    std::printf("%s: %zu layers, %d of %d rows equal, of %d in the whole program; first difference %s\n",
                pair.name.c_str(), layers, comparison.equal, comparison.compared, comparison.rows,
                comparison.first_difference.c_str());
    EXPECT_GE(comparison.equal, family->second * comparison.compared);
    const Status runs = runs_as_chip_reference(*source, *package, 1);
    EXPECT_TRUE(runs.ok()) << runs.message();
  }
}

}  // namespace
}  // namespace reef::testing
