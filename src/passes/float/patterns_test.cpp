// SPDX-License-Identifier: Apache-2.0
// Functions written out in the forms that exporters write, and near misses.
#include "passes/float/test_graph.h"

namespace reef::passes::testing {
namespace {

constexpr double kRounding = 1e-5;

const ir::Operator& first(const ir::Model& model, std::string_view type) {
  for (const ir::Operator& op : model.subgraphs[0].operators) {
    if (op.type == type) return op;
  }
  static const ir::Operator none;
  ADD_FAILURE() << "there is no " << type << " among " << operators_of(model);
  return none;
}
TEST(SimplifyPatterns, HardSwishInItsForms) {
  for (int form = 0; form < 6; ++form) {
    SCOPED_TRACE(form);
    Maker make;
    const int x = make.input({1, 50});
    const int gate = make.unary("RELU6", make.binary("ADD", x, make.number(3)));
    int y = -1;
    if (form == 0) y = make.binary("DIV", make.binary("MUL", x, gate), make.number(6));
    if (form == 1) y = make.binary("MUL", x, make.binary("MUL", gate, make.number(1.0f / 6)));
    if (form == 2) y = make.binary("MUL", make.binary("DIV", gate, make.number(6)), x);
    if (form == 3) y = make.binary("MUL", make.binary("MUL", x, make.number(1.0f / 6)), gate);
    const int line = make.binary("ADD", make.binary("MUL", x, make.number(1.0f / 6)), make.number(0.5f));
    if (form == 4)
      y = make.binary("MUL", x, make.binary("MAXIMUM", make.binary("MINIMUM", line, make.number(1)), make.number(0)));
    if (form == 5) y = make.binary("MUL", make.binary("MUL", gate, x), make.number(0.25f));  // none
    const ir::Model after = expect_same(make.finish({y}), kRounding);
    EXPECT_EQ(operators_of(after) == "HARD_SWISH", form < 5) << operators_of(after);
  }
}

TEST(SimplifyPatterns, GeluWithTanh) {
  for (int form = 0; form < 3; ++form) {
    SCOPED_TRACE(form);
    Maker make;
    const int x = make.input({1, 50});
    const int cube = form == 0   ? make.op("POW", "", {}, {x, make.number(3)}, make.shape(x))
                     : form == 1 ? make.binary("MUL", make.binary("MUL", x, x), x)
                                 : make.binary("MUL", x, make.unary("SQUARE", x));
    const int inner = make.binary("MUL", make.binary("ADD", x, make.binary("MUL", cube, make.number(0.044715f))),
                                  make.number(0.7978845608f));
    const int gate = make.binary("ADD", make.unary("TANH", inner), make.number(1));
    const int y = form == 1 ? make.binary("MUL", make.binary("MUL", x, make.number(0.5f)), gate)
                            : make.binary("MUL", make.number(0.5f), make.binary("MUL", x, gate));
    const ir::Model after = expect_same(make.finish({y}), kRounding);
    EXPECT_EQ(operators_of(after), "GELU");
    EXPECT_TRUE(first(after, "GELU").attributes.get_bool("approximate"));
  }
}

TEST(SimplifyPatterns, SoftmaxWrittenOut) {
  for (const bool with_maximum : {false, true}) {
    Maker make;
    const int x = make.input({2, 3, 9});
    const int shifted = with_maximum ? make.binary("SUB", x, make.reduce("REDUCE_MAX", x, {2}, true)) : x;
    const int exponential = make.unary("EXP", shifted);
    const int y = make.binary("DIV", exponential, make.reduce("SUM", exponential, {2}, true));
    EXPECT_EQ(operators_of(expect_same(make.finish({y}), kRounding)), "SOFTMAX");
  }
  Maker make;  // over another axis: no SOFTMAX, but inverses of the few sums
  const int exponential = make.unary("EXP", make.input({2, 3, 9}));
  const int y = make.binary("DIV", exponential, make.reduce("SUM", exponential, {1}, true));
  EXPECT_EQ(operators_of(expect_same(make.finish({y}), kRounding)), "EXP SUM DIV MUL");
}

TEST(SimplifyPatterns, SoftmaxOfLogarithms) {
  Maker make;
  const int x = make.input({2, 3, 9});
  const int logarithms = make.op("LOG_SOFTMAX", "LogSoftmaxOptions", {}, {x}, {2, 3, 9});
  const ir::Model after = expect_same(make.finish({make.unary("EXP", logarithms)}), kRounding);
  EXPECT_EQ(operators_of(after), "SOFTMAX");
}

TEST(SimplifyPatterns, AFactorOfSoftmaxIsItsBeta) {
  Maker make;
  const int x = make.binary("DIV", make.input({2, 3, 9}), make.number(4));
  const int y = make.op("SOFTMAX", "SoftmaxOptions", Maker::attributes({{"beta", 2.0}}), {x}, {2, 3, 9});
  const ir::Model after = expect_same(make.finish({y}), kRounding);
  EXPECT_EQ(operators_of(after), "SOFTMAX");
  EXPECT_EQ(first(after, "SOFTMAX").attributes.get_float("beta"), 0.5);
}

TEST(SimplifyPatterns, NormsWrittenOut) {
  for (int form = 0; form < 4; ++form) {
    SCOPED_TRACE(form);
    Maker make;
    const int x = make.input({2, 3, 9});
    const int sum = make.reduce("SUM", form == 0 ? make.unary("SQUARE", x) : make.binary("MUL", x, x), {2}, true);
    int y = -1;
    if (form == 0) y = make.binary("DIV", x, make.unary("SQRT", sum));
    if (form == 1) y = make.binary("MUL", x, make.unary("RSQRT", make.binary("MAXIMUM", sum, make.number(1e-12f))));
    if (form == 2) y = make.binary("DIV", x, make.binary("MAXIMUM", make.unary("SQRT", sum), make.number(1e-12f)));
    if (form == 3) y = make.binary("DIV", x, make.binary("MAXIMUM", make.unary("SQRT", sum), make.number(1)));  // none
    const ir::Model after = expect_same(make.finish({y}), kRounding);
    EXPECT_EQ(count(after, "L2_NORMALIZATION"), form < 3 ? 1 : 0) << operators_of(after);
  }
}

TEST(SimplifyPatterns, LeakyReluAsMaximum) {
  Maker make;
  const int x = make.input({1, 9});
  const ir::Model after =
      expect_same(make.finish({make.binary("MAXIMUM", make.binary("MUL", x, make.number(0.2f)), x)}), 0);
  EXPECT_EQ(operators_of(after), "LEAKY_RELU");
}

TEST(SimplifyPatterns, SiluHasOneForm) {
  Maker make;
  const int x = make.input({1, 9});
  const ir::Model after = expect_same(make.finish({make.binary("MUL", make.unary("LOGISTIC", x), x)}), 0);
  EXPECT_EQ(operators_of(after), "LOGISTIC MUL");
  EXPECT_EQ(first(after, "MUL").inputs[0], after.subgraphs[0].inputs[0]);
}

TEST(SimplifyPatterns, LayerNormalizationHasOneForm) {
  for (int form = 0; form < 4; ++form) {
    SCOPED_TRACE(form);
    Maker make;
    const int x = make.input({2, 7, 16});
    const int centred = make.binary("SUB", x, make.reduce("MEAN", x, {2}, true));
    const int square = form == 0   ? make.op("POW", "", {}, {centred, make.number(2)}, make.shape(x))
                       : form == 1 ? make.binary("MUL", centred, centred)
                                   : make.unary("SQUARE", centred);
    const int variance = make.binary("ADD", make.reduce("MEAN", square, {2}, true), make.number(1e-5f));
    int y = -1;
    if (form == 2) y = make.binary("MUL", centred, make.unary("RSQRT", variance));
    if (form == 3)
      y = make.binary("MUL", centred, make.op("POW", "", {}, {variance, make.number(-0.5f)}, make.shape(variance)));
    if (y < 0) y = make.binary("DIV", centred, make.unary("SQRT", variance));
    y = make.binary("ADD", make.binary("MUL", y, make.numbers({16})), make.numbers({16}));
    EXPECT_EQ(operators_of(expect_same(make.finish({y}), kRounding)),
              "MEAN SUB SQUARED_DIFFERENCE MEAN ADD RSQRT MUL MUL ADD");
  }
}

TEST(SimplifyPatterns, MeansInOneStep) {
  Maker make;
  const int x = make.to_nchw(make.input({2, 5, 6, 4}));
  const int a = make.reduce("MEAN", make.reshape(x, {2, 4, 30}), {2}, false);
  const int b = make.reduce("MEAN", make.reduce("MEAN", x, {3}, false), {2}, false);
  const int c = make.binary("DIV", make.reduce("SUM", x, {2, 3}, false), make.number(30));
  const ir::Model after = expect_same(make.finish({make.binary("ADD", a, make.binary("MUL", b, c))}), kRounding);
  EXPECT_EQ(operators_of(after), "MEAN MUL ADD");  // all the same
  Maker again;
  const int y = again.reshape(again.reduce("MEAN", again.input({1, 5, 6, 4}), {1, 2}, false), {1, 1, 1, 4});
  const ir::Model kept = expect_same(again.finish({again.unary("TANH", y)}), kRounding);
  EXPECT_EQ(operators_of(kept), "MEAN TANH");
  EXPECT_TRUE(first(kept, "MEAN").attributes.get_bool("keep_dims"));
}

}  // namespace
}  // namespace reef::passes::testing
