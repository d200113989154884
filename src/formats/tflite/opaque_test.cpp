// SPDX-License-Identifier: Apache-2.0
#include "formats/tflite/opaque.h"

#include <gtest/gtest.h>

#include "formats/tflite/schema_generated.h"
#include "formats/tflite/test_models.h"

namespace reef::tflite {
namespace {

namespace fb = tflite_schema;
using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;
using flatbuffers::Table;
using flatbuffers::Vector;
using testing::must_read;
using testing::must_write;

constexpr flatbuffers::voffset_t slot(int id) { return static_cast<flatbuffers::voffset_t>(4 + 2 * id); }
constexpr int kNewType = 200;

// A table that no schema describes: numbers, a string, vectors, a nested table and a vector of tables.
Offset<void> write_future_table(FlatBufferBuilder& b) {
  const auto text = b.CreateString("from the future");
  const auto numbers = b.CreateVector(std::vector<std::int64_t>{1, -2, std::int64_t{1} << 50});
  const auto inner_text = b.CreateString("nested");
  auto start = b.StartTable();
  b.AddOffset(slot(0), inner_text);
  b.AddElement<double>(slot(1), 2.5);
  const Offset<void> nested = b.EndTable(start);
  std::vector<Offset<Table>> rows;
  for (int i = 0; i < 3; ++i) {
    const auto row_text = b.CreateString("row " + std::to_string(i));
    start = b.StartTable();
    b.AddOffset(slot(0), row_text);
    rows.emplace_back(b.EndTable(start));
  }
  const auto list = b.CreateVector(rows);
  start = b.StartTable();
  b.AddElement<std::int32_t>(slot(0), 8);  // small numbers that could be offsets
  b.AddElement<std::int32_t>(slot(1), 4096);
  b.AddOffset(slot(2), text);
  b.AddOffset(slot(3), numbers);
  b.AddOffset(slot(4), nested);
  b.AddOffset(slot(5), list);
  b.AddElement<std::uint8_t>(slot(6), 9);
  return b.EndTable(start);
}

void expect_future_table(const void* table) {
  ASSERT_NE(table, nullptr);
  const auto& t = *static_cast<const Table*>(table);
  EXPECT_EQ(t.GetField<std::int32_t>(slot(0), 0), 8);
  EXPECT_EQ(t.GetField<std::int32_t>(slot(1), 0), 4096);
  EXPECT_EQ(t.GetPointer<const flatbuffers::String*>(slot(2))->str(), "from the future");
  const auto* numbers = t.GetPointer<const Vector<std::int64_t>*>(slot(3));
  ASSERT_EQ(numbers->size(), 3u);
  EXPECT_EQ(numbers->Get(2), std::int64_t{1} << 50);
  const auto* nested = t.GetPointer<const Table*>(slot(4));
  EXPECT_EQ(nested->GetPointer<const flatbuffers::String*>(slot(0))->str(), "nested");
  EXPECT_EQ(nested->GetField<double>(slot(1), 0), 2.5);
  const auto* rows = t.GetPointer<const Vector<Offset<Table>>*>(slot(5));
  ASSERT_EQ(rows->size(), 3u);
  for (std::uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(rows->Get(i)->GetPointer<const flatbuffers::String*>(slot(0))->str(), "row " + std::to_string(i));
  }
  EXPECT_EQ(t.GetField<std::uint8_t>(slot(6), 0), 9);
}

struct FutureFile {
  FlatBufferBuilder b;
  // Weights first, so that shared vtables end up behind them, far from the tables that use them.
  explicit FutureFile(std::size_t weight_bytes) {
    const auto start = b.StartTable();
    b.AddOffset(slot(0), Offset<void>(0));
    b.EndTable(start);
    const auto row_text = b.CreateString("same layout as a row");
    const auto same_layout = b.StartTable();
    b.AddOffset(slot(0), row_text);
    b.EndTable(same_layout);
    b.ForceVectorAlignment(weight_bytes, 1, 16);
    const auto data = b.CreateVector(std::vector<std::uint8_t>(weight_bytes, 0x08));
    buffers_.push_back(fb::CreateBuffer(b, data));
  }
  std::vector<std::uint8_t> finish(Offset<fb::Operator> op, Offset<fb::Tensor> tensor = 0) {
    const auto code = fb::CreateOperatorCode(b, 127, 0, 1, static_cast<fb::BuiltinOperator>(250));
    const auto codes = b.CreateVector(&code, 1);
    const auto ops = b.CreateVector(&op, op.IsNull() ? 0 : 1);
    const auto tensors = b.CreateVector(&tensor, tensor.IsNull() ? 0 : 1);
    const auto subgraph = fb::CreateSubGraph(b, tensors, 0, 0, ops);
    const auto subgraphs = b.CreateVector(&subgraph, 1);
    const auto all_buffers = b.CreateVector(buffers_);
    b.Finish(fb::CreateModel(b, 3, codes, subgraphs, 0, all_buffers), fb::ModelIdentifier());
    return {b.GetBufferPointer(), b.GetBufferPointer() + b.GetSize()};
  }
  std::vector<Offset<fb::Buffer>> buffers_;
};

const fb::Operator* first_op(const std::vector<std::uint8_t>& file) {
  return fb::GetModel(file.data())->subgraphs()->Get(0)->operators()->Get(0);
}

class OpaqueOptions : public ::testing::TestWithParam<int> {};  // bytes of weights in the file

TEST_P(OpaqueOptions, UnknownUnionMembersSurvive) {
  FutureFile future(static_cast<std::size_t>(GetParam()));
  const auto options = write_future_table(future.b);
  const auto options_2 = write_future_table(future.b);
  fb::OperatorBuilder op(future.b);
  op.add_builtin_options_type(static_cast<fb::BuiltinOptions>(kNewType));
  op.add_builtin_options(options);
  op.add_builtin_options_2_type(static_cast<fb::BuiltinOptions2>(kNewType));
  op.add_builtin_options_2(options_2);
  const auto file = future.finish(op.Finish());
  expect_future_table(first_op(file)->builtin_options());

  std::vector<std::string> notes;
  const ir::Model model = must_read(file, &notes);
  EXPECT_TRUE(notes.empty()) << notes[0];
  const ir::Operator& read = model.subgraphs.at(0).operators.at(0);
  EXPECT_EQ(read.type, "BUILTIN_250");
  ASSERT_TRUE(read.opaque_options.has_value());
  EXPECT_EQ(read.opaque_options->union_type, kNewType);
  EXPECT_LT(read.opaque_options->bytes.size(), 8192u);
  testing::expect_round_trip(model);

  const auto saved = must_write(model);
  EXPECT_EQ(static_cast<int>(first_op(saved)->builtin_options_type()), kNewType);
  expect_future_table(first_op(saved)->builtin_options());
  expect_future_table(first_op(saved)->builtin_options_2());
}

INSTANTIATE_TEST_SUITE_P(Weights, OpaqueOptions, ::testing::Values(4, 1000, 40000, 3000000));

TEST(Opaque, KnownOptionsWithNewerFieldsSurvive) {
  FutureFile future(64);
  const auto text = future.b.CreateString("new attribute");
  const auto start = future.b.StartTable();
  future.b.AddElement<std::int32_t>(fb::Conv2DOptions::VT_STRIDE_W, 2);
  future.b.AddOffset(fb::Conv2DOptions::VT_QUANTIZED_BIAS_TYPE + 2, text);
  const Offset<void> options = future.b.EndTable(start);
  fb::OperatorBuilder op(future.b);
  op.add_builtin_options_type(fb::BuiltinOptions::Conv2DOptions);
  op.add_builtin_options(options);
  const ir::Model model = must_read(future.finish(op.Finish()));
  EXPECT_TRUE(model.subgraphs.at(0).operators.at(0).opaque_options.has_value());
  testing::expect_round_trip(model);
  const auto saved = must_write(model);
  const auto* conv = first_op(saved)->builtin_options_as_Conv2DOptions();
  EXPECT_EQ(conv->stride_w(), 2);
  const auto* table = reinterpret_cast<const Table*>(conv);
  EXPECT_EQ(table->GetPointer<const flatbuffers::String*>(fb::Conv2DOptions::VT_QUANTIZED_BIAS_TYPE + 2)->str(),
            "new attribute");
}

TEST(Opaque, MembersOfBothUnionsAtOnceSurvive) {
  FutureFile future(64);
  const auto first = fb::CreateAddOptions(future.b, fb::ActivationFunctionType::RELU);
  const auto second = fb::CreateStablehloIotaOptions(future.b, 3);
  fb::OperatorBuilder op(future.b);
  op.add_builtin_options_type(fb::BuiltinOptions::AddOptions);
  op.add_builtin_options(first.Union());
  op.add_builtin_options_2_type(fb::BuiltinOptions2::StablehloIotaOptions);
  op.add_builtin_options_2(second.Union());
  const ir::Model model = must_read(future.finish(op.Finish()));
  EXPECT_EQ(model.subgraphs.at(0).operators.at(0).options_type, "AddOptions");
  testing::expect_round_trip(model);
  const auto saved = must_write(model);
  EXPECT_EQ(first_op(saved)->builtin_options_2_as_StablehloIotaOptions()->iota_dimension(), 3);
}

TEST(Opaque, QuantizationDetailsSurvive) {
  FutureFile future(64);
  const auto details = write_future_table(future.b);
  const auto quantization =
      fb::CreateQuantizationParameters(future.b, 0, 0, 0, 0, static_cast<fb::QuantizationDetails>(kNewType), details);
  const auto tensor = fb::CreateTensor(future.b, 0, fb::TensorType::INT8, 0, 0, quantization);
  const ir::Model model = must_read(future.finish(0, tensor));
  testing::expect_round_trip(model);
  const auto saved = must_write(model);
  expect_future_table(fb::GetModel(saved.data())->subgraphs()->Get(0)->tensors()->Get(0)->quantization()->details());
}

TEST(Opaque, DamagedTablesAreRefused) {
  const Bytes file(std::vector<std::uint8_t>(64, 0x7f));
  OpaqueFinder finder;
  for (std::uint64_t position = 0; position <= 64; ++position) {
    EXPECT_EQ(finder.cut(file, position, 1).status().code(), StatusCode::kInvalidInput);
  }
}

TEST(Opaque, AreAddedAtAnyPhase) {
  for (std::uint32_t phase = 0; phase < 16; phase += 4) {
    // An 8-byte vtable of a table with one int, then the table.
    const std::vector<std::uint8_t> bytes = {6, 0, 8, 0, 4, 0, 0, 0, 8, 0, 0, 0, 42, 0, 0, 0};
    ir::Model model = testing::make_small_model();
    ir::Operator& op = model.subgraphs[0].operators[0];
    op.options_type.clear();
    op.attributes = {};
    op.opaque_options = ir::OpaqueTable{kNewType, Bytes(bytes), 8, phase};
    const auto file = must_write(model);
    const auto* table = static_cast<const Table*>(first_op(file)->builtin_options());
    EXPECT_EQ(table->GetField<std::int32_t>(slot(0), 0), 42);
    EXPECT_EQ((reinterpret_cast<const std::uint8_t*>(table) - file.data()) % 16, (phase + 8) % 16);
    testing::expect_round_trip(must_read(file));
  }
}

}  // namespace
}  // namespace reef::tflite
