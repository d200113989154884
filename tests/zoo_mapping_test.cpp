// SPDX-License-Identifier: Apache-2.0
// The rules against what Google's compilers did: for every compiled model whose source is known, the operators that fit
// the chip at the runtime the file is for, less those that depend on one that does not, are those that were mapped.
#include <algorithm>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "formats/tflite/reader.h"
#include "ir/verify.h"
#include "partition/check.h"
#include "zoo.h"
#include "zoo_pairs.h"

namespace reef::partition {
namespace {

using testing::Pair;

// Operators of one part that begins at the inputs: those before it may stay on the CPU, those behind must not depend on
// one that does.
std::vector<std::int32_t> first_part(const ir::Subgraph& graph, const Assessment& assessment) {
  enum class At : std::uint8_t { kBefore, kInside, kBehind };
  std::vector<At> tensors(graph.tensors.size(), At::kBefore);
  std::vector<std::int32_t> part;
  for (std::size_t i = 0; i < graph.operators.size(); ++i) {
    At at = At::kBefore;
    for (const std::int32_t input : graph.operators[i].inputs) {
      if (input >= 0) at = std::max(at, tensors[static_cast<std::size_t>(input)]);
    }
    if (assessment.ops[i].fits() && at != At::kBehind) {
      at = At::kInside;
      part.push_back(static_cast<std::int32_t>(i));
    } else if (at == At::kInside) {
      at = At::kBehind;
    }
    for (const std::int32_t output : graph.operators[i].outputs) tensors[static_cast<std::size_t>(output)] = at;
  }
  return part;
}

nlohmann::json read_mapping(const std::string& zoo) {
  std::ifstream file(zoo + "/../truth/mapping.json");
  return nlohmann::json::parse(file, nullptr, false);
}

std::string reasons(const ir::Subgraph& graph, const Assessment& assessment) {
  std::string text;
  for (std::size_t i = 0; i < assessment.ops.size(); ++i) {
    for (const Finding& finding : assessment.ops[i].findings) {
      text += fmt::format("  op {} {}: {}: {}\n", i, graph.operators[i].type, finding.rule->id, finding.particulars);
    }
  }
  return text;
}

TEST(ZooMapping, FittingOpsAreThoseThatWereMapped) {
  REEF_SKIP_WITHOUT_ZOO(zoo);
  const nlohmann::json mapping = read_mapping(zoo);
  if (!mapping.is_array()) GTEST_SKIP() << "what was mapped is not recorded beside the collection";
  const std::vector<Pair> pairs = testing::pairs_of(zoo);
  int compared = 0;
  for (const nlohmann::json& entry : mapping) {
    const std::string compiled = zoo + "/" + entry["compiled_file"].get<std::string>();
    const auto pair = std::find_if(pairs.begin(), pairs.end(), [&](const Pair& p) { return p.compiled == compiled; });
    ASSERT_NE(pair, pairs.end()) << compiled;
    SCOPED_TRACE(pair->name);
    const Result<ir::Model> model = tflite::load_model(pair->source);
    ASSERT_TRUE(model.ok()) << model.status().message();
    const Assessment assessment = assess(*model, {.runtime = entry["min_runtime_version"][0].get<int>()});
    const ir::Subgraph& graph = model->subgraphs[0];
    EXPECT_EQ(first_part(graph, assessment), entry["mapped"].get<std::vector<std::int32_t>>())
        << reasons(graph, assessment);
    ++compared;
  }
  EXPECT_GT(compared, 0);
}

}  // namespace
}  // namespace reef::partition
