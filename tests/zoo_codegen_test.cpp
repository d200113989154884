// SPDX-License-Identifier: Apache-2.0
// Code that Reef generates for models of the collection, beside what Google's newest compiler made of them.
#include <algorithm>
#include <map>

#include <gtest/gtest.h>

#include "base/file.h"
#include "emit/compiled_model.h"
#include "formats/tflite/reader.h"
#include "generated_code.h"
#include "zoo.h"
#include "zoo_pairs.h"

namespace reef::testing {
namespace {

using darwinn::ExecutableType;

bool belongs_to(const Pair& pair, std::string_view family) {
  return pair.generation == 16 && pair.name.starts_with(family);
}

// Complete files, given the caching token.
TEST(ZooCodegen, SingleConvolutionsEqualGooglesFiles) {
  REEF_SKIP_WITHOUT_ZOO(zoo);
  int files = 0;
  for (const Pair& pair : pairs_of(zoo)) {
    if (!belongs_to(pair, "conv_k3_") && !belongs_to(pair, "gabor_")) continue;
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
  EXPECT_GE(files, 7);
}

// Every file of the newest compiler, with the parameters where it has put them: whole networks that there is code for
// must come out word for word.
TEST(ZooCodegen, WholeProgramsEqualGoogles) {
  REEF_SKIP_WITHOUT_ZOO(zoo);
  int whole_programs = 0;
  for (const Pair& pair : pairs_of(zoo)) {
    if (pair.generation != 16) continue;
    const auto source = tflite::load_model(pair.source);
    ASSERT_TRUE(source.ok());
    const auto theirs = package_of(pair.compiled);
    if (!theirs.ok() || theirs->find(ExecutableType::kParameterCaching) == nullptr) continue;
    const auto caching = program_of(*theirs, ExecutableType::kParameterCaching);
    ASSERT_TRUE(caching.ok());
    const WholeModel whole(*source);
    const auto package = compiler::generate_code_with(whole.part(1), {.parameter_places = parameter_places(*caching)});
    if (!package.ok()) {
      std::printf("%-40.40s no code: %.110s\n", pair.name.c_str(), package.status().message().c_str());
      continue;
    }
    SCOPED_TRACE(pair.name);
    for (const auto type : {ExecutableType::kExecutionOnly, ExecutableType::kParameterCaching}) {
      const auto comparison = compare_programs(program_of(*package, type).value(), program_of(*theirs, type).value());
      std::printf("%-40.40s %d of %d rows equal\n", pair.name.c_str(), comparison.equal, comparison.rows);
      EXPECT_EQ(comparison.first_difference, "");
      EXPECT_EQ(comparison.equal, comparison.rows);
    }
    const darwinn::Executable* ours = package->find(ExecutableType::kParameterCaching);
    EXPECT_EQ(ours->parameters, theirs->find(ExecutableType::kParameterCaching)->parameters);
    ++whole_programs;
  }
  EXPECT_GE(whole_programs, 7);
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
      if (!computes && type != "QUANTIZE" && type != "PAD" && type != "ADD") {
        first.ops.resize(i);
        break;
      }
      layers += computes;
    }
    const emit::Border border = emit::border_of(*source, first.ops);
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
