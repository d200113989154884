// SPDX-License-Identifier: Apache-2.0
// Small models, one for every rule, with shapes, types, scales, attributes, operands and constants changed at random to
// what no converter writes. Whatever passes ir::verify must be planned, reported and written without harm; under the
// sanitizers this is where memory errors and overflows show. Mutations of file bytes are elsewhere (hostile.h).
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "compiler/check_subject.h"
#include "compiler/plan.h"
#include "emit/compiled_model.h"
#include "formats/tflite/exported_writer.h"
#include "ir/verify.h"
#include "quantized_model.h"
#include "rule_cases.h"

namespace reef {
namespace {

using Random = std::mt19937;

template <typename T, std::size_t kCount>
T pick(Random& random, const T (&values)[kCount]) {
  return values[random() % kCount];
}
std::int32_t odd_size(Random& random) {
  return pick(random, {-1, 0, 1, 2, 3, 4, 7, 33, 1024, 65536, 1 << 20, std::numeric_limits<std::int32_t>::max()});
}
std::int64_t odd_number(Random& random) {
  constexpr auto kMax = std::numeric_limits<std::int64_t>::max();
  const std::int64_t values[] = {0, 1, 2, -1, -2, 5, 128, 256, 2147483647, -2147483648LL, kMax, -kMax - 1};
  return pick(random, values);
}
float odd_scale(Random& random) {
  return pick(random, {0.0f, -1.0f, 1.0f, 1e-38f, 1e-45f, 1e38f, 0.5f, NAN, INFINITY, 0.00390625f, 100.0f});
}

void change_constant(ir::Model& model, const ir::Tensor& tensor, Random& random) {
  ir::Buffer& buffer = model.buffers[static_cast<std::size_t>(tensor.buffer)];
  std::vector<std::uint8_t> bytes(buffer.data.span().begin(), buffer.data.span().end());
  if (bytes.size() < 4) return;
  const auto value = static_cast<std::int32_t>(odd_number(random));
  std::memcpy(&bytes[random() % (bytes.size() / 4) * 4], &value, 4);
  buffer.data = Bytes(std::move(bytes));
}

void change_tensor(ir::Model& model, ir::Tensor& tensor, Random& random) {
  ir::Quantization& quantization = tensor.quantization;
  switch (random() % 7) {
    case 0:
      if (tensor.shape.rank() > 0)
        tensor.shape[static_cast<int>(random() % tensor.shape.dims().size())] = odd_size(random);
      break;
    case 1: {
      std::vector<std::int32_t> dims(random() % 7);
      for (std::int32_t& dim : dims)
        dim = random() % 3 != 0 ? static_cast<std::int32_t>(1 + random() % 4) : odd_size(random);
      tensor.shape = ir::Shape(dims);
      break;
    }
    case 2:
      tensor.type = static_cast<ir::DataType>(random() % 20);
      break;
    case 3:
      quantization.scale.assign(random() % 4, odd_scale(random));
      quantization.dimension = static_cast<std::int32_t>(random() % 6) - 1;
      break;
    case 4:
      quantization.zero_point.assign(random() % 4, odd_number(random));
      break;
    case 5:
      tensor.shape_signature = tensor.shape.dims();
      if (!tensor.shape_signature.empty()) tensor.shape_signature[random() % tensor.shape_signature.size()] = -1;
      break;
    default:
      change_constant(model, tensor, random);
  }
}

void change_attribute(ir::Operator& op, Random& random) {
  const auto count = static_cast<std::size_t>(std::distance(op.attributes.begin(), op.attributes.end()));
  if (count == 0) return;
  const ir::Attribute old = *(op.attributes.begin() + static_cast<std::ptrdiff_t>(random() % count));
  if (std::holds_alternative<std::int64_t>(old.value)) {
    op.attributes.set(old.name, std::int64_t{static_cast<std::int32_t>(odd_number(random))});
  } else if (std::holds_alternative<double>(old.value)) {
    op.attributes.set(old.name, double{odd_scale(random)});
  } else if (std::holds_alternative<bool>(old.value)) {
    op.attributes.set(old.name, !std::get<bool>(old.value));
  } else if (std::holds_alternative<ir::EnumName>(old.value)) {
    op.attributes.set(old.name, ir::EnumName{pick(random, {"SAME", "VALID", "RELU", "TANH", "77"})});
  }
}

void change_operator(ir::Subgraph& graph, ir::Operator& op, Random& random) {
  switch (random() % 5) {
    case 0:
      op.version = static_cast<std::int32_t>(odd_number(random));
      break;
    case 1:
      op.inputs.resize(random() % 6, -1);
      break;
    case 2: {
      if (op.inputs.empty()) break;
      const auto any = static_cast<std::int32_t>(random() % (graph.tensors.size() + 1));
      op.inputs[random() % op.inputs.size()] = any - 1;
      break;
    }
    case 3: {
      const ir::Operator& other = graph.operators[random() % graph.operators.size()];
      op.type = other.type;
      op.builtin_code = other.builtin_code;
      break;
    }
    default:
      change_attribute(op, random);
  }
}

ir::Model mutated_model(Random& random) {
  const auto cases = testing::rule_cases();
  ir::Model model = cases[random() % cases.size()].make(random() % 2 != 0);
  ir::Subgraph& graph = model.subgraphs[0];
  for (auto changes = random() % 4; changes > 0; --changes) {
    if (graph.operators.empty() || random() % 3 != 0) {
      change_tensor(model, graph.tensors[random() % graph.tensors.size()], random);
    } else {
      change_operator(graph, graph.operators[random() % graph.operators.size()], random);
    }
  }
  return model;
}

compiler::PlanOptions random_options(Random& random) {
  compiler::PlanOptions options;
  options.runtime = static_cast<int>(10 + random() % 5);
  options.rewrites.none = random() % 5 == 0;
  for (const passes::PassInfo& info : passes::passes_of(passes::Stage::kChip)) {
    if (random() % 4 == 0) options.rewrites.enable.emplace_back(info.name);
  }
  options.partition.several_parts = random() % 2 != 0;
  options.costs.cache_policy =
      random() % 2 != 0 ? partition::CachePolicy::kInOrder : partition::CachePolicy::kLeastTime;
  return options;
}

void report_and_write(const ir::Model& given, const compiler::Plan& plan) {
  ASSERT_TRUE(ir::verify(*plan.model).ok()) << ir::verify(*plan.model).message();
  EXPECT_TRUE(plan.partition.predicted_us >= 0 && std::isfinite(plan.partition.predicted_us));
  const report::CheckSubject subject = compiler::check_subject("model", given, plan);
  EXPECT_FALSE(report::check_text(subject, {true, true}).empty());
  EXPECT_TRUE(report::check_json(subject).is_object());
  std::vector<emit::CompiledPart> parts;
  for (const partition::Part& part : plan.partition.parts) {
    EXPECT_GE(part.cost.total(), 0);
    EXPECT_GE(part.cost.streamed_bytes, 0);
    parts.push_back({part.ops, part.inputs, part.outputs, Bytes({0})});
  }
  const auto compiled = emit::compiled_model(*plan.model, parts);
  if (compiled.ok()) static_cast<void>(tflite::write_exported_model(*compiled));
}

TEST(MutatedModels, AreJudgedRewrittenAndWrittenWithoutHarm) {
  constexpr unsigned kModels = 6000;
  int planned = 0;
  for (unsigned seed = 0; seed < kModels; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const auto model = std::make_shared<const ir::Model>(mutated_model(random));
    if (!ir::verify(*model).ok()) continue;
    const auto plan = compiler::make_plan(model, random_options(random));
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    report_and_write(*model, *plan);
    ++planned;
  }
  EXPECT_GT(planned, static_cast<int>(kModels / 3));
}

// ir::verify lets an operator read a tensor without elements before it is written, even its own.
TEST(MutatedModels, AnOperatorMayReadItsOwnEmptyResult) {
  testing::QuantizedModel builder;
  const std::int32_t y = builder.computed({2, 0, 8, 8}, {});
  builder.op("RELU", {y}, {y});
  const auto model = std::make_shared<const ir::Model>(builder.finish({y}));
  const auto plan = compiler::make_plan(model, {});
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  report_and_write(*model, *plan);
}

// Rewrites make weights for every channel: not for two thousand million of them.
TEST(MutatedModels, AbsurdlyManyChannelsAreLeftAlone) {
  testing::QuantizedModel builder;
  const std::int32_t x = builder.input({1, 1, 1, std::numeric_limits<std::int32_t>::max()});
  const auto model = std::make_shared<const ir::Model>(builder.finish({builder.unary("HARD_SWISH", x)}));
  const auto plan = compiler::make_plan(model, {});
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  EXPECT_EQ(plan->model->subgraphs[0].operators.size(), 1u);
}

}  // namespace
}  // namespace reef
