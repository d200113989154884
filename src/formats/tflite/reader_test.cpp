// SPDX-License-Identifier: Apache-2.0
#include "formats/tflite/reader.h"

#include <cstdio>
#include <filesystem>
#include <random>

#include <gtest/gtest.h>

#include "formats/tflite/schema_generated.h"
#include "formats/tflite/test_models.h"
#include "ir/verify.h"

namespace reef::tflite {
namespace {

namespace fb = tflite_schema;
using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;
using testing::make_full_model;
using testing::make_small_model;
using testing::must_read;
using testing::must_write;
using testing::read_error;

std::vector<std::uint8_t> bytes_of(std::string_view text) { return {text.begin(), text.end()}; }

std::vector<std::uint8_t> finished(FlatBufferBuilder& builder, Offset<fb::Model> root) {
  builder.Finish(root, fb::ModelIdentifier());
  return {builder.GetBufferPointer(), builder.GetBufferPointer() + builder.GetSize()};
}

TEST(TfliteReader, SaysWhatAForeignFileIs) {
  const auto expect = [](std::string_view content, std::string_view part) {
    EXPECT_NE(read_error(bytes_of(content)).message().find(part), std::string::npos)
        << read_error(bytes_of(content)).message();
  };
  expect("", "empty");
  expect("abc", "too few");
  expect("0123456789abcdef", "'TFL3' at byte 4 is missing");
  expect("PK\x03\x04 and so on", "zip");
  expect("\x1f\x8b\x08 and so on", "gzip");
  expect("\n<!DOCTYPE html><html>", "web page");
  expect("version https://git-lfs.github.com/spec/v1\noid", "git lfs pull");
  expect("\x08\x07\x12\x07pytorch", "ONNX");
  expect(std::string_view("\x1c\0\0\0DWN1 and so on", 18), "Edge TPU executable");
  expect(std::string_view("\x10\0\0\0\x1c\0\0\0TFL3....", 16), "4 bytes too many");
  expect(std::string_view("\x1c\x10\0\0TFL3....", 12), "cut short");
}

TEST(TfliteReader, EveryPrefixOfAModelIsRefusedOrRead) {
  const auto file = must_write(make_full_model());
  for (std::size_t size = 0; size < file.size(); ++size) {
    // Data behind the FlatBuffers part ends the file, so every cut is noticed.
    EXPECT_FALSE(read_error({file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size)}).ok()) << size;
  }
  const auto small = must_write(make_small_model());
  for (std::size_t size = 0; size < small.size(); ++size) {
    (void)read_error({small.begin(), small.begin() + static_cast<std::ptrdiff_t>(size)});
  }
}

TEST(TfliteReader, DamagedModelsAreReadOrRefusedButNeverTrusted) {
  const auto original = must_write(make_full_model());
  std::mt19937 random(1);
  int read = 0;
  for (int round = 0; round < 20000; ++round) {
    auto file = original;
    const int flips = 1 + static_cast<int>(random() % 4);
    for (int i = 0; i < flips; ++i) file[random() % file.size()] ^= static_cast<std::uint8_t>(1u << random() % 8);
    const auto model = read_model(Bytes(file));
    if (!model.ok()) continue;
    ++read;
    (void)ir::verify(*model);
    const auto again = write_model(*model);
    if (!again.ok()) continue;
    const auto reread = read_model(Bytes(*again));
    ASSERT_TRUE(reread.ok()) << reread.status().message();
    EXPECT_TRUE(*reread == *model);
  }
  EXPECT_GT(read, 1000);
  EXPECT_LT(read, 20000);
}

TEST(TfliteReader, WeightsAreSlicesOfTheFile) {
  const Bytes file(must_write(make_full_model()));
  const auto model = read_model(file);
  ASSERT_TRUE(model.ok());
  for (const int index : {1, 2}) {
    const std::uint8_t* data = model->buffers[at(index)].data.data();
    EXPECT_TRUE(data > file.data() && data < file.data() + file.size());
  }
}

TEST(TfliteReader, FilesMayStartAtOddAddresses) {
  std::vector<std::uint8_t> file = must_write(make_full_model());
  const std::size_t size = file.size();
  file.insert(file.begin(), 0);
  const auto model = read_model(Bytes(file).slice(1, size));
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_TRUE(*model == make_full_model());
}

TEST(TfliteReader, MisalignedContentIsRefused) {
  auto file = must_write(make_small_model());
  // Two bytes in front of everything but the header.
  file.insert(file.begin() + 8, 2, 0);
  file[0] = static_cast<std::uint8_t>(file[0] + 2);
  EXPECT_EQ(read_error(file).code(), StatusCode::kInvalidInput);
}

TEST(TfliteReader, TheLargerOfTheTwoOperatorCodesCounts) {
  for (const auto& [old_code, new_code, type] : {std::tuple{3, 0, "CONV_2D"}, std::tuple{127, 203, "DILATE"},
                                                 std::tuple{3, 3, "CONV_2D"}, std::tuple{127, 251, "BUILTIN_251"}}) {
    FlatBufferBuilder b;
    const auto code =
        fb::CreateOperatorCode(b, static_cast<std::int8_t>(old_code), 0, 1, static_cast<fb::BuiltinOperator>(new_code));
    const auto codes = b.CreateVector(&code, 1);
    const auto op = fb::CreateOperator(b, 0);
    const auto ops = b.CreateVector(&op, 1);
    const auto subgraph = fb::CreateSubGraph(b, 0, 0, 0, ops);
    const auto subgraphs = b.CreateVector(&subgraph, 1);
    const ir::Model model = must_read(finished(b, fb::CreateModel(b, 3, codes, subgraphs)));
    EXPECT_EQ(model.subgraphs.at(0).operators.at(0).type, type);
    testing::expect_round_trip(model);
  }
}

TEST(TfliteReader, IndicesIntoNothingAreErrors) {
  FlatBufferBuilder b;
  const auto op = fb::CreateOperator(b, 5);
  const auto ops = b.CreateVector(&op, 1);
  const auto subgraph = fb::CreateSubGraph(b, 0, 0, 0, ops);
  const auto subgraphs = b.CreateVector(&subgraph, 1);
  const Status status = read_error(finished(b, fb::CreateModel(b, 3, 0, subgraphs)));
  EXPECT_NE(status.message().find("subgraph 0, op 0: it refers to operator code 5"), std::string::npos);

  for (const std::uint64_t offset : {std::uint64_t{1} << 20, ~std::uint64_t{0}, std::uint64_t{16}}) {
    FlatBufferBuilder c;
    const auto buffer = fb::CreateBuffer(c, 0, offset, ~std::uint64_t{0} - 8);
    const auto buffers = c.CreateVector(&buffer, 1);
    const Status range = read_error(finished(c, fb::CreateModel(c, 3, 0, 0, 0, buffers)));
    EXPECT_NE(range.message().find("buffer 0"), std::string::npos) << range.message();
  }
}

TEST(TfliteReader, ASmallFileCannotDescribeAHugeModel) {
  FlatBufferBuilder b;
  const auto shape = b.CreateVector(std::vector<std::int32_t>(10000, 1));
  const auto tensor = fb::CreateTensor(b, shape);
  const auto tensors = b.CreateVector(std::vector<Offset<fb::Tensor>>(1000, tensor));
  const auto subgraph = fb::CreateSubGraph(b, tensors);
  const auto subgraphs = b.CreateVector(std::vector<Offset<fb::SubGraph>>(500, subgraph));
  const auto file = finished(b, fb::CreateModel(b, 3, 0, subgraphs));  // would be 20 GB of shapes
  EXPECT_EQ(read_error(file).code(), StatusCode::kResourceExhausted);

  FlatBufferBuilder c;
  const auto data = c.CreateVector(std::vector<std::uint8_t>(100000, 1));
  const auto buffer = fb::CreateBuffer(c, data);
  const auto buffers = c.CreateVector(std::vector<Offset<fb::Buffer>>(100000, buffer));
  EXPECT_EQ(read_error(finished(c, fb::CreateModel(c, 3, 0, 0, 0, buffers))).code(), StatusCode::kResourceExhausted);
}

TEST(TfliteReader, NotesTellWhatSavingWouldLose) {
  FlatBufferBuilder b;
  const auto start = b.StartTable();
  b.AddElement<std::int32_t>(fb::Tensor::VT_EXTERNAL_BUFFER + 2, 42);  // the next slot after those of the schema
  const Offset<fb::Tensor> newer = b.EndTable(start);
  const auto plain = fb::CreateTensor(b);
  const auto tensors = b.CreateVector(std::vector<Offset<fb::Tensor>>{plain, newer, newer});
  const auto subgraph = fb::CreateSubGraph(b, tensors);
  const auto subgraphs = b.CreateVector(&subgraph, 1);
  std::vector<std::string> notes;
  must_read(finished(b, fb::CreateModel(b, 3, 0, subgraphs)), &notes);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_EQ(
      notes[0],
      "2 Tensor table(s), first at subgraph 0, tensor 1, have fields newer than this version knows; those are not "
      "kept when saving");
  must_read(must_write(make_full_model()), &notes);
  EXPECT_TRUE(notes.empty());
}

TEST(TfliteReader, LoadAndSaveGoThroughFiles) {
  const std::string path = (std::filesystem::temp_directory_path() / "reef_reader_test.tflite").string();
  ASSERT_TRUE(save_model(make_small_model(), path).ok());
  const auto model = load_model(path);
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_TRUE(*model == make_small_model());
  std::filesystem::resize_file(path, 40);
  EXPECT_NE(load_model(path).status().message().find(path), std::string::npos);
  std::filesystem::resize_file(path, std::uintmax_t{3} << 30);  // sparse: takes no room
  EXPECT_NE(load_model(path).status().message().find("2 GiB"), std::string::npos);
  std::filesystem::remove(path);
  EXPECT_EQ(load_model(path).status().code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace reef::tflite
