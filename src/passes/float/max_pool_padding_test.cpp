// SPDX-License-Identifier: Apache-2.0
// Padded max pools in all kinds of windows: no PADV2 is left, and results are the same to the bit.
#include <limits>

#include "passes/float/test_graph.h"

namespace reef::passes::testing {
namespace {

constexpr float kLowest = std::numeric_limits<float>::lowest();

struct Side {
  int input, kernel, stride, before, after;
  int output() const { return (input + before + after - kernel) / stride + 1; }
};

// MAX_POOL_2D without padding of x, padded by `filling`, a constant.
int padded_pool(Maker& make, int x, const Side& high, const Side& wide, int filling) {
  const Shape from = make.shape(x);
  const DataType type = make.tensor(x).type;
  const int amounts =
      make.constant(std::vector<std::int32_t>{0, 0, high.before, high.after, wide.before, wide.after, 0, 0}, {4, 2},
                    DataType::kInt32);
  const Shape padded = {from[0], from[1] + high.before + high.after, from[2] + wide.before + wide.after, from[3]};
  const int border = make.op("PADV2", "PadV2Options", {}, {x, amounts, filling}, padded, type);
  const ir::Attributes options = Maker::attributes({{"padding", ir::EnumName{"VALID"}},
                                                    {"stride_w", std::int64_t{wide.stride}},
                                                    {"stride_h", std::int64_t{high.stride}},
                                                    {"filter_width", std::int64_t{wide.kernel}},
                                                    {"filter_height", std::int64_t{high.kernel}},
                                                    {"fused_activation_function", ir::EnumName{"NONE"}}});
  return make.op("MAX_POOL_2D", "Pool2DOptions", options, {border}, {from[0], high.output(), wide.output(), from[3]},
                 type);
}

TEST(MaxPoolPadding, EveryWindowOfEveryKind) {
  int windows = 0;
  for (const bool is_positive : {false, true}) {
    for (int kernel = 1; kernel <= 5; ++kernel) {
      for (int stride = 1; stride <= 3; ++stride) {
        for (int before = 0; before < kernel; ++before) {
          for (int after = 0; after < kernel; ++after) {
            for (int size = 5; size <= 8; ++size) {
              const Side high{size, kernel, stride, before, after}, wide{7, 3, 2, 1, 1};
              Maker make;
              const int x = make.input({1, size, 7, 3});
              const int start = is_positive ? make.unary("RELU", x) : x;
              const int y = padded_pool(make, start, high, wide, make.number(kLowest));
              const ir::Model after_it = expect_same(make.finish({y}), 0);
              ASSERT_EQ(count(after_it, "PADV2"), 0) << operators_of(after_it);
              ASSERT_EQ(count(after_it, "MIRROR_PAD") > 0 && is_positive, false) << operators_of(after_it);
              ++windows;
            }
          }
        }
      }
    }
  }
  EXPECT_EQ(windows, 2 * 3 * 4 * (1 + 4 + 9 + 16 + 25));
}

// The form that each case should take.
TEST(MaxPoolPadding, TakesTheCheapestForm) {
  struct Case {
    bool is_positive;
    Side side;
    const char* expected;
  };
  const Case cases[] = {
      {true, {8, 3, 2, 1, 1}, "RELU PAD MAX_POOL_2D"},      // ResNet
      {true, {7, 3, 2, 1, 1}, "RELU MAX_POOL_2D"},          // pads as SAME does
      {false, {8, 3, 2, 1, 1}, "MAX_POOL_2D MAX_POOL_2D"},  // a ResNet that begins without ReLU
      {false, {8, 3, 2, 0, 1}, "MAX_POOL_2D"},
      {false, {8, 5, 1, 2, 2}, "MAX_POOL_2D"},  // SPPF of YOLO
      {false, {8, 2, 2, 1, 1}, "MIRROR_PAD MAX_POOL_2D"},
      {false, {8, 3, 2, 0, 0}, "MAX_POOL_2D"},
  };
  for (const Case& c : cases) {
    Maker make;
    const int x = make.input({1, c.side.input, c.side.input, 2});
    const int y = padded_pool(make, c.is_positive ? make.unary("RELU", x) : x, c.side, c.side, make.number(kLowest));
    EXPECT_EQ(operators_of(expect_same(make.finish({y}), 0)), c.expected);
  }
}

// What proves that nothing is negative, and what does not.
TEST(MaxPoolPadding, ZerosOnlyBehindWhatIsNeverNegative) {
  for (int form = 0; form < 12; ++form) {
    SCOPED_TRACE(form);
    Maker make;
    const int x = make.input({1, 8, 8, 2});
    const int positive = make.unary("RELU", x), share = make.unary("LOGISTIC", x);
    int start = x;
    if (form == 0) start = make.concatenation({positive, share}, 3);
    if (form == 1) start = make.binary("ADD", positive, share);
    if (form == 2) start = make.binary("MUL", positive, make.number(0.5f));
    if (form == 3) start = make.unary("EXP", x);
    if (form == 4) start = make.binary("MAXIMUM", x, make.number(0.25f));
    if (form == 5) start = make.binary("MUL", x, make.unary("ABS", x));       // not
    if (form == 6) start = make.concatenation({positive, x}, 3);              // not
    if (form == 7) start = make.binary("SUB", positive, share);               // not
    if (form == 8) start = make.binary("MUL", positive, make.number(-0.5f));  // not
    if (form == 9) start = make.unary("LEAKY_RELU", x);                       // not
    if (form == 10) start = make.binary("MAXIMUM", x, make.number(-0.25f));   // not
    if (form == 11) start = make.binary("MINIMUM", x, positive);              // not
    const Side side{8, 3, 2, 1, 1};
    const int y = padded_pool(make, start, side, side, make.number(kLowest));
    const ir::Model after = expect_same(make.finish({y}), 1e-6);
    EXPECT_EQ(count(after, "PAD"), form < 5 ? 1 : 0) << operators_of(after);
    EXPECT_EQ(count(after, "PADV2"), 0) << operators_of(after);
  }
}

TEST(MaxPoolPadding, QuantizedTensorsToo) {
  Maker make;
  const int x = make.input({1, 8, 8, 2}, DataType::kInt8);
  const int filling = make.constant(std::vector<std::int8_t>{-128}, {1}, DataType::kInt8);
  const Side side{8, 3, 2, 1, 1};
  const int y = padded_pool(make, x, side, side, filling);
  EXPECT_EQ(operators_of(expect_same(make.finish({y}), 0)), "MAX_POOL_2D MAX_POOL_2D");
}

// A filling that can be the result, and windows without any input, stay as they are.
TEST(MaxPoolPadding, LeavesWhatIsNoPadding) {
  for (const bool is_beyond : {false, true}) {
    Maker make;
    const int x = make.input({1, 8, 8, 2});
    const Side side = is_beyond ? Side{8, 2, 2, 2, 2} : Side{8, 3, 2, 1, 1};
    const int y = padded_pool(make, x, side, side, make.number(is_beyond ? kLowest : -1.0f));
    EXPECT_EQ(count(expect_same(make.finish({y}), 0), "PADV2"), 1);
  }
}

}  // namespace
}  // namespace reef::passes::testing
