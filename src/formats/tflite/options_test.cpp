// SPDX-License-Identifier: Apache-2.0
#include "formats/tflite/options.h"

#include <gtest/gtest.h>

#include "formats/tflite/schema_generated.h"
#include "formats/tflite/test_models.h"

namespace reef::tflite {
namespace {

namespace fb = tflite_schema;
using testing::make_small_model;
using testing::must_read;
using testing::must_write;

// Values that differ from each other and from the defaults.
ir::AttributeValue distinct_value(const OptionField& field, int seed) {
  const bool is_bool = field.wire == reflection::Bool;
  switch (field.kind) {
    case FieldKind::kBool:
      return field.default_integer == 0;
    case FieldKind::kInteger:
      return std::int64_t{40} + seed;
    case FieldKind::kFloat:
      return 1.5 + seed;
    case FieldKind::kEnum:
      return ir::EnumName{field.names->name_of(field.default_integer == 1 ? 0 : 1)};
    case FieldKind::kString:
      return "text " + std::to_string(seed);
    case FieldKind::kIntegers:
      return std::vector<std::int64_t>{is_bool ? 1 : 60 + seed, 0, 1};
    case FieldKind::kFloats:
      return std::vector<double>{0.25 + seed, -1};
    case FieldKind::kEnums:
      break;
  }
  return std::vector<std::string>{field.names->name_of(1), field.names->name_of(0), "77"};
}

ir::Model model_with(const std::string& options_type, const ir::Attributes& attributes) {
  ir::Model model = make_small_model();
  model.subgraphs[0].operators[0].options_type = options_type;
  model.subgraphs[0].operators[0].attributes = attributes;
  return model;
}

TEST(Options, EveryTableOfBothUnionsRoundTrips) {
  const std::vector<const OptionTable*> tables = all_option_tables();
  ASSERT_EQ(tables.size(),
            static_cast<std::size_t>(fb::BuiltinOptions::MAX) + static_cast<std::size_t>(fb::BuiltinOptions2::MAX));
  ir::Model model = make_small_model();
  const ir::Operator first = model.subgraphs[0].operators[0];
  model.subgraphs[0].operators.clear();
  for (const OptionTable* table : tables) {
    ASSERT_TRUE(table->describable) << table->name;
    ir::Operator op = first;
    op.options_type = table->name;
    op.attributes = {};
    int seed = 0;
    for (const OptionField& field : table->fields) op.attributes.set(field.name, distinct_value(field, ++seed));
    testing::expect_round_trip(model_with(table->name, op.attributes));
    model.subgraphs[0].operators.push_back(op);
  }
  testing::expect_round_trip(model);
}

TEST(Options, AgreeWithTheGeneratedAccessors) {
  ir::Attributes attributes;
  attributes.set("padding", ir::EnumName{"VALID"});
  attributes.set("stride_w", std::int64_t{3});
  attributes.set("dilation_h_factor", std::int64_t{5});
  const auto file = must_write(model_with("Conv2DOptions", attributes));
  const auto* op = fb::GetModel(file.data())->subgraphs()->Get(0)->operators()->Get(0);
  const auto* options = op->builtin_options_as_Conv2DOptions();
  ASSERT_NE(options, nullptr);
  EXPECT_EQ(options->padding(), fb::Padding::VALID);
  EXPECT_EQ(options->stride_w(), 3);
  EXPECT_EQ(options->stride_h(), 0);
  EXPECT_EQ(options->dilation_w_factor(), 1);
  EXPECT_EQ(options->dilation_h_factor(), 5);
}

TEST(Options, ReadingGivesEveryFieldInSchemaOrder) {
  const ir::Model model = must_read(must_write(model_with("Conv2DOptions", {})));
  std::vector<std::string> names;
  for (const ir::Attribute& attribute : model.subgraphs[0].operators[0].attributes) names.push_back(attribute.name);
  EXPECT_EQ(names, (std::vector<std::string>{"padding", "stride_w", "stride_h", "fused_activation_function",
                                             "dilation_w_factor", "dilation_h_factor", "quantized_bias_type"}));
  EXPECT_EQ(model.subgraphs[0].operators[0].attributes.get_int("dilation_w_factor"), 1);
  EXPECT_EQ(model.subgraphs[0].operators[0].attributes.get_enum("padding"), "SAME");
}

TEST(Options, NumbersWithoutAnEnumeratorAndSignedZerosSurvive) {
  ir::Attributes attributes;
  attributes.set("padding", ir::EnumName{"77"});
  const ir::Model conv = must_read(must_write(model_with("Conv2DOptions", attributes)));
  EXPECT_EQ(conv.subgraphs[0].operators[0].attributes.get_enum("padding"), "77");
  ir::Attributes beta;
  beta.set("beta", -0.0);
  testing::expect_round_trip(model_with("SoftmaxOptions", beta));
}

TEST(Options, IntegersServeAsFloatsAndEmptyListsHaveNoType) {
  ir::Attributes attributes;
  attributes.set("beta", std::int64_t{2});
  const ir::Model model = must_read(must_write(model_with("SoftmaxOptions", attributes)));
  EXPECT_EQ(model.subgraphs[0].operators[0].attributes.get_float("beta"), 2.0);
  ir::Attributes boundaries;
  boundaries.set("boundaries", std::vector<std::int64_t>{});
  EXPECT_TRUE(write_model(model_with("BucketizeOptions", boundaries)).ok());
}

TEST(Options, WhatDoesNotFitIsRefused) {
  const auto error = [](const std::string& type, const std::string& name, ir::AttributeValue value) {
    ir::Attributes attributes;
    attributes.set(name, std::move(value));
    return write_model(model_with(type, attributes)).status().message();
  };
  EXPECT_NE(error("Conv2DOptions", "colour", std::int64_t{1}).find("no attribute 'colour'"), std::string::npos);
  EXPECT_NE(error("Conv2DOptions", "stride_w", true).find("must be an integer"), std::string::npos);
  EXPECT_NE(error("Conv2DOptions", "stride_w", std::int64_t{1} << 31).find("does not fit"), std::string::npos);
  EXPECT_NE(error("Conv2DOptions", "padding", ir::EnumName{"WRONG"}).find("no value named 'WRONG'"), std::string::npos);
  EXPECT_NE(error("Conv2DOptions", "padding", ir::EnumName{"128"}).find("does not fit"), std::string::npos);
  EXPECT_NE(error("CallOptions", "subgraph", std::int64_t{-1}).find("does not fit"), std::string::npos);
  EXPECT_NE(error("SoftmaxOptions", "beta", 1e300).find("does not fit"), std::string::npos);
  EXPECT_NE(error("ReshapeOptions", "new_shape", std::vector<double>{1}).find("list of integers"), std::string::npos);
  EXPECT_NE(error("NoSuchOptions", "x", true).find("no options of type 'NoSuchOptions'"), std::string::npos);
  EXPECT_NE(error("", "x", true).find("no options type"), std::string::npos);
}

}  // namespace
}  // namespace reef::tflite
