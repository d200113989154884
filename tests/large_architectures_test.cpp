// SPDX-License-Identifier: Apache-2.0
// Architectures that are used with large images, in many sizes: each must compile, a larger one never less than a
// smaller one. Some of them run on the virtual device and must give the chip reference's outputs to the last bit.
//
//   REEF_SIZES=1 reef_tests --gtest_filter='LargeArchitectures.*'     all sizes; otherwise a few
//   REEF_ARCHITECTURE="u-net" REEF_SIZE=256                             only this one
#include <chrono>
#include <cstdlib>
#include <functional>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "generated_code.h"
#include "quantized_model.h"

namespace reef::testing {
namespace {

class Network {
 public:
  explicit Network(ir::Shape shape) : input_(model_.input(std::move(shape))) {}
  std::int32_t input() const { return input_; }
  QuantizedModel& model() { return model_; }
  int height(std::int32_t x) { return model_.shape(x)[1]; }
  int width(std::int32_t x) { return model_.shape(x)[2]; }
  int channels(std::int32_t x) { return model_.shape(x).last(); }

  // A convolution and SiLU, as x * sigmoid(x).
  std::int32_t conv(std::int32_t x, int channels, int kernel = 3, int stride = 1) {
    const std::int32_t y = model_.conv(x, channels, kernel, stride);
    return model_.mul(y, model_.logistic(y));
  }
  std::int32_t part(std::int32_t x, int first, int count) {
    const ir::Shape shape = model_.shape(x);
    const std::int32_t y = like(x, {1, shape[1], shape[2], count});
    return model_.op("SLICE", {x, model_.ints({0, 0, 0, first}), model_.ints({1, shape[1], shape[2], count})}, {y},
                     "SliceOptions");
  }
  std::vector<std::int32_t> halves(std::int32_t x) {
    const ir::Shape shape = model_.shape(x);
    const ir::Shape half = {1, shape[1], shape[2], shape[3] / 2};
    const std::int32_t a = like(x, half), b = like(x, half);
    ir::Attributes attributes;
    attributes.set("num_splits", std::int64_t{2});
    model_.op("SPLIT", {model_.ints({3}, {}), x}, {a, b}, "SplitOptions", std::move(attributes));
    return {a, b};
  }
  std::int32_t larger(std::int32_t x, std::string_view type = "RESIZE_NEAREST_NEIGHBOR", bool half_pixels = false) {
    return model_.resize(type, x, 2 * height(x), 2 * width(x), false, half_pixels);
  }
  std::int32_t depth_to_space(std::int32_t x, int block) {
    const ir::Shape shape = model_.shape(x);
    ir::Attributes attributes;
    attributes.set("block_size", std::int64_t{block});
    return model_.op("DEPTH_TO_SPACE", {x},
                     {like(x, {1, block * shape[1], block * shape[2], shape[3] / block / block})},
                     "DepthToSpaceOptions", std::move(attributes));
  }
  std::int32_t transpose_conv(std::int32_t x, int channels, int kernel, int stride) {
    const int height = this->height(x) * stride, width = this->width(x) * stride;
    const std::int32_t weights = model_.weights({channels, kernel, kernel, this->channels(x)});
    ir::Attributes attributes;
    attributes.set("padding", ir::EnumName{"SAME"});
    attributes.set("stride_w", std::int64_t{stride});
    attributes.set("stride_h", std::int64_t{stride});
    return model_.op("TRANSPOSE_CONV", {model_.ints({1, height, width, channels}), weights, x},
                     {like(x, {1, height, width, channels})}, "TransposeConvOptions", std::move(attributes));
  }
  std::int32_t prelu(std::int32_t x) {
    const std::int32_t slopes = model_.weights({1, 1, channels(x)}, 0.005f);
    return model_.op("PRELU", {x, slopes}, {like(x, model_.shape(x))});
  }

 private:
  std::int32_t like(std::int32_t x, ir::Shape shape) {
    const ir::Quantization q = model_.tensor(x).quantization;
    return model_.computed(std::move(shape), Quantized{ir::DataType::kInt8, q.scale[0], q.zero_point[0]});
  }

  QuantizedModel model_;
  std::int32_t input_;
};

// ---- YOLO v8 nano: C2f blocks, a pyramid of pools, features joined at three sizes ----

std::int32_t c2f(Network& n, std::int32_t x, int channels, int blocks, bool shortcut) {
  x = n.conv(x, channels, 1);
  std::vector<std::int32_t> parts = n.halves(x);
  for (int i = 0; i < blocks; ++i) {
    const std::int32_t y = n.conv(n.conv(parts.back(), channels / 2), channels / 2);
    parts.push_back(shortcut ? n.model().add(parts.back(), y) : y);
  }
  return n.conv(n.model().concatenation(parts, 3), channels, 1);
}

ir::Model yolo(int height, int width) {
  Network n({1, height, width, 3});
  std::int32_t x = n.conv(n.input(), 16, 3, 2);
  x = c2f(n, n.conv(x, 32, 3, 2), 32, 1, true);
  const std::int32_t p3 = x = c2f(n, n.conv(x, 64, 3, 2), 64, 2, true);
  const std::int32_t p4 = x = c2f(n, n.conv(x, 128, 3, 2), 128, 2, true);
  x = c2f(n, n.conv(x, 256, 3, 2), 256, 1, true);
  const std::int32_t reduced = n.conv(x, 128, 1);
  std::vector<std::int32_t> pools = {reduced};
  for (int i = 0; i < 3; ++i) pools.push_back(n.model().max_pool(pools.back(), 5, 1));
  const std::int32_t p5 = n.conv(n.model().concatenation(pools, 3), 256, 1);
  const std::int32_t t4 = c2f(n, n.model().concatenation({n.larger(p5), p4}, 3), 128, 1, false);
  const std::int32_t t3 = c2f(n, n.model().concatenation({n.larger(t4), p3}, 3), 64, 1, false);
  const std::int32_t b4 = c2f(n, n.model().concatenation({n.conv(t3, 64, 3, 2), t4}, 3), 128, 1, false);
  const std::int32_t b5 = c2f(n, n.model().concatenation({n.conv(b4, 128, 3, 2), p5}, 3), 256, 1, false);
  std::vector<std::int32_t> heads;
  for (const std::int32_t level : {t3, b4, b5}) {
    const std::int32_t boxes = n.model().conv(n.conv(n.conv(level, 64), 64), 64, 1);
    const std::int32_t classes = n.model().conv(n.conv(n.conv(level, 80), 80), 80, 1);
    heads.push_back(n.model().concatenation({boxes, classes}, 3));
  }
  return n.model().finish(heads);
}

// Tiny YOLO v3: pools of stride 2, then one of stride 1.
ir::Model tiny_yolo(int height, int width) {
  Network n({1, height, width, 3});
  std::int32_t x = n.input();
  std::int32_t kept = -1;
  for (const int channels : {16, 32, 64, 128, 256}) {
    kept = x = n.model().conv(x, channels, 3, 1, "RELU");
    x = n.model().max_pool(x, 2, 2);
  }
  x = n.model().max_pool(n.model().conv(x, 512, 3, 1, "RELU"), 2, 1);
  x = n.model().conv(n.model().conv(x, 512, 3, 1, "RELU"), 128, 1, 1, "RELU");
  const std::int32_t large = n.model().conv(x, 255);
  x = n.model().conv(n.model().concatenation({n.larger(n.model().conv(x, 64)), kept}, 3), 128, 3, 1, "RELU");
  return n.model().finish({large, n.model().conv(x, 255)});
}

// ---- U-Net: features of all sizes are kept until the way back up ----

ir::Model u_net(int height, int width) {
  Network n({1, height, width, 3});
  std::vector<std::int32_t> kept;
  std::int32_t x = n.input();
  for (const int channels : {16, 32, 64, 128}) {
    x = n.model().conv(n.model().conv(x, channels, 3, 1, "RELU"), channels, 3, 1, "RELU");
    kept.push_back(x);
    x = n.model().max_pool(x, 2, 2);
  }
  x = n.model().conv(x, 128, 3, 1, "RELU");
  for (int i = 3; i >= 0; --i) {
    const std::int32_t skip = kept[static_cast<std::size_t>(i)];
    const std::int32_t up = n.transpose_conv(x, n.channels(skip), 3, 2);
    x = n.model().conv(n.model().concatenation({up, skip}, 3), n.channels(skip), 3, 1, "RELU");
  }
  return n.model().finish({n.model().softmax(n.model().conv(x, 21))});
}

// ---- Super-resolution: 4 times as large, with residual blocks of PRELU ----

ir::Model super_resolution(int height, int width) {
  Network n({1, height, width, 3});
  const std::int32_t first = n.prelu(n.model().conv(n.input(), 32, 9));
  std::int32_t x = first;
  for (int i = 0; i < 3; ++i) {
    x = n.model().add(n.model().conv(n.prelu(n.model().conv(x, 32, 3)), 32, 3), x);
  }
  x = n.model().add(n.model().conv(x, 32, 3), first);
  for (int i = 0; i < 2; ++i) x = n.prelu(n.depth_to_space(n.model().conv(x, 128, 3), 2));
  return n.model().finish({n.model().unary("TANH", n.model().conv(x, 3, 9))});
}

// ---- EfficientDet's pyramid: weighted sums of features up and down ----

ir::Model feature_pyramid(int height, int width) {
  Network n({1, height, width, 3});
  std::int32_t x = n.model().conv(n.input(), 32, 3, 2, "RELU6");
  std::vector<std::int32_t> levels;
  for (const int channels : {16, 24, 40, 80, 160}) {
    const std::int32_t wide = n.model().conv(x, 4 * n.channels(x), 1, 1, "RELU6");
    x = n.model().conv(n.model().depthwise(wide, channels == 40 ? 5 : 3, channels == 16 ? 1 : 2, "RELU6"), channels);
    levels.push_back(n.model().conv(x, 64));
  }
  levels.erase(levels.begin());
  for (int i = 2; i >= 0; --i) {
    const auto at = static_cast<std::size_t>(i);
    const std::int32_t up =
        n.model().resize("RESIZE_NEAREST_NEIGHBOR", levels[at + 1], n.height(levels[at]), n.width(levels[at]));
    levels[at] = n.model().conv(n.model().depthwise(n.model().add(levels[at], up), 3), 64);
  }
  for (std::size_t i = 1; i < 4; ++i) {
    const std::int32_t down = n.model().resize("RESIZE_NEAREST_NEIGHBOR", n.model().max_pool(levels[i - 1], 3, 2),
                                               n.height(levels[i]), n.width(levels[i]));
    levels[i] = n.model().conv(n.model().depthwise(n.model().add(levels[i], down), 3), 64);
  }
  std::vector<std::int32_t> heads;
  for (const std::int32_t level : levels) {
    heads.push_back(n.model().logistic(n.model().conv(n.model().depthwise(level), 90)));
  }
  return n.model().finish(heads);
}

// ---- Segmentation: bilinear upsampling to the size of the image ----

ir::Model segmentation(int height, int width) {
  Network n({1, height, width, 3});
  std::int32_t x = n.model().conv(n.input(), 16, 3, 2, "RELU6");
  x = n.model().conv(n.model().depthwise(x, 3, 2, "RELU6"), 24);
  const std::int32_t low = x;
  x = n.model().conv(n.model().depthwise(x, 3, 2, "RELU6"), 64);
  const std::int32_t global = n.model().conv(n.model().mean(x, {1, 2}), 64);
  x = n.model().mul(x, n.model().logistic(global));
  x = n.model().conv(n.larger(x, "RESIZE_BILINEAR", true), 24);
  if (n.height(x) == n.height(low) && n.width(x) == n.width(low)) x = n.model().add(x, low);
  x = n.model().conv(x, 21, 1);
  for (int i = 0; i < 2; ++i) x = n.larger(x, "RESIZE_BILINEAR", true);
  return n.model().finish({x});
}

struct Architecture {
  const char* name;
  ir::Model (*make)(int height, int width);
  int unit;                // sizes are multiples of it
  std::vector<int> sizes;  // of one side
  int run;                 // a size that is run
};

const std::vector<Architecture>& architectures() {
  static const std::vector<Architecture> kAll = {
      {"yolo", yolo, 32, {64, 224, 320, 416, 512, 640, 800, 960, 1280}, 320},
      {"tiny yolo", tiny_yolo, 32, {64, 224, 320, 416, 608, 832, 1024}, 224},
      {"u-net", u_net, 16, {32, 96, 128, 256, 320, 512, 640, 800}, 256},
      {"super-resolution", super_resolution, 1, {17, 32, 50, 64, 96, 128, 200, 256, 360, 480}, 96},
      {"feature pyramid", feature_pyramid, 64, {64, 256, 384, 512, 640, 768, 896}, 512},
      {"segmentation", segmentation, 8, {64, 128, 256, 384, 512, 640, 768, 1024}, 512},
  };
  return kAll;
}

bool all_sizes() { return std::getenv("REEF_SIZES") != nullptr; }

TEST(LargeArchitectures, CompileInAllSizes) {
  const char* only = std::getenv("REEF_ARCHITECTURE");
  for (const Architecture& a : architectures()) {
    if (only != nullptr && std::string(only) != a.name) continue;
    for (std::size_t i = 0; i < a.sizes.size(); ++i) {
      const int size = a.sizes[i];
      if (const char* one = std::getenv("REEF_SIZE"); one != nullptr && std::atoi(one) != size) continue;
      if (!all_sizes() && i + 3 < a.sizes.size() && i % 3 != 0) continue;
      const int width = std::max(a.unit, (size - size / 4) / a.unit * a.unit);
      SCOPED_TRACE(fmt::format("{} of {}x{}", a.name, size, width));
      const ir::Model model = a.make(size, width);
      const auto begin = std::chrono::steady_clock::now();
      const auto code = compiler::generate_part(WholeModel(model).part(7));
      const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
      EXPECT_TRUE(code.ok()) << code.status().message();
      if (all_sizes() && code.ok()) {
        std::printf("%s %dx%d: %.1f s, %lld bytes kept by the host, %zu steps\n", a.name, size, width, seconds.count(),
                    static_cast<long long>(code->program.host_bytes), code->program.steps.size());
        std::fflush(stdout);
      }
    }
  }
}

TEST(LargeArchitectures, RunBitExact) {
  const char* only = std::getenv("REEF_ARCHITECTURE");
  for (const Architecture& a : architectures()) {
    if (only != nullptr && std::string(only) != a.name) continue;
    const ir::Model model = a.make(a.run, a.run);
    SCOPED_TRACE(a.name);
    compiler::GenerationOptions options;
    options.level = tiled::Level::kBetter;
    const auto package = compiler::generate_code_with(WholeModel(model).part(7), options);
    ASSERT_TRUE(package.ok()) << package.status().message();
    const Status runs = runs_as_chip_reference(model, *package, 3);
    EXPECT_TRUE(runs.ok()) << runs.message();
    if (!all_sizes()) continue;
    const Status sound = passes_audit(*package);
    EXPECT_TRUE(sound.ok()) << sound.message();
  }
}

}  // namespace
}  // namespace reef::testing
