// SPDX-License-Identifier: Apache-2.0
#include "evaluate/transformer_roles.h"

#include <gtest/gtest.h>

namespace reef::evaluate {
namespace {

// A graph by names: every operator computes one tensor from others; what nobody computes is an input of the model.
class Graph {
 public:
  Graph() { model_.subgraphs.emplace_back(); }
  std::int32_t input() { return tensor(); }
  std::int32_t op(const char* type, std::vector<std::int32_t> inputs) {
    ir::Operator it;
    it.type = type;
    it.inputs = std::move(inputs);
    it.outputs = {tensor()};
    const std::int32_t result = it.outputs[0];
    model_.subgraphs[0].operators.push_back(std::move(it));
    return result;
  }
  const ir::Model& model() const { return model_; }

 private:
  std::int32_t tensor() {
    model_.subgraphs[0].tensors.emplace_back();
    return static_cast<std::int32_t>(model_.subgraphs[0].tensors.size()) - 1;
  }
  ir::Model model_;
};

TEST(TransformerRoles, OfABlock) {
  Graph g;
  const std::int32_t weights = g.input(), axes = g.input();
  const std::int32_t x = g.op("CONV_2D", {g.input(), weights});                                      // 0
  const std::int32_t mean = g.op("MEAN", {x, axes});                                                 // 1
  const std::int32_t centred = g.op("SUB", {x, mean});                                               // 2
  const std::int32_t variance = g.op("MEAN", {g.op("SQUARED_DIFFERENCE", {x, mean}), axes});         // 3, 4
  const std::int32_t y = g.op("MUL", {centred, g.op("RSQRT", {g.op("ADD", {variance, weights})})});  // 5, 6, 7
  const std::int32_t q = g.op("CONV_2D", {y, weights}), k = g.op("CONV_2D", {y, weights});           // 8, 9
  const std::int32_t scores = g.op("MUL", {g.op("BATCH_MATMUL", {q, k}), weights});                  // 10, 11
  const std::int32_t softmax = g.op("SOFTMAX", {scores});                                            // 12
  const std::int32_t averages = g.op("BATCH_MATMUL", {softmax, k});                                  // 13
  const std::int32_t sum = g.op("ADD", {x, g.op("CONV_2D", {averages, weights})});                   // 14, 15
  g.op("GELU", {sum});                                                                               // 16
  const std::vector<Role> expected = {
      Role::kOther,         Role::kNormalization, Role::kNormalization, Role::kNormalization, Role::kNormalization,
      Role::kNormalization, Role::kNormalization, Role::kNormalization, Role::kOther,         Role::kOther,
      Role::kScores,        Role::kScores,        Role::kWeights,       Role::kAverages,      Role::kOther,
      Role::kResidualSum,   Role::kActivation};
  EXPECT_EQ(transformer_roles(g.model()), expected);
}

TEST(TransformerRoles, OtherNetworksHaveNone) {
  Graph g;
  const std::int32_t x = g.op("CONV_2D", {g.input(), g.input()});
  g.op("SOFTMAX", {g.op("ADD", {x, g.op("RELU", {x})})});
  for (const Role role : transformer_roles(g.model())) EXPECT_EQ(role, Role::kOther);
}

}  // namespace
}  // namespace reef::evaluate
