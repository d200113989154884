// SPDX-License-Identifier: Apache-2.0
#include "passes/pass_log.h"

#include <array>

#include "passes/float/test_graph.h"

namespace reef::passes {
namespace {

using testing::Maker;
using testing::operators_of;

// RELU between two layers, and so between two TRANSPOSEs that cancel when it is out of the way.
ir::Model layer_and_relu() {
  Maker maker;
  const int x = maker.input({1, 3, 8, 8});
  return maker.finish({maker.conv(maker.unary("RELU", maker.conv(x, 4, 3)), 4, 3)});
}

PassLog log_of(ir::Model model, LogRequest request) {
  PassLog log(std::move(request));
  EXPECT_TRUE(simplify(model, {}, log).ok());
  return log;
}

TEST(PassLog, CountsChangesWithoutBeingAsked) {
  const PassLog log = log_of(layer_and_relu(), {});
  int fused = 0;
  for (const PassRun& run : log.runs()) {
    EXPECT_EQ(run.stage, Stage::kFloat);
    EXPECT_GT(run.changes, 0);
    EXPECT_TRUE(run.sentences.empty());
    fused += run.pass == "fuse-activations" ? run.changes : 0;
  }
  EXPECT_EQ(fused, 1);
}

TEST(PassLog, SaysWhatChanged) {
  const PassLog log = log_of(layer_and_relu(), {.changes = true, .graphs = {}});
  bool found = false;
  for (const PassRun& run : log.runs()) {
    if (run.pass != "fuse-activations") continue;
    ASSERT_EQ(run.sentences.size(), 1u);
    EXPECT_NE(run.sentences[0].find("RELU"), std::string::npos) << run.sentences[0];
    EXPECT_NE(run.sentences[0].find("removed"), std::string::npos) << run.sentences[0];
    EXPECT_NE(run.sentences[0].find("changed CONV_2D"), std::string::npos) << run.sentences[0];
    found = true;
  }
  EXPECT_TRUE(found);
}

// A graph that is kept is a whole model, and behaves as the one before and the one behind all passes.
TEST(PassLog, KeepsTheGraphBehindAPass) {
  const ir::Model model = layer_and_relu();
  const PassLog log = log_of(
      model, {.changes = false, .graphs = {"transposes", "fuse-activations", "import", "simplify", "gelu", "io"}});
  ASSERT_NE(log.find("import"), nullptr);
  EXPECT_EQ(operators_of(log.find("import")->model), operators_of(model));
  ASSERT_NE(log.find("transposes"), nullptr);
  EXPECT_GT(log.find("transposes")->changes, 0);
  const ir::Model& turned = log.find("transposes")->model;
  EXPECT_LT(testing::count(turned, "TRANSPOSE"), testing::count(model, "TRANSPOSE"));
  EXPECT_EQ(testing::count(turned, "RELU"), 1) << "a pass behind it has run";
  ASSERT_NE(log.find("fuse-activations"), nullptr);
  EXPECT_EQ(testing::count(log.find("fuse-activations")->model, "RELU"), 0);
  ASSERT_NE(log.find("simplify"), nullptr);
  const auto inputs = testing::random_inputs(model, 3);
  const auto expected = testing::evaluate(model, inputs);
  ASSERT_TRUE(expected.ok());
  for (const char* name : {"transposes", "fuse-activations", "simplify"}) {
    const ir::Model& kept = log.find(name)->model;
    EXPECT_TRUE(ir::verify(kept).ok()) << name;
    const auto actual = testing::evaluate(kept, inputs);
    ASSERT_TRUE(actual.ok()) << name << ": " << actual.status().message();
    EXPECT_EQ(*actual, *expected) << name;
  }
  // A pass that found nothing still has a graph; one of another stage has none.
  ASSERT_NE(log.find("gelu"), nullptr);
  EXPECT_EQ(log.find("gelu")->changes, 0);
  EXPECT_EQ(log.find("io"), nullptr);
}

TEST(PassLog, KeepingGraphsChangesNothing) {
  ir::Model plain = layer_and_relu(), watched = plain;
  ASSERT_TRUE(simplify(plain).ok());
  LogRequest everything{.changes = true, .graphs = {}};
  for (const PassInfo& pass : passes_of(Stage::kFloat)) everything.graphs.emplace_back(pass.name);
  PassLog log(everything);
  ASSERT_TRUE(simplify(watched, {}, log).ok());
  EXPECT_TRUE(plain == watched);
}

TEST(PassLog, RewritesForTheChipAreRecorded) {
  Maker maker;
  const int x = maker.input({1, 4, 4, 8}, ir::DataType::kInt8);
  const int squeezed = maker.op("SQUEEZE", "SqueezeOptions", {}, {x}, {4, 4, 8}, ir::DataType::kInt8);
  maker.tensor(squeezed).quantization = maker.tensor(x).quantization;
  ir::Model model = maker.finish({squeezed});
  PassLog log({.changes = true, .graphs = {"chip/squeeze", "float/squeeze"}});
  RewriteOptions options;
  options.fits = [](const ir::Model& judged) {
    std::vector<bool> fits;
    for (const ir::Operator& op : judged.subgraphs[0].operators) fits.push_back(op.type == "RESHAPE");
    return fits;
  };
  const auto made = apply_rewrites(model, options, log);
  ASSERT_TRUE(made.ok()) << made.status().message();
  ASSERT_EQ(log.runs().size(), 1u);
  EXPECT_EQ(log.runs()[0].stage, Stage::kChip);
  EXPECT_EQ(log.runs()[0].pass, "squeeze");
  ASSERT_EQ(log.runs()[0].sentences.size(), 1u);
  EXPECT_EQ(log.runs()[0].sentences[0], (*made)[0].what);
  ASSERT_NE(log.find("chip/squeeze"), nullptr);
  EXPECT_EQ(operators_of(log.find("chip/squeeze")->model), "RESHAPE");
  EXPECT_EQ(log.find("float/squeeze"), nullptr);
}

TEST(PassLog, NamesOfPassesInBothStagesCanBeTold) {
  constexpr std::array kBoth = {Stage::kFloat, Stage::kChip}, kFirst = {Stage::kFloat, Stage::kFloat};
  const std::vector<std::string> names = graph_names(kBoth);
  for (const char* name : {"gelu", "float/gelu", "chip/gelu", "transposes", "io", "chip/squeeze"}) {
    EXPECT_EQ(std::count(names.begin(), names.end(), name), 1) << name;
  }
  EXPECT_EQ(std::count(names.begin(), names.end(), "float/transposes"), 0);
  EXPECT_FALSE(contains(graph_names(std::span(kFirst).first(1)), "io"));
}

}  // namespace
}  // namespace reef::passes
