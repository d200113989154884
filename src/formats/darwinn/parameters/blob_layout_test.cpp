// SPDX-License-Identifier: Apache-2.0
// Blobs put together from the chunks of a small model, and taken apart again.
#include "formats/darwinn/parameters/blob_layout.h"

#include <gtest/gtest.h>

#include <random>

#include "formats/darwinn/parameters/channel_lines.h"
#include "formats/darwinn/parameters/from_operator.h"
#include "formats/darwinn/parameters/selection_matrix.h"
#include "formats/darwinn/parameters/softmax_rows.h"
#include "ir/verify.h"

namespace reef::darwinn {
namespace {

using ByteVector = std::vector<std::uint8_t>;

class ModelBuilder {
 public:
  ModelBuilder() {
    model_.buffers.resize(1);
    model_.subgraphs.resize(1);
    model_.subgraphs[0].inputs = {add({1, 8, 8, 16})};
  }
  std::int32_t add(ir::Shape shape, ByteVector data = {}, ir::DataType type = ir::DataType::kUInt8) {
    ir::Tensor tensor;
    tensor.type = type;
    tensor.shape = std::move(shape);
    if (type == ir::DataType::kUInt8) {
      tensor.quantization.scale = {0.5f};
      tensor.quantization.zero_point = {3};
    }
    if (!data.empty()) {
      tensor.buffer = static_cast<std::int32_t>(model_.buffers.size());
      model_.buffers.push_back({Bytes(std::move(data))});
    }
    graph().tensors.push_back(std::move(tensor));
    return static_cast<std::int32_t>(graph().tensors.size()) - 1;
  }
  std::int32_t add_random(ir::Shape shape) {
    ByteVector data(static_cast<std::size_t>(shape.elements()));
    for (std::uint8_t& byte : data) byte = static_cast<std::uint8_t>(random_());
    return add(std::move(shape), std::move(data));
  }
  // The operator's first operand is the previous one's output.
  void op(const char* type, std::vector<std::int32_t> others, ir::Shape output) {
    ir::Operator op;
    op.type = type;
    op.inputs = {graph().operators.empty() ? graph().inputs[0] : graph().operators.back().outputs[0]};
    op.inputs.insert(op.inputs.end(), others.begin(), others.end());
    op.outputs = {add(std::move(output))};
    graph().outputs = op.outputs;
    graph().operators.push_back(std::move(op));
  }
  ir::Model model() {
    EXPECT_TRUE(ir::verify(model_).ok()) << ir::verify(model_).message();
    return model_;
  }

 private:
  ir::Subgraph& graph() { return model_.subgraphs[0]; }
  ir::Model model_;
  std::mt19937 random_{5};
};

// 0 convolution 3x3, 1 depthwise, 2 MUL by constants, 3 convolution 1x1, 4 fully connected to 10, 5 SOFTMAX
ir::Model small_model() {
  ModelBuilder b;
  b.op("CONV_2D", {b.add_random({32, 3, 3, 16}), b.add({32}, ByteVector(128, 1), ir::DataType::kInt32)}, {1, 8, 8, 32});
  b.op("DEPTHWISE_CONV_2D", {b.add_random({1, 3, 3, 32}), -1}, {1, 8, 8, 32});
  b.op("MUL", {b.add_random({32})}, {1, 8, 8, 32});
  b.op("CONV_2D", {b.add_random({2, 1, 1, 32}), b.add({2}, ByteVector(8, 0), ir::DataType::kInt32)}, {1, 8, 8, 2});
  b.op("FULLY_CONNECTED", {b.add_random({10, 128}), -1}, {1, 10});
  b.op("SOFTMAX", {}, {1, 10});
  return b.model();
}

ByteVector chunk_of(const ir::Model& model, std::size_t op, const LayerOptions& options = {}, std::int32_t cells = 0) {
  auto layer = layer_parameters_of(model, model.subgraphs[0], model.subgraphs[0].operators[op], options);
  EXPECT_TRUE(layer.ok()) << layer.status().message();
  layer->shape.cells = cells;
  const auto chunk = pack(*layer);
  EXPECT_TRUE(chunk.ok()) << chunk.status().message();
  return *chunk;
}

ByteVector join(const std::vector<ByteVector>& chunks) {
  ByteVector blob;
  for (const ByteVector& chunk : chunks) blob.insert(blob.end(), chunk.begin(), chunk.end());
  return blob;
}

TEST(BlobLayout, FindsEveryChunkInAnyOrder) {
  const ir::Model model = small_model();
  LayerOptions blocks, keep;
  blocks.order = LoopOrder::channels_first();
  keep.keep_zero_biases = true;
  const auto softmax = softmax_rows_of(model.subgraphs[0], model.subgraphs[0].operators[5]);
  ASSERT_TRUE(softmax.ok());
  const ByteVector blob =
      join({chunk_of(model, 4), chunk_of(model, 0, blocks), *pack(*selection_layer(SelectionMatrix::gather(9, true))),
            chunk_of(model, 1), chunk_of(model, 3, keep), chunk_of(model, 0, blocks), *pack_softmax_rows(*softmax)});
  const auto layout = locate(model, blob);
  ASSERT_TRUE(layout.ok()) << layout.status().message();
  ASSERT_EQ(layout->chunks.size(), 7u);
  const std::int32_t kOps[] = {4, 0, -1, 1, 3, 0, 5};
  std::size_t offset = 0;
  for (std::size_t i = 0; i < 7; ++i) {
    EXPECT_EQ(layout->chunks[i].op, kOps[i]) << i;
    EXPECT_EQ(layout->chunks[i].offset, offset) << i;
    offset += layout->chunks[i].size;
  }
  EXPECT_EQ(offset, blob.size());
  EXPECT_EQ(layout->chunks[1].order, LoopOrder{1});
  EXPECT_EQ(layout->chunks[1].presence, (Presence{false, true, false}));
  EXPECT_EQ(layout->chunks[2].kind, ChunkKind::kSelection);
  EXPECT_EQ(layout->chunks[4].presence, (Presence{false, true, false}));
  EXPECT_EQ(layout->chunks[6].kind, ChunkKind::kSoftmax);
  EXPECT_EQ(layout->bytes_of(ChunkKind::kUnknown), 0u);
  EXPECT_EQ(layout->find(3)->offset, layout->chunks[4].offset);
  EXPECT_EQ(layout->find(2), nullptr);
}

TEST(BlobLayout, FindsConstantsAndWideLines) {
  const ir::Model model = small_model();
  const auto words = channel_words_of(model, model.subgraphs[0], model.subgraphs[0].operators[2]);
  ASSERT_TRUE(words.ok());
  const auto layout =
      locate(model, join({pack_channel_lines(*words), chunk_of(model, 3, {}, 64), chunk_of(model, 3, {}, 16)}));
  ASSERT_TRUE(layout.ok());
  ASSERT_EQ(layout->chunks.size(), 3u);
  EXPECT_EQ(layout->chunks[0].kind, ChunkKind::kChannelLines);
  EXPECT_EQ(layout->chunks[1].shape.cells, 64);
  EXPECT_EQ(layout->chunks[2].shape.cells, 16);
}

TEST(BlobLayout, WhatIsNotThereIsUnknown) {
  const ir::Model model = small_model();
  ByteVector blob = join({chunk_of(model, 1), chunk_of(model, 4)});
  const std::size_t first = chunk_of(model, 1).size();
  blob[100] ^= 1;
  const auto layout = locate(model, blob);
  ASSERT_TRUE(layout.ok());
  ASSERT_EQ(layout->chunks.size(), 2u);
  EXPECT_EQ(layout->chunks[0].kind, ChunkKind::kUnknown);
  EXPECT_EQ(layout->chunks[0].size, first);
  EXPECT_EQ(layout->chunks[1].op, 4);
  EXPECT_EQ(layout->find(1), nullptr);
}

TEST(BlobLayout, EqualLayersAreToldApartOrShared) {
  ModelBuilder b;
  const std::int32_t weights = b.add_random({16, 1, 1, 16});
  b.op("CONV_2D", {weights, -1}, {1, 8, 8, 16});
  b.op("CONV_2D", {weights, -1}, {1, 8, 8, 16});
  const ir::Model model = b.model();
  const auto twice = locate(model, join({chunk_of(model, 0), chunk_of(model, 1)}));
  ASSERT_TRUE(twice.ok());
  ASSERT_EQ(twice->chunks.size(), 2u);
  EXPECT_EQ(twice->chunks[0].op, 0);
  EXPECT_EQ(twice->chunks[1].op, 1);
  const auto once = locate(model, chunk_of(model, 0));
  ASSERT_TRUE(once.ok());
  ASSERT_EQ(once->chunks.size(), 1u);
  EXPECT_EQ(once->chunks[0].also_for, (std::vector<std::int32_t>{1}));
  EXPECT_EQ(once->find(1), &once->chunks[0]);
}

// Many operators may name one tensor: a small file that stands for endless work.
TEST(BlobLayout, EndlessModelsAreRefused) {
  ModelBuilder b;
  const std::int32_t weights = b.add({4096, 4096}, ByteVector(std::size_t{4096} * 4096, 1));
  for (int i = 0; i < 200; ++i) b.op("FULLY_CONNECTED", {weights, -1}, {1, 4096});
  const auto layout = locate(b.model(), ByteVector(std::size_t{17} << 20));
  ASSERT_FALSE(layout.ok());
  EXPECT_EQ(layout.status().code(), StatusCode::kResourceExhausted);
}

TEST(BlobLayout, AnyBlobIsAnswered) {
  const ir::Model model = small_model();
  EXPECT_FALSE(locate(model, ByteVector(63)).ok());
  EXPECT_TRUE(locate(model, {})->chunks.empty());
  EXPECT_TRUE(locate(ir::Model(), ByteVector(64)).ok());
  std::mt19937 random(3);
  for (const std::uint8_t fill : {0, 1, 2, 0x80}) {
    ByteVector blob(1 << 16, fill);
    for (int i = 0; i < 100; ++i) blob[random() % blob.size()] = static_cast<std::uint8_t>(random() % 2);
    const auto layout = locate(model, blob);
    ASSERT_TRUE(layout.ok());
    std::size_t offset = 0;
    for (const BlobChunk& chunk : layout->chunks) {
      EXPECT_EQ(chunk.offset, offset);
      offset += chunk.size;
    }
    EXPECT_EQ(offset, blob.size());
  }
}

}  // namespace
}  // namespace reef::darwinn
