// SPDX-License-Identifier: Apache-2.0
#include "formats/onnx/reader.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>

namespace reef::onnx {
namespace {

// Writes messages as the encoding's documentation has them.
class Message {
 public:
  Message& number(int field, std::uint64_t value) {
    varint(static_cast<std::uint64_t>(field) << 3);
    varint(value);
    return *this;
  }
  Message& bytes(int field, const std::string& value) {
    varint((static_cast<std::uint64_t>(field) << 3) | 2);
    varint(value.size());
    text_ += value;
    return *this;
  }
  Message& message(int field, const Message& value) { return bytes(field, value.text_); }
  const std::string& text() const { return text_; }

 private:
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) text_ += static_cast<char>(value | 0x80);
    text_ += static_cast<char>(value);
  }
  std::string text_;
};

std::string float_bytes(std::initializer_list<float> values) {
  std::string text(values.size() * 4, '\0');
  std::memcpy(text.data(), std::data(values), text.size());
  return text;
}

Message tensor(const std::string& name, std::initializer_list<int> dims) {
  Message t;
  for (const int dim : dims) t.number(1, static_cast<std::uint64_t>(dim));
  return t.number(2, 1).bytes(8, name);
}

std::string model_with(const Message& initializer) {
  Message node;
  node.bytes(1, "x").bytes(1, "w").bytes(2, "y").bytes(3, "sum").bytes(4, "Add");
  Message shape, type, info, graph, opset, model;
  shape.message(1, Message().number(1, 1)).message(1, Message().bytes(2, "n"));
  type.message(1, Message().number(1, 1).message(2, shape));
  info.bytes(1, "x").message(2, type);
  graph.message(1, node).bytes(2, "g").message(5, initializer).message(11, info).message(12, Message().bytes(1, "y"));
  opset.number(2, 17);
  return model.number(1, 8).bytes(2, "test").message(7, graph).message(8, opset).text();
}

Bytes as_bytes(const std::string& text) { return Bytes(std::vector<std::uint8_t>(text.begin(), text.end())); }

TEST(OnnxReader, ReadsAModel) {
  const std::string file = model_with(tensor("w", {2}).bytes(9, float_bytes({1.5f, -2})));
  const auto model = read_model(as_bytes(file));
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_TRUE(looks_like_onnx(as_bytes(file).span()));
  EXPECT_EQ(model->ir_version, 8);
  EXPECT_EQ(model->producer, "test");
  EXPECT_EQ(model->opset(""), 17);
  EXPECT_EQ(model->opset("ai.onnx"), 17);
  ASSERT_EQ(model->graph.nodes.size(), 1u);
  EXPECT_EQ(model->graph.nodes[0].op_type, "Add");
  EXPECT_EQ(model->graph.nodes[0].inputs, (std::vector<std::string>{"x", "w"}));
  ASSERT_EQ(model->graph.inputs[0].dims.size(), 2u);
  EXPECT_EQ(model->graph.inputs[0].dims[0].size, 1);
  EXPECT_EQ(model->graph.inputs[0].dims[1].size, -1);
  EXPECT_EQ(model->graph.inputs[0].dims[1].symbol, "n");
  EXPECT_EQ(model->graph.initializers[0].data, as_bytes(float_bytes({1.5f, -2})));
}

TEST(OnnxReader, TypedFieldsBecomeDenseBytes) {
  const std::string expected = float_bytes({3, 4});
  const auto packed = read_tensor(as_bytes(tensor("t", {2}).bytes(4, expected).text()));
  ASSERT_TRUE(packed.ok());
  EXPECT_EQ(packed->data, as_bytes(expected));
  // int32_data serves narrow types; negative numbers take ten bytes.
  Message narrow;
  narrow.number(1, 2).number(2, 3).number(5, 7).number(5, static_cast<std::uint64_t>(-2));
  const auto bytes = read_tensor(as_bytes(narrow.text()));
  ASSERT_TRUE(bytes.ok());
  EXPECT_EQ(bytes->data, Bytes(std::vector<std::uint8_t>{7, 0xfe}));
}

TEST(OnnxReader, SizesMustFit) {
  EXPECT_FALSE(read_tensor(as_bytes(tensor("t", {3}).bytes(9, float_bytes({1})).text())).ok());
  Message huge;
  huge.number(1, std::uint64_t{1} << 40).number(2, 1).bytes(8, "t");
  EXPECT_FALSE(read_tensor(as_bytes(huge.text())).ok());
  EXPECT_FALSE(read_model(as_bytes("")).ok());
  EXPECT_FALSE(read_model(as_bytes("not a model at all")).ok());
}

TEST(OnnxReader, EveryTruncationIsAnErrorOrAModel) {
  const std::string file = model_with(tensor("w", {2}).bytes(9, float_bytes({1.5f, -2})));
  for (std::size_t size = 0; size < file.size(); ++size) (void)read_model(as_bytes(file.substr(0, size)));
  for (std::size_t i = 0; i < file.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = file;
      damaged[i] = static_cast<char>(damaged[i] ^ (1 << bit));
      (void)read_model(as_bytes(damaged));
    }
  }
}

TEST(OnnxReader, DeepNestingIsRefused) {
  Message graph;
  for (int i = 0; i < 200; ++i) {
    Message attribute, node, outer;
    attribute.bytes(1, "body").message(6, graph);
    node.bytes(4, "Loop").message(5, attribute);
    outer.message(1, node);
    graph = outer;
  }
  const auto model = read_model(as_bytes(Message().number(1, 8).message(7, graph).text()));
  ASSERT_FALSE(model.ok());
  EXPECT_NE(model.status().message().find("nested"), std::string::npos);
}

class ExternalData : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / fmt::format("reef_onnx_{}", ::getpid());
    std::filesystem::create_directories(folder_ / "model");
    write("model/weights.bin", "xxxx" + float_bytes({5, 6}));
    write("outside.bin", float_bytes({5, 6}));
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  void write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name, std::ios::binary) << text;
  }
  Result<Model> load(const std::string& location, const std::string& offset) {
    Message t = tensor("w", {2});
    t.message(13, Message().bytes(1, "location").bytes(2, location));
    t.message(13, Message().bytes(1, "offset").bytes(2, offset));
    t.number(14, 1);
    write("model/m.onnx", model_with(t));
    return load_model((folder_ / "model" / "m.onnx").string());
  }
  std::filesystem::path folder_;
};

TEST_F(ExternalData, IsReadFromTheModelsFolder) {
  const auto model = load("weights.bin", "4");
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_EQ(model->graph.initializers[0].data, as_bytes(float_bytes({5, 6})));
}

TEST_F(ExternalData, IsNotReadFromElsewhereOrBeyondTheEnd) {
  EXPECT_FALSE(load("../outside.bin", "0").ok());
  EXPECT_FALSE(load((folder_ / "outside.bin").string(), "0").ok());
  std::filesystem::create_symlink(folder_ / "outside.bin", folder_ / "model" / "link.bin");
  EXPECT_FALSE(load("link.bin", "0").ok());
  EXPECT_FALSE(load("weights.bin", "8").ok());
  EXPECT_FALSE(load("weights.bin", "999999999999999999").ok());
  EXPECT_FALSE(load("weights.bin", "-1").ok());
  EXPECT_FALSE(load("missing.bin", "0").ok());
}

}  // namespace
}  // namespace reef::onnx
