// SPDX-License-Identifier: Apache-2.0
// Refusals and their reasons, on models built by hand. What real TFLite Micro does with recorded models is compared in
// tests/micro_verdicts_test.cpp.
#include "micro/assess.h"

#include <gtest/gtest.h>

#include "ir/verify.h"

namespace reef::micro {
namespace {

using ir::DataType;

class HandMade {
 public:
  HandMade() {
    model.buffers.emplace_back();
    model.subgraphs.emplace_back();
  }
  std::int32_t tensor(DataType type, const ir::Shape& shape, float scale = 0.5F) {
    ir::Tensor tensor;
    tensor.name = "t" + std::to_string(graph().tensors.size());
    tensor.type = type;
    tensor.shape = shape;
    if (type == DataType::kInt8) {
      tensor.quantization.scale = {scale};
      tensor.quantization.zero_point = {0};
      tensor.has_quantization = true;
    }
    graph().tensors.push_back(tensor);
    return static_cast<std::int32_t>(graph().tensors.size()) - 1;
  }
  void op(const std::string& type, std::vector<std::int32_t> inputs, std::vector<std::int32_t> outputs,
          std::int32_t code = ir::kCustomBuiltinCode) {
    ir::Operator op;
    op.type = type;
    op.builtin_code = code;
    op.inputs = std::move(inputs);
    op.outputs = std::move(outputs);
    graph().operators.push_back(op);
  }
  // A buffer with these bytes.
  std::int32_t constant(std::vector<std::uint8_t> bytes) {
    model.buffers.emplace_back().data = Bytes(std::move(bytes));
    return static_cast<std::int32_t>(model.buffers.size()) - 1;
  }
  ir::Subgraph& graph() { return model.subgraphs[0]; }
  Assessment assessed(Target target) const {
    EXPECT_TRUE(ir::verify(model).ok());
    return assess(model, {.target = target, .file_bytes = 1000});
  }
  ir::Model model;
};

bool has_rule(const Assessment& assessment, std::string_view rule) {
  for (const Refusal& refusal : assessment.refusals) {
    if (refusal.rule == rule) return true;
  }
  return false;
}

// Its first refusal by that rule; one without words if there is none.
Refusal refusal_of(const Assessment& assessment, std::string_view rule) {
  for (const Refusal& refusal : assessment.refusals) {
    if (refusal.rule == rule) return refusal;
  }
  ADD_FAILURE() << "nothing was refused by " << rule;
  return {};
}

// Builtin codes of the schema.
constexpr std::int32_t kAdd = 0, kFullyConnected = 9, kRelu = 19, kMaximum = 55, kBroadcastTo = 130;

TEST(MicroAssess, AnOperatorThatNobodyRegistersIsNamedWithARemedy) {
  HandMade made;
  const std::int32_t x = made.tensor(DataType::kFloat32, {1, 4}), y = made.tensor(DataType::kFloat32, {1, 4});
  made.op("SomeDelegateOp", {x}, {y});
  made.graph().inputs = {x};
  made.graph().outputs = {y};
  for (const Target target : {Target::kMicro, Target::kTflm}) {
    const Assessment assessment = made.assessed(target);
    ASSERT_FALSE(assessment.is_accepted());
    EXPECT_EQ(assessment.refusals[0].rule, "operator");
    EXPECT_NE(assessment.refusals[0].reason.find("SomeDelegateOp"), std::string::npos);
    EXPECT_NE(assessment.refusals[0].remedy.find("AddCustom"), std::string::npos);
  }
}

TEST(MicroAssess, AnArenaOverTheBoardsMemoryIsRefusedWithTheNumbers) {
  HandMade made;
  constexpr std::int32_t kSide = 4096;
  const std::int32_t x = made.tensor(DataType::kInt8, {1, kSide, kSide, 3}),
                     y = made.tensor(DataType::kInt8, {1, kSide, kSide, 3});
  made.op("RELU", {x}, {y}, kRelu);
  made.graph().inputs = {x};
  made.graph().outputs = {y};
  const Assessment assessment = made.assessed(Target::kMicro);
  ASSERT_TRUE(has_rule(assessment, "memory"));
  const std::int64_t bytes = assessment.arena_bytes().value_or(0);
  EXPECT_GT(bytes, 2 * kSide * kSide * 3);
  EXPECT_LT(bytes, 2 * kSide * kSide * 3 + 4096);
  EXPECT_NE(assessment.refusals[0].reason.find(std::to_string(bytes)), std::string::npos)
      << assessment.refusals[0].reason;
  EXPECT_NE(assessment.refusals[0].reason.find("32.0 MiB"), std::string::npos);
  // A board that says nothing of its memory takes it.
  EXPECT_TRUE(made.assessed(Target::kTflm).is_accepted());
}

// A board with TFLite Micro alone has the sizes that somebody says.
TEST(MicroAssess, AnArenaOrModelOverAStatedSizeIsRefusedWithTheNumbers) {
  HandMade made;
  const std::int32_t x = made.tensor(DataType::kInt8, {1, 64, 64, 3}), y = made.tensor(DataType::kInt8, {1, 64, 64, 3});
  made.op("RELU", {x}, {y}, kRelu);
  made.graph().inputs = {x};
  made.graph().outputs = {y};
  AssessOptions board{.target = Target::kTflm, .file_bytes = 2000, .ram_bytes = 16384, .flash_bytes = 1024};
  const Assessment small = assess(made.model, board);
  ASSERT_EQ(small.refusals.size(), 2u);
  EXPECT_NE(small.refusals[0].reason.find(std::to_string(small.arena_bytes().value_or(0))), std::string::npos);
  EXPECT_NE(small.refusals[0].reason.find("the board's RAM has 16.0 KiB"), std::string::npos)
      << small.refusals[0].reason;
  EXPECT_NE(small.refusals[0].remedy.find("a board with at least"), std::string::npos);
  EXPECT_NE(small.refusals[1].reason.find("2000 bytes"), std::string::npos) << small.refusals[1].reason;
  board.ram_bytes = small.arena_bytes();
  board.flash_bytes = 2000;
  EXPECT_TRUE(assess(made.model, board).is_accepted());
}

// As a C array the model stands beside the arena, and the camera's frames do, too.
TEST(MicroAssess, WhatStandsBesideTheArenaIsCounted) {
  HandMade made;
  constexpr std::int32_t kSide = 2048;
  const std::int32_t x = made.tensor(DataType::kInt8, {1, kSide, kSide, 3}),
                     y = made.tensor(DataType::kInt8, {1, kSide, kSide, 1});
  made.op("edgetpu-custom-op", {x}, {y});
  made.graph().inputs = {x};
  made.graph().outputs = {y};
  const auto memory_refusal = [&](std::int64_t file, bool embeds) {
    const Assessment found = assess(made.model, {.target = Target::kMicro, .file_bytes = file, .embeds_model = embeds});
    for (const Refusal& refusal : found.refusals) {
      if (refusal.rule == "memory") return refusal.reason + " " + refusal.remedy;
    }
    return std::string();
  };
  constexpr std::int64_t kArena = std::int64_t{kSide} * kSide * 4;  // and 12 MiB for a picture
  static_assert(kArena < 32 << 20);
  EXPECT_EQ(memory_refusal(1 << 20, false), "");
  EXPECT_EQ(memory_refusal(1 << 20, true), "");
  const std::string embedded = memory_refusal(5 << 20, true);
  EXPECT_NE(embedded.find("static SDRAM has 32.0 MiB"), std::string::npos) << embedded;
  EXPECT_NE(embedded.find("--embed"), std::string::npos) << embedded;
  EXPECT_EQ(memory_refusal(5 << 20, false), "");
}

// Coral's release plans no life for it, so that filling it writes over other tensors. The current one does.
TEST(MicroAssess, AnInputThatNothingReadsIsRefusedForCoralsSdk) {
  HandMade made;
  const std::int32_t y = made.tensor(DataType::kInt8, {1, 64}), unread = made.tensor(DataType::kInt8, {1, 64}),
                     x = made.tensor(DataType::kInt8, {1, 64});  // the last of equal size is placed first, at 0
  made.op("RELU", {x}, {y}, kRelu);
  made.graph().inputs = {x, unread};
  made.graph().outputs = {y};
  const Refusal refusal = refusal_of(made.assessed(Target::kMicro), "coral-unread-input");
  EXPECT_NE(refusal.reason.find("'t1'"), std::string::npos) << refusal.reason;
  EXPECT_TRUE(made.assessed(Target::kTflm).is_accepted());
  made.graph().outputs = {y, unread};  // a result keeps it alive
  EXPECT_FALSE(has_rule(made.assessed(Target::kMicro), "coral-unread-input"));
}

TEST(MicroAssess, APlanOfMemoryInTheFileIsFollowedOrRefused) {
  HandMade made;
  const std::int32_t x = made.tensor(DataType::kInt8, {1, 64}), y = made.tensor(DataType::kInt8, {1, 64});
  made.op("RELU", {x}, {y}, kRelu);
  made.graph().inputs = {x};
  made.graph().outputs = {y};
  const Assessment without = made.assessed(Target::kTflm);
  const auto plan = [&](const std::vector<std::int32_t>& words) {
    const auto* raw = reinterpret_cast<const std::uint8_t*>(words.data());
    made.model.metadata.clear();
    made.model.metadata.push_back({"OfflineMemoryAllocation", made.constant(std::vector<std::uint8_t>(
                                                                  raw, raw + words.size() * sizeof(std::int32_t)))});
    return made.assessed(Target::kTflm);
  };
  const Assessment placed = plan({1, 0, 2, 4096, -1});
  EXPECT_TRUE(placed.is_accepted());
  EXPECT_EQ(placed.arena_32->tensors, 4096 + 64);
  EXPECT_EQ(without.arena_32->tensors, 2 * 64);
  for (const std::vector<std::int32_t>& wrong :
       {std::vector<std::int32_t>{1, 0, 3, 0, 64}, {1, 0}, {1, 0, 2, 0}, {1, 0, 2, -7, 0}}) {
    const Refusal refusal = refusal_of(plan(wrong), "offline-plan");
    EXPECT_NE(refusal.remedy.find("--write-rewritten"), std::string::npos);
  }
}

TEST(MicroAssess, StringsAndOpenShapesAreRefused) {
  HandMade strings;
  const std::int32_t x = strings.tensor(DataType::kString, {4}), y = strings.tensor(DataType::kInt8, {4});
  strings.op("SomeHash", {x}, {y});
  strings.graph().inputs = {x};
  strings.graph().outputs = {y};
  const Refusal text = refusal_of(strings.assessed(Target::kTflm), "tensor-type");
  EXPECT_NE(text.reason.find("'t0' is of type string"), std::string::npos) << text.reason;
  EXPECT_FALSE(text.remedy.empty());

  HandMade open;
  const std::int32_t a = open.tensor(DataType::kInt8, {1, 4}), b = open.tensor(DataType::kInt8, {1, 4});
  open.graph().tensors[0].shape_signature = {1, -1};
  open.op("RELU", {a}, {b}, kRelu);
  open.graph().inputs = {a};
  open.graph().outputs = {b};
  for (const Target target : {Target::kMicro, Target::kTflm}) {
    const Refusal shape = refusal_of(open.assessed(target), "dynamic-shape");
    EXPECT_NE(shape.reason.find("'t0'"), std::string::npos) << shape.reason;
    EXPECT_NE(shape.remedy.find("fixed"), std::string::npos) << shape.remedy;
  }
}

// The shape is an input of the model.
TEST(MicroAssess, SizesThatOnlyTheRunTellsAreRefused) {
  HandMade made;
  const std::int32_t x = made.tensor(DataType::kInt8, {1, 4}), sizes = made.tensor(DataType::kInt32, {2});
  const std::int32_t y = made.tensor(DataType::kInt8, {2, 4});
  made.op("BROADCAST_TO", {x, sizes}, {y}, kBroadcastTo);
  made.graph().inputs = {x, sizes};
  made.graph().outputs = {y};
  const Refusal refusal = refusal_of(made.assessed(Target::kTflm), "dynamic-shape");
  EXPECT_NE(refusal.reason.find("known only while the model runs"), std::string::npos) << refusal.reason;
}

// TFLite Micro has a few kernels for 64-bit numbers and none for the rest.
TEST(MicroAssess, NumbersOf64BitsAreRefusedWhereThereIsNoKernel) {
  const auto sum_of = [](DataType type, std::int32_t code, const std::string& op, DataType result) {
    HandMade made;
    const std::int32_t a = made.tensor(type, {1, 4}), b = made.tensor(type, {1, 4}), y = made.tensor(result, {1, 4});
    made.op(op, {a, b}, {y}, code);
    made.graph().inputs = {a, b};
    made.graph().outputs = {y};
    return made.assessed(Target::kTflm);
  };
  const Refusal refusal = refusal_of(sum_of(DataType::kInt64, kAdd, "ADD", DataType::kInt64), "types");
  EXPECT_NE(refusal.reason.find("int64+>int64"), std::string::npos) << refusal.reason;
  EXPECT_NE(refusal.reason.find("int8+>int8"), std::string::npos) << refusal.reason;  // what it does run
  EXPECT_TRUE(sum_of(DataType::kInt64, kMaximum, "MAXIMUM", DataType::kInt64).is_accepted());
  EXPECT_FALSE(sum_of(DataType::kFloat64, kMaximum, "MAXIMUM", DataType::kFloat64).is_accepted());
}

TEST(MicroAssess, FilesOverTheBoardsLimitsAreRefusedWithTheNumbers) {
  HandMade made;
  const std::int32_t x = made.tensor(DataType::kInt8, {1, 4}), y = made.tensor(DataType::kInt8, {1, 4});
  made.op("RELU", {x}, {y}, kRelu);
  made.graph().inputs = {x};
  made.graph().outputs = {y};
  const auto with_file = [&](std::int64_t bytes, Target target) {
    return assess(made.model, {.target = target, .file_bytes = bytes});
  };
  constexpr std::int64_t kMebibyte = 1 << 20;
  EXPECT_TRUE(with_file(16 * kMebibyte, Target::kMicro).is_accepted());
  const Refusal heap = refusal_of(with_file(16 * kMebibyte + 1, Target::kMicro), "memory");
  EXPECT_NE(heap.reason.find("16777217 bytes"), std::string::npos) << heap.reason;
  EXPECT_NE(heap.reason.find("heap has 16.0 MiB"), std::string::npos) << heap.reason;
  EXPECT_NE(heap.remedy.find("C array"), std::string::npos) << heap.remedy;
  const Assessment large = with_file(65 * kMebibyte, Target::kMicro);
  ASSERT_EQ(large.refusals.size(), 2u);
  EXPECT_NE(large.refusals[0].reason.find("file system has 64.0 MiB"), std::string::npos) << large.refusals[0].reason;
  EXPECT_TRUE(with_file(65 * kMebibyte, Target::kTflm).is_accepted());
}

// ---- Coral's own operator ----

HandMade poses(std::int32_t people_declared) {
  HandMade made;
  std::vector<std::int32_t> fields;
  for (const std::int32_t channels : {17, 34, 64}) fields.push_back(made.tensor(DataType::kUInt8, {1, 9, 9, channels}));
  const std::int32_t n = people_declared;
  const std::vector<std::int32_t> results = {
      made.tensor(DataType::kFloat32, {1, n, 17, 2}), made.tensor(DataType::kFloat32, {1, n, 17}),
      made.tensor(DataType::kFloat32, {1, n}), made.tensor(DataType::kFloat32, {})};
  made.op("PosenetDecoderOp", fields, results);
  // A map with one key: {"max_detections": 5}.
  made.graph().operators.back().custom_options = Bytes(std::vector<std::uint8_t>{
      'm', 'a', 'x', '_', 'd', 'e', 't', 'e', 'c', 't', 'i', 'o', 'n', 's', 0, 1, 16, 1, 1, 1, 5, 4, 2, 36, 1});
  made.graph().inputs = fields;
  made.graph().outputs = results;
  return made;
}

TEST(MicroAssess, PosesAreDecodedByCoralsSdkAlone) {
  const Assessment accepted = poses(5).assessed(Target::kMicro);
  EXPECT_TRUE(accepted.is_accepted()) << accepted.refusals[0].reason;
  ASSERT_EQ(accepted.resolver.size(), 1u);
  EXPECT_EQ(accepted.resolver[0].code,
            "AddCustom(coralmicro::kPosenetDecoderOp, coralmicro::RegisterPosenetDecoderOp())");
  EXPECT_GE(accepted.arena_bytes().value_or(0), 9 * 9 * (17 + 34 + 64) * 5);  // the fields, once more as floats
  const Refusal elsewhere = refusal_of(poses(5).assessed(Target::kTflm), "operator");
  EXPECT_NE(elsewhere.remedy.find("--target micro"), std::string::npos) << elsewhere.remedy;
  const Refusal room = refusal_of(poses(4).assessed(Target::kMicro), "declared-shapes");
  EXPECT_NE(room.reason.find("room for 136 numbers"), std::string::npos) << room.reason;
  EXPECT_NE(room.reason.find("up to 170 for 5 people"), std::string::npos) << room.reason;
}

// Coral's driver would do these wrongly without an error.
TEST(MicroAssess, EdgeTpuOperatorsThatCoralsSdkFeedsWrongly) {
  HandMade two;
  const std::int32_t a = two.tensor(DataType::kUInt8, {1, 4}), b = two.tensor(DataType::kUInt8, {1, 4});
  const std::int32_t y = two.tensor(DataType::kUInt8, {1, 4});
  two.op("edgetpu-custom-op", {a, b}, {y});
  two.graph().inputs = {a, b};
  two.graph().outputs = {y};
  EXPECT_TRUE(has_rule(two.assessed(Target::kMicro), "edge-tpu-inputs"));

  HandMade again;
  const std::int32_t x = again.tensor(DataType::kInt8, {1, 4}), z = again.tensor(DataType::kInt8, {1, 4});
  const std::int32_t sum = again.tensor(DataType::kInt8, {1, 4});
  again.op("edgetpu-custom-op", {x}, {z});
  again.op("ADD", {x, z}, {sum}, 0);
  again.graph().inputs = {x};
  again.graph().outputs = {sum};
  EXPECT_TRUE(has_rule(again.assessed(Target::kMicro), "edge-tpu-input-read-again"));
  // Without an Edge TPU there is nobody to register it.
  EXPECT_TRUE(has_rule(again.assessed(Target::kTflm), "operator"));
}

TEST(MicroAssess, OtherNumbersAreRefused) {
  HandMade made;
  const std::int32_t x = made.tensor(DataType::kInt8, {1, 4}, 0.5F), y = made.tensor(DataType::kInt8, {1, 4}, 0.25F);
  made.op("RELU6", {x}, {y}, 21);
  made.graph().inputs = {x};
  made.graph().outputs = {y};
  EXPECT_TRUE(has_rule(made.assessed(Target::kTflm), "relu6-scales"));
  made.graph().tensors[at(y)].quantization.scale = {0.5F};
  EXPECT_TRUE(made.assessed(Target::kTflm).is_accepted());
}

// Kernels that round otherwise are no refusal, but said: per tensor as in 2.9, per channel in a way of their own.
TEST(MicroAssess, OtherLastBitsAreSaid) {
  for (const bool per_channel : {false, true}) {
    HandMade made;
    const std::int32_t x = made.tensor(DataType::kInt8, {1, 2}), w = made.tensor(DataType::kInt8, {2, 2});
    const std::int32_t b = made.tensor(DataType::kInt32, {2}), y = made.tensor(DataType::kInt8, {1, 2});
    made.graph().tensors[at(w)].buffer = made.constant({1, 2, 3, 4});
    made.graph().tensors[at(b)].buffer = made.constant({1, 0, 0, 0, 1, 0, 0, 0});
    if (per_channel) {
      made.graph().tensors[at(w)].quantization.scale = {0.5F, 0.25F};
      made.graph().tensors[at(w)].quantization.zero_point = {0, 0};
    }
    made.op("FULLY_CONNECTED", {x, w, b}, {y}, kFullyConnected);
    made.graph().inputs = {x};
    made.graph().outputs = {y};
    const Assessment assessment = made.assessed(Target::kTflm);
    ASSERT_TRUE(assessment.is_accepted());
    ASSERT_EQ(assessment.rounding.size(), 1u);
    EXPECT_EQ(assessment.rounding[0].as, per_channel ? "own" : "2.9");
    ASSERT_EQ(assessment.notes.size(), 1u);
    EXPECT_NE(assessment.notes[0].find("Dense layers"), std::string::npos);
  }
}

TEST(MicroAssess, SoftmaxOfSixteenBitsHasOtherLastBits) {
  for (const DataType type : {DataType::kInt8, DataType::kInt16}) {
    HandMade made;
    const std::int32_t x = made.tensor(type, {1, 6}), y = made.tensor(type, {1, 6});
    made.op("SOFTMAX", {x}, {y}, 25);
    made.graph().inputs = {x};
    made.graph().outputs = {y};
    const Assessment assessment = made.assessed(Target::kTflm);
    EXPECT_EQ(assessment.rounding.size(), type == DataType::kInt16 ? 1u : 0u);
  }
}

TEST(MicroAssess, AnInputWithAValueInTheFileIsToBeLeftAlone) {
  HandMade made;
  const std::int32_t x = made.tensor(DataType::kInt8, {1, 4}), axis = made.tensor(DataType::kInt32, {});
  const std::int32_t y = made.tensor(DataType::kInt8, {1, 2}), z = made.tensor(DataType::kInt8, {1, 2});
  made.graph().tensors[at(axis)].buffer = made.constant({1, 0, 0, 0});
  made.op("SPLIT", {axis, x}, {y, z}, 49);
  made.graph().inputs = {axis, x};
  made.graph().outputs = {y, z};
  const Assessment assessment = made.assessed(Target::kTflm);
  EXPECT_TRUE(assessment.is_accepted());
  ASSERT_EQ(assessment.notes.size(), 1u);
  EXPECT_NE(assessment.notes[0].find("'t1' has a value in the file"), std::string::npos) << assessment.notes[0];
}

}  // namespace
}  // namespace reef::micro
