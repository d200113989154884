// SPDX-License-Identifier: Apache-2.0
#include "formats/tflite/writer.h"

#include <cstdlib>

#include <gtest/gtest.h>

#include "formats/tflite/schema_generated.h"
#include "formats/tflite/test_models.h"

namespace reef::tflite {
namespace {

namespace fb = tflite_schema;
using testing::make_full_model;
using testing::make_small_model;
using testing::must_read;
using testing::must_write;

TEST(TfliteWriter, EverythingSurvives) { testing::expect_round_trip(make_full_model()); }

TEST(TfliteWriter, SameModelSameBytesWhereverItsDataLies) {
  ir::Model model = make_full_model();
  const auto file = must_write(model);
  for (ir::Buffer& buffer : model.buffers) buffer.data = Bytes::copy_of(buffer.data.span());
  EXPECT_EQ(must_write(model), file);
}

TEST(TfliteWriter, DataIsAlignedWhereverItIsStored) {
  const auto file = must_write(make_full_model());
  const fb::Model* model = fb::GetModel(file.data());
  const auto* inside = model->buffers()->Get(1);
  ASSERT_NE(inside->data(), nullptr);
  EXPECT_EQ((inside->data()->Data() - file.data()) % 16, 0);
  for (const std::uint32_t index : {2u, 4u}) {
    const auto* behind = model->buffers()->Get(index);
    EXPECT_EQ(behind->data(), nullptr);
    EXPECT_EQ(behind->offset() % 16, 0u);
    ASSERT_LE(behind->offset() + behind->size(), file.size());
    EXPECT_EQ(file[behind->offset()], index == 2 ? 9 : 5);
  }
  const auto* large = model->subgraphs()->Get(0)->operators()->Get(1);
  EXPECT_EQ(large->custom_options(), nullptr);
  EXPECT_EQ(large->large_custom_options_size(), 33u);
  EXPECT_EQ(file[large->large_custom_options_offset()], 7);
  EXPECT_EQ(large->large_custom_options_offset() + 33, file.size());
}

TEST(TfliteWriter, OperatorCodesAreSharedAndStoredForOldReadersToo) {
  ir::Model model = make_full_model();
  const auto file = must_write(model);
  const auto* codes = fb::GetModel(file.data())->operator_codes();
  ASSERT_EQ(codes->size(), 3u);  // edgetpu-custom-op, 250, ADD
  EXPECT_EQ(codes->Get(0)->custom_code()->str(), "edgetpu-custom-op");
  EXPECT_EQ(codes->Get(0)->deprecated_builtin_code(), 32);
  EXPECT_EQ(codes->Get(0)->version(), 2);
  EXPECT_EQ(codes->Get(1)->deprecated_builtin_code(), 127);
  EXPECT_EQ(static_cast<int>(codes->Get(1)->builtin_code()), 250);
  EXPECT_EQ(codes->Get(2)->builtin_code(), fb::BuiltinOperator::ADD);
}

TEST(TfliteWriter, WhatRuntimesInsistOnIsThereEvenIfEmpty) {
  const auto file = must_write(make_full_model());
  const auto* signature = fb::GetModel(file.data())->signature_defs()->Get(1);
  EXPECT_NE(signature->inputs(), nullptr);
  EXPECT_NE(signature->outputs(), nullptr);
  const auto* buffers = fb::GetModel(file.data())->buffers();
  EXPECT_EQ(buffers->Get(0)->data(), nullptr);
  ASSERT_NE(buffers->Get(3)->data(), nullptr);  // the constant without elements
  EXPECT_EQ(buffers->Get(3)->data()->size(), 0u);
}

TEST(TfliteWriter, ContradictionsAreRefused) {
  ir::Model wrong_name = make_small_model();
  wrong_name.subgraphs[0].operators[0].type = "CONV_2D";
  EXPECT_NE(write_model(wrong_name).status().message().find("code 0 means 'ADD'"), std::string::npos);

  ir::Model sparse = make_full_model();
  sparse.subgraphs[0].tensors[5].sparsity->dimensions[2].indices.values = {256};
  EXPECT_NE(write_model(sparse).status().message().find("does not fit into 8 bits"), std::string::npos);
  sparse.subgraphs[0].tensors[5].sparsity->dimensions[2].indices = {7, {}};
  EXPECT_EQ(write_model(sparse).status().code(), StatusCode::kUnsupported);

  ir::Model opaque = make_small_model();
  opaque.subgraphs[0].operators[0].opaque_options = ir::OpaqueTable{200, Bytes({1, 2, 3, 4}), 4, 0};
  EXPECT_EQ(write_model(opaque).status().code(), StatusCode::kInvalidInput);
}

TEST(TfliteWriter, TwoGibibytesAreRefusedBeforeTheyAreWritten) {
  constexpr std::size_t kBytes = std::size_t{256} << 20;
  // Never touched, so it costs no memory.
  const std::shared_ptr<std::uint8_t> zeros(static_cast<std::uint8_t*>(std::calloc(kBytes, 1)), std::free);
  ASSERT_NE(zeros, nullptr);
  ir::Model model = make_small_model();
  for (int i = 0; i < 8; ++i) model.buffers.push_back({Bytes(zeros, {zeros.get(), kBytes}), i % 2 == 0, false});
  const Status status = write_model(model).status();
  EXPECT_EQ(status.code(), StatusCode::kUnsupported);
  EXPECT_NE(status.message().find("2 GiB"), std::string::npos);
}

}  // namespace
}  // namespace reef::tflite
