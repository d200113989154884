// SPDX-License-Identifier: Apache-2.0
#include "ops/dependencies.h"

#include <gtest/gtest.h>

#include "ir/verify.h"

namespace reef::ops {
namespace {

using Numbers = std::vector<std::int32_t>;

// Operators by type and operands; tensors are of 8 bits, unless said otherwise.
struct Graph {
  ir::Model model;

  Graph(int tensors, Numbers inputs, Numbers outputs) {
    model.buffers.resize(1);
    ir::Subgraph& graph = model.subgraphs.emplace_back();
    graph.inputs = std::move(inputs);
    graph.outputs = std::move(outputs);
    graph.tensors.resize(static_cast<std::size_t>(tensors));
    for (ir::Tensor& tensor : graph.tensors) {
      tensor.type = ir::DataType::kInt8;
      tensor.shape = {1, 4};
    }
  }
  ir::Tensor& tensor(std::size_t i) { return model.subgraphs[0].tensors[i]; }
  ir::Operator& op(const char* type, Numbers inputs, Numbers outputs) {
    ir::Operator& op = model.subgraphs[0].operators.emplace_back();
    op.type = type;
    op.inputs = std::move(inputs);
    op.outputs = std::move(outputs);
    return op;
  }
  void handle(std::int32_t tensor_number, const char* container, const char* name) {
    tensor(static_cast<std::size_t>(tensor_number)).type = ir::DataType::kResource;
    ir::Operator& made = op("VAR_HANDLE", {}, {tensor_number});
    made.attributes.set("container", std::string(container));
    made.attributes.set("shared_name", std::string(name));
  }

  std::vector<Numbers> predecessors() const {
    EXPECT_TRUE(ir::verify(model).ok()) << ir::verify(model).message();
    const Dependencies dependencies(model);
    std::vector<Numbers> result;
    for (std::int32_t i = 0; i < dependencies.op_count(); ++i) {
      const auto before = dependencies.predecessors(i);
      result.emplace_back(before.begin(), before.end());
      for (const std::int32_t earlier : before) {
        const auto after = dependencies.successors(earlier);
        EXPECT_EQ(std::count(after.begin(), after.end(), i), 1) << earlier << " " << i;
      }
    }
    return result;
  }
};

TEST(Dependencies, FollowTensorsOnce) {
  Graph graph(4, {0}, {3});
  graph.op("RELU", {0}, {1});
  graph.op("RELU", {0}, {2});
  graph.op("ADD", {1, 1}, {3});
  EXPECT_EQ(graph.predecessors(), (std::vector<Numbers>{{}, {}, {0}}));
}

TEST(Dependencies, OperatorsOnOneVariableKeepTheirOrder) {
  Graph graph(7, {0, 1}, {4, 5, 6});
  graph.handle(2, "", "a");
  graph.handle(3, "", "a");  // another handle of the same variable
  graph.op("READ_VARIABLE", {2}, {4});
  graph.op("ASSIGN_VARIABLE", {3, 0}, {});
  graph.op("READ_VARIABLE", {2}, {5});
  graph.op("RELU", {1}, {6});
  EXPECT_EQ(graph.predecessors(), (std::vector<Numbers>{{}, {}, {0}, {1, 2}, {0, 3}, {}}));
}

TEST(Dependencies, OperatorsOnDifferentVariablesDoNot) {
  Graph graph(6, {0}, {3, 4, 5});
  graph.handle(1, "", "a");
  graph.handle(2, "elsewhere", "a");
  graph.op("ASSIGN_VARIABLE", {1, 0}, {});
  graph.op("READ_VARIABLE", {2}, {3});
  graph.op("READ_VARIABLE", {1}, {4});
  graph.op("RELU", {0}, {5});
  EXPECT_EQ(graph.predecessors(), (std::vector<Numbers>{{}, {}, {0}, {1}, {0, 2}, {}}));
}

// Which variables a handle from outside or a loop's body touches is unknown.
TEST(Dependencies, UnknownVariablesKeepTheirPlaceAmongAll) {
  Graph graph(7, {0, 2}, {3, 4, 5, 6});
  graph.handle(1, "", "a");
  graph.tensor(2).type = ir::DataType::kResource;
  graph.op("READ_VARIABLE", {1}, {3});      // 1
  graph.op("ASSIGN_VARIABLE", {2, 0}, {});  // 2: may be "a"
  graph.op("READ_VARIABLE", {1}, {4});      // 3
  graph.op("CALL_ONCE", {}, {});            // 4
  graph.op("HASHTABLE_SIZE", {2}, {5});     // 5: no definition, but it gets a handle
  graph.op("RELU", {0}, {6});               // 6
  EXPECT_EQ(graph.predecessors(), (std::vector<Numbers>{{}, {0}, {1}, {0, 2}, {2, 3}, {4}, {}}));
}

using Ties = std::vector<Dependencies::Tie>;

// Order is one thing; what must stay in one interpreter is another.
TEST(Dependencies, OperatorsThatShareSomethingBesideTheGraphAreTied) {
  Graph graph(8, {0}, {4, 5, 6, 7});
  graph.handle(1, "", "a");                 // 0
  graph.handle(2, "", "b");                 // 1
  graph.op("ASSIGN_VARIABLE", {1, 0}, {});  // 2
  graph.op("READ_VARIABLE", {2}, {4});      // 3: another one
  graph.op("READ_VARIABLE", {1}, {5});      // 4
  graph.op("SomeCustomOp", {0}, {6});       // 5: as far as anybody knows it shares nothing
  graph.op("HASHTABLE_FIND", {1, 0}, {7});  // 6: gets a handle
  EXPECT_EQ(graph.predecessors(), (std::vector<Numbers>{{}, {}, {0}, {1}, {0, 2}, {}, {0, 3, 4}}));
  EXPECT_EQ(Dependencies(graph.model).ties(), (Ties{{0, 2}, {1, 3}, {0, 4}, {0, 6}, {2, 4}, {4, 6}, {3, 6}}));
}

// A loop is tied to variables only where its subgraphs have any.
TEST(Dependencies, ControlFlowIsTiedWhereItsSubgraphsHaveHandles) {
  Graph graph(5, {0}, {2, 4});
  graph.handle(1, "", "a");                 // 0
  graph.op("ASSIGN_VARIABLE", {1, 0}, {});  // 1
  graph.op("WHILE", {0}, {2});              // 2
  graph.handle(3, "", "a");                 // 3
  graph.op("READ_VARIABLE", {3}, {4});      // 4
  EXPECT_EQ(graph.predecessors()[4], (Numbers{2, 3}));
  graph.model.subgraphs.emplace_back();
  EXPECT_EQ(Dependencies(graph.model).ties(), (Ties{{0, 1}, {3, 4}, {1, 4}}));
  graph.model.subgraphs[1].tensors.emplace_back().type = ir::DataType::kResource;
  EXPECT_EQ(Dependencies(graph.model).ties(), (Ties{{0, 1}, {3, 4}, {1, 2}, {2, 4}}));
}

TEST(Dependencies, OperatorsOnOneStateKeepTheirOrder) {
  Graph graph(6, {0}, {3, 4, 5});
  graph.tensor(1).is_variable = true;
  graph.tensor(2).is_variable = true;
  graph.op("SVDF", {0, 0, 0, -1, 1}, {3});
  graph.op("SVDF", {0, 0, 0, -1, 2}, {4});  // another state
  graph.op("SVDF", {0, 0, 0, -1, 1}, {5});
  EXPECT_EQ(graph.predecessors(), (std::vector<Numbers>{{}, {}, {0}}));
}

TEST(Dependencies, ABorderIsAscendingAndNamesEachTensorOnce) {
  Graph graph(9, {0, 1}, {8, 5});
  graph.model.buffers.emplace_back().data = Bytes({1, 2, 3, 4});
  graph.tensor(2).buffer = 1;
  graph.tensor(3).is_variable = true;
  graph.op("RELU", {1}, {6});
  graph.op("ADD", {6, 2}, {5});             // inside
  graph.op("SVDF", {5, 0, 0, -1, 3}, {4});  // inside
  graph.op("RELU", {4}, {7});               // inside
  graph.op("ADD", {4, 4}, {8});
  const Dependencies dependencies(graph.model);
  const Dependencies::Border border = dependencies.border(Numbers{1, 2, 3});
  EXPECT_EQ(border.inputs, (Numbers{0, 3, 6}));
  EXPECT_EQ(border.outputs, (Numbers{4, 5}));  // nobody wants 7
}

}  // namespace
}  // namespace reef::ops
