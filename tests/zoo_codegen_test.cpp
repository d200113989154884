// SPDX-License-Identifier: Apache-2.0
// Code that Reef generates for models of the collection, beside what Google's newest compiler made of them.
#include <algorithm>
#include <fstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/file.h"
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
    const auto package =
        compiler::generate_code_with(whole.part(theirs->executables[0].parameter_caching_token),
                                     {.level = tiled::Level::kAsGoogle, .compiler_version = theirs->compiler_version});
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

// Networks whose whole programs must equal Google's, word for word, with its places in memory.
bool must_be_equal(const Pair& pair) {
  const auto is_one_of = [&](std::initializer_list<std::string_view> families) {
    return std::any_of(families.begin(), families.end(),
                       [&](std::string_view family) { return pair.name.starts_with(family); });
  };
  if (pair.generation == 15) return is_one_of({"mobilenet_v1_"});
  return pair.generation == 16 &&
         is_one_of({"conv_k3_", "gabor_", "dense_", "mobilenetv2_small_50", "rl_mlp_tanh", "looming_"});
}

// docs/likeness.md has a line for each program, which must begin like this. REEF_LIKENESS: what it should say is
// printed.
class LikenessDocument {
 public:
  LikenessDocument() {
    std::ifstream file(REEF_SOURCE_DIR "/docs/likeness.md");
    for (std::string line; std::getline(file, line);) lines_.push_back(line);
  }
  void check(const std::string& name, ExecutableType type, const Likeness& found) const {
    const std::string begin = fmt::format("| {} | {} | {} of {}{} |", name,
                                          type == ExecutableType::kParameterCaching ? "caching" : "execution",
                                          found.equal, found.rows, found.identical ? ", identical" : "");
    if (std::getenv("REEF_LIKENESS") != nullptr) std::printf("%s\n", begin.c_str());
    EXPECT_TRUE(std::any_of(lines_.begin(), lines_.end(), [&](const std::string& l) { return l.starts_with(begin); }))
        << "docs/likeness.md lacks: " << begin;
  }

 private:
  std::vector<std::string> lines_;
};

// As many of the part's operators, from the first, as there is code for. `why` says what is wrong with all of them.
Result<LikeGoogle> longest_beginning(const ir::Model& source, MappedPart& mapped, const darwinn::Package& theirs,
                                     Status& why) {
  while (!mapped.ops.empty()) {
    auto code = generate_like_google(mapped.part(source, 1, theirs.min_runtime_version), theirs);
    if (code.ok()) return code;
    if (why.ok()) why = code.status();
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
  const LikenessDocument document;
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
    Status why;
    const auto code = longest_beginning(*source, *mapped, *theirs, why);
    if (!code.ok()) {
      std::printf("%-45.45s no code: %.90s\n", pair.name.c_str(), why.message().c_str());
      EXPECT_FALSE(must_be_equal(pair)) << why.message();
      continue;
    }
    bool equal = mapped->ops.size() == ops;
    for (const darwinn::Executable& execution : theirs->executables) {
      const darwinn::Executable* ours = code->code.package.find(execution.type);
      if (ours == nullptr) continue;
      const Likeness found = likeness(whole_program(*ours).value(), whole_program(execution).value());
      equal = equal && found.identical;
      if (execution.type == ExecutableType::kParameterCaching && mapped->ops.size() < ops) continue;
      std::printf("%-45.45s %-17s %3zu of %3zu ops, %6d of %6d rows equal%s%s\n", pair.name.c_str(),
                  std::string(darwinn::name_of(execution.type)).c_str(), mapped->ops.size(), ops, found.equal,
                  found.rows, found.identical ? ", identical" : "",
                  code->options.parameter_places ? "" : ", own places");
      if (only != nullptr) {
        for (const std::string& difference : found.differences) std::printf("%s\n", difference.c_str());
      }
      if (mapped->ops.size() == ops) document.check(pair.name, execution.type, found);
      if (must_be_equal(pair)) {
        EXPECT_EQ(found.first_difference(), "");
      }
    }
    const auto own = compiler::generate_code(mapped->part(*source, 1, 14));
    const Status runs = own.ok() ? runs_as_chip_reference(*source, *own, 1) : own.status();
    EXPECT_TRUE(runs.ok()) << runs.message();
    if (!why.ok() && only != nullptr) std::printf("no code for all: %s\n", why.message().c_str());
    whole_programs += equal;
    EXPECT_TRUE(equal || !must_be_equal(pair));
  }
  std::printf("%d packages identical\n", whole_programs);
}

}  // namespace
}  // namespace reef::testing
