// SPDX-License-Identifier: Apache-2.0
// Networks with shapes, attributes, constants and operands changed at random to what no converter writes: whatever
// passes ir::verify is simplified or refused without harm, and what comes out passes it too. Under the sanitizers this
// is where memory errors and overflows show.
#include <limits>

#include "passes/float/random_graphs.h"

namespace reef::passes::testing {
namespace {

std::int64_t odd_number(std::mt19937& random) {
  constexpr auto kMax = std::numeric_limits<std::int64_t>::max();
  const std::int64_t values[] = {0, 1, 2, -1, -2, 3, 5, 128, 2147483647, -2147483648LL, kMax, -kMax - 1};
  return values[random() % 12];
}

void change(ir::Model& model, std::mt19937& random) {
  ir::Subgraph& graph = model.subgraphs[0];
  ir::Tensor& tensor = graph.tensors[random() % graph.tensors.size()];
  ir::Operator& op = graph.operators[random() % graph.operators.size()];
  switch (random() % 7) {
    case 0:
      if (tensor.shape.rank() > 0) {
        tensor.shape[static_cast<int>(random() % tensor.shape.dims().size())] = static_cast<std::int32_t>(random() % 9);
      }
      break;
    case 1: {
      std::vector<std::int32_t> dims(random() % 7);
      for (std::int32_t& dim : dims) dim = 1 + static_cast<std::int32_t>(random() % 4);
      tensor.shape = Shape(dims);
      break;
    }
    case 2:
      for (const ir::Attribute& attribute : ir::Attributes(op.attributes)) {
        if (std::holds_alternative<std::int64_t>(attribute.value))
          op.attributes.set(attribute.name, odd_number(random));
        if (std::holds_alternative<bool>(attribute.value)) op.attributes.set(attribute.name, random() % 2 == 0);
      }
      break;
    case 3: {
      ir::Buffer& buffer = model.buffers[random() % model.buffers.size()];
      std::vector<std::uint8_t> bytes(buffer.data.span().begin(), buffer.data.span().end());
      if (bytes.size() < 4) break;
      const auto value = static_cast<std::int32_t>(odd_number(random));
      std::memcpy(&bytes[random() % (bytes.size() / 4) * 4], &value, 4);
      buffer.data = Bytes(std::move(bytes));
      break;
    }
    case 4:
      if (!op.inputs.empty()) {
        op.inputs[random() % op.inputs.size()] = static_cast<std::int32_t>(random() % graph.tensors.size());
      }
      break;
    case 5:
      tensor.type = static_cast<DataType>(random() % 18);
      break;
    default:
      op.type = graph.operators[random() % graph.operators.size()].type;
  }
}

TEST(SimplifyHostile, NothingBreaks) {
  int simplified = 0;
  for (std::uint32_t seed = 1; seed <= 6000; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    ir::Model model = seed % 2 == 0 ? random_network(seed) : random_movement(seed, DataType::kFloat32);
    const std::uint32_t changes = 1 + random() % 4;
    for (std::uint32_t i = 0; i < changes; ++i) change(model, random);
    if (!ir::verify(model).ok()) continue;
    const auto report = simplify(model);
    EXPECT_TRUE(report.ok()) << report.status().message();
    EXPECT_TRUE(ir::verify(model).ok());
    ++simplified;
  }
  EXPECT_GT(simplified, 1000);
}

}  // namespace
}  // namespace reef::passes::testing
