// SPDX-License-Identifier: Apache-2.0
// Every rule is broken by some model here, and kept by its neighbour, which differs in nothing but what the rule is
// about. A rule without a case fails a test.
#include "partition/check.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "ops/registry.h"
#include "partition/cost.h"
#include "quantized_model.h"
#include "rule_cases.h"

namespace reef::partition {
namespace {

using ir::Attributes;
using ir::AttributeValue;
using ir::DataType;
using ops::GoogleStatus;
using testing::Quantized;
using testing::QuantizedModel;
using testing::rule_model;
using testing::RuleCase;

Attributes attributes(std::initializer_list<std::pair<std::string_view, AttributeValue>> rows) {
  Attributes result;
  for (const auto& [name, value] : rows) result.set(name, value);
  return result;
}

std::int64_t number(std::int64_t value) { return value; }

bool names(const OpVerdict& verdict, std::string_view id) {
  return std::any_of(verdict.findings.begin(), verdict.findings.end(),
                     [&](const Finding& finding) { return finding.rule->id == id; });
}

bool names(const Assessment& assessment, std::string_view id) {
  return std::any_of(assessment.ops.begin(), assessment.ops.end(),
                     [&](const OpVerdict& verdict) { return names(verdict, id); });
}

std::map<std::string_view, const ops::ChipRule*> all_rules() {
  std::map<std::string_view, const ops::ChipRule*> rules;
  for (const ops::ChipRule& rule : model_rules()) rules.emplace(rule.id, &rule);
  for (const ops::OpDef* op : ops::all_ops()) {
    for (const ops::ChipRule& rule : op->chip.rules) rules.emplace(rule.id, &rule);
  }
  return rules;
}

bool is_sentence(std::string_view text) {
  return text.size() > 3 && text.back() == '.' &&
         (std::isupper(text[0]) != 0 || text.starts_with("half") || text.starts_with("ellipsis"));
}

}  // namespace

TEST(Check, EveryRuleIsBrokenByItsCaseAndKeptByTheNeighbour) {
  const auto rules = all_rules();
  for (const RuleCase& row : testing::rule_cases()) {
    SCOPED_TRACE(row.id);
    ASSERT_TRUE(rules.contains(row.id));
    const Assessment broken = assess(row.make(true), {row.runtime});
    const Assessment kept = assess(row.make(false), {row.runtime});
    EXPECT_TRUE(names(broken, row.id));
    EXPECT_FALSE(names(kept, row.id));
    for (const OpVerdict& verdict : kept.ops) {
      EXPECT_TRUE(verdict.fits()) << verdict.findings[0].rule->id << ": " << verdict.findings[0].particulars;
    }
  }
}

TEST(Check, EveryRuleHasACase) {
  std::set<std::string_view> covered;
  for (const RuleCase& row : testing::rule_cases()) covered.insert(row.id);
  for (const auto& [id, rule] : all_rules()) EXPECT_TRUE(covered.contains(id)) << id << " has no case";
}

TEST(Check, RulesOfLimitedRuntimesAreKeptByOthers) {
  const auto rules = all_rules();
  for (const RuleCase& row : testing::rule_cases()) {
    const ops::RuntimeRange range = rules.at(row.id)->runtimes;
    if (range.to < ops::kNewestRuntime) {
      EXPECT_FALSE(names(assess(row.make(true), {range.to + 1}), row.id)) << row.id;
    }
    if (range.from > ops::kOldestRuntime) {
      EXPECT_FALSE(names(assess(row.make(true), {range.from - 1}), row.id)) << row.id;
    }
  }
}

TEST(Check, RulesHaveWordsAndIdsAreUnique) {
  std::map<std::string_view, std::string_view> said;
  const auto check = [&](const ops::ChipRule& rule, std::string_view where) {
    SCOPED_TRACE(std::string(where) + " " + std::string(rule.id));
    EXPECT_FALSE(rule.id.empty());
    EXPECT_TRUE(is_sentence(rule.says)) << rule.says;
    EXPECT_TRUE(is_sentence(rule.suggestion)) << rule.suggestion;
    EXPECT_FALSE(rule.evidence.empty());
    EXPECT_LE(rule.runtimes.from, rule.runtimes.to);
    // Ops share rules, but then they say the same.
    const auto [entry, is_new] = said.emplace(rule.id, rule.says);
    EXPECT_EQ(entry->second, rule.says);
  };
  for (const ops::ChipRule& rule : model_rules()) {
    EXPECT_FALSE(said.contains(rule.id)) << rule.id;
    check(rule, "all ops");
  }
  const std::set<std::string_view> general = [&] {
    std::set<std::string_view> ids;
    for (const auto& [id, says] : said) ids.insert(id);
    return ids;
  }();
  for (const ops::OpDef* op : ops::all_ops()) {
    for (const ops::ChipRule& rule : op->chip.rules) {
      EXPECT_FALSE(general.contains(rule.id)) << rule.id;
      EXPECT_NE(rule.broken, nullptr) << rule.id;
      check(rule, op->name);
    }
  }
}

TEST(Check, EveryOpSaysHowItStandsWithTheChip) {
  for (const ops::OpDef* op : ops::all_ops()) {
    const ops::ChipSupport& chip = op->chip;
    if (chip.first_runtime == 0) {
      EXPECT_TRUE(is_sentence(chip.instead)) << op->name;
      EXPECT_TRUE(chip.rules.empty()) << op->name;
    } else {
      EXPECT_GE(chip.first_runtime, ops::kOldestRuntime) << op->name;
      EXPECT_LE(chip.first_runtime, ops::kNewestRuntime) << op->name;
      EXPECT_TRUE(chip.instead.empty()) << op->name;
    }
  }
}

// ---- What Google's compiler names first

TEST(Check, TypesComeBeforeEverythingElse) {
  QuantizedModel m;
  const auto x = m.unary("HARD_SWISH", m.float_input({4, 8, 8, 3}));
  const Assessment assessment = assess(m.finish({x}), {});
  EXPECT_EQ(assessment.ops[0].google_status(), GoogleStatus::kUnsupportedType);
  EXPECT_TRUE(names(assessment.ops[0], "supported-op"));
  EXPECT_EQ(assessment.ops[0].findings[0].rewrite, "hard-swish");
}

TEST(Check, FloatInputAndOutput) {
  QuantizedModel m;
  const auto x = m.quantize(m.float_input({1, 8, 8, 4}), {});
  const auto y = m.dequantize(m.conv(x, 4));
  const Assessment assessment = assess(m.finish({y}), {});
  EXPECT_EQ(assessment.ops[0].google_status(), GoogleStatus::kUnspecifiedLimitation);
  EXPECT_EQ(assessment.ops[1].google_status(), GoogleStatus::kMapped);
  EXPECT_EQ(assessment.ops[2].google_status(), GoogleStatus::kUnsupportedType);
  for (const int i : {0, 2}) EXPECT_EQ(assessment.ops[at(i)].findings[0].rewrite, "io");
  EXPECT_TRUE(assessment.is_quantized);
  EXPECT_EQ(assessment.float_tensors.size(), 2u);
}

TEST(Check, UnsupportedOpsOn8Bits) {
  QuantizedModel m;
  const auto x = m.unary("LEAKY_RELU", m.conv(m.input({1, 8, 8, 4}), 4), "LeakyReluOptions", {}, 2);
  const Assessment assessment = assess(m.finish({m.arg_max(x)}), {});
  EXPECT_EQ(assessment.ops[1].google_status(), GoogleStatus::kNotSupported);
  EXPECT_EQ(assessment.ops[1].findings[0].rewrite, "leaky-relu");
  EXPECT_EQ(assessment.ops[2].google_status(), GoogleStatus::kUnsupportedType);  // its output is int32
}

TEST(Check, OfUnsupportedOpsTheFirstOutputDecides) {
  QuantizedModel m;
  const auto x = m.input({1, 10});
  const auto values = m.computed({1, 3}, {}), indices = m.computed_plain({1, 3}, DataType::kInt32);
  m.op("TOPK_V2", {x, m.ints({3}, {})}, {values, indices}, "TopKV2Options", {}, 2);
  EXPECT_EQ(assess(m.finish({values, indices}), {}).ops[0].google_status(), GoogleStatus::kNotSupported);
}

TEST(Check, ManyRowsTimesOneColumnFit) {
  QuantizedModel m;
  EXPECT_TRUE(assess(m.finish({m.fully_connected(m.input({400, 16}), 1)}), {}).ops[0].fits());
}

TEST(Check, TransposeBeforeRuntime14IsNotSupported) {
  QuantizedModel m;
  const ir::Model model = m.finish({m.transpose(m.input({1, 4, 4, 2}), {0, 3, 1, 2})});
  EXPECT_EQ(assess(model, {12}).ops[0].google_status(), GoogleStatus::kNotSupported);
  EXPECT_EQ(assess(model, {14}).ops[0].google_status(), GoogleStatus::kMapped);
}

TEST(Check, BatchHasTheStatusOfRanks) {
  const Assessment assessment = assess(rule_model("batch", true), {});
  EXPECT_EQ(assessment.ops[0].google_status(), GoogleStatus::kUnsupportedRank);
  EXPECT_EQ(assessment.ops[0].findings[0].particulars, "input 0 is 4x8x8x4");
  EXPECT_EQ(assessment.ops[0].findings[0].rewrite, "unroll-batch");
}

TEST(Check, TransposedWeightsAreNoBatch) {
  QuantizedModel m;
  const auto x = m.input({1, 8, 8, 4});
  const auto turned = m.transpose(m.weights({2, 2, 8, 4}), {2, 0, 1, 3});
  const auto y = m.op("TRANSPOSE_CONV", {m.ints({1, 16, 16, 8}), turned, x}, {m.computed({1, 16, 16, 8}, {})},
                      "TransposeConvOptions", {}, 3);
  const Assessment assessment = assess(m.finish({y}), {});
  // As in a log of Google's compiler for a network trained with quantization.
  EXPECT_EQ(assessment.ops[0].google_status(), GoogleStatus::kUnsupportedRank);
  EXPECT_EQ(assessment.ops[0].findings[0].rule->id, "rank");
  EXPECT_EQ(assessment.ops[1].google_status(), GoogleStatus::kNotConstant);
  for (const OpVerdict& verdict : assessment.ops) EXPECT_EQ(verdict.findings[0].rewrite, "fold-constants");
}

TEST(Check, ParticularsNameShapesAndNumbers) {
  EXPECT_EQ(assess(rule_model("transpose-size", true), {}).ops[0].findings[0].particulars,
            "input is 1x40x40x64, 102,400 elements");
  EXPECT_EQ(assess(rule_model("constant-parameters", true), {}).ops[1].findings[0].particulars,
            "input 1 ('constant_1') is computed by op 0 QUANTIZE");
}

TEST(Check, TransposingOnesMovesNothing) {
  QuantizedModel m;
  const ir::Model model = m.finish({m.transpose(m.input({1, 1, 1000, 1000}), {0, 2, 1, 3})});
  EXPECT_TRUE(assess(model, {}).ops[0].fits());
}

TEST(Check, NarrowFiltersHaveNoDilationAcross) {
  QuantizedModel m;
  const auto x = m.input({1, 16, 16, 4});
  const auto w = m.weights({8, 3, 1, 4});
  const ir::Model model = m.finish({m.op("CONV_2D", {x, w}, {m.computed({1, 16, 16, 8}, {})}, "Conv2DOptions",
                                         attributes({{"padding", ir::EnumName{"SAME"}},
                                                     {"stride_w", number(1)},
                                                     {"stride_h", number(1)},
                                                     {"dilation_h_factor", number(4)},
                                                     {"dilation_w_factor", number(1)}}),
                                         3)});
  EXPECT_TRUE(assess(model, {}).ops[0].fits());
}

// ---- Resizing

TEST(Check, BilinearEnlargementsThatAreKnown) {
  const auto fits = [](int from, int to, bool align_corners, bool half_pixels) {
    QuantizedModel m;
    const auto x = m.resize("RESIZE_BILINEAR", m.input({1, from, from, 8}), to, to, align_corners, half_pixels);
    return assess(m.finish({x}), {}).ops[0].fits();
  };
  for (const int from : {6, 12, 24}) {
    EXPECT_TRUE(fits(from, 2 * from, false, false)) << from;
    EXPECT_TRUE(fits(from, 2 * from, false, true)) << from;
  }
  EXPECT_TRUE(fits(33, 33, true, false));
  EXPECT_TRUE(fits(64, 128, false, false));
  EXPECT_FALSE(fits(1, 33, true, false));
  EXPECT_FALSE(fits(33, 513, true, false));
  EXPECT_FALSE(fits(20, 33, false, false));
}

// ---- Sizes that are not known

TEST(Check, DynamicTensorsAreFollowed) {
  const Assessment assessment = assess(rule_model("static-shape", true), {});
  EXPECT_EQ(assessment.dynamic_tensors, (std::vector<std::int32_t>{2, 3}));
  EXPECT_FALSE(names(assessment.ops[0], "static-shape"));  // SHAPE itself
  const auto& findings = assessment.ops[2].findings;
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings[0].particulars, "input 0 ('RESHAPE_1') gets its size from 'SHAPE_0', which op 0 SHAPE computes");
  EXPECT_EQ(findings[0].rewrite, "fold-constants");
}

TEST(Check, AnOpenBatchIsTakenAsOne) {
  const auto dynamic_tensors = [](std::vector<std::int32_t> signature) {
    QuantizedModel m;
    const auto x = m.input({1, 1, 1, 3});
    m.tensor(x).shape_signature = std::move(signature);
    return assess(m.finish({m.conv(x, 4)}), {}).dynamic_tensors.size();
  };
  EXPECT_EQ(dynamic_tensors({-1, 1, 1, 3}), 0u);
  EXPECT_EQ(dynamic_tensors({-1, -1, -1, 3}), 2u);  // the input and what is computed from it
}

// ---- Whole models

TEST(Check, HybridModelsAreNotQuantized) {
  QuantizedModel m;
  const auto x = m.float_input({1, 8});
  const auto w = m.weights({4, 8});
  const ir::Model model = m.finish({m.op("FULLY_CONNECTED", {x, w}, {m.computed_plain({1, 4}, DataType::kFloat32)},
                                         "FullyConnectedOptions", {}, 3)});
  const Assessment assessment = assess(model, {});
  EXPECT_FALSE(assessment.is_quantized);
  EXPECT_TRUE(assessment.is_float());
  EXPECT_EQ(assessment.float_tensors, (std::vector<std::int32_t>{0, 2}));
}

TEST(Check, WithoutFloatsThereIsNothingToQuantize) {
  QuantizedModel empty;
  EXPECT_FALSE(assess(empty.finish({empty.input({1, 8})}), {}).is_float());
  QuantizedModel integers;
  const auto n = integers.ints({1, 2, 3});
  const ir::Model model =
      integers.finish({integers.op("ADD", {n, n}, {integers.computed_plain({3}, DataType::kInt32)}, "AddOptions")});
  EXPECT_FALSE(assess(model, {}).is_float());
}

// Every operand of every rule's model in turn: nothing may look at what is not there.
TEST(Check, OperandsThatAreLeftOutDoNoHarm) {
  for (const testing::RuleCase& each : testing::rule_cases()) {
    const ir::Model whole = each.make(false);
    for (std::size_t op = 0; op < whole.subgraphs[0].operators.size(); ++op) {
      for (std::size_t input = 0; input < whole.subgraphs[0].operators[op].inputs.size(); ++input) {
        ir::Model model = whole;
        model.subgraphs[0].operators[op].inputs[input] = -1;
        const Assessment assessment = assess(model, {});
        const CostModel costs(model, {});
        const ops::OpDef* definition = ops::find_op(model.subgraphs[0].operators[op]);
        if (definition == nullptr || static_cast<int>(input) >= definition->inputs.min) continue;
        EXPECT_FALSE(assessment.ops[op].fits()) << each.id << " without input " << input << " of op " << op;
        EXPECT_EQ(costs.op(static_cast<std::int32_t>(op)).chip, 0) << each.id;
      }
    }
  }
}

TEST(Check, FiveHundredOpsTakeFewMilliseconds) {
  QuantizedModel m;
  auto x = m.input({1, 16, 16, 8});
  for (int i = 0; i < 250; ++i) x = m.transpose(m.conv(x, 8), {0, 2, 1, 3});
  const ir::Model model = m.finish({x});
  double best = 1e9;  // of several: other tests may run beside this one
  for (int i = 0; i < 5; ++i) {
    const auto start = std::chrono::steady_clock::now();
    EXPECT_EQ(assess(model, {}).ops.size(), 500u);
    best = std::min(best, std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
  }
  EXPECT_LT(best, 10);
}

}  // namespace reef::partition
