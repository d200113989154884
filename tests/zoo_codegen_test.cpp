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

}  // namespace
}  // namespace reef::testing
