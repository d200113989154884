// SPDX-License-Identifier: Apache-2.0
// Averages over whole images through the code generator and the virtual device.
#include <random>

#include <gtest/gtest.h>

#include "generated_code.h"
#include "quantized_model.h"
#include "trials.h"

namespace reef::testing {
namespace {

ir::Model pooled(unsigned seed) {
  std::mt19937 random(seed);
  const auto among = [&](std::initializer_list<int> values) { return *(values.begin() + random() % values.size()); };
  const ir::DataType type = random() % 3 == 0 ? ir::DataType::kUInt8 : ir::DataType::kInt8;
  const std::int64_t zero = (type == ir::DataType::kInt8 ? -128 : 0) + among({0, 3, 100, 128, 255});
  QuantizedModel model(Quantized{type, 0.05f, zero});
  const int most = random() % 4 == 0 ? 60 : 14;
  const int height = 1 + static_cast<int>(random() % static_cast<unsigned>(most)),
            width = 1 + static_cast<int>(random() % static_cast<unsigned>(most));
  const std::int32_t x = model.input({1, height, width, among({3, 4, 8, 20})});
  std::int32_t y = model.conv(x, among({1, 4, 7, 20, 64, 65, 68, 130, 256, 300, 640, 1024, 1030, 1300}));
  if (random() % 2 == 0) y = model.conv(x, among({4, 64, 72, 130}), 3);
  const int channels = model.shape(y).last();
  const float in = model.tensor(y).quantization.scale[0];
  const Quantized to{type, random() % 2 ? in : in * 0.31f, zero};
  if (random() % 2 == 0) {
    const bool keep = random() % 2 == 0;
    const std::int32_t out = model.computed(keep ? ir::Shape{1, 1, 1, channels} : ir::Shape{1, channels}, to);
    ir::Attributes a;
    a.set("keep_dims", keep);
    return model.finish({model.op("MEAN", {y, model.ints({1, 2})}, {out}, "ReducerOptions", a, 2)});
  }
  const std::int32_t out = model.computed({1, 1, 1, channels}, to);
  ir::Attributes a;
  a.set("padding", ir::EnumName{"VALID"});
  a.set("stride_w", std::int64_t{1});
  a.set("stride_h", std::int64_t{1});
  a.set("filter_width", std::int64_t{width});
  a.set("filter_height", std::int64_t{height});
  a.set("fused_activation_function", ir::EnumName{"NONE"});
  return model.finish({model.op("AVERAGE_POOL_2D", {y}, {out}, "Pool2DOptions", a, 2)});
}

TEST(PoolDevice, AveragesOfWholeImagesAreBitExact) {
  int ran = 0;
  for (unsigned seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const ir::Model model = pooled(seed);
    const WholeModel whole(model);
    const auto level = seed % 2 == 0 ? tiled::Level::kAsGoogle : tiled::Level::kBetter;
    const auto package = compiler::generate_code_with(whole.part(1 + seed), {.level = level});
    if (!package.ok()) {
      EXPECT_EQ(package.status().code(), StatusCode::kUnsupported) << package.status().message();
      std::printf("%u: %s\n%s", seed, package.status().message().c_str(), describe(model).c_str());
      continue;
    }
    const device::Schedule schedule = schedule_of(seed);
    const Status status = runs_as_chip_reference(model, *package, seed, &schedule);
    EXPECT_TRUE(status.ok()) << status.message() << "\n" << describe(model);
    if (seed % 4 == 0) {
      const Status races = has_no_races(*package);
      EXPECT_TRUE(races.ok()) << races.message() << "\n" << describe(model);
    }
    if (seed % 4 == 1) {
      const Status sound = passes_audit(*package);
      EXPECT_TRUE(sound.ok()) << sound.message() << "\n" << describe(model);
    }
    ++ran;
  }
  std::printf("%d ran\n", ran);
}

}  // namespace
}  // namespace reef::testing
