// SPDX-License-Identifier: Apache-2.0
// What pools, resizes, reductions and the ops that make tensors say to nonsense: an error that names it, never a crash.
#include <climits>
#include <cstring>
#include <memory>

#include <gtest/gtest.h>

#include "execute/cpu/interpreter.h"

namespace reef::ops {
namespace {

using ir::AttributeValue;
using ir::EnumName;

struct Operand {
  DataType type = DataType::kFloat32;
  Shape shape;
  std::vector<std::int64_t> values = {};  // of an integer tensor; empty: computed (a graph input)
  float scale = 0;                        // 0: not quantized
  std::int64_t zero_point = 0;
  bool fed = false;  // values are given at run time instead of with the model
};

template <typename T>
std::vector<std::uint8_t> pack(const std::vector<std::int64_t>& values) {
  std::vector<std::uint8_t> bytes(values.size() * sizeof(T));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const T value = static_cast<T>(values[i]);
    std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
  }
  return bytes;
}

std::vector<std::uint8_t> pack(const Operand& operand) {
  switch (operand.type) {
    case DataType::kInt64:
      return pack<std::int64_t>(operand.values);
    case DataType::kInt32:
      return pack<std::int32_t>(operand.values);
    case DataType::kFloat32:
      return pack<float>(operand.values);
    default:
      return pack<std::int8_t>(operand.values);
  }
}

ir::Tensor tensor_of(const Operand& operand, std::string name) {
  ir::Tensor tensor;
  tensor.name = std::move(name);
  tensor.type = operand.type;
  tensor.shape = operand.shape;
  if (operand.scale != 0) {
    tensor.has_quantization = true;
    tensor.quantization.scale = {operand.scale};
    tensor.quantization.zero_point = {operand.zero_point};
  }
  return tensor;
}

// Message of the error that a model of this one op ends in; empty if it runs.
std::string refusal(const std::string& type, std::vector<Operand> inputs, std::vector<Operand> outputs,
                    std::vector<std::pair<std::string, AttributeValue>> attributes = {},
                    ops::TfliteRelease release = ops::TfliteRelease::kCurrent) {
  auto model = std::make_shared<ir::Model>();
  model->buffers.emplace_back();
  ir::Subgraph& graph = model->subgraphs.emplace_back();
  ir::Operator op;
  op.type = type;
  for (auto& [name, value] : attributes) op.attributes.set(name, std::move(value));
  for (const Operand& operand : inputs) {
    const auto index = static_cast<std::int32_t>(graph.tensors.size());
    graph.tensors.push_back(tensor_of(operand, "input" + std::to_string(index)));
    op.inputs.push_back(index);
    if (operand.values.empty() || operand.fed) {
      graph.inputs.push_back(index);
    } else {
      graph.tensors.back().buffer = static_cast<std::int32_t>(model->buffers.size());
      model->buffers.push_back({.data = Bytes(pack(operand))});
    }
  }
  for (const Operand& operand : outputs) {
    const auto index = static_cast<std::int32_t>(graph.tensors.size());
    graph.tensors.push_back(tensor_of(operand, "output" + std::to_string(index)));
    op.outputs.push_back(index);
    graph.outputs.push_back(index);
  }
  graph.operators.push_back(std::move(op));

  cpu::InterpreterOptions options;
  options.tflite_release = release;
  auto interpreter = cpu::Interpreter::create(model, options);
  if (!interpreter.ok()) return interpreter.status().message();
  if (const Status status = (*interpreter)->prepare(); !status.ok()) return status.message();
  int fed = 0;
  for (const Operand& operand : inputs) {
    if (!operand.values.empty() && !operand.fed) continue;
    const std::vector<std::uint8_t> bytes = pack(operand);
    const std::span<std::byte> target = (*interpreter)->input_bytes(fed++);
    if (bytes.size() == target.size() && !bytes.empty()) std::memcpy(target.data(), bytes.data(), bytes.size());
  }
  return (*interpreter)->invoke().message();
}

constexpr auto kF32 = DataType::kFloat32;
constexpr auto kI8 = DataType::kInt8;
constexpr auto kI16 = DataType::kInt16;
constexpr auto kI32 = DataType::kInt32;
constexpr auto kI64 = DataType::kInt64;

#define EXPECT_REFUSAL(text, ...) EXPECT_NE((__VA_ARGS__).find(text), std::string::npos) << (__VA_ARGS__)

std::string pool(std::int64_t window, std::int64_t stride, const char* padding = "VALID",
                 const char* activation = "NONE", DataType type = kI8) {
  return refusal("AVERAGE_POOL_2D", {{type, {1, 4, 4, 1}}}, {{type, {1, 1, 1, 1}}},
                 {{"padding", EnumName{padding}},
                  {"filter_width", window},
                  {"filter_height", window},
                  {"stride_w", stride},
                  {"stride_h", stride},
                  {"fused_activation_function", EnumName{activation}}});
}

TEST(ReduceRefusals, Pools) {
  EXPECT_EQ(pool(4, 1), "");
  EXPECT_EQ(pool(INT32_MAX, 1, "SAME"), "");
  for (const std::int64_t bad : {std::int64_t{0}, std::int64_t{-1}, std::int64_t{INT32_MIN}}) {
    EXPECT_REFUSAL("at least 1", pool(bad, 1));
    EXPECT_REFUSAL("at least 1", pool(1, bad));
  }
  EXPECT_REFUSAL("does not fit", pool(5, 1));
  EXPECT_REFUSAL("padding", pool(1, 1, "7"));
  EXPECT_REFUSAL("TANH", pool(1, 1, "SAME", "TANH"));
  EXPECT_REFUSAL("quantization", pool(1, 1, "SAME", "RELU6"));  // needs a scale to know where 6 is
  EXPECT_REFUSAL("int32", pool(1, 1, "SAME", "NONE", kI32));
  EXPECT_REFUSAL("4 dimensions", refusal("MAX_POOL_2D", {{kI8, {4, 4}}}, {{kI8, {4, 4}}}));
  EXPECT_REFUSAL("float32 is needed", refusal("L2_POOL_2D", {{kI8, {1, 1, 1, 1}}}, {{kI8, {1, 1, 1, 1}}},
                                              {{"padding", EnumName{"SAME"}},
                                               {"filter_width", std::int64_t{1}},
                                               {"filter_height", std::int64_t{1}},
                                               {"stride_w", std::int64_t{1}},
                                               {"stride_h", std::int64_t{1}}}));
}

std::string resize(const char* type, std::vector<std::int64_t> size, Shape input = {1, 2, 2, 1}, bool fed = false) {
  const auto count = static_cast<std::int32_t>(size.size());
  return refusal(type, {{kI8, std::move(input)}, {kI32, {count}, std::move(size), 0, 0, fed}}, {{kI8, {1, 1, 1, 1}}},
                 {{"align_corners", false}, {"half_pixel_centers", false}});
}

TEST(ReduceRefusals, Resizes) {
  for (const char* type : {"RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"}) {
    EXPECT_EQ(resize(type, {3, 3}), "");
    EXPECT_EQ(resize(type, {3, 3}, {1, 2, 2, 1}, true), "");
    EXPECT_REFUSAL("at least", resize(type, {-1, 3}));
    EXPECT_REFUSAL("at least", resize(type, {3, INT32_MIN}, {1, 2, 2, 1}, true));
    EXPECT_REFUSAL("[2] is needed", resize(type, {3, 3, 3}));
    EXPECT_REFUSAL("2^31", resize(type, {INT32_MAX, INT32_MAX}));
    EXPECT_REFUSAL("cannot be resized", resize(type, {3, 3}, {1, 0, 2, 1}));
    EXPECT_REFUSAL("4 dimensions", resize(type, {3, 3}, {2, 2}));
  }
  EXPECT_REFUSAL("exclude each other",
                 refusal("RESIZE_BILINEAR", {{kI8, {1, 2, 2, 1}}, {kI32, {2}, {3, 3}}}, {{kI8, {1, 3, 3, 1}}},
                         {{"align_corners", true}, {"half_pixel_centers", true}}));
}

std::string reduce(const char* type, const Operand& input, std::vector<std::int64_t> axes, const Operand& output,
                   bool fed = false, DataType axis_type = kI32) {
  const auto count = static_cast<std::int32_t>(axes.size());
  return refusal(type, {input, {axis_type, {count}, std::move(axes), 0, 0, fed}}, {output}, {{"keep_dims", false}});
}

TEST(ReduceRefusals, Reductions) {
  const Operand plain{kI32, {2, 3}};
  for (const char* type : {"SUM", "MEAN", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD"}) {
    EXPECT_EQ(reduce(type, plain, {1, -1}, {kI32, {2}}), "");
    for (const bool fed : {false, true}) {
      EXPECT_REFUSAL("axis 2 does not exist", reduce(type, plain, {2}, {kI32, {2}}, fed));
      EXPECT_REFUSAL("axis -3 does not exist", reduce(type, plain, {0, -3}, {kI32, {2}}, fed));
      EXPECT_REFUSAL("does not exist", reduce(type, plain, {INT32_MIN}, {kI32, {2}}, fed));
    }
    EXPECT_REFUSAL("int32 is needed", reduce(type, plain, {0}, {kI32, {3}}, false, kI64));
    EXPECT_REFUSAL("same type", reduce(type, plain, {0}, {kI64, {3}}));
    EXPECT_REFUSAL("must be 0", reduce(type, {kI16, {2, 3}, {}, 0.5F, 7}, {0}, {kI16, {3}, {}, 0.5F, 0}));
  }
  for (const char* type : {"SUM", "MEAN"}) EXPECT_REFUSAL("quantization", reduce(type, {kI8, {2}}, {0}, {kI8, {}}));
  for (const char* type : {"REDUCE_MAX", "REDUCE_MIN"}) {
    EXPECT_REFUSAL("quantized alike", reduce(type, {kI8, {2}, {}, 0.5F}, {0}, {kI8, {}, {}, 0.25F}));
  }
  // Release 2.9 does not rescale such sums.
  const auto sum = [](ops::TfliteRelease release) {
    return refusal("SUM", {{kI16, {2}, {}, 0.5F}, {kI32, {1}, {0}}}, {{kI16, {}, {}, 0.25F}}, {{"keep_dims", false}},
                   release);
  };
  EXPECT_REFUSAL("quantized alike", sum(ops::TfliteRelease::k2_9));
  EXPECT_EQ(sum(ops::TfliteRelease::kCurrent), "");
  EXPECT_REFUSAL("int8 or int16 is needed",
                 reduce("REDUCE_PROD", {DataType::kUInt8, {2}, {}, 0.5F}, {0}, {DataType::kUInt8, {}, {}, 0.5F}));
  EXPECT_REFUSAL("bool is needed", reduce("REDUCE_ANY", plain, {0}, {kI32, {3}}));
}

TEST(ReduceRefusals, Searches) {
  const auto arg = [](Shape shape, std::vector<std::int64_t> axis, DataType type = kI8) {
    const auto count = static_cast<std::int32_t>(axis.size());
    return refusal("ARG_MAX", {{type, std::move(shape)}, {kI32, {count}, std::move(axis)}}, {{kI32, {2}}});
  };
  EXPECT_EQ(arg({2, 3}, {1}), "");
  EXPECT_REFUSAL("does not exist", arg({2, 3}, {2}));
  EXPECT_REFUSAL("does not exist", arg({}, {0}));
  EXPECT_REFUSAL("empty", arg({2, 0}, {1}));
  EXPECT_REFUSAL("one is needed", arg({2, 3}, {0, 1}));
  EXPECT_REFUSAL("no kernel", arg({2, 3}, {1}, kI64));

  const auto top = [](Shape shape, std::int64_t k, DataType index_type = kI32) {
    return refusal("TOPK_V2", {{kI8, std::move(shape)}, {kI32, {}, {k}}}, {{kI8, {2}}, {index_type, {2}}});
  };
  EXPECT_EQ(top({2, 3}, 3), "");
  EXPECT_EQ(top({2, 3}, INT32_MIN), "");  // none, as in TFLite
  EXPECT_REFUSAL("k is 4", top({2, 3}, 4));
  EXPECT_REFUSAL("scalar", top({}, 1));
  EXPECT_REFUSAL("int16", top({40000}, 1, kI16));

  EXPECT_REFUSAL("does not exist", refusal("CUMSUM", {{kI32, {3}}, {kI32, {}, {1}}}, {{kI32, {3}}}));
  EXPECT_REFUSAL("scalar", refusal("CUMSUM", {{kI32, {}}, {kI32, {}, {0}}}, {{kI32, {}}}));
  EXPECT_REFUSAL("dimensions", refusal("UNIQUE", {{kI32, {2, 2}}}, {{kI32, {1}}, {kI32, {4}}}));
}

TEST(ReduceRefusals, Makers) {
  const auto one_hot = [](std::int64_t depth, std::int64_t axis) {
    return refusal("ONE_HOT", {{kI32, {2}, {0, 1}}, {kI32, {}, {depth}}, {kF32, {}, {1}}, {kF32, {}, {0}}},
                   {{kF32, {2, 2}}}, {{"axis", axis}});
  };
  EXPECT_EQ(one_hot(3, -1), "");
  EXPECT_REFUSAL("not negative", one_hot(-1, -1));
  EXPECT_REFUSAL("2^31", one_hot(INT32_MAX, -1));
  EXPECT_REFUSAL("between -1 and 1", one_hot(3, 2));
  EXPECT_REFUSAL("between -1 and 1", one_hot(3, INT32_MIN));

  const auto range = [](DataType type, std::int64_t start, std::int64_t limit, std::int64_t delta) {
    return refusal("RANGE", {{type, {}, {start}}, {type, {}, {limit}}, {type, {}, {delta}}}, {{type, {1}}});
  };
  EXPECT_EQ(range(kI64, INT64_MAX - 3, INT64_MAX, 2), "");
  EXPECT_EQ(range(kI64, INT64_MIN, INT64_MAX, INT64_MAX), "");
  EXPECT_REFUSAL("no end", range(kI32, 0, 5, 0));
  EXPECT_REFUSAL("no end", range(kF32, 0, 5, -1));
  EXPECT_REFUSAL("too long", range(kI64, INT64_MIN, INT64_MAX, 1));
  EXPECT_REFUSAL("too long", range(kF32, 0, INT64_MAX, 1));

  const auto fill = [](std::vector<std::int64_t> dims) {
    const auto count = static_cast<std::int32_t>(dims.size());
    return refusal("FILL", {{kI64, {count}, std::move(dims)}, {kI8, {}, {5}}}, {{kI8, {1}}});
  };
  EXPECT_EQ(fill({2, 3}), "");
  EXPECT_REFUSAL("between 0", fill({2, -3}));
  EXPECT_REFUSAL("between 0", fill({std::int64_t{1} << 32}));
  EXPECT_REFUSAL("2^31", fill({INT32_MAX, INT32_MAX, INT32_MAX}));

  const auto broadcast = [](Shape from, std::vector<std::int64_t> to) {
    const auto count = static_cast<std::int32_t>(to.size());
    return refusal("BROADCAST_TO", {{kI8, std::move(from)}, {kI64, {count}, std::move(to)}}, {{kI8, {1}}});
  };
  EXPECT_EQ(broadcast({3, 1}, {2, 3, 4}), "");
  EXPECT_REFUSAL("cannot be broadcast", broadcast({3}, {2, 4}));
  EXPECT_REFUSAL("cannot be broadcast", broadcast({1, 3}, {3}));
  EXPECT_REFUSAL("cannot be broadcast", broadcast({1}, {1, 1, 1, 1, 1, 1, 1, 1, 1}));
  EXPECT_REFUSAL("between 0", broadcast({1}, {-1}));
  EXPECT_REFUSAL("cannot be broadcast together",
                 refusal("BROADCAST_ARGS", {{kI32, {1}, {2}}, {kI32, {1}, {3}}}, {{kI32, {1}}}));

  const auto segments = [](std::vector<std::int64_t> ids) {
    return refusal("SEGMENT_SUM", {{kI32, {3}, {1, 2, 3}}, {kI32, {3}, std::move(ids), 0, 0, true}}, {{kI32, {3}}});
  };
  EXPECT_EQ(segments({0, 0, 1}), "");
  EXPECT_REFUSAL("at most 1", segments({0, 2, 3}));
  EXPECT_REFUSAL("at most 1", segments({-1, 0, 1}));
  EXPECT_REFUSAL("at most 1", segments({0, 1, 0}));
}

}  // namespace
}  // namespace reef::ops
