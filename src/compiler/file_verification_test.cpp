// SPDX-License-Identifier: Apache-2.0
// What only a run of the whole file shows.
#include "compiler/file_verification.h"

#include <filesystem>

#include <unistd.h>

#include <gtest/gtest.h>

#include "base/file.h"
#include "compiler/compile.h"
#include "formats/darwinn/reader.h"
#include "formats/tflite/reader.h"
#include "formats/tflite/writer.h"
#include "quantized_model.h"

namespace reef::compiler {
namespace {

namespace fs = std::filesystem;
using testing::QuantizedModel;

class FileVerification : public ::testing::Test {
 protected:
  FileVerification() : folder_(fs::temp_directory_path() / ("reef_file_verification_" + std::to_string(::getpid()))) {
    fs::create_directories(folder_);
  }
  ~FileVerification() override { fs::remove_all(folder_); }

  CompiledFile compiled(const ir::Model& model) {
    CompileOptions options;
    options.models = {(folder_ / "net.tflite").string()};
    const Status saved = tflite::save_model(model, options.models[0]);
    EXPECT_TRUE(saved.ok()) << saved.message();
    options.out_dir = folder_.string();
    options.plan.rewrites.none = true;
    options.verify = Verify::kAlways;
    const CompileResult result = compile(options);
    EXPECT_TRUE(result.ok()) << result.refusals[0].explanation;
    return result.ok() ? result.runs[0].files[0] : CompiledFile();
  }
  static FileToVerify of(const CompiledFile& file, const ir::Model& written) {
    FileToVerify result;
    result.data = Bytes(tflite::write_model(written).value());
    result.model = file.plan.model;
    for (const CompiledOp& op : file.ops) result.parts.push_back({op.part.ops, op.part.inputs, op.part.outputs});
    return result;
  }

  fs::path folder_;
};

// A convolution for the chip, then an operator with a constant that stays on the CPU.
ir::Model with_cpu_tail() {
  QuantizedModel model;
  const std::int32_t x = model.dequantize(model.conv(model.input({1, 8, 8, 8}), 8, 3));
  std::vector<float> two(8, 2.0f);
  std::vector<std::uint8_t> bytes(reinterpret_cast<const std::uint8_t*>(two.data()),
                                  reinterpret_cast<const std::uint8_t*>(two.data() + two.size()));
  const std::int32_t factor = model.constant_bytes(bytes, {8}, ir::DataType::kFloat32);
  const std::int32_t y = model.computed_plain({1, 8, 8, 8}, ir::DataType::kFloat32, "y");
  return model.finish({model.op("MUL", {x, factor}, {y}, "MulOptions")});
}

TEST_F(FileVerification, ReportsWhatWasCompared) {
  const CompiledFile file = compiled(with_cpu_tail());
  ASSERT_EQ(file.ops.size(), 1u);
  EXPECT_TRUE(file.verified.done) << file.verified.why_not;
  EXPECT_EQ(file.verified.comparison.outputs, 1);
  EXPECT_EQ(file.verified.comparison.values, 8 * 8 * 8);
}

// Words of a text: inputs that select rows of a table must be rows that it has, else nothing can be compared.
TEST_F(FileVerification, InputsThatSelectRowsAreRows) {
  for (const ir::DataType type : {ir::DataType::kInt32, ir::DataType::kInt64}) {
    QuantizedModel model;
    const std::int32_t words = model.float_input({1, 16}, "words"), table = model.weights({20, 8});
    model.tensor(words).type = type;
    const std::int32_t rows = model.computed({1, 16, 8}, {}, "rows");
    model.tensor(rows).type = model.tensor(table).type;
    model.tensor(rows).quantization = model.tensor(table).quantization;
    ir::Attributes attributes;
    attributes.set("axis", std::int64_t{0});
    model.op("GATHER", {table, words}, {rows}, "GatherOptions", attributes);
    const CompiledFile file = compiled(model.finish({model.conv(model.reshape(rows, {1, 4, 4, 8}), 8, 3)}));
    EXPECT_TRUE(file.verified.done) << file.verified.why_not;
    EXPECT_TRUE(file.verified.comparison.is_whole) << file.verified.comparison.why_not_whole;
    EXPECT_EQ(file.verified.comparison.values, 4 * 4 * 8);
  }
}

// Code and package are right: only the file as a whole is not.
TEST_F(FileVerification, AWrongConstantOutsideOfTheChipIsFound) {
  const CompiledFile file = compiled(with_cpu_tail());
  auto written = tflite::load_model(file.output);
  ASSERT_TRUE(written.ok());
  FileVerifier right;
  ASSERT_TRUE(right.add(of(file, *written)).ok());
  const auto same = right.run(0, 1);
  ASSERT_TRUE(same.ok()) << same.status().message();
  EXPECT_TRUE(same->is_whole);
  const ir::Operator& last = written->subgraphs[0].operators.back();
  ASSERT_EQ(last.type, "MUL");
  const ir::Tensor& factor = written->subgraphs[0].tensors[at(last.inputs[1])];
  ir::Buffer& buffer = written->buffers[at(factor.buffer)];
  std::vector<std::uint8_t> bytes(buffer.data.span().begin(), buffer.data.span().end());
  bytes.at(3) ^= 0x40;
  buffer.data = Bytes(std::move(bytes));
  FileVerifier wrong;
  ASSERT_TRUE(wrong.add(of(file, *written)).ok());
  const auto different = wrong.run(0, 1);
  ASSERT_FALSE(different.ok());
  EXPECT_NE(different.status().message().find("the compiled file does not compute what the model says"),
            std::string::npos)
      << different.status().message();
}

TEST_F(FileVerification, AFileThatARuntimeCannotPrepareIsFound) {
  const CompiledFile file = compiled(with_cpu_tail());
  auto written = tflite::load_model(file.output);
  ASSERT_TRUE(written.ok());
  for (ir::Tensor& tensor : written->subgraphs[0].tensors) {
    if (tensor.name == written->subgraphs[0].tensors[at(written->subgraphs[0].inputs[0])].name) {
      tensor.shape = {1, 8, 8, 4};
    }
  }
  FileVerifier verifier;
  EXPECT_FALSE(verifier.add(of(file, *written)).ok());
}

// The CPU runtime does not know the operator behind the chip's part.
TEST_F(FileVerification, WhatWasNotRunWholeIsNotCalledVerified) {
  QuantizedModel model;
  const std::int32_t x = model.conv(model.input({1, 8, 8, 8}), 8, 3);
  const std::int32_t y = model.computed({1, 8, 8, 8}, {}, "y");
  model.op("SomebodysOwnOperator", {x}, {y});
  model.last_op().builtin_code = ir::kCustomBuiltinCode;
  const CompiledFile file = compiled(model.finish({y}));
  ASSERT_EQ(file.ops.size(), 1u);
  EXPECT_FALSE(file.verified.done);
  EXPECT_NE(file.verified.why_not.find("cannot be run and compared here"), std::string::npos) << file.verified.why_not;
}

}  // namespace
}  // namespace reef::compiler
