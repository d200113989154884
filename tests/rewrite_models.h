// SPDX-License-Identifier: Apache-2.0
// What the tests of rewrites share: models built in code, runs before and after, the difference between them.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/file.h"
#include "execute/cpu/evaluate.h"
#include "formats/tflite/writer.h"
#include "ir/compact.h"
#include "ir/verify.h"
#include "passes/chip/chip_graph.h"
#include "passes/rewrite.h"

namespace reef::passes::chip_testing {

using graph::tanh_affine;
using graph::unit_affine;

using ir::DataType;
using Buffers = std::vector<std::vector<std::uint8_t>>;

inline Result<Buffers> evaluate(const ir::Model& model, std::span<const std::vector<std::uint8_t>> inputs) {
  REEF_ASSIGN_OR_RETURN(std::vector<cpu::Value> values, cpu::Evaluator()(model, inputs));
  Buffers outputs;
  for (cpu::Value& value : values) outputs.push_back(std::move(value.bytes));
  return outputs;
}

// A model under construction. Tensors are made with OpList; finish() returns the verified model.
class ModelBuilder {
 public:
  OpList& ops() { return list_; }
  Graph& edit() { return edit_; }
  std::int32_t input(ir::Shape shape, const Affine8& affine) {
    inputs_.push_back(list_.tensor(shape, affine));
    model_.subgraphs[0].tensors[static_cast<std::size_t>(inputs_.back())].name =
        "input" + std::to_string(inputs_.size());
    return inputs_.back();
  }
  std::int32_t float_input(ir::Shape shape) {
    inputs_.push_back(list_.tensor(DataType::kFloat32, shape, {}));
    return inputs_.back();
  }
  void set_name(std::int32_t tensor, std::string name) {
    model_.subgraphs[0].tensors[static_cast<std::size_t>(tensor)].name = std::move(name);
  }
  ir::Tensor& tensor(std::int32_t index) { return model_.subgraphs[0].tensors[static_cast<std::size_t>(index)]; }
  // One operator with any attributes.
  std::int32_t add(std::string_view type, std::string_view options, ir::Attributes attributes,
                   std::vector<std::int32_t> inputs, ir::Shape shape, const Affine8& result) {
    const std::int32_t y = list_.tensor(shape, result);
    list_.add(type, options, std::move(attributes), std::move(inputs), {y}, result.type);
    return y;
  }
  ir::Model finish(std::vector<std::int32_t> outputs) {
    ir::Subgraph& graph = model_.subgraphs[0];
    graph.operators = list_.take();
    graph.inputs = inputs_;
    graph.outputs = std::move(outputs);
    ir::drop_unused_tensors(model_, 0);
    ir::drop_unused_buffers(model_);
    const Status status = ir::verify(model_);
    EXPECT_TRUE(status.ok()) << status.message();
    return model_;
  }

 private:
  static ir::Model empty_model() {
    ir::Model model;
    model.buffers.resize(1);
    model.subgraphs.resize(1);
    return model;
  }

  ir::Model model_ = empty_model();
  Graph edit_{model_};
  OpList list_{edit_, "made"};
  std::vector<std::int32_t> inputs_;
};

// What the tests take for the chip: 8-bit operators of the supported types, of batch 1 and at most four dimensions.
inline bool fits_the_chip(const ir::Model& model, std::int32_t index) {
  static const std::set<std::string_view> kTypes = {"ADD",
                                                    "AVERAGE_POOL_2D",
                                                    "CONCATENATION",
                                                    "CONV_2D",
                                                    "DEPTHWISE_CONV_2D",
                                                    "EXPAND_DIMS",
                                                    "FULLY_CONNECTED",
                                                    "LOGISTIC",
                                                    "MAXIMUM",
                                                    "MAX_POOL_2D",
                                                    "MEAN",
                                                    "MINIMUM",
                                                    "MUL",
                                                    "PACK",
                                                    "PAD",
                                                    "PRELU",
                                                    "QUANTIZE",
                                                    "RELU",
                                                    "RELU6",
                                                    "RELU_N1_TO_1",
                                                    "RESHAPE",
                                                    "SLICE",
                                                    "SOFTMAX",
                                                    "SPACE_TO_DEPTH",
                                                    "SPLIT",
                                                    "SQUEEZE",
                                                    "STRIDED_SLICE",
                                                    "SUB",
                                                    "SUM",
                                                    "TANH",
                                                    "TRANSPOSE",
                                                    "TRANSPOSE_CONV",
                                                    "RESIZE_NEAREST_NEIGHBOR",
                                                    "RESIZE_BILINEAR"};
  const ir::Subgraph& graph = model.subgraphs[0];
  const ir::Operator& op = graph.operators[static_cast<std::size_t>(index)];
  if (!kTypes.contains(op.type)) return false;
  const auto is_fine = [&](std::int32_t tensor_index) {
    const ir::Tensor& tensor = graph.tensors[static_cast<std::size_t>(tensor_index)];
    int large = 0;
    for (int i = 0; i < tensor.shape.rank(); ++i) large += tensor.shape[i] > 1 && i < tensor.shape.rank() - 3 ? 1 : 0;
    if (op.type == "TRANSPOSE" && tensor.shape.elements() > 82944) return false;
    return tensor.buffer != 0 || (large == 0 && ir::is_integer_8(tensor.type));
  };
  return std::all_of(op.inputs.begin(), op.inputs.end(), is_fine) &&
         std::all_of(op.outputs.begin(), op.outputs.end(), is_fine);
}

inline FitsPredicate for_each_op(bool (*fits)(const ir::Model&, std::int32_t)) {
  return [fits](const ir::Model& model) {
    std::vector<bool> result;
    for (std::size_t i = 0; i < model.subgraphs[0].operators.size(); ++i) {
      result.push_back(fits(model, static_cast<std::int32_t>(i)));
    }
    return result;
  };
}

inline RewriteOptions standard_options() {
  RewriteOptions options;
  options.evaluate = [](ir::Model model, std::span<const std::vector<std::uint8_t>> inputs) {
    return cpu::Evaluator()(std::move(model), inputs);
  };
  options.fits = for_each_op(fits_the_chip);
  return options;
}

struct Rewritten {
  ir::Model model;
  std::vector<Application> applications;
};
inline Rewritten rewritten(const ir::Model& model, const RewriteOptions& options) {
  Rewritten result{model, {}};
  auto applications = apply_rewrites(result.model, options);
  EXPECT_TRUE(applications.ok()) << applications.status().message();
  if (applications.ok()) result.applications = std::move(*applications);
  const Status status = ir::verify(result.model);
  EXPECT_TRUE(status.ok()) << status.message();
  return result;
}

inline std::vector<std::string> op_types(const ir::Model& model) {
  std::vector<std::string> types;
  for (const ir::Operator& op : model.subgraphs[0].operators) types.push_back(op.type);
  return types;
}
inline std::size_t count_ops(const ir::Model& model, std::string_view type) {
  std::size_t count = 0;
  for (const std::string& each : op_types(model)) count += each == type ? 1 : 0;
  return count;
}

// Random bytes for every input; 8-bit inputs with 256 elements or more begin with all values.
inline Buffers random_inputs(const ir::Model& model, std::mt19937& random) {
  Buffers inputs;
  for (const std::int32_t index : model.subgraphs[0].inputs) {
    const ir::Tensor& tensor = model.subgraphs[0].tensors[static_cast<std::size_t>(index)];
    std::vector<std::uint8_t> bytes(static_cast<std::size_t>(*ir::byte_size(tensor.shape, tensor.type)));
    if (tensor.type == DataType::kFloat32) {
      std::normal_distribution<float> normal(0, 2);
      for (std::size_t i = 0; i + 4 <= bytes.size(); i += 4) {
        const float value = normal(random);
        std::memcpy(&bytes[i], &value, 4);
      }
    } else {
      for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
      for (std::size_t i = 0; i < 256 && bytes.size() >= 256; ++i) bytes[i] = static_cast<std::uint8_t>(i);
    }
    inputs.push_back(std::move(bytes));
  }
  return inputs;
}

// Leaves both models in the folder that REEF_REWRITE_PAIRS names, if it does, for tools/oracle/check_rewrites.py. The
// names tell the largest difference that is allowed.
inline void leave_pair(const ir::Model& before, const ir::Model& after, int largest) {
  const char* folder = std::getenv("REEF_REWRITE_PAIRS");
  if (folder == nullptr) return;
  static int number = 0;
  const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
  const std::string stem = fmt::format("{}/{:04}_{}_{}", folder, number++, test->name(), largest);
  const auto old_file = tflite::write_model(before), new_file = tflite::write_model(after);
  ASSERT_TRUE(old_file.ok()) << old_file.status().message();
  ASSERT_TRUE(new_file.ok()) << new_file.status().message();
  ASSERT_TRUE(write_file(stem + "_before.tflite", *old_file).ok());
  ASSERT_TRUE(write_file(stem + "_after.tflite", *new_file).ok());
}

// Largest difference between the outputs of both models (8-bit ones in steps; others must be equal). -1: they cannot be
// compared. `claimed`: what the rewrite says, where that is more than a few inputs show.
inline int difference(const ir::Model& a, const ir::Model& b, unsigned seed, int claimed = 0) {
  std::mt19937 random(seed);
  const Buffers inputs = random_inputs(a, random);
  const auto first = evaluate(a, inputs), second = evaluate(b, inputs);
  EXPECT_TRUE(first.ok()) << first.status().message();
  EXPECT_TRUE(second.ok()) << second.status().message();
  if (!first.ok() || !second.ok() || first->size() != second->size()) return -1;
  int largest = 0;
  for (std::size_t i = 0; i < first->size(); ++i) {
    const auto& x = (*first)[i];
    const auto& y = (*second)[i];
    if (x.size() != y.size()) return -1;
    const auto output = static_cast<std::size_t>(a.subgraphs[0].outputs[i]);
    const DataType type = a.subgraphs[0].tensors[output].type;
    for (std::size_t j = 0; j < x.size(); ++j) {
      const int step = type == DataType::kInt8 ? static_cast<std::int8_t>(x[j]) - static_cast<std::int8_t>(y[j])
                                               : static_cast<int>(x[j]) - static_cast<int>(y[j]);
      largest = std::max(largest, std::abs(step));
    }
  }
  leave_pair(a, b, std::max(largest, claimed));
  return largest;
}

inline Affine8 random_affine(std::mt19937& random, DataType type = DataType::kInt8, double lowest_range = 0.5,
                             double highest_range = 24) {
  std::uniform_real_distribution<double> log_range(std::log(lowest_range), std::log(highest_range));
  Affine8 affine{type, static_cast<float>(std::exp(log_range(random)) / 255), 0};
  affine.zero_point = affine.lowest() + static_cast<int>(random() % 256);
  return affine;
}

}  // namespace reef::passes::chip_testing
