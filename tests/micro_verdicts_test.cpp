// SPDX-License-Identifier: Apache-2.0
// What Reef says of TFLite Micro's operators against what TFLite Micro did with the recorded one-operator models:
// tests/micro/verdicts.tsv, made by tools/oracle/make_micro_ops.py from the package `tflite-micro` and from two builds
// for 32-bit ARM (the same sources as boards compile, and those of Coral's SDK with CMSIS-NN).
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "compiler/front_end.h"
#include "micro/assess.h"
#include "vector_case.h"

namespace reef::testing {
namespace {

struct Verdict {
  std::map<std::string, std::string> words;  // "tflm verdict" -> "ok"; by the file's head line
  std::string operator[](const std::string& column) const {
    const auto at = words.find(column);
    return at == words.end() ? "" : at->second;
  }
};
using Verdicts = std::map<std::string, std::map<std::string, Verdict>>;  // by operator and case

std::vector<std::string> split(const std::string& line, const std::string& separator) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0;;) {
    const std::size_t end = line.find(separator, begin);
    parts.push_back(line.substr(begin, end - begin));
    if (end == std::string::npos) return parts;
    begin = end + separator.size();
  }
}

Verdicts read_verdicts() {
  std::ifstream file(REEF_SOURCE_DIR "/tests/micro/verdicts.tsv");
  std::string line;
  std::getline(file, line);
  const std::vector<std::string> columns = split(line.substr(2), ", ");
  Verdicts verdicts;
  while (std::getline(file, line)) {
    const std::vector<std::string> values = split(line, "\t");
    Verdict verdict;
    for (std::size_t i = 0; i < std::min(columns.size(), values.size()); ++i) verdict.words[columns[i]] = values[i];
    verdicts[values[0]][values[1]] = verdict;
  }
  return verdicts;
}

// Runs `use(operator, case, model, verdict)` for every recorded case whose model Reef reads as it stands.
template <typename Use>
void for_each_case(const Use& use) {
  for (const auto& [op, cases] : read_verdicts()) {
    // Reef reads this custom operator as TRANSPOSE_CONV, which the runtime has.
    if (op == "Convolution2DTransposeBias") continue;
    const auto vectors = read_vector_file(std::string(REEF_SOURCE_DIR "/tests/vectors/") + op + ".jsonl");
    ASSERT_TRUE(vectors.ok()) << op;
    for (const VectorCase& vector : *vectors) {
      const auto at = cases.find(vector.name);
      if (at == cases.end()) continue;
      const auto read = compiler::read_tflite_model(vector.model);
      if (read.ok()) use(op, vector, read->model, at->second);
    }
  }
}

bool gives_floats(const VectorCase& vector) {
  return !vector.outputs.empty() && vector.outputs[0].type == ir::DataType::kFloat32;
}

// It runs and gives the recorded numbers. Results that differ from those of TFLite 2.9 are another release's; floats
// may differ in their last bits, and so may kernels that are said to round otherwise.
bool runs_right(const VectorCase& vector, const std::string& words, const micro::Assessment& assessment) {
  if (words != "differs") return words == "ok";
  return vector.release != ops::TfliteRelease::kCurrent || gives_floats(vector) || !assessment.rounding.empty();
}

// Accepted although the runtime did something else: numbers outside of a type's range, not-a-number, shapes that only a
// resized input gives. Nothing in a model tells. And the package counts variables by name alone, whatever their
// container.
const std::set<std::string> kAccepted = {
    "CAST float32_to_int8",           "CAST float32_to_int16",      "CAST float32_to_int32", "CAST float32_to_uint32",
    "ARG_MAX float32_not_finite",     "ARG_MIN float32_not_finite", "IF resized_false",      "IF resized_true",
    "READ_VARIABLE containers_apart",
};

// The same of Coral's release alone: not-a-number.
const std::set<std::string> kAcceptedForCoral = {"QUANTIZE float32_int8_special", "QUANTIZE float32_int16_special"};

TEST(MicroVerdicts, WhatIsAcceptedRuns) {
  int accepted = 0;
  for_each_case([&](const std::string& op, const VectorCase& vector, const ir::Model& model, const Verdict& verdict) {
    const micro::Assessment assessment = micro::assess(model, {});
    if (!assessment.is_accepted()) return;
    ++accepted;
    if (kAccepted.count(op + " " + vector.name) > 0) return;
    EXPECT_TRUE(runs_right(vector, verdict["tflm verdict"], assessment))
        << op << " " << vector.name << ": " << verdict["tflm verdict"] << " " << verdict["what tflm said"];
  });
  EXPECT_GT(accepted, 2500);
}

TEST(MicroVerdicts, WhatIsRefusedDoesNotRunOrGivesOtherNumbers) {
  int refused = 0, needlessly = 0;
  for_each_case([&](const std::string& op, const VectorCase& vector, const ir::Model& model, const Verdict& verdict) {
    const micro::Assessment assessment = micro::assess(model, {});
    if (assessment.is_accepted()) return;
    ++refused;
    if (!runs_right(vector, verdict["tflm verdict"], assessment)) return;
    // Rules that refuse a little more than needed: tensors without elements, scales along an axis, powers of two.
    static const std::set<std::string> kCautious = {"no-elements",         "scales-along-axis", "int16-kernels",
                                                    "padded-blocks",       "dynamic-shape",     "declared-shapes",
                                                    "control-flow-shapes", "abs-scales"};
    ++needlessly;
    EXPECT_EQ(kCautious.count(assessment.refusals.front().rule), 1u)
        << "CASE " << op << " " << vector.name << ": " << assessment.refusals.front().reason;
  });
  EXPECT_GT(refused, 1500);
  EXPECT_LT(needlessly, 60);
}

// The same for the release in Coral's SDK, which was asked what the current one runs.
TEST(MicroVerdicts, WhatIsAcceptedRunsWithCoralsSdk) {
  int accepted = 0;
  for_each_case([&](const std::string& op, const VectorCase& vector, const ir::Model& model, const Verdict& verdict) {
    const std::string words = verdict["coral verdict"];
    const micro::Assessment assessment = micro::assess(model, {.target = micro::Target::kMicro});
    if (words.empty() || !assessment.is_accepted()) return;
    ++accepted;
    if (kAccepted.count(op + " " + vector.name) > 0 || kAcceptedForCoral.count(op + " " + vector.name) > 0) return;
    EXPECT_TRUE(runs_right(vector, words, assessment)) << op << " " << vector.name << ": " << words;
  });
  EXPECT_GT(accepted, 1500);
}

// An operator for which no release has a line of types must be refused for that reason.
TEST(MicroVerdicts, AbsentOperatorsAreRefusedAsSuch) {
  int absent = 0;
  for_each_case([&](const std::string& op, const VectorCase& vector, const ir::Model& model, const Verdict& verdict) {
    if (verdict["tflm verdict"] != "absent") return;
    const micro::Assessment assessment = micro::assess(model, {});
    ASSERT_FALSE(assessment.is_accepted()) << op << " " << vector.name;
    bool named = false;
    for (const micro::Refusal& refusal : assessment.refusals) named |= refusal.rule == "operator";
    EXPECT_TRUE(named) << op << " " << vector.name;
    ++absent;
  });
  EXPECT_GT(absent, 500);
}

struct Fit {
  int count = 0, too_small = 0, too_large = 0;
};

Fit compare_arenas(micro::Build build, const std::string& column) {
  Fit fit;
  for_each_case([&](const std::string& op, const VectorCase& vector, const ir::Model& model, const Verdict& verdict) {
    const std::string words = verdict[column];
    if (words.empty() || !micro::assess(model, {}).is_accepted()) return;
    const auto predicted = micro::predict_arena(model, build);
    if (!predicted.ok()) return;  // signal operators
    const double smallest = std::stod(words);
    ++fit.count;
    if (static_cast<double>(predicted->bytes) < smallest) {
      ++fit.too_small;
      ADD_FAILURE() << op << " " << vector.name << ": " << predicted->bytes << " are predicted, " << smallest
                    << " needed";
    }
    if (static_cast<double>(predicted->bytes) > smallest * 1.1) {
      ++fit.too_large;
      ADD_FAILURE() << op << " " << vector.name << ": " << predicted->bytes << " are predicted, " << smallest
                    << " needed";
    }
  });
  return fit;
}

TEST(MicroArena, IsEnoughForThePackage) { EXPECT_GT(compare_arenas(micro::Build::kTflm64, "tflm arena").count, 150); }
TEST(MicroArena, IsEnoughOn32Bits) { EXPECT_GT(compare_arenas(micro::Build::kTflm32, "tflm32 arena").count, 150); }
TEST(MicroArena, IsEnoughForCoralsSdk) { EXPECT_GT(compare_arenas(micro::Build::kCoral, "coral arena").count, 150); }

}  // namespace
}  // namespace reef::testing
