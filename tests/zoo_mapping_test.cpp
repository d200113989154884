// SPDX-License-Identifier: Apache-2.0
// Rules and partition against what Google's compilers did: for every compiled model whose source is known, the part
// that is chosen as Google's compiler chooses, at the runtime the file is for, has the operators that were mapped.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "compiler/plan.h"
#include "formats/tflite/reader.h"
#include "zoo.h"
#include "zoo_pairs.h"

namespace reef::partition {
namespace {

using testing::Pair;

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
  REEF_SKIP_WITHOUT_TRUTH(truth);
  const std::vector<Pair> pairs = testing::pairs_of(zoo);
  int compared = 0;
  for (const testing::Mapping& mapping : testing::mappings_of(truth)) {
    const std::string compiled = zoo + "/" + mapping.compiled_file;
    const auto pair = std::find_if(pairs.begin(), pairs.end(), [&](const Pair& p) { return p.compiled == compiled; });
    ASSERT_NE(pair, pairs.end()) << compiled;
    SCOPED_TRACE(pair->name);
    Result<ir::Model> model = tflite::load_model(pair->source);
    ASSERT_TRUE(model.ok()) << model.status().message();
    compiler::PlanOptions as_google;
    as_google.runtime = mapping.runtime;
    as_google.rewrites.none = true;
    as_google.partition.choice = PartitionOptions::Choice::kFirst;
    as_google.partition.explain = false;
    const auto plan = compiler::make_plan(std::make_shared<const ir::Model>(std::move(model).value()), as_google);
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    ASSERT_LE(plan->partition.parts.size(), 1u);
    const auto& parts = plan->partition.parts;
    EXPECT_EQ(parts.empty() ? std::vector<std::int32_t>() : parts[0].ops, mapping.ops)
        << reasons(plan->model->subgraphs[0], plan->assessment);
    ++compared;
  }
  EXPECT_GT(compared, 0);
}

}  // namespace
}  // namespace reef::partition
