// SPDX-License-Identifier: Apache-2.0
// MEAN, SUM, REDUCE_MAX and REDUCE_MIN over all sets of axes, through the code generator and the virtual device:
// outputs must be those of the chip reference to the last bit, and within one of TFLite's.
#include <gtest/gtest.h>

#include "chip_against_cpu.h"
#include "generated_code.h"
#include "quantized_model.h"
#include "random_choice.h"
#include "trials.h"

namespace reef::testing {
namespace {

struct Case {
  std::string op;
  ir::Shape shape;
  std::vector<std::int32_t> axes;
  bool keep = true;
  int channels = 0;  // of a convolution in front; 0: none
  ir::DataType type = ir::DataType::kInt8;
  std::int64_t zero_point = 3;
  bool rescales = true;

  std::string to_string() const {
    return fmt::format("{} {} over {} keep {} conv {} {} zero {}", op, shape.to_string(), fmt::join(axes, ","), keep,
                       channels, ir::type_name(type), zero_point);
  }
};

bool is_among(const std::vector<std::int32_t>& axes, int axis, int rank) {
  return std::any_of(axes.begin(), axes.end(), [&](std::int32_t a) { return a == axis || a + rank == axis; });
}

ir::Model model_of(const Case& c) {
  QuantizedModel model(Quantized{c.type, 0.05f, c.zero_point});
  std::int32_t x = model.input(c.shape);
  if (c.channels > 0) x = model.conv(x, c.channels);
  const ir::Shape in = model.shape(x);
  ir::Shape out;
  double count = 1;
  for (int d = 0; d < in.rank(); ++d) {
    const bool reduced = is_among(c.axes, d, in.rank());
    if (reduced) count *= in[d];
    if (!reduced || c.keep) out.push_back(reduced ? 1 : in[d]);
  }
  Quantized to{c.type, 0.05f, c.zero_point};
  if (c.op == "SUM") to.scale = static_cast<float>(0.05 * std::sqrt(count));
  if (c.op == "MEAN" && c.rescales) to = {c.type, 0.031f, c.type == ir::DataType::kInt8 ? 5 : 120};
  ir::Attributes a;
  a.set("keep_dims", c.keep);
  const std::int32_t y = model.op(c.op, {x, model.ints(c.axes)}, {model.computed(out, to)}, "ReducerOptions", a, 2);
  return model.finish({y});
}

void expect_exact(const Case& c, unsigned seed, tiled::Level level) {
  SCOPED_TRACE(c.to_string() + (level == tiled::Level::kBetter ? " -O1" : " -O0"));
  const ir::Model model = model_of(c);
  const auto package = compiler::generate_code_with(WholeModel(model).part(1 + seed), {.level = level});
  ASSERT_TRUE(package.ok()) << package.status().message();
  const bool by_timing = level == tiled::Level::kAsGoogle && c.op == "MEAN";  // gathers of vectors at Google's pace
  const device::Schedule schedule = schedule_of(seed);
  const Status status = runs_as_chip_reference(model, *package, seed, by_timing ? nullptr : &schedule);
  EXPECT_TRUE(status.ok()) << status.message();
  if (by_timing) return;
  const Status sound = passes_audit(*package);
  EXPECT_TRUE(sound.ok()) << sound.message();
  if (seed % 4 == 0) {
    const Status races = has_no_races(*package);
    EXPECT_TRUE(races.ok()) << races.message();
  }
}

const char* const kOps[] = {"SUM", "MEAN", "REDUCE_MAX", "REDUCE_MIN"};

TEST(CodegenReductions, AllAxesOfImages) {
  const std::vector<std::vector<std::int32_t>> kAxes = {{3}, {2}, {1}, {1, 2}, {2, 3}, {1, 3}, {1, 2, 3}, {-1}, {-2}};
  unsigned seed = 0;
  for (const ir::Shape& shape : {ir::Shape{1, 7, 9, 12}, {1, 1, 6, 5}, {1, 18, 3, 1}, {1, 4, 4, 67}, {1, 33, 40, 3}}) {
    for (const auto& axes : kAxes) {
      for (const char* op : kOps) {
        ++seed;
        expect_exact({op, shape, axes, seed % 3 != 0}, seed,
                     seed % 2 == 0 ? tiled::Level::kAsGoogle : tiled::Level::kBetter);
      }
    }
  }
}

TEST(CodegenReductions, OtherRanks) {
  unsigned seed = 0;
  for (const char* op : kOps) {
    expect_exact({op, {1, 300}, {1}}, ++seed, tiled::Level::kBetter);
    expect_exact({op, {1, 5003}, {1}}, ++seed, tiled::Level::kBetter);
    expect_exact({op, {1, 30, 20}, {1}, false}, ++seed, tiled::Level::kBetter);
    expect_exact({op, {1, 30, 20}, {2}}, ++seed, tiled::Level::kAsGoogle);
    expect_exact({op, {1, 30, 20}, {1, 2}}, ++seed, tiled::Level::kBetter);
    expect_exact({op, {5, 6, 10}, {0}}, ++seed, tiled::Level::kBetter);
    expect_exact({op, {5, 6, 10}, {1}}, ++seed, tiled::Level::kAsGoogle);
    expect_exact({op, {20, 11}, {0}}, ++seed, tiled::Level::kBetter);
    expect_exact({op, {20, 11}, {1}}, ++seed, tiled::Level::kBetter);
    expect_exact({op, {1, 1, 7}, {1}}, ++seed, tiled::Level::kBetter);
  }
}

// More than a quarter of the tiles could hold, and rows longer than a sum of 16 bits.
TEST(CodegenReductions, LargeImages) {
  unsigned seed = 3;  // no race finder
  for (const char* op : kOps) {
    expect_exact({op, {1, 64, 56, 3}, {2}, true, 40}, seed += 2, tiled::Level::kBetter);
    expect_exact({op, {1, 56, 64, 3}, {1}, true, 40}, seed += 2, tiled::Level::kBetter);
    expect_exact({op, {1, 2, 1100, 4}, {1, 2}}, seed += 2, tiled::Level::kBetter);
    expect_exact({op, {1, 60, 90, 5}, {1, 2, 3}}, seed += 2, tiled::Level::kBetter);
  }
}

TEST(CodegenReductions, RandomOnes) {
  const auto [begin, end] = seeds_to_try(60);
  for (unsigned seed = begin; seed < end; ++seed) {
    RandomChoice choice(seed);
    Case c;
    c.op = kOps[choice.between(0, 3)];
    c.type = choice.likely(60) ? ir::DataType::kInt8 : ir::DataType::kUInt8;
    c.zero_point = choice.zero_point(c.type);
    c.shape = {1, choice.between(1, 40), choice.between(1, 40), choice.among({1, 2, 3, 4, 7, 8, 16, 20, 64, 65})};
    if (choice.likely(50)) c.channels = choice.among({1, 3, 4, 30, 64, 100, 130});
    for (int axis = 1; axis < 4; ++axis) {
      if (choice.likely(50)) c.axes.push_back(axis);
    }
    if (c.axes.empty()) c.axes = {choice.between(1, 3)};
    c.keep = choice.likely(50);
    c.rescales = choice.likely(60);
    expect_exact(c, seed, seed % 3 == 0 ? tiled::Level::kAsGoogle : tiled::Level::kBetter);
  }
}

TEST(CodegenReductions, AreWithinOneOfTflite) {
  for (unsigned seed = 0; seed < 80; ++seed) {
    RandomChoice choice(seed);
    Case c;
    c.op = kOps[seed % 4];
    c.shape = {1, choice.between(1, 20), choice.between(1, 20), choice.between(1, 40)};
    for (int axis = 1; axis < 4; ++axis) {
      if (choice.likely(50) || axis == static_cast<int>(seed % 3) + 1) c.axes.push_back(axis);
    }
    c.zero_point = choice.zero_point(c.type);
    SCOPED_TRACE(c.to_string());
    const auto distance = distance_from_tflite(model_of(c), seed);
    ASSERT_TRUE(distance.ok()) << distance.status().message();
    EXPECT_LE(*distance, c.op.starts_with("REDUCE") ? 0 : 1);
  }
}

TEST(CodegenReductions, RefusesWhatThereIsNoCodeFor) {
  QuantizedModel model;
  const std::int32_t x = model.input({2, 4, 4, 4});
  const auto batches = model.finish({model.mean(x, {0})});
  EXPECT_EQ(compiler::generate_code_with(WholeModel(batches).part(1), {}).status().code(), StatusCode::kUnsupported);
}

}  // namespace
}  // namespace reef::testing
