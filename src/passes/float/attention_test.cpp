// SPDX-License-Identifier: Apache-2.0
// What the passes make of attention and of class tokens, in the forms that exporters write.
#include "passes/float/test_graph.h"

namespace reef::passes::testing {
namespace {

constexpr double kRounding = 1e-5;

int product(Maker& make, int a, int b, bool adj_y, ir::Shape shape, bool adj_x = false) {
  return make.op("BATCH_MATMUL", "BatchMatMulOptions", Maker::attributes({{"adj_x", adj_x}, {"adj_y", adj_y}}), {a, b},
                 shape);
}

int softmax(Maker& make, int x) {
  ir::Attributes a;
  a.set("beta", 1.0);
  return make.op("SOFTMAX", "SoftmaxOptions", a, {x}, make.shape(x));
}

std::size_t count(const ir::Model& model, std::string_view type) {
  std::size_t found = 0;
  for (const ir::Operator& op : model.subgraphs[0].operators) found += op.type == type ? 1 : 0;
  return found;
}

// A factor of queries, of keys or of scores, with a mask or without: SOFTMAX takes it in.
TEST(SimplifyAttention, FactorsGoIntoSoftmax) {
  for (int form = 0; form < 5; ++form) {
    SCOPED_TRACE(form);
    Maker make;
    int q = make.input({1, 2, 6, 8}), k = make.input({1, 2, 6, 8});
    const int v = make.input({1, 2, 6, 8});
    if (form == 0 || form == 1 || form == 3) q = make.binary("MUL", q, make.number(0.35f));
    if (form == 1) k = make.binary("MUL", k, make.number(0.7f));
    int scores = product(make, q, k, true, {1, 2, 6, 6});
    if (form == 2 || form == 4) scores = make.binary("MUL", scores, make.number(0.35f));
    if (form >= 3) scores = make.binary("ADD", scores, make.numbers({1, 1, 1, 6}, -3, 0));
    const int out = product(make, softmax(make, scores), v, false, {1, 2, 6, 8});
    const ir::Model after = expect_same(make.finish({out}), kRounding);
    EXPECT_EQ(count(after, "MUL"), 0u) << operators_of(after);
  }
}

TEST(SimplifyAttention, TransposedProductsAreTurnedAround) {
  Maker make;
  const int v = make.input({1, 6, 8}), weights = make.input({1, 5, 6});
  const ir::Model after = expect_same(make.finish({product(make, v, weights, true, {1, 8, 5}, true)}), kRounding);
  for (const ir::Operator& op : after.subgraphs[0].operators) {
    EXPECT_FALSE(op.attributes.get_bool("adj_x") && op.attributes.get_bool("adj_y"));
  }
}

// Positions that are added before the token is joined, behind it, or not at all.
TEST(SimplifyAttention, ClassTokensAreAdded) {
  for (int form = 0; form < 3; ++form) {
    SCOPED_TRACE(form);
    Maker make;
    int x = make.input({1, 5, 4});
    const int token = make.numbers({1, 1, 4});
    if (form == 1) x = make.binary("ADD", x, make.numbers({1, 5, 4}));
    ir::Attributes a;
    a.set("axis", std::int64_t{1});
    a.set("fused_activation_function", ir::EnumName{"NONE"});
    int y = make.op("CONCATENATION", "ConcatenationOptions", a, {token, x}, {1, 6, 4});
    if (form == 2) y = make.binary("ADD", y, make.numbers({1, 6, 4}));
    const ir::Model after = expect_same(make.finish({y}), kRounding);
    EXPECT_EQ(operators_of(after), "PAD ADD");
  }
}

}  // namespace
}  // namespace reef::passes::testing
