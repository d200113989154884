// SPDX-License-Identifier: Apache-2.0
// Layers with weights, of random shapes and types, on every target of this CPU and on one and three threads: equal bits
// everywhere. `baseline` runs the plain loops that recorded results of TFLite's reference kernels are compared with
// (op_vectors_test.cpp). Float layers are computed in the same way on all targets, so those have a plain loop here.
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "execute/cpu/interpreter.h"
#include "ir/verify.h"
#include "kernels/simd/each_target.h"
#include "random_choice.h"
#include "small_models.h"

namespace reef {
namespace {

using ir::DataType;
using testing::op;
using testing::RandomChoice;
using testing::tensor;

// Puts a model of one operator together.
struct LayerModel {
  explicit LayerModel(unsigned seed) : choice(seed) { model.buffers.resize(1); }

  std::int32_t add(DataType type, const ir::Shape& shape, std::vector<float> scale, std::int64_t zero_point = 0) {
    graph.tensors.push_back(tensor(type, shape));
    ir::Quantization& quantization = graph.tensors.back().quantization;
    quantization.zero_point.assign(scale.size(), zero_point);
    quantization.scale = std::move(scale);
    return static_cast<std::int32_t>(graph.tensors.size()) - 1;
  }
  template <typename T>
  std::int32_t add_constant(DataType type, const ir::Shape& shape, const std::vector<T>& values,
                            std::vector<float> scale = {}, std::int64_t zero_point = 0) {
    const std::int32_t index = add(type, shape, std::move(scale), zero_point);
    graph.tensors.back().buffer = static_cast<std::int32_t>(model.buffers.size());
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(values.data());
    model.buffers.emplace_back().data = Bytes::copy_of(std::span(bytes, values.size() * sizeof(T)));
    return index;
  }
  std::vector<std::uint8_t> random_bytes(const ir::Shape& shape, DataType type) {
    std::vector<std::uint8_t> bytes(static_cast<std::size_t>(*ir::byte_size(shape, type)));
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(choice.random());
    return bytes;
  }
  std::vector<float> random_floats(std::int64_t count, float size) {
    std::vector<float> values(static_cast<std::size_t>(count));
    for (float& value : values) value = size * (static_cast<float>(choice.between(-1000, 1000)) / 1000.0f);
    return values;
  }
  std::vector<float> scales(std::int64_t channels, float size) {
    std::vector<float> values(static_cast<std::size_t>(channels));
    for (float& value : values) value = size * static_cast<float>(choice.between(50, 150)) / 100.0f;
    return values;
  }
  std::shared_ptr<const ir::Model> finish(ir::Operator made, std::vector<std::int32_t> inputs) {
    graph.inputs = std::move(inputs);
    graph.outputs = made.outputs;
    graph.operators.push_back(std::move(made));
    model.subgraphs.push_back(std::move(graph));
    EXPECT_TRUE(ir::verify(model).ok());
    return std::make_shared<const ir::Model>(std::move(model));
  }

  RandomChoice choice;
  ir::Model model;
  ir::Subgraph graph;
};

constexpr float kInputScale = 0.05f, kWeightScale = 0.01f;  // about; where there is one for each channel

// What a layer's numbers are.
enum class Numbers { kInt8, kUInt8, kInt16, kHybrid, kFloat };

DataType activation_type(Numbers numbers) {
  switch (numbers) {
    case Numbers::kInt8:
      return DataType::kInt8;
    case Numbers::kUInt8:
      return DataType::kUInt8;
    case Numbers::kInt16:
      return DataType::kInt16;
    default:
      return DataType::kFloat32;
  }
}

struct Quantized {
  std::vector<float> scale;
  std::int64_t zero_point = 0;
};
Quantized activation_scale(LayerModel& made, Numbers numbers, float size) {
  if (numbers == Numbers::kInt16) return {{size / 200}, 0};
  if (numbers == Numbers::kInt8 || numbers == Numbers::kUInt8)
    return {{size}, made.choice.zero_point(activation_type(numbers))};
  return {};
}

std::int32_t add_weights(LayerModel& made, Numbers numbers, const ir::Shape& shape, std::int64_t channels, int axis,
                         float size) {
  if (numbers == Numbers::kFloat)
    return made.add_constant(DataType::kFloat32, shape, made.random_floats(shape.elements(), size * 100));
  if (numbers == Numbers::kUInt8)
    return made.add_constant(DataType::kUInt8, shape, made.random_bytes(shape, DataType::kUInt8), {size},
                             made.choice.zero_point(DataType::kUInt8));
  const bool has_one = made.choice.likely(30);
  const auto index = made.add_constant(DataType::kInt8, shape, made.random_bytes(shape, DataType::kInt8),
                                       has_one ? std::vector<float>{size} : made.scales(channels, size));
  made.graph.tensors.back().quantization.dimension = has_one ? 0 : axis;
  return index;
}

// -1: none.
std::int32_t add_bias(LayerModel& made, Numbers numbers, std::int64_t channels) {
  if (made.choice.likely(25)) return -1;
  const ir::Shape shape{static_cast<std::int32_t>(channels)};
  if (numbers == Numbers::kFloat || numbers == Numbers::kHybrid)
    return made.add_constant(DataType::kFloat32, shape, made.random_floats(channels, 1));
  if (numbers == Numbers::kInt16) {
    std::vector<std::int64_t> values(static_cast<std::size_t>(channels));
    for (std::int64_t& value : values) value = made.choice.between(-100000, 100000);
    return made.add_constant(DataType::kInt64, shape, values);
  }
  std::vector<std::int32_t> values(static_cast<std::size_t>(channels));
  for (std::int32_t& value : values) value = made.choice.between(-3000, 3000);
  // One scale for all weights: that of the products is asked for.
  return made.add_constant(DataType::kInt32, shape, values, {kInputScale * kWeightScale});
}

std::int32_t between(LayerModel& made, int low, int high) { return made.choice.between(low, high); }

std::shared_ptr<const ir::Model> transpose_conv(unsigned seed, Numbers numbers) {
  LayerModel made(seed);
  const std::int32_t batches = made.choice.likely(20) ? 2 : 1, height = between(made, 1, 9),
                     width = between(made, 1, 17);
  const std::int32_t channels = made.choice.likely(50) ? between(made, 1, 9) : between(made, 1, 70);
  const std::int32_t outputs = made.choice.likely(50) ? between(made, 1, 9) : between(made, 1, 50);
  const std::int32_t window_h = between(made, 1, 5), window_w = between(made, 1, 5);
  const std::int32_t stride_h = between(made, 1, 3), stride_w = between(made, 1, 3);
  const bool same = made.choice.likely(60);
  const auto size = [&](std::int32_t input, std::int32_t window, std::int32_t stride) {
    const std::int32_t whole = same ? input * stride : (input - 1) * stride + window;
    return std::max(whole + between(made, 1 - stride, same ? 0 : stride - 1), 1);
  };
  const ir::Shape shape{batches, size(height, window_h, stride_h), size(width, window_w, stride_w), outputs};
  const DataType type = activation_type(numbers);
  const float reach = 0.02f * static_cast<float>(channels);
  std::vector<std::int32_t> sizes(shape.begin(), shape.end());
  const std::int32_t wanted = made.add_constant(DataType::kInt32, {4}, sizes);
  const std::int32_t weights =
      add_weights(made, numbers, {outputs, window_h, window_w, channels}, outputs, 0, kWeightScale);
  const Quantized in = activation_scale(made, numbers, kInputScale), out = activation_scale(made, numbers, reach);
  const std::int32_t input = made.add(type, {batches, height, width, channels}, in.scale, in.zero_point);
  std::vector<std::int32_t> inputs{wanted, weights, input};
  if (const std::int32_t bias = add_bias(made, numbers, outputs); bias >= 0) inputs.push_back(bias);
  ir::Operator layer = op("TRANSPOSE_CONV", inputs, {made.add(type, shape, out.scale, out.zero_point)});
  layer.attributes.set("padding", ir::EnumName{same ? "SAME" : "VALID"});
  layer.attributes.set("stride_h", std::int64_t{stride_h});
  layer.attributes.set("stride_w", std::int64_t{stride_w});
  return made.finish(std::move(layer), {input});
}

void set_window_attributes(LayerModel& made, ir::Operator& layer, bool same) {
  layer.attributes.set("padding", ir::EnumName{same ? "SAME" : "VALID"});
  for (const char* name : {"stride_h", "stride_w"}) layer.attributes.set(name, std::int64_t{between(made, 1, 2)});
  for (const char* name : {"dilation_h_factor", "dilation_w_factor"})
    layer.attributes.set(name, std::int64_t{made.choice.likely(80) ? 1 : 2});
}

std::int32_t outputs_along(std::int32_t input, std::int32_t window, std::int64_t stride, std::int64_t dilation,
                           bool same) {
  const std::int64_t reach = (window - 1) * dilation + 1;
  return static_cast<std::int32_t>(same ? (input + stride - 1) / stride : (input - reach) / stride + 1);
}

std::shared_ptr<const ir::Model> convolution(unsigned seed, Numbers numbers) {
  LayerModel made(seed);
  const std::int32_t batches = made.choice.likely(30) ? 3 : 1, height = between(made, 5, 11),
                     width = between(made, 5, 17);
  const std::int32_t channels = made.choice.likely(50) ? between(made, 1, 9) : between(made, 1, 70);
  const std::int32_t outputs = made.choice.likely(50) ? between(made, 1, 9) : between(made, 1, 90);
  const std::int32_t window = made.choice.likely(40) ? 1 : between(made, 1, 3);
  const bool same = made.choice.likely(60);
  const DataType type = activation_type(numbers);
  const std::int32_t weights =
      add_weights(made, numbers, {outputs, window, window, channels}, outputs, 0, kWeightScale);
  const Quantized in = activation_scale(made, numbers, kInputScale),
                  out = activation_scale(made, numbers, 0.02f * static_cast<float>(channels));
  const std::int32_t input = made.add(type, {batches, height, width, channels}, in.scale, in.zero_point);
  std::vector<std::int32_t> inputs{input, weights};
  if (const std::int32_t bias = add_bias(made, numbers, outputs); bias >= 0) inputs.push_back(bias);
  ir::Operator layer = op("CONV_2D", inputs, {});
  set_window_attributes(made, layer, same);
  const auto along = [&](std::int32_t size, const char* stride, const char* dilation) {
    return outputs_along(size, window, layer.attributes.get_int(stride), layer.attributes.get_int(dilation), same);
  };
  const ir::Shape shape{batches, along(height, "stride_h", "dilation_h_factor"),
                        along(width, "stride_w", "dilation_w_factor"), outputs};
  layer.outputs = {made.add(type, shape, out.scale, out.zero_point)};
  return made.finish(std::move(layer), {input});
}

std::shared_ptr<const ir::Model> dense_layer(unsigned seed, Numbers numbers) {
  LayerModel made(seed);
  const std::int32_t rows = made.choice.likely(50) ? 1 : between(made, 1, 40), depth = between(made, 1, 300);
  const std::int32_t units = made.choice.likely(50) ? between(made, 1, 9) : between(made, 1, 200);
  const DataType type = activation_type(numbers);
  const std::int32_t weights = add_weights(made, numbers, {units, depth}, units, 0, kWeightScale);
  const Quantized in = activation_scale(made, numbers, kInputScale),
                  out = activation_scale(made, numbers, 0.02f * static_cast<float>(depth));
  const std::int32_t input = made.add(type, {rows, depth}, in.scale, in.zero_point);
  std::vector<std::int32_t> inputs{input, weights};
  if (const std::int32_t bias = add_bias(made, numbers, units); bias >= 0) inputs.push_back(bias);
  ir::Operator layer = op("FULLY_CONNECTED", inputs, {made.add(type, {rows, units}, out.scale, out.zero_point)});
  layer.attributes.set("asymmetric_quantize_inputs", made.choice.likely(50));
  return made.finish(std::move(layer), {input});
}

// The output's bytes. Empty: the model was refused, `why` says so.
std::vector<std::byte> outputs_of(const std::shared_ptr<const ir::Model>& model, int threads, unsigned seed,
                                  std::string& why) {
  cpu::InterpreterOptions options;
  options.threads = threads;
  const auto run = [&]() -> Result<std::vector<std::byte>> {
    REEF_ASSIGN_OR_RETURN(const auto interpreter, cpu::Interpreter::create(model, options));
    REEF_RETURN_IF_ERROR(interpreter->prepare());
    std::mt19937 random(seed);
    for (int i = 0; i < interpreter->input_count(); ++i) {
      const std::span<std::byte> bytes = interpreter->input_bytes(i);
      if (interpreter->input(i).type == DataType::kFloat32) {
        for (std::size_t k = 0; k < bytes.size() / 4; ++k) {
          const float value = static_cast<float>(static_cast<int>(random() % 2001) - 1000) / 250.0f;
          std::memcpy(bytes.data() + 4 * k, &value, sizeof value);
        }
      } else {
        for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
      }
    }
    REEF_RETURN_IF_ERROR(interpreter->invoke());
    const auto* data = static_cast<const std::byte*>(interpreter->output(0).data);
    return std::vector<std::byte>(data, data + interpreter->output(0).bytes);
  };
  const auto result = run();
  if (!result.ok()) {
    why = result.status().message();
    return {};
  }
  return *result;
}

using Maker = std::shared_ptr<const ir::Model> (*)(unsigned, Numbers);

void expect_equal_on_targets(Maker make, Numbers numbers, unsigned count) {
  unsigned ran = 0;
  for (unsigned seed = 0; seed < count; ++seed) {
    const auto model = make(seed * 7 + static_cast<unsigned>(numbers), numbers);
    std::vector<std::byte> want;
    bool is_first = true;
    kernels::for_each_supported_target([&](kernels::SimdTarget target) {
      for (const int threads : {1, 3}) {
        std::string why;
        const std::vector<std::byte> got = outputs_of(model, threads, seed, why);
        if (is_first) {
          want = got;
          ran += !got.empty();
          is_first = false;
          EXPECT_FALSE(got.empty()) << "seed " << seed << ": " << why;
        }
        ASSERT_TRUE(got == want) << kernels::target_name(target) << ", seed " << seed << ", " << threads << " threads";
      }
    });
  }
  EXPECT_GT(ran, count / 2);
}

TEST(LayersOnTargets, TransposedConvolutions) {
  for (const Numbers numbers : {Numbers::kInt8, Numbers::kUInt8, Numbers::kInt16, Numbers::kHybrid, Numbers::kFloat})
    expect_equal_on_targets(transpose_conv, numbers, 60);
}

TEST(LayersOnTargets, Convolutions) {
  for (const Numbers numbers : {Numbers::kInt8, Numbers::kUInt8, Numbers::kInt16, Numbers::kHybrid})
    expect_equal_on_targets(convolution, numbers, 80);
}

TEST(LayersOnTargets, DenseLayers) {
  for (const Numbers numbers : {Numbers::kInt8, Numbers::kInt16, Numbers::kHybrid})
    expect_equal_on_targets(dense_layer, numbers, 80);
}

// Every input pixel adds its products to the outputs below its window, one after the other.
std::vector<float> plainly_transposed(const ir::Model& model, const std::vector<float>& input) {
  const ir::Subgraph& graph = model.subgraphs[0];
  const ir::Operator& layer = graph.operators[0];
  const auto constant = [&](std::size_t i) {
    const std::int32_t buffer = graph.tensors[static_cast<std::size_t>(layer.inputs[i])].buffer;
    const auto bytes = model.buffers[static_cast<std::size_t>(buffer)].data.span();
    std::vector<float> values(bytes.size() / 4);
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  };
  const ir::Shape& w = graph.tensors[static_cast<std::size_t>(layer.inputs[1])].shape;
  const ir::Shape& in = graph.tensors[static_cast<std::size_t>(layer.inputs[2])].shape;
  const ir::Shape& out = graph.tensors[static_cast<std::size_t>(layer.outputs[0])].shape;
  const std::vector<float> weights = constant(1), bias = layer.inputs.size() > 3 ? constant(3) : std::vector<float>{};
  const auto pad = [&](int d, std::int64_t stride) {
    const bool same = layer.attributes.get_enum("padding", "") == "SAME";
    const std::int64_t forward = same ? (out[d] + stride - 1) / stride : (out[d] + stride - w[d]) / stride;
    return std::max<std::int64_t>((forward - 1) * stride + w[d] - out[d], 0) / 2;
  };
  const std::int64_t stride_h = layer.attributes.get_int("stride_h"), stride_w = layer.attributes.get_int("stride_w");
  std::vector<float> sums(static_cast<std::size_t>(out.elements()), 0.0f);
  std::size_t pixel = 0;
  for (std::int64_t b = 0; b < in[0]; ++b) {
    for (std::int64_t y = 0; y < in[1]; ++y) {
      for (std::int64_t x = 0; x < in[2]; ++x, ++pixel) {
        for (std::size_t k = 0; k < weights.size(); ++k) {
          const auto i = static_cast<std::int64_t>(k);
          const std::int64_t c = i % w[3], kx = i / w[3] % w[2], ky = i / w[3] / w[2] % w[1],
                             o = i / w[3] / w[2] / w[1];
          const std::int64_t to_y = y * stride_h - pad(1, stride_h) + ky, to_x = x * stride_w - pad(2, stride_w) + kx;
          if (to_y < 0 || to_y >= out[1] || to_x < 0 || to_x >= out[2]) continue;
          sums[static_cast<std::size_t>(((b * out[1] + to_y) * out[2] + to_x) * out[3] + o)] +=
              input[pixel * static_cast<std::size_t>(w[3]) + static_cast<std::size_t>(c)] * weights[k];
        }
      }
    }
  }
  for (std::size_t i = 0; i < sums.size() && !bias.empty(); ++i) sums[i] += bias[i % bias.size()];
  return sums;
}

TEST(LayersOnTargets, TransposedFloatConvolutionsAddInTheReferencesOrder) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    const auto model = transpose_conv(seed * 7 + static_cast<unsigned>(Numbers::kFloat), Numbers::kFloat);
    std::mt19937 random(seed);
    const auto input = static_cast<std::size_t>(model->subgraphs[0].operators[0].inputs[2]);
    std::vector<float> values(static_cast<std::size_t>(model->subgraphs[0].tensors[input].shape.elements()));
    for (float& value : values) value = static_cast<float>(static_cast<int>(random() % 2001) - 1000) / 250.0f;
    const std::vector<float> want = plainly_transposed(*model, values);
    std::string why;
    const std::vector<std::byte> got = outputs_of(model, 1, seed, why);
    ASSERT_EQ(got.size(), want.size() * 4) << why;
    for (std::size_t i = 0; i < want.size(); ++i) {
      float value = 0;
      std::memcpy(&value, got.data() + 4 * i, sizeof value);
      ASSERT_EQ(value, want[i]) << "seed " << seed << ", element " << i;
    }
  }
}

}  // namespace
}  // namespace reef
