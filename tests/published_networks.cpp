// SPDX-License-Identifier: Apache-2.0
#include "published_networks.h"

#include <algorithm>
#include <cmath>

namespace reef::testing {
namespace {

constexpr std::int32_t kClasses = 1001;
using Builder = NetworkBuilder;

ir::Model classify(Builder& b, std::int32_t maps, std::int32_t classes = kClasses) {
  return b.finish(b.softmax(b.fully_connected(b.global_average(maps), classes)));
}

ir::Model mobilenet_v1() {
  Builder b(224, 224, 3);
  std::int32_t x = b.conv(b.input(), 32, 3, 2);
  const auto block = [&](std::int32_t channels, std::int32_t stride) {
    x = b.conv(b.depthwise(x, 3, stride), channels);
  };
  block(64, 1);
  block(128, 2);
  block(128, 1);
  block(256, 2);
  block(256, 1);
  block(512, 2);
  for (int i = 0; i < 5; ++i) block(512, 1);
  block(1024, 2);
  block(1024, 1);
  return classify(b, x);
}

ir::Model mobilenet_v2() {
  Builder b(224, 224, 3);
  std::int32_t x = b.conv(b.input(), 32, 3, 2);
  const auto stage = [&](std::int32_t expand, std::int32_t channels, int count, std::int32_t stride) {
    for (int i = 0; i < count; ++i) {
      const std::int32_t before = x;
      if (expand > 1) x = b.conv(x, b.channels(x) * expand);
      x = b.conv(b.depthwise(x, 3, i == 0 ? stride : 1), channels);
      if (i > 0) x = b.add(before, x);
    }
  };
  stage(1, 16, 1, 1);
  stage(6, 24, 2, 2);
  stage(6, 32, 3, 2);
  stage(6, 64, 4, 2);
  stage(6, 96, 3, 1);
  stage(6, 160, 3, 2);
  stage(6, 320, 1, 1);
  return classify(b, b.conv(x, 1280));
}

ir::Model inception_v1() {
  Builder b(224, 224, 3);
  std::int32_t x = b.pool("MAX_POOL_2D", b.conv(b.input(), 64, 7, 2), 3, 2);
  x = b.pool("MAX_POOL_2D", b.conv(b.conv(x, 64), 192, 3), 3, 2);
  const auto module = [&](std::vector<std::int32_t> n) {
    x = b.concat({b.conv(x, n[0]), b.conv(b.conv(x, n[1]), n[2], 3), b.conv(b.conv(x, n[3]), n[4], 3),
                  b.conv(b.pool("MAX_POOL_2D", x, 3, 1), n[5])});
  };
  module({64, 96, 128, 16, 32, 32});
  module({128, 128, 192, 32, 96, 64});
  x = b.pool("MAX_POOL_2D", x, 3, 2);
  module({192, 96, 208, 16, 48, 64});
  module({160, 112, 224, 24, 64, 64});
  module({128, 128, 256, 24, 64, 64});
  module({112, 144, 288, 32, 64, 64});
  module({256, 160, 320, 32, 128, 128});
  x = b.pool("MAX_POOL_2D", x, 2, 2);
  module({256, 160, 320, 32, 128, 128});
  module({384, 192, 384, 48, 128, 128});
  return classify(b, x);
}

// The stem and the three kinds of modules of Inception v4, each with its reduction.
std::int32_t inception_v4_stem(Builder& b) {
  std::int32_t x = b.conv(b.conv(b.conv(b.input(), 32, 3, 2, "VALID"), 32, 3, 1, "VALID"), 64, 3);
  x = b.concat({b.pool("MAX_POOL_2D", x, 3, 2, "VALID"), b.conv(x, 96, 3, 2, "VALID")});
  const std::int32_t long_way = b.conv(b.conv(b.conv(x, 64), 64, {1, 7}), 64, {7, 1});
  x = b.concat({b.conv(b.conv(x, 64), 96, 3, 1, "VALID"), b.conv(long_way, 96, 3, 1, "VALID")});
  return b.concat({b.conv(x, 192, 3, 2, "VALID"), b.pool("MAX_POOL_2D", x, 3, 2, "VALID")});
}

std::int32_t inception_v4_a(Builder& b, std::int32_t x) {
  for (int i = 0; i < 4; ++i) {
    x = b.concat({b.conv(x, 96), b.conv(b.conv(x, 64), 96, 3), b.conv(b.conv(b.conv(x, 64), 96, 3), 96, 3),
                  b.conv(b.pool("AVERAGE_POOL_2D", x, 3, 1), 96)});
  }
  return b.concat({b.conv(x, 384, 3, 2, "VALID"), b.conv(b.conv(b.conv(x, 192), 224, 3), 256, 3, 2, "VALID"),
                   b.pool("MAX_POOL_2D", x, 3, 2, "VALID")});
}

std::int32_t inception_v4_b(Builder& b, std::int32_t x) {
  for (int i = 0; i < 7; ++i) {
    const std::int32_t long_way = b.conv(b.conv(b.conv(b.conv(x, 192), 192, {7, 1}), 224, {1, 7}), 224, {7, 1});
    x = b.concat({b.conv(x, 384), b.conv(b.conv(b.conv(x, 192), 224, {1, 7}), 256, {7, 1}),
                  b.conv(long_way, 256, {1, 7}), b.conv(b.pool("AVERAGE_POOL_2D", x, 3, 1), 128)});
  }
  return b.concat({b.conv(b.conv(x, 192), 192, 3, 2, "VALID"),
                   b.conv(b.conv(b.conv(b.conv(x, 256), 256, {1, 7}), 320, {7, 1}), 320, 3, 2, "VALID"),
                   b.pool("MAX_POOL_2D", x, 3, 2, "VALID")});
}

std::int32_t inception_v4_c(Builder& b, std::int32_t x) {
  for (int i = 0; i < 3; ++i) {
    const std::int32_t a = b.conv(x, 384);
    const std::int32_t c = b.conv(b.conv(b.conv(x, 384), 448, {3, 1}), 512, {1, 3});
    x = b.concat({b.conv(x, 256), b.conv(a, 256, {1, 3}), b.conv(a, 256, {3, 1}), b.conv(c, 256, {1, 3}),
                  b.conv(c, 256, {3, 1}), b.conv(b.pool("AVERAGE_POOL_2D", x, 3, 1), 256)});
  }
  return x;
}

ir::Model inception_v4() {
  Builder b(299, 299, 3);
  return classify(b, inception_v4_c(b, inception_v4_b(b, inception_v4_a(b, inception_v4_stem(b)))));
}

ir::Model resnet(const std::vector<int>& blocks) {
  Builder b(299, 299, 3);
  std::int32_t x = b.pool("MAX_POOL_2D", b.conv(b.input(), 64, 7, 2), 3, 2);
  for (std::size_t stage = 0; stage < blocks.size(); ++stage) {
    const std::int32_t channels = 64 << stage;
    for (int i = 0; i < blocks[stage]; ++i) {
      const std::int32_t stride = i == 0 && stage > 0 ? 2 : 1;
      const std::int32_t way = b.conv(b.conv(b.conv(x, channels), channels, 3, stride), 4 * channels);
      x = b.add(i == 0 ? b.conv(x, 4 * channels, 1, stride) : x, way);
    }
  }
  return classify(b, x);
}
ir::Model resnet_50() { return resnet({3, 4, 6, 3}); }
ir::Model resnet_152() { return resnet({3, 8, 36, 3}); }

ir::Model vgg(const std::vector<int>& convolutions) {
  Builder b(224, 224, 3);
  std::int32_t x = b.input();
  const std::int32_t channels[] = {64, 128, 256, 512, 512};
  for (std::size_t stage = 0; stage < convolutions.size(); ++stage) {
    for (int i = 0; i < convolutions[stage]; ++i) x = b.conv(x, channels[stage], 3);
    x = b.pool("MAX_POOL_2D", x, 2, 2);
  }
  return b.finish(b.softmax(b.fully_connected(b.fully_connected(b.fully_connected(x, 4096), 4096), 1000)));
}
ir::Model vgg_16() { return vgg({2, 2, 3, 3, 3}); }
ir::Model vgg_19() { return vgg({2, 2, 4, 4, 4}); }

ir::Model densenet_121() {
  Builder b(224, 224, 3);
  std::int32_t x = b.pool("MAX_POOL_2D", b.conv(b.input(), 64, 7, 2), 3, 2);
  const int layers[] = {6, 12, 24, 16};
  for (int block = 0; block < 4; ++block) {
    for (int i = 0; i < layers[block]; ++i) {
      x = b.concat({x, b.conv(b.conv(b.scale_and_shift(x), 128), 32, 3)});
    }
    if (block == 3) break;
    x = b.pool("AVERAGE_POOL_2D", b.conv(b.scale_and_shift(x), b.channels(x) / 2), 2, 2);
  }
  return classify(b, b.scale_and_shift(x), 1000);
}

std::int32_t multiple_of_8(double value) {
  const std::int32_t rounded = std::max(8, static_cast<std::int32_t>(value + 4) / 8 * 8);
  return rounded < 0.9 * value ? rounded + 8 : rounded;
}

// EfficientNet-EdgeTPU: its first stages have whole convolutions where EfficientNet has depthwise ones.
ir::Model efficientnet_edgetpu(double width, double depth, std::int32_t size) {
  struct Stage {
    int count;
    std::int32_t kernel, stride, expand, channels;
    bool is_fused;
  };
  constexpr Stage kStages[] = {{1, 3, 1, 4, 24, true},  {2, 3, 2, 8, 32, true},   {4, 3, 2, 8, 48, true},
                               {5, 5, 2, 8, 96, false}, {4, 5, 1, 8, 144, false}, {2, 5, 2, 8, 192, false}};
  Builder b(size, size, 3);
  std::int32_t x = b.conv(b.input(), multiple_of_8(32 * width), 3, 2);
  for (const Stage& s : kStages) {
    for (int i = 0; i < static_cast<int>(std::ceil(s.count * depth)); ++i) {
      const std::int32_t before = x;
      const std::int32_t stride = i == 0 ? s.stride : 1;
      const std::int32_t inner = b.channels(x) * s.expand;
      x = s.is_fused ? b.conv(x, inner, s.kernel, stride) : b.depthwise(b.conv(x, inner), s.kernel, stride);
      x = b.conv(x, multiple_of_8(s.channels * width));
      if (i > 0) x = b.add(before, x);
    }
  }
  return classify(b, b.conv(x, multiple_of_8(1280 * width)));
}
ir::Model efficientnet_s() { return efficientnet_edgetpu(1, 1, 224); }
ir::Model efficientnet_m() { return efficientnet_edgetpu(1, 1.1, 240); }
ir::Model efficientnet_l() { return efficientnet_edgetpu(1.2, 1.4, 300); }

}  // namespace

const std::vector<PublishedNetwork>& published_networks() {
  static const std::vector<PublishedNetwork> networks = {
      {"MobileNet v1", mobilenet_v1, 2.4, 2.4},
      {"MobileNet v2", mobilenet_v2, 2.6, 2.6},
      {"Inception v1", inception_v1, 3.4, 4.1},
      {"Inception v4", inception_v4, 85, 102},
      {"ResNet-50", resnet_50, 49, 56},
      {"ResNet-152", resnet_152, 128, 151},
      {"VGG16", vgg_16, 296, 343},
      {"VGG19", vgg_19, 308, 357},
      {"DenseNet-121", densenet_121, 20, 25},
      {"EfficientNet-EdgeTPU-S", efficientnet_s, 5.1, 5.5},
      {"EfficientNet-EdgeTPU-M", efficientnet_m, 8.7, 10.6},
      {"EfficientNet-EdgeTPU-L", efficientnet_l, 21.3, 0},
  };
  return networks;
}

NetworkBuilder::NetworkBuilder(std::int32_t height, std::int32_t width, std::int32_t channels) {
  model_.buffers.resize(1);
  model_.subgraphs.resize(1);
  model_.subgraphs[0].inputs = {computed({1, height, width, channels})};
}

std::int32_t NetworkBuilder::computed(ir::Shape shape) {
  std::vector<ir::Tensor>& tensors = model_.subgraphs[0].tensors;
  ir::Tensor tensor;
  tensor.name = "t" + std::to_string(tensors.size());
  tensor.type = ir::DataType::kInt8;
  tensor.shape = std::move(shape);
  tensor.has_quantization = true;
  tensor.quantization.scale = {0.05F};
  tensor.quantization.zero_point = {0};
  tensors.push_back(std::move(tensor));
  return static_cast<std::int32_t>(tensors.size() - 1);
}

std::int32_t NetworkBuilder::constant(ir::DataType type, ir::Shape shape) {
  const auto bytes = ir::byte_size(shape, type).value_or(0);
  const std::int32_t index = computed(std::move(shape));
  ir::Tensor& tensor = model_.subgraphs[0].tensors[static_cast<std::size_t>(index)];
  tensor.type = type;
  tensor.buffer = static_cast<std::int32_t>(model_.buffers.size());
  ir::Buffer buffer;
  // Biases that are not zero, which a compiler would leave out.
  const std::uint8_t value = type == ir::DataType::kInt32 ? 1 : 0;
  buffer.data = Bytes(std::vector<std::uint8_t>(static_cast<std::size_t>(bytes), value));
  model_.buffers.push_back(std::move(buffer));
  return index;
}

ir::Operator& NetworkBuilder::emit(const char* type, std::int32_t builtin_code, std::vector<std::int32_t> inputs,
                                   std::int32_t output) {
  ir::Operator op;
  op.type = type;
  op.builtin_code = builtin_code;
  op.inputs = std::move(inputs);
  op.outputs = {output};
  model_.subgraphs[0].operators.push_back(std::move(op));
  return model_.subgraphs[0].operators.back();
}

namespace {

std::int32_t windowed(std::int32_t size, std::int32_t window, std::int32_t stride, const std::string& padding) {
  return padding == "SAME" ? (size + stride - 1) / stride : (size - window) / stride + 1;
}

void set_window(ir::Operator& op, std::int32_t stride, const std::string& padding) {
  op.attributes.set("padding", ir::EnumName{padding});
  op.attributes.set("stride_w", std::int64_t{stride});
  op.attributes.set("stride_h", std::int64_t{stride});
}

}  // namespace

std::int32_t NetworkBuilder::conv(std::int32_t from, std::int32_t channels, Kernel kernel, std::int32_t stride,
                                  const std::string& padding) {
  const ir::Shape in = shape(from);
  const std::int32_t weights = constant(ir::DataType::kInt8, {channels, kernel.height, kernel.width, in[3]});
  const std::int32_t bias = constant(ir::DataType::kInt32, {channels});
  const std::int32_t out = computed(
      {1, windowed(in[1], kernel.height, stride, padding), windowed(in[2], kernel.width, stride, padding), channels});
  set_window(emit("CONV_2D", 3, {from, weights, bias}, out), stride, padding);
  return out;
}

std::int32_t NetworkBuilder::depthwise(std::int32_t from, std::int32_t kernel, std::int32_t stride) {
  const ir::Shape in = shape(from);
  const std::int32_t weights = constant(ir::DataType::kInt8, {1, kernel, kernel, in[3]});
  const std::int32_t bias = constant(ir::DataType::kInt32, {in[3]});
  const std::int32_t out =
      computed({1, windowed(in[1], kernel, stride, "SAME"), windowed(in[2], kernel, stride, "SAME"), in[3]});
  ir::Operator& op = emit("DEPTHWISE_CONV_2D", 4, {from, weights, bias}, out);
  set_window(op, stride, "SAME");
  op.attributes.set("depth_multiplier", std::int64_t{1});
  return out;
}

std::int32_t NetworkBuilder::pool(const char* type, std::int32_t from, std::int32_t kernel, std::int32_t stride,
                                  const std::string& padding) {
  const ir::Shape in = shape(from);
  const std::int32_t out =
      computed({1, windowed(in[1], kernel, stride, padding), windowed(in[2], kernel, stride, padding), in[3]});
  ir::Operator& op = emit(type, std::string_view(type) == "MAX_POOL_2D" ? 17 : 1, {from}, out);
  set_window(op, stride, padding);
  op.attributes.set("filter_width", std::int64_t{kernel});
  op.attributes.set("filter_height", std::int64_t{kernel});
  return out;
}

std::int32_t NetworkBuilder::global_average(std::int32_t from) {
  const ir::Shape in = shape(from);
  const std::int32_t axes = constant(ir::DataType::kInt32, {2});
  const std::int32_t axes_values[] = {1, 2};
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(axes_values);
  model_.buffers.back().data = Bytes(std::vector<std::uint8_t>(bytes, bytes + sizeof(axes_values)));
  const std::int32_t out = computed({1, in[3]});
  emit("MEAN", 40, {from, axes}, out);
  return out;
}

std::int32_t NetworkBuilder::fully_connected(std::int32_t from, std::int32_t outputs) {
  const auto inputs = static_cast<std::int32_t>(shape(from).elements());
  const std::int32_t weights = constant(ir::DataType::kInt8, {outputs, inputs});
  const std::int32_t bias = constant(ir::DataType::kInt32, {outputs});
  const std::int32_t out = computed({1, outputs});
  emit("FULLY_CONNECTED", 9, {from, weights, bias}, out);
  return out;
}

std::int32_t NetworkBuilder::add(std::int32_t a, std::int32_t b) {
  const std::int32_t out = computed(shape(a));
  emit("ADD", 0, {a, b}, out);
  return out;
}

std::int32_t NetworkBuilder::concat(const std::vector<std::int32_t>& parts) {
  ir::Shape joined = shape(parts[0]);
  joined[3] = 0;
  for (const std::int32_t part : parts) joined[3] += shape(part)[3];
  const std::int32_t out = computed(joined);
  emit("CONCATENATION", 2, parts, out).attributes.set("axis", std::int64_t{3});
  return out;
}

std::int32_t NetworkBuilder::scale_and_shift(std::int32_t from) {
  const std::int32_t factors = constant(ir::DataType::kInt8, {channels(from)});
  const std::int32_t scaled = computed(shape(from));
  emit("MUL", 18, {from, factors}, scaled);
  const std::int32_t offsets = constant(ir::DataType::kInt8, {channels(from)});
  const std::int32_t out = computed(shape(from));
  emit("ADD", 0, {scaled, offsets}, out);
  return out;
}

std::int32_t NetworkBuilder::softmax(std::int32_t from) {
  const std::int32_t out = computed(shape(from));
  emit("SOFTMAX", 25, {from}, out).attributes.set("beta", 1.0);
  return out;
}

ir::Model NetworkBuilder::finish(std::int32_t output) {
  model_.subgraphs[0].outputs = {output};
  return std::move(model_);
}

}  // namespace reef::testing
