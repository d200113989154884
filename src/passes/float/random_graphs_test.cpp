// SPDX-License-Identifier: Apache-2.0
// Random networks, channels first with every layer wrapped in TRANSPOSEs as an importer makes them, compute the same
// when simplified; those that are convolutional networks have no TRANSPOSE left but at the border.
#include "passes/float/random_graphs.h"

namespace reef::passes::testing {
namespace {

// A second run finds nothing to do.
void expect_settled(const ir::Model& model) {
  ir::Model again = model;
  const auto report = simplify(again);
  ASSERT_TRUE(report.ok());
  EXPECT_TRUE(again == model) << ir::print(model, {.max_constant_bytes = 32})
                              << ir::print(again, {.max_constant_bytes = 32});
}

TEST(SimplifyRandom, ConvolutionalNetworksHaveNoTransposeLeft) {
  for (std::uint32_t seed = 1; seed <= 600; ++seed) {
    SCOPED_TRACE(seed);
    const ir::Model before = random_network(seed);
    const ir::Model after = expect_same(before, 2e-5);
    EXPECT_EQ(count(after, "TRANSPOSE"), 0) << ir::print(after, {.max_constant_bytes = 32});
    EXPECT_LT(after.subgraphs[0].operators.size(), before.subgraphs[0].operators.size());
    expect_settled(after);
    if (::testing::Test::HasFailure()) break;
  }
}

// What movement costs, an operator as such counted as so many elements (see conversion_cost).
std::int64_t elements_moved(const ir::Model& model) {
  std::int64_t sum = 0;
  for (const ir::Operator& op : model.subgraphs[0].operators) {
    if (op.type == "RESHAPE") sum += 16;
    if (op.type != "TRANSPOSE") continue;
    sum += model.subgraphs[0].tensors[at(op.outputs[0])].shape.elements() + 64;
  }
  return sum;
}

TEST(SimplifyRandom, MovementIsExactAndNeverMore) {
  std::int64_t before_all = 0, after_all = 0;
  for (std::uint32_t seed = 1; seed <= 1500; ++seed) {
    SCOPED_TRACE(seed);
    const ir::Model before = random_movement(seed, seed % 3 == 0 ? DataType::kInt8 : DataType::kFloat32);
    // Without a pass that pays with a RESHAPE for having no more than four axes.
    const SimplifyOptions options = {.disable = {"merged-axes"}};
    const ir::Model after = expect_same(before, 0, options);
    EXPECT_LE(elements_moved(after), elements_moved(before)) << ir::print(after, {.max_constant_bytes = 32});
    expect_settled(expect_same(before, 0));
    before_all += elements_moved(before);
    after_all += elements_moved(after);
    if (::testing::Test::HasFailure()) break;
  }
  EXPECT_LT(after_all * 2, before_all);
}

// TensorFlow's converter writes RESHAPE without options. What passes make of it can be written all the same.
TEST(SimplifyRandom, ReshapesWithoutOptionsCanBeWritten) {
  for (std::uint32_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    ir::Model before = random_movement(seed, DataType::kFloat32);
    for (ir::Operator& op : before.subgraphs[0].operators) {
      if (op.type != "RESHAPE") continue;
      op.options_type.clear();
      op.attributes = {};
    }
    const auto bytes = tflite::write_model(expect_same(before, 0));
    EXPECT_TRUE(bytes.ok()) << bytes.status().message();
    if (::testing::Test::HasFailure()) break;
  }
}

}  // namespace
}  // namespace reef::passes::testing
