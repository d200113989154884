// SPDX-License-Identifier: Apache-2.0
// Code that Reef generates for models of the collection, beside what Google's newest compiler made of them.
#include <gtest/gtest.h>

#include "base/file.h"
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
    if (!belongs_to(pair, "conv_k3_")) continue;
    SCOPED_TRACE(pair.name);
    const auto source = tflite::load_model(pair.source);
    ASSERT_TRUE(source.ok());
    const auto theirs = package_of(pair.compiled);
    ASSERT_TRUE(theirs.ok());
    const WholeModel whole(*source);
    const auto package = compiler::generate_code(whole.part(theirs->executables[0].parameter_caching_token));
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
  EXPECT_GE(files, 6);
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
    const auto package = compiler::generate_code_with(whole.part(1), {parameter_places(*caching)});
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

}  // namespace
}  // namespace reef::testing
