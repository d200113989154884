// SPDX-License-Identifier: Apache-2.0
// What no public program of Google's does: nothing in Google's own files, and nothing in what --conservative compiles.
#include <functional>
#include <utility>

#include <gtest/gtest.h>

#include "base/file.h"
#include "compiler/conservative.h"
#include "formats/darwinn/listing.h"
#include "formats/tflite/reader.h"
#include "isa/combination.h"
#include "quantized_model.h"
#include "zoo.h"

namespace reef::testing {
namespace {

void expect_nothing_new_below(const std::string& folder) {
  int programs = 0;
  for (const std::string& path : tflite_files(folder)) {
    const auto file = read_file(path, tflite::kMaxFileBytes);
    ASSERT_TRUE(file.ok());
    const auto model = tflite::read_model(*file);
    if (!model.ok()) continue;
    const auto listing = darwinn::list_programs(*model);
    if (!listing.ok()) continue;
    for (const isa::NamedProgram& program : listing->programs) {
      ++programs;
      for (const isa::Novelty& novelty : isa::novelties_of(program.program)) {
        ADD_FAILURE() << path << ", row " << novelty.first_row << ": " << novelty.what;
      }
    }
  }
  EXPECT_GT(programs, 50);
}

TEST(Novelty, GooglesOwnFilesHaveNone) {
  REEF_SKIP_WITHOUT_ZOO(zoo);
  expect_nothing_new_below(zoo + "/pairs");
}

std::size_t novelties_in(const darwinn::Package& package) {
  std::size_t count = 0;
  for (const darwinn::Executable& executable : package.executables) {
    for (const darwinn::InstructionChunk& chunk : executable.instruction_chunks) {
      const auto program = isa::decode(chunk.bitstream.span());
      EXPECT_TRUE(program.ok());
      if (program.ok()) count += isa::novelties_of(*program).size();
    }
  }
  return count;
}

compiler::PartProgram whole(const ir::Model& model, std::vector<lower::RefusedOp>& refused) {
  const ir::Subgraph& graph = model.subgraphs[0];
  compiler::PartProgram part{model, {}, graph.inputs, graph.outputs};
  for (std::size_t i = 0; i < graph.operators.size(); ++i) part.ops.push_back(static_cast<std::int32_t>(i));
  part.refused = &refused;
  return part;
}

// The first convolution is as in Google's networks; what follows it may need what only we do.
ir::Model convolution_and(const std::function<std::int32_t(QuantizedModel&, std::int32_t)>& next) {
  QuantizedModel builder({ir::DataType::kUInt8, 0.05f, 128});
  const std::int32_t first = builder.conv(builder.input({1, 32, 32, 3}), 16, 3, 2, "RELU6");
  return builder.finish({next(builder, first)});
}

TEST(Novelty, ConservativeCodeHasNone) {
  const ir::Model model =
      convolution_and([](QuantizedModel& builder, std::int32_t x) { return builder.conv(x, 32, 1, 1, "RELU6"); });
  std::vector<lower::RefusedOp> refused;
  const auto code = compiler::conservative(compiler::generate_part)(whole(model, refused));
  ASSERT_TRUE(code.ok()) << code.status().message();
  EXPECT_EQ(novelties_in(code->package), 0u);
  EXPECT_TRUE(refused.empty());
}

// Whatever would need something new is refused, with its operator, which is then left to the CPU.
TEST(Novelty, WhatWouldNeedSomethingNewIsRefusedWithItsOperator) {
  const std::pair<const char*, std::function<std::int32_t(QuantizedModel&, std::int32_t)>> kCandidates[] = {
      {"L2_NORMALIZATION",
       [](QuantizedModel& b, std::int32_t x) {
         return b.op("L2_NORMALIZATION", {x}, {b.computed({1, 16, 16, 16}, {ir::DataType::kUInt8, 1.0f / 128, 128})},
                     "L2NormOptions");
       }},
      {"SQUARED_DIFFERENCE",
       [](QuantizedModel& b, std::int32_t x) {
         return b.op("SQUARED_DIFFERENCE", {x, x}, {b.computed({1, 16, 16, 16}, {ir::DataType::kUInt8, 0.2f, 0})},
                     "SquaredDifferenceOptions");
       }},
      {"TRANSPOSE",
       [](QuantizedModel& b, std::int32_t x) {
         return b.transpose(x, {0, 2, 1, 3});
       }},
      {"SPLIT and others",
       [](QuantizedModel& b, std::int32_t x) {
         return b.concatenation({x, x}, 1);
       }},
  };
  int refusals = 0;
  for (const auto& [name, next] : kCandidates) {
    const ir::Model model = convolution_and(next);
    std::vector<lower::RefusedOp> refused;
    const auto plain = compiler::generate_part(whole(model, refused));
    const auto code = compiler::conservative(compiler::generate_part)(whole(model, refused));
    if (code.ok()) {
      EXPECT_EQ(novelties_in(code->package), 0u) << name;
      continue;
    }
    if (!plain.ok()) continue;  // there is no code for it at all
    ++refusals;
    EXPECT_EQ(code.status().code(), StatusCode::kUnsupported);
    EXPECT_NE(code.status().message().find("no public program of Google's"), std::string::npos)
        << code.status().message();
    ASSERT_FALSE(refused.empty()) << name;
    EXPECT_EQ(refused.front().op, 1) << name << ": " << refused.front().reason;
  }
  EXPECT_GT(refusals, 0) << "nothing that only we do is new?";
}

}  // namespace
}  // namespace reef::testing
