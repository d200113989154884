// SPDX-License-Identifier: Apache-2.0
// Generated networks of element-wise operators and pools between convolutions, through the code generator and the
// virtual device: outputs must be those of the chip reference to the last bit, in any order of execution.
#include <algorithm>
#include <map>
#include <memory>

#include <gtest/gtest.h>

#include "generated_code.h"
#include "quantized_model.h"
#include "random_choice.h"
#include "trials.h"

namespace reef::testing {
namespace {

ir::AttributeValue word(const char* name) { return ir::EnumName{name}; }

// Images of a few shapes are made by convolutions and combined by operators; whatever is not read at the end is an
// output.
class RandomNetwork {
 public:
  explicit RandomNetwork(unsigned seed) : choice_(seed) {
    type_ = choice_.likely(60) ? ir::DataType::kInt8 : ir::DataType::kUInt8;
    model_ = QuantizedModel(Quantized{type_, 0.05f, choice_.zero_point(type_)});
  }

  ir::Model make() {
    const int channels = choice_.among({1, 2, 3, 4, 5, 8, 12, 16, 20, 36, 64, 68, 130});
    vectors_ = choice_.likely(25);
    const std::int32_t input =
        model_.input(vectors_ ? ir::Shape{1, choice_.between(1, 300)}
                              : ir::Shape{1, choice_.between(1, 26), choice_.between(1, 30), channels});
    made_ = {{input, 0}};
    const int operators = choice_.between(1, 6);
    for (int i = 0; i < operators; ++i) add_operator();
    std::vector<std::int32_t> outputs;
    for (const auto& [tensor, readers] : made_) {
      if (readers == 0 || (tensor != input && choice_.likely(5))) outputs.push_back(tensor);
    }
    return model_.finish(outputs);
  }

 private:
  struct Made {
    std::int32_t tensor;
    int readers;
  };

  std::int32_t pick() {
    Made& made =
        made_[static_cast<std::size_t>(choice_.likely(70) ? static_cast<int>(made_.size()) - 1
                                                          : choice_.between(0, static_cast<int>(made_.size()) - 1))];
    ++made.readers;
    return made.tensor;
  }
  // A tensor of one pixel or of one channel, made from an image.
  std::int32_t small_partner(std::int32_t of) {
    std::int32_t small = of;
    if (choice_.likely(60)) small = model_.mean(small, {1, 2});
    if (small == of || choice_.likely(30)) small = model_.conv(small, 1);
    requantize(small, 0.05f);
    return small;
  }
  // Another tensor of the shape: one there is, or a convolution's of something else.
  std::int32_t partner(std::int32_t of) {
    if (model_.shape(of).rank() == 4 && choice_.likely(15)) return small_partner(of);
    std::vector<Made*> fitting;
    for (Made& made : made_) {
      if (model_.shape(made.tensor) == model_.shape(of) && made.tensor != of) fitting.push_back(&made);
    }
    if (!fitting.empty() && choice_.likely(80)) {
      Made& chosen = *fitting[choice_.random() % fitting.size()];
      ++chosen.readers;
      return chosen.tensor;
    }
    if (choice_.likely(10)) return of;
    const std::int32_t made = layer(of, model_.shape(of).last(), choice_.among({1, 3, 3, 5}));
    requantize(made, 0.05f);
    return made;
  }
  void requantize(std::int32_t tensor, float about) {
    ir::Quantization& q = model_.tensor(tensor).quantization;
    q.scale = {about * static_cast<float>(choice_.between(50, 200)) / 100};
    q.zero_point = {choice_.zero_point(type_)};
  }
  void finish(std::int32_t tensor) { made_.push_back({tensor, 0}); }

  void add_operator() {
    const int kind = choice_.between(0, 15);
    if (kind >= 13) {
      constant();
    } else if (kind >= 10 && !vectors_) {
      pool();
    } else if (kind < 2) {
      convolution();
    } else if (kind < 5) {
      sum();
    } else if (kind < 6) {
      extreme();
    } else {
      unary();
    }
  }

  std::int32_t layer(std::int32_t x, int channels, int kernel) {
    return vectors_ ? model_.fully_connected(x, channels) : model_.conv(x, channels, kernel);
  }

  void convolution() {
    const std::int32_t x = pick();
    if (vectors_) {
      const std::int32_t y = model_.fully_connected(x, choice_.between(1, 200));
      requantize(y, 0.05f);
      finish(y);
      return;
    }
    const int channels = choice_.likely(50) ? model_.shape(x).last() : choice_.among({4, 7, 16, 33, 64, 80});
    const std::int32_t y = choice_.likely(25)
                               ? model_.depthwise(x, 3, choice_.among({1, 2}))
                               : model_.conv(x, channels, choice_.among({1, 3, 5}), choice_.among({1, 1, 2}));
    requantize(y, 0.05f);
    finish(y);
  }

  void sum() {
    const std::int32_t a = pick(), b = partner(a);
    const int which = choice_.among({0, 0, 1, 2});
    const char* types[] = {"ADD", "SUB", "MUL"};
    const char* options[] = {"AddOptions", "SubOptions", "MulOptions"};
    const std::int32_t y = model_.computed(model_.shape(a), Quantized{type_, 0.05f, 0});
    requantize(y, 0.08f);
    ir::Attributes attributes;
    attributes.set("fused_activation_function", word(choice_.likely(20)   ? "RELU"
                                                     : choice_.likely(20) ? "RELU6"
                                                                          : "NONE"));
    const bool swap = choice_.likely(50);
    finish(model_.op(types[which], {swap ? b : a, swap ? a : b}, {y}, options[which], attributes));
  }

  void extreme() {
    const std::int32_t a = pick();
    const std::int32_t b = layer(a, model_.shape(a).last(), choice_.among({1, 3}));
    model_.tensor(b).quantization = model_.tensor(a).quantization;
    const std::int32_t y = model_.computed(model_.shape(a), Quantized{type_, 0.05f, 0});
    model_.tensor(y).quantization = model_.tensor(a).quantization;
    finish(model_.op(choice_.likely(50) ? "MAXIMUM" : "MINIMUM", {a, b}, {y}, "MaximumMinimumOptions"));
  }

  void constant() {
    const std::int32_t x = pick();
    const bool prelu = choice_.likely(30);
    const int numbers = prelu || choice_.likely(70) ? model_.shape(x).last() : 1;
    const std::int32_t c = model_.weights(numbers == 1 && choice_.likely(50) ? ir::Shape{} : ir::Shape{numbers}, 0.02f);
    if (type_ == ir::DataType::kUInt8) model_.tensor(c).quantization.zero_point = {choice_.zero_point(type_)};
    const std::int32_t y = model_.computed(model_.shape(x), Quantized{type_, 0.05f, 0});
    requantize(y, 0.05f);
    ir::Attributes a;
    if (prelu) {
      finish(model_.op("PRELU", {x, c}, {y}));
      return;
    }
    a.set("fused_activation_function", word(choice_.likely(20) ? "RELU" : "NONE"));
    const int which = choice_.between(0, 2);
    const char* types[] = {"MUL", "ADD", "SUB"};
    const char* options[] = {"MulOptions", "AddOptions", "SubOptions"};
    const bool first = choice_.likely(40);
    finish(model_.op(types[which], {first ? c : x, first ? x : c}, {y}, options[which], a));
  }

  void pool() {
    const std::int32_t x = pick();
    const ir::Shape in = model_.shape(x);
    const bool same = choice_.likely(50), average = choice_.likely(50);
    int kernel[2], stride[2], outputs[2];
    for (int k = 0; k < 2; ++k) {
      kernel[k] = choice_.among({1, 2, 2, 3, 3, 4, 5, 7});
      if (!same) kernel[k] = choice_.likely(10) ? in[k + 1] : std::min(kernel[k], in[k + 1]);
      stride[k] = choice_.among({1, 1, 2, 2, 3, 5});
      outputs[k] = same ? (in[k + 1] + stride[k] - 1) / stride[k] : (in[k + 1] - kernel[k]) / stride[k] + 1;
    }
    const std::int32_t y =
        model_.computed({1, outputs[0], outputs[1], in.last()}, Quantized{type_, 0.05f, choice_.zero_point(type_)});
    if (!average || choice_.likely(70)) model_.tensor(y).quantization = model_.tensor(x).quantization;
    ir::Attributes a;
    a.set("padding", word(same ? "SAME" : "VALID"));
    a.set("stride_h", std::int64_t{stride[0]});
    a.set("stride_w", std::int64_t{stride[1]});
    a.set("filter_height", std::int64_t{kernel[0]});
    a.set("filter_width", std::int64_t{kernel[1]});
    a.set("fused_activation_function", word(choice_.likely(20) ? "RELU" : "NONE"));
    finish(model_.op(average ? "AVERAGE_POOL_2D" : "MAX_POOL_2D", {x}, {y}, "Pool2DOptions", a));
  }

  void unary() {
    const std::int32_t x = pick();
    const char* types[] = {"QUANTIZE", "RELU", "RELU6", "RELU_N1_TO_1", "LOGISTIC", "TANH"};
    const std::string type = types[choice_.between(0, 5)];
    const std::int32_t y = model_.computed(model_.shape(x), Quantized{type_, 0.05f, 0});
    requantize(y, 0.05f);
    const bool int8 = type_ == ir::DataType::kInt8;
    ir::Quantization& q = model_.tensor(y).quantization;
    if (type == "LOGISTIC") q.scale = {1.0f / 256}, q.zero_point = {int8 ? -128 : 0};
    if (type == "TANH") q.scale = {1.0f / 128}, q.zero_point = {int8 ? 0 : 128};
    finish(model_.op(type, {x}, {y}, type == "QUANTIZE" ? "QuantizeOptions" : ""));
  }

  RandomChoice choice_;
  bool vectors_ = false;
  ir::DataType type_;
  QuantizedModel model_;
  std::vector<Made> made_;
};

// The network in few words, for failures.
struct Counts {
  int ran = 0;
  std::map<std::string, int> refused;
};

void run_network(const ir::Model& model, unsigned seed, tiled::Level level, Counts& counts) {
  const WholeModel whole(model);
  compiler::GenerationOptions options;
  options.level = level;
  const auto package = compiler::generate_code_with(whole.part(1 + seed), options);
  if (!package.ok()) {
    EXPECT_EQ(package.status().code(), StatusCode::kUnsupported) << package.status().message() << describe(model);
    ++counts.refused[package.status().message().substr(0, 100)];
    return;
  }
  const device::Schedule schedule = schedule_of(seed);
  // Google's pace of bringing vectors together rests on timing; ours does not.
  const auto gathers = [](const ir::Operator& op) { return op.type == "FULLY_CONNECTED" || op.type == "MEAN"; };
  const auto& ops = model.subgraphs[0].operators;
  const bool by_timing = level == tiled::Level::kAsGoogle && std::any_of(ops.begin(), ops.end(), gathers);
  const Status status = runs_as_chip_reference(model, *package, seed, by_timing ? nullptr : &schedule);
  EXPECT_TRUE(status.ok()) << status.message() << describe(model);
  ++counts.ran;
  if (by_timing) return;
  if (seed % 4 == 0) {
    const Status races = has_no_races(*package);
    EXPECT_TRUE(races.ok()) << races.message() << describe(model);
  }
  if (seed % 4 == 1) {
    const Status sound = passes_audit(*package);
    EXPECT_TRUE(sound.ok()) << sound.message() << describe(model);
  }
}

void expect_exact(const ir::Model& model) {
  for (const tiled::Level level : {tiled::Level::kAsGoogle, tiled::Level::kBetter}) {
    Counts counts;
    run_network(model, 0, level, counts);
    run_network(model, 1, level, counts);
    EXPECT_EQ(counts.ran, 2) << (counts.refused.empty() ? "" : counts.refused.begin()->first);
  }
}

// Pixels that do not fit into wide memory at once: several rounds of channels, and of rows.
TEST(CodegenElementwise, PoolsOfLargeImages) {
  for (const auto& [size, channels] : {std::pair{60, 196}, {180, 4}, {200, 8}}) {
    SCOPED_TRACE(size);
    for (const char* type : {"AVERAGE_POOL_2D", "MAX_POOL_2D"}) {
      QuantizedModel model;
      const std::int32_t x = model.conv(model.input({1, size, size + 1, 4}), channels);
      const std::int32_t y = model.max_pool(x, 3, 2);
      model.last_op().type = type;
      model.last_op().attributes.set("padding", word("SAME"));
      model.tensor(y).shape = {1, (size + 1) / 2, size / 2 + 1, channels};
      expect_exact(model.finish({model.conv(y, 8, 3)}));
    }
  }
}

TEST(CodegenElementwise, RandomNetworksAreBitExact) {
  const auto [begin, end] = seeds_to_try(120);
  Counts counts;
  for (unsigned seed = begin; seed < end; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    run_network(RandomNetwork(seed).make(), seed, seed / 4 % 2 == 0 ? tiled::Level::kAsGoogle : tiled::Level::kBetter,
                counts);
  }
  std::printf("%d networks ran\n", counts.ran);
  for (const auto& [reason, times] : counts.refused) std::printf("%4d refused: %s\n", times, reason.c_str());
  EXPECT_GE(counts.ran, static_cast<int>(end - begin) * 3 / 4);
}

}  // namespace
}  // namespace reef::testing
