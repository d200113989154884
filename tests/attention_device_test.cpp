// SPDX-License-Identifier: Apache-2.0
// Attention through the code generator and the virtual device: in the forms that exporters write, outputs must be those
// of the chip reference, which knows nothing of heads as runs of channels, to the last bit.
#include <cmath>

#include <gtest/gtest.h>

#include "generated_code.h"
#include "lower/attention_plan.h"
#include "quantized_model.h"
#include "random_choice.h"
#include "trials.h"

namespace reef::testing {
namespace {

constexpr auto kInt8 = ir::DataType::kInt8;

struct Form {
  int queries = 20, keys = 20, heads = 3, key_heads = 3, depth = 8;
  enum Layer { kJoined, kSeparate, kTokensFirst } layer = kJoined;
  bool masked = false;
  bool swapped_keys = false;  // keys as [heads, depth, tokens], without adj_y
  int rows = 1;               // of the image that queries are
};

class AttentionModel {
 public:
  explicit AttentionModel(const Form& form) : form_(form), model_(Quantized{kInt8, 0.05f, -7}) {}

  ir::Model build() {
    const int width = form_.heads * form_.depth;
    const std::int32_t x = model_.input({1, form_.rows, form_.queries / form_.rows, 12}, "x");
    std::int32_t q = 0, k = 0, v = 0;
    if (form_.layer == Form::kSeparate) {
      const std::int32_t y = form_.keys == form_.queries ? x : model_.input({1, 1, form_.keys, 12}, "y");
      const int key_width = form_.key_heads * form_.depth;
      q = heads_of(model_.conv(x, width), form_.queries, form_.heads);
      k = repeated(heads_of(model_.conv(y, key_width), form_.keys, form_.key_heads));
      v = repeated(heads_of(model_.conv(y, key_width), form_.keys, form_.key_heads));
    } else {
      const std::vector<std::int32_t> parts =
          form_.layer == Form::kJoined ? joined(model_.conv(x, 3 * width)) : tokens_first(model_.conv(x, 3 * width));
      q = parts[0];
      k = parts[1];
      v = parts[2];
    }
    if (form_.swapped_keys) k = model_.transpose(k, {0, 1, 3, 2});
    const std::int32_t scores = product(q, k, !form_.swapped_keys, {1, form_.heads, form_.queries, form_.keys});
    const std::int32_t means = product(model_.softmax(form_.masked ? masked(scores) : scores), v, false,
                                       {1, form_.heads, form_.queries, form_.depth});
    const std::int32_t together = model_.transpose(means, {0, 2, 1, 3});
    const std::int32_t image = model_.reshape(together, {1, form_.rows, form_.queries / form_.rows, width});
    return model_.finish({model_.conv(image, 10)});
  }

 private:
  std::int32_t heads_of(std::int32_t x, int tokens, int heads) {
    return model_.transpose(model_.reshape(x, {1, tokens, heads, form_.depth}), {0, 2, 1, 3});
  }
  // Grouped heads: each key head serves several queries'.
  std::int32_t repeated(std::int32_t x) {
    const int times = form_.heads / form_.key_heads;
    if (times == 1) return x;
    const int size = form_.keys * form_.depth;
    const std::int32_t rows = model_.reshape(x, {1, form_.key_heads, 1, size});
    const ir::Shape shape{1, form_.key_heads, times, size};
    const Quantized like{kInt8, model_.tensor(x).quantization.scale[0], model_.tensor(x).quantization.zero_point[0]};
    const std::int32_t tiled =
        model_.op("TILE", {rows, model_.ints({1, 1, times, 1})}, {model_.computed(shape, like)}, "TileOptions", {}, 2);
    return model_.reshape(tiled, {1, form_.heads, form_.keys, form_.depth});
  }
  // [tokens, 3, heads, depth] with the tokens moved inwards, split along the first dimension.
  std::vector<std::int32_t> joined(std::int32_t x) {
    const std::int32_t rows = model_.reshape(x, {form_.queries, 3 * form_.heads, form_.depth});
    const std::int32_t moved = model_.transpose(rows, {1, 0, 2});
    return split(model_.reshape(moved, {1, 3 * form_.heads, form_.queries, form_.depth}), 1);
  }
  // Split while the tokens come first.
  std::vector<std::int32_t> tokens_first(std::int32_t x) {
    std::vector<std::int32_t> parts = split(model_.reshape(x, {1, form_.queries, 3 * form_.heads, form_.depth}), 2);
    for (std::int32_t& part : parts) part = model_.transpose(part, {0, 2, 1, 3});
    return parts;
  }
  std::vector<std::int32_t> split(std::int32_t x, int axis) {
    ir::Shape shape = model_.shape(x);
    shape[axis] /= 3;
    const Quantized like{kInt8, model_.tensor(x).quantization.scale[0], model_.tensor(x).quantization.zero_point[0]};
    std::vector<std::int32_t> parts;
    for (int i = 0; i < 3; ++i) parts.push_back(model_.computed(shape, like));
    ir::Attributes a;
    a.set("num_splits", std::int64_t{3});
    model_.op("SPLIT", {model_.ints({axis}), x}, parts, "SplitOptions", a, 2);
    return parts;
  }
  std::int32_t product(std::int32_t x, std::int32_t y, bool adj_y, ir::Shape out) {
    const double depth = model_.shape(x).last();
    const auto scale = static_cast<float>(model_.tensor(x).quantization.scale[0] *
                                          model_.tensor(y).quantization.scale[0] * 50 * std::sqrt(depth));
    ir::Attributes a;
    a.set("adj_x", false);
    a.set("adj_y", adj_y);
    return model_.op("BATCH_MATMUL", {x, y}, {model_.computed(out, {kInt8, scale, 5})}, "BatchMatMulOptions", a, 4);
  }
  std::int32_t masked(std::int32_t scores) {
    ir::Attributes a;
    a.set("fused_activation_function", ir::EnumName{"NONE"});
    const float scale = model_.tensor(scores).quantization.scale[0];
    const std::int32_t mask = model_.weights({1, 1, 1, form_.keys}, scale);
    return model_.op("ADD", {scores, mask}, {model_.computed(model_.shape(scores), {kInt8, 1.3f * scale, 2})},
                     "AddOptions", a, 2);
  }

  const Form form_;
  QuantizedModel model_;
};

void expect_exact(const Form& form, unsigned seed, bool is_found = true) {
  const ir::Model model = AttentionModel(form).build();
  const WholeModel whole(model);
  const lower::AttentionPlan plan(model, whole.ops, {});
  int products = 0, found = 0;
  for (const std::int32_t op : whole.ops) {
    if (model.subgraphs[0].operators[static_cast<std::size_t>(op)].type != "BATCH_MATMUL") continue;
    ++products;
    found += plan.of(op) != nullptr;
  }
  EXPECT_EQ(found, is_found ? products : 0);
  for (const tiled::Level level : {tiled::Level::kBetter, tiled::Level::kAsGoogle}) {
    const auto package = compiler::generate_code_with(whole.part(1 + seed), {.level = level});
    ASSERT_TRUE(package.ok()) << package.status().message();
    const device::Schedule schedule = schedule_of(seed);
    const bool by_timing = level == tiled::Level::kAsGoogle;
    const Status status = runs_as_chip_reference(model, *package, seed, by_timing ? nullptr : &schedule);
    EXPECT_TRUE(status.ok()) << status.message();
    if (by_timing) continue;
    const Status sound = passes_audit(*package);
    EXPECT_TRUE(sound.ok()) << sound.message();
    const Status races = has_no_races(*package);
    EXPECT_TRUE(races.ok()) << races.message();
  }
}

TEST(AttentionDevice, OneLayerForQueriesKeysAndValues) {
  expect_exact({.queries = 64, .keys = 64, .heads = 4, .depth = 32}, 1);
  expect_exact({.queries = 49, .keys = 49, .heads = 3, .depth = 20, .layer = Form::kTokensFirst}, 2);
}

TEST(AttentionDevice, LayersOfTheirOwn) {
  expect_exact({.queries = 33, .keys = 33, .heads = 2, .key_heads = 2, .depth = 12, .layer = Form::kSeparate}, 3);
  expect_exact({.layer = Form::kSeparate, .swapped_keys = true}, 4);
}

TEST(AttentionDevice, OtherTokensForKeysAndValues) {
  expect_exact({.queries = 12, .keys = 50, .layer = Form::kSeparate}, 5);
  expect_exact({.queries = 37, .keys = 7, .layer = Form::kSeparate}, 6);
}

TEST(AttentionDevice, GroupedHeads) {
  expect_exact({.heads = 6, .key_heads = 2, .layer = Form::kSeparate}, 7);
  expect_exact({.heads = 4, .key_heads = 1, .layer = Form::kSeparate}, 8);
}

TEST(AttentionDevice, MasksOfKeys) { expect_exact({.masked = true}, 9); }

// One head's keys take more memory than there is for copies, or all heads' do.
TEST(AttentionDevice, ManyTokens) {
  expect_exact({.queries = 200, .keys = 200, .heads = 4, .depth = 64}, 10);
  expect_exact({.queries = 16, .keys = 896, .heads = 2, .key_heads = 2, .depth = 64, .layer = Form::kSeparate}, 11);
}

// Scores take more memory than there is for all heads together, or for one: they are made for some heads, then for some
// rows of the tokens.
TEST(AttentionDevice, ScoresInParts) {
  expect_exact({.queries = 400, .keys = 400, .heads = 5, .depth = 8, .masked = true, .rows = 20}, 13);
  expect_exact({.queries = 672, .keys = 672, .heads = 2, .depth = 16, .rows = 24}, 14);
  expect_exact({.queries = 90, .keys = 2048, .heads = 4, .key_heads = 2, .layer = Form::kSeparate, .rows = 9}, 15);
}

// Channels of a head that are no whole words are moved as the model says.
TEST(AttentionDevice, HeadsOfBrokenWords) { expect_exact({.depth = 6}, 12, false); }

TEST(AttentionDevice, AnyForm) {
  const Seeds seeds = seeds_to_try(8);
  for (unsigned seed = seeds.begin; seed < seeds.end; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomChoice choice(seed);
    Form form;
    form.layer = static_cast<Form::Layer>(choice.between(0, 2));
    form.queries = form.keys = choice.between(2, 100);
    form.heads = form.key_heads = choice.between(1, 6);
    form.depth = 4 * choice.between(1, 12);
    form.masked = choice.likely(40);
    form.swapped_keys = choice.likely(30);
    if (form.layer == Form::kSeparate && choice.likely(50)) form.keys = choice.between(2, 100);
    expect_exact(form, seed);
  }
}

}  // namespace
}  // namespace reef::testing
