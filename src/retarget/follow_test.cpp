// SPDX-License-Identifier: Apache-2.0
#include "retarget/follow.h"

#include <gtest/gtest.h>

#include "isa/mesh.h"
#include "retarget/sample_package.h"

namespace reef::retarget {
namespace {

namespace t = isa::tensor_op;
namespace m = isa::movers;
using testing::ProgramBuilder;

// Programs that send 8 bytes from narrow word 16 of tile 0 to the host at their end.
void add_output(ProgramBuilder& b) {
  b.ask_for(darwinn::BaseAddress::kOutput, "out", 8, isa::bundle::DescriptorTag::kOutput);
  b.fence();
  b.add(isa::Opcode::kNarrowToWide);
  b.nest(m::kToWideIn, 16, 2).nest(m::kToWideOut, 20, 1).set(m::kToWideLineLevel, 1);
  b.fence();
  b.add(isa::Opcode::kRingSend);
  b.nest(isa::ring::kSendIn, 20, 1).set(isa::ring::kToScalar, 1);
  b.add(isa::Opcode::kOutfeed);
  b.nest(isa::host_queues::kOutfeedOut, 0, 1).set(isa::host_queues::kOutfeedTarget, 1);
  b.fence();
}

Result<Trace> follow_program(const ProgramBuilder& b, std::int64_t max_steps = 10000) {
  EXPECT_TRUE(b.status().ok()) << b.status().message();
  darwinn::Package package;
  darwinn::Executable& executable =
      package.executables.emplace_back(darwinn::new_executable(darwinn::ExecutableType::kStandAlone));
  executable.instruction_chunks = {b.chunk()};
  const bool has_output = !executable.instruction_chunks[0].field_offsets.empty();
  if (has_output) executable.output_layers = {testing::sample_layer("out", 1, 0, true)};
  return follow(package, max_steps);
}

std::uint32_t fill(ProgramBuilder& b, std::uint32_t word, std::uint32_t value, int tiles = 1) {
  b.add(isa::Opcode::kMeshNorth);
  b.nest(isa::mesh::kOut, word, 1).set(isa::mesh::kFill, 1).set(isa::mesh::kFillValue, value);
  b.set(isa::tile::kTiles, tiles);
  return static_cast<std::uint32_t>(b.program().size() - 1);
}

// The words of the 4x4 unit matrix, in line 30.
void add_identity(ProgramBuilder& b) {
  for (std::uint32_t k = 0; k < 4; ++k) fill(b, 100 + k, 1u << (8 * k));
  b.fence();
  b.add(isa::Opcode::kNarrowToWide);
  b.nest(m::kToWideIn, 100, 4).nest(m::kToWideOut, 30, 1).set(m::kToWideLineLevel, 1);
  b.fence();
}

std::uint32_t add_elementwise(ProgramBuilder& b, float scale) {
  b.add(isa::Opcode::kMultiplyAdd);
  b.nest(t::kIn, 0, 1).nest(t::kOut, 64, 1).nest(t::kParam, 120, 1).nest(t::kPsum, 0, 1);
  b.set(t::kAccumulateInside, 1).set(t::kReduceDims, 1).set(t::kCells, 4).set_float(t::kScale, scale);
  b.set_float(t::kMax, std::numeric_limits<float>::infinity());
  b.set_float(t::kMin, -std::numeric_limits<float>::infinity());
  return static_cast<std::uint32_t>(b.program().size() - 1);
}

TEST(Follow, CopiesKeepWhatBytesAre) {
  for (const bool is_copy : {true, false}) {
    ProgramBuilder b;
    add_identity(b);
    const std::uint32_t data = fill(b, 0, 0x12345678);
    b.fence();
    const std::uint32_t op = add_elementwise(b, is_copy ? 1.0f : 2.0f);
    add_output(b);
    const auto trace = follow_program(b);
    ASSERT_TRUE(trace.ok()) << trace.status().message();
    ASSERT_EQ(trace->tensor_ops.size(), 1u);
    EXPECT_EQ(trace->tensor_ops[0].input.fills, std::vector<std::uint32_t>{data});
    EXPECT_EQ(trace->tensor_ops[0].parameters.fills.size(), 4u);
    EXPECT_EQ(trace->tensor_ops[0].results, 1u);
    ASSERT_EQ(trace->outputs.size(), 1u);
    for (int cell = 0; cell < 4; ++cell) {
      const Tag expected = is_copy ? make_tag(Origin::kFill, data) : value_tag(op, cell);
      EXPECT_EQ(trace->outputs[0].bytes[at(cell)], expected) << cell;
    }
  }
}

TEST(Follow, WordsTravelOverTheMesh) {
  ProgramBuilder b;
  const std::uint32_t data = fill(b, 5, 7, 1 << 4);  // tile 4, below tile 0
  b.fence();
  b.set(isa::tile_fence::kTiles, 0x11);
  b.add(isa::Opcode::kMeshNorth);  // tile 4 sends
  b.nest(isa::mesh::kIn, 5, 1).set(isa::tile::kTiles, 1 << 4);
  b.add(isa::Opcode::kMeshNorth);  // tile 0 receives
  b.nest(isa::mesh::kOut, 16, 1);
  add_output(b);
  const auto trace = follow_program(b);
  ASSERT_TRUE(trace.ok()) << trace.status().message();
  EXPECT_EQ(trace->outputs[0].bytes[0], make_tag(Origin::kFill, data));
  EXPECT_EQ(trace->outputs[0].bytes[4], 0u);  // nothing wrote the second word, which is padding
}

TEST(Follow, ResamplingReadsAllItsPixels) {
  ProgramBuilder b;
  std::vector<std::uint32_t> pixels;
  for (std::uint32_t k = 0; k < 4; ++k) pixels.push_back(fill(b, k, k));  // 2x2 pixels of 4 channels
  b.fence();
  isa::Instruction& code = b.add(isa::Opcode::kResample);
  isa::Nest loops;  // taps 1x1, 4x4 results
  for (std::size_t k : {0u, 1u}) loops.dims[k].count = 1;
  for (std::size_t k : {2u, 3u}) loops.dims[k].count = 4;
  ASSERT_TRUE(code.write_nest(t::kLoops, loops).ok());
  ASSERT_TRUE(code.write_nest(t::kIn, loops).ok());
  ASSERT_TRUE(code.write_nest(t::kPsum, loops).ok());
  b.nest(t::kOut, 256, 16);
  b.set(t::kCells, 4).set(t::resample::kXNearest, 1).set(t::resample::kYNearest, 1);
  b.set(t::resample::kXStep, 64).set(t::resample::kYStep, 64);  // by two
  b.set(t::resample::kPixelStride, 4).set(t::resample::kRowStride, 8);
  const auto trace = follow_program(b);
  ASSERT_TRUE(trace.ok()) << trace.status().message();
  ASSERT_EQ(trace->tensor_ops.size(), 1u);
  const auto& read = trace->tensor_ops[0].input.fills;
  for (const std::uint32_t pixel : pixels) EXPECT_EQ(std::count(read.begin(), read.end(), pixel), 1) << pixel;
  EXPECT_EQ(trace->tensor_ops[0].results, 16u);
}

// The first pass of a loop alone says what an instruction is for; what passes hand on is not recorded.
TEST(Follow, RecordsTheFirstPassOfALoop) {
  ProgramBuilder b;
  add_identity(b);
  const std::uint32_t data = fill(b, 0, 0x12345678);
  b.fence();
  b.add(isa::Opcode::kRepeat);
  b.set(isa::control::kRepeatCount, 3);
  const std::size_t repeat = b.program().size() - 1;
  const std::uint32_t op = add_elementwise(b, 2.0f);
  b.fence();
  b.add(isa::Opcode::kNarrowToWide);  // the result is the next pass's input
  b.nest(m::kToWideIn, 16, 1).nest(m::kToWideOut, 40, 1).set(m::kToWideLineLevel, 1);
  b.fence();
  b.add(isa::Opcode::kWideToNarrow);
  b.nest(m::kToNarrowIn, 40, 1).nest(m::kToNarrowOut, 0, 1).set(m::kToNarrowLineLevel, 1);
  b.fence();
  std::int32_t rows = 0;
  for (std::size_t i = repeat + 1; i < b.program().size(); ++i) rows += b.program()[i].rows();
  ASSERT_TRUE(b.at(repeat).set(isa::control::kRepeatRows, rows).ok());
  add_output(b);
  const auto trace = follow_program(b);
  ASSERT_TRUE(trace.ok()) << trace.status().message();
  ASSERT_EQ(trace->tensor_ops.size(), 1u);
  EXPECT_EQ(trace->tensor_ops[0].input.fills, std::vector<std::uint32_t>{data});
  EXPECT_TRUE(trace->tensor_ops[0].input.values.empty());
  EXPECT_EQ(trace->tensor_ops[0].results, 1u);
  EXPECT_EQ(trace->outputs[0].bytes[0], value_tag(op, 0));
}

// Old compilers compute softmax on the scalar core: what it sends belongs to what it took.
TEST(Follow, BytesPassThroughTheScalarCore) {
  ProgramBuilder b;
  const std::uint32_t data = fill(b, 16, 7);
  b.fence();
  b.add(isa::Opcode::kNarrowToWide);
  b.nest(m::kToWideIn, 16, 1).nest(m::kToWideOut, 20, 1).set(m::kToWideLineLevel, 1);
  b.fence();
  b.add(isa::Opcode::kRingSend);
  b.nest(isa::ring::kSendIn, 20, 1).set(isa::ring::kToScalar, 1);
  b.add(isa::Opcode::kOutfeed);
  b.nest(isa::host_queues::kOutfeedOut, 5, 1);
  b.ask_for(darwinn::BaseAddress::kOutput, "out", 8, isa::bundle::DescriptorTag::kOutput);
  b.add_text("scalar_fence tiles=all drain=outfeed\nscalar r0 = load [5]\nscalar push r0\nscalar push r0\n");
  const auto trace = follow_program(b);
  ASSERT_TRUE(trace.ok()) << trace.status().message();
  ASSERT_EQ(trace->outputs.size(), 1u);
  EXPECT_EQ(trace->outputs[0].bytes[0], make_tag(Origin::kFill, data));
  EXPECT_EQ(trace->outputs[0].bytes[3], make_tag(Origin::kFill, data));
  EXPECT_EQ(trace->outputs[0].bytes[4], 0u);  // more than it took
}

TEST(Follow, SaysWhereAProgramStops) {
  ProgramBuilder b;
  b.add(isa::Opcode::kRingReceiveA);  // nobody sends
  b.nest(isa::ring::kReceiveOut, 1, 1);
  add_output(b);
  const auto trace = follow_program(b);
  ASSERT_FALSE(trace.ok());
  EXPECT_NE(trace.status().message().find("row 0 (ring_receive_a)"), std::string::npos) << trace.status().message();
  EXPECT_NE(trace.status().message().find("tile 0"), std::string::npos) << trace.status().message();
}

TEST(Follow, LimitsSteps) {
  ProgramBuilder b;
  b.add(isa::Opcode::kMeshNorth);
  b.nest(isa::mesh::kOut, 0, 40000).set(isa::mesh::kFill, 1);
  b.fence();
  EXPECT_TRUE(follow_program(b, 100000).ok());
  const auto trace = follow_program(b, 1000);
  ASSERT_FALSE(trace.ok());
  EXPECT_EQ(trace.status().code(), StatusCode::kResourceExhausted);
}

TEST(Follow, RefusesAddressesThatDoNotExist) {
  ProgramBuilder b;
  b.add(isa::Opcode::kRingSend);
  b.nest(isa::ring::kSendIn, 5000, 1).set(isa::ring::kToScalar, 1);
  const auto trace = follow_program(b);
  ASSERT_FALSE(trace.ok());
  EXPECT_NE(trace.status().message().find("line 5000 of wide memory"), std::string::npos) << trace.status().message();
}

}  // namespace
}  // namespace reef::retarget
