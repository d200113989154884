// SPDX-License-Identifier: Apache-2.0
#include "runtime/pipeline.h"

#include <thread>

#include <gtest/gtest.h>

namespace reef::runtime {
namespace {

// y = x + 1, from tensor `from` to tensor `to`.
std::unique_ptr<cpu::Interpreter> add_one(const std::string& from, const std::string& to) {
  ir::Model model;
  model.buffers.resize(2);
  const float one = 1;
  model.buffers[1].data = Bytes::copy_of({reinterpret_cast<const std::uint8_t*>(&one), sizeof(one)});
  ir::Subgraph graph;
  for (const std::string& name : {from, std::string("one"), to}) {
    ir::Tensor tensor;
    tensor.name = name;
    tensor.shape = {1};
    tensor.buffer = name == "one" ? 1 : 0;
    graph.tensors.push_back(std::move(tensor));
  }
  graph.inputs = {0};
  graph.outputs = {2};
  ir::Operator op;
  op.type = "ADD";
  op.inputs = {0, 1};
  op.outputs = {2};
  graph.operators.push_back(std::move(op));
  model.subgraphs.push_back(std::move(graph));
  auto created = cpu::Interpreter::create(std::make_shared<const ir::Model>(std::move(model)));
  EXPECT_TRUE(created.ok()) << created.status().message();
  EXPECT_TRUE((*created)->prepare().ok());
  return std::move(created).value();
}

PipelineTensors one_value(const std::string& name, float value) {
  const auto* const bytes = reinterpret_cast<const std::byte*>(&value);
  return {{name, ir::DataType::kFloat32, {1}, {bytes, bytes + sizeof(value)}}};
}

float value_of(const PipelineTensors& tensors) {
  float value = 0;
  std::memcpy(&value, tensors.at(0).data.data(), sizeof(value));
  return value;
}

TEST(Pipeline, ResultsComeInTheOrderOfInputs) {
  const auto a = add_one("x", "y"), b = add_one("y", "z"), c = add_one("z", "w");
  auto pipeline = Pipeline::create({a.get(), b.get(), c.get()});
  ASSERT_TRUE(pipeline.ok()) << pipeline.status().message();
  constexpr int kSets = 200;
  std::thread pusher([&] {
    for (int i = 0; i < kSets; ++i) EXPECT_TRUE((*pipeline)->push(one_value("x", static_cast<float>(i))).ok());
    (*pipeline)->close();
  });
  for (int i = 0; i < kSets; ++i) {
    const auto popped = (*pipeline)->pop();
    ASSERT_TRUE(popped.ok() && popped->has_value());
    ASSERT_EQ((**popped).size(), 1u);
    EXPECT_EQ((**popped)[0].name, "w");
    EXPECT_EQ(value_of(**popped), static_cast<float>(i + 3));
  }
  const auto last = (*pipeline)->pop();
  EXPECT_TRUE(last.ok() && !last->has_value());
  pusher.join();
  EXPECT_EQ((*pipeline)->stats()[1].runs, kSets);
  EXPECT_FALSE((*pipeline)->push(one_value("x", 1)).ok()) << "it is closed";
}

TEST(Pipeline, AFailureReachesWhoPushesAndPops) {
  const auto a = add_one("x", "y"), b = add_one("y", "z");
  auto pipeline = Pipeline::create({a.get(), b.get()}).value();
  ASSERT_TRUE(pipeline->push(one_value("wrong", 1)).ok());
  const auto popped = pipeline->pop();
  ASSERT_FALSE(popped.ok());
  EXPECT_NE(popped.status().message().find("segment 0: there is no tensor for input 'x'"), std::string::npos)
      << popped.status().message();
  EXPECT_FALSE(pipeline->push(one_value("x", 1)).ok());
}

TEST(Pipeline, WhatIsNotPoppedIsDropped) {
  const auto a = add_one("x", "y"), b = add_one("y", "z");
  auto pipeline = Pipeline::create({a.get(), b.get()}).value();
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(pipeline->push(one_value("x", 1)).ok());
}

TEST(Pipeline, SegmentsThatDoNotMeetAreRefused) {
  const auto a = add_one("x", "y"), b = add_one("q", "z");
  const auto pipeline = Pipeline::create({a.get(), b.get()});
  ASSERT_FALSE(pipeline.ok());
  EXPECT_NE(pipeline.status().message().find("no segment takes an output of segment 0 ('y')"), std::string::npos);
  EXPECT_FALSE(Pipeline::create({a.get(), a.get()}).ok());
  EXPECT_FALSE(Pipeline::create({}).ok());
}

}  // namespace
}  // namespace reef::runtime
