// SPDX-License-Identifier: Apache-2.0
// Disassembler and assembler against each other, for arbitrary bits.
#include <bit>

#include <gtest/gtest.h>

#include "base/file.h"
#include "isa/assembler.h"
#include "isa/disassembler.h"
#include "isa/scalar.h"
#include "isa/tensor_op.h"
#include "isa/test_programs.h"
#include "isa/text_value.h"

namespace reef::isa {
namespace {

void expect_survives(const Program& program) {
  for (const bool plain : {true, false}) {
    const std::string text = disassemble(program, {.comments = plain, .always_sequence = !plain});
    const auto again = assemble(text);
    ASSERT_TRUE(again.ok()) << again.status().message() << "\n" << text;
    ASSERT_EQ(again->size(), program.size()) << text;
    for (std::size_t i = 0; i < program.size(); ++i)
      ASSERT_EQ((*again)[i], program[i]) << "instruction " << i << "\n" << text;
  }
}

TEST(IsaText, EveryOpcodeWithArbitraryBits) {
  std::mt19937_64 random(11);
  for (const OpcodeInfo& op : all_opcodes()) {
    for (int i = 0; i < 300; ++i) expect_survives({random_instruction(op.opcode, random)});
  }
}

TEST(IsaText, ArbitraryPrograms) {
  std::mt19937_64 random(12);
  for (int round = 0; round < 60; ++round) expect_survives(random_program(1 + random() % 80, random));
}

// Short programs of scalar instructions only: branches and bodies that hit, miss and overlap.
TEST(IsaText, ArbitraryControlFlow) {
  std::mt19937_64 random(13);
  constexpr Opcode kOpcodes[] = {Opcode::kScalar,      Opcode::kBranch, Opcode::kRepeat,
                                 Opcode::kScalarFence, Opcode::kStart,  Opcode::kRepeat};
  for (int round = 0; round < 400; ++round) {
    Program program;
    for (int i = 0; i < 20; ++i) {
      Instruction instruction(kOpcodes[random() % std::size(kOpcodes)]);
      if (instruction.opcode() == Opcode::kBranch) {
        ASSERT_TRUE(instruction.set(control::kBranchOffset, static_cast<int>(random() % 40) - 20).ok());
      } else if (instruction.opcode() == Opcode::kRepeat) {
        ASSERT_TRUE(instruction.set(control::kRepeatRows, static_cast<int>(random() % 12)).ok());
      }
      program.push_back(instruction);
    }
    expect_survives(program);
  }
}

TEST(IsaText, DeepRepeatsStaySmall) {
  Program program;
  for (int i = 0; i < 1000; ++i) {
    Instruction repeat(Opcode::kRepeat);
    ASSERT_TRUE(repeat.set(control::kRepeatRows, 1000 - i).ok());
    program.push_back(repeat);
  }
  program.push_back(Instruction(Opcode::kScalar));
  EXPECT_LT(disassemble(program).size(), 200000u);
  expect_survives(program);
}

TEST(IsaText, Floats) {
  std::mt19937_64 random(14);
  std::vector<std::uint32_t> all = {0,          0x80000000, 1,          0x007fffff, 0x00800000, 0x7f7fffff,
                                    0x7f800000, 0xff800000, 0x7f800001, 0x7fc00000, 0xffffffff, 0x3f800000};
  for (int i = 0; i < 20000; ++i) all.push_back(static_cast<std::uint32_t>(random()));
  for (const std::uint32_t bits : all) {
    std::uint32_t again = ~bits;
    ASSERT_TRUE(text::read_float(text::print_float(bits), again)) << text::print_float(bits);
    ASSERT_EQ(again, bits) << text::print_float(bits);
  }
  std::uint32_t bits = 0;
  for (const char* wrong : {"", "-", "nan", "0x", "0x100000000", "1.5x", "1e99", "infinity", "+1", "--1", "0x-1"}) {
    EXPECT_FALSE(text::read_float(wrong, bits)) << wrong;
  }
}

// ---- What the text looks like ----

std::string text_of(const Instruction& instruction) {
  return disassemble(std::vector{instruction}, {.comments = false});
}

TEST(IsaText, ReadsAsWordsNotBits) {
  Instruction op(Opcode::kMultiplyAdd);
  op.set_usual();
  ASSERT_TRUE(op.set(tile::kTiles, 0x0039).ok());
  Nest nest;
  nest.base = 6720;
  nest.dims[0] = {4, 16, true};
  nest.dims[1] = {64, 3, true};
  nest.dims[2] = {0, 2, false};
  nest.buffer_level = 2;
  nest.buffer_stride = -256;
  nest.clip_dim = 1;
  nest.clip_steps = 3;
  nest.clip_deficit = 52;
  ASSERT_TRUE(op.write_nest(tensor_op::kIn, nest).ok());
  Nest loops;
  loops.dims[0].count = 16;
  loops.dims[1].count = 3;
  ASSERT_TRUE(op.write_nest(tensor_op::kLoops, loops).ok());
  ASSERT_TRUE(
      op.write_watcher(
            tensor_op::kWatchers[0],
            {.counter = 14, .level = 2, .threshold = -4, .increment = 1, .enabled = true, .on_destination = false})
          .ok());
  ASSERT_TRUE(op.write_producer(tensor_op::kSignalAvdata, {.enabled = true, .level = 3}).ok());
  ASSERT_TRUE(op.set_float(tensor_op::kScale, 0.1f).ok());
  ASSERT_TRUE(op.set(tensor_op::kCells, 64).ok());
  ASSERT_TRUE(op.set(tensor_op::kBias, 1).ok());
  EXPECT_EQ(text_of(op),
            "multiply_add tiles=0,3-5\n"
            "  loops  x16, x3\n"
            "  in     narrow byte 6720: for x16 +4, for x3 +64, rep x2, swap -256 each level 2, clip dim 1 to x3 short "
            "52\n"
            "  wait   RING_READ_A >= -4 + 1*pass(level 2)\n"
            "  signal AVDATA each level 3\n"
            "  set    cells=64 scale=0.1 bias\n");
}

TEST(IsaText, ControlFlowAndBundles) {
  const std::string text =
      "start\n"
      "L1:\n"
      "scalar r6 = shr r4, 2 | r5 = load [r6] | dma.tag = r9\n"
      "repeat 35 {\n"
      "  scalar r9 = fmul r9, 0.15772785\n"
      "  if !p1 scalar r10 = exp2 r10\n"
      "}\n"
      "scalar r6 = load [r7 += 1] | store [r8 += 127] = r6\n"
      "scalar p0 = lt r5, 16384\n"
      "branch to L1 if p0\n"
      "halt code=16\n"
      "end\n";
  const auto program = assemble(text);
  ASSERT_TRUE(program.ok()) << program.status().message();
  EXPECT_EQ(disassemble(*program, {.comments = false}), text);
  EXPECT_EQ((*program)[0].get(control::kStartLength), 8 * 128);
  EXPECT_EQ((*program)[2].get(control::kRepeatRows), 2);
  EXPECT_EQ((*program)[5].bits(bundle::kStore), static_cast<std::uint32_t>(bundle::Store::kRegisterStep));
  EXPECT_EQ((*program)[5].bits(bundle::kStoreAddress), 127u << 5 | 8u);
  EXPECT_EQ((*program)[7].get(control::kBranchOffset), -6);
  EXPECT_EQ((*program)[9].get(control::kEndLength), 128);
}

TEST(IsaText, SequenceNumbersCountOn) {
  const auto program = assemble("tile_fence sequence=65535\nsum\nscalar nop\ntile_fence\nmesh_east sequence=9\n");
  ASSERT_TRUE(program.ok()) << program.status().message();
  EXPECT_EQ((*program)[1].get(tile::kSequence), 0);
  EXPECT_EQ((*program)[3].get(*sequence_field(Opcode::kTileFence)), 1);
  EXPECT_EQ((*program)[4].get(tile::kSequence), 9);
}

TEST(IsaText, DocumentedExampleIsCanonical) {
  const auto file = read_file(REEF_SOURCE_DIR "/docs/hardware/assembly.md", 1 << 20);
  ASSERT_TRUE(file.ok()) << file.status().message();
  const std::string document(reinterpret_cast<const char*>(file->data()), file->size());
  const std::string mark = "```asm\n";
  const std::size_t begin = document.find(mark) + mark.size();
  const std::string example = document.substr(begin, document.find("```\n", begin) - begin);
  const auto listing = parse_listing(example);
  ASSERT_TRUE(listing.ok()) << listing.status().message();
  EXPECT_EQ(print_listing(*listing, {.comments = false}), example);
}

TEST(IsaText, CommentsSayWhatADescriptorAsksFor) {
  const auto program = assemble(
      "scalar r8 = mov 784\nscalar r9 = mov 1 | dma.bytes = r8\nscalar r8 = mov 5 | dma.tag = r9\nscalar dma.issue\n"
      "scalar r9 = load [r1]\nscalar dma.tag = r9\nscalar dma.issue\n");
  ASSERT_TRUE(program.ok()) << program.status().message();
  const std::string text = disassemble(*program);
  EXPECT_NE(text.find("; row 3: input, 784 bytes\n"), std::string::npos) << text;
  EXPECT_NE(text.find("; row 6\n"), std::string::npos) << text;
}

// ---- Complaints ----

std::string complaint_about(std::string_view text) {
  const auto listing = parse_listing(text);
  return listing.ok() ? "accepted" : listing.status().message();
}

TEST(IsaText, ComplaintsNamePlaceAndExpectation) {
  const std::pair<std::string_view, std::string_view> kCases[] = {
      {"foo", "line 1, column 1: expected an instruction, a label or a directive, found 'foo'"},
      {"halt\n  bogus=1",
       "line 2, column 3: expected an instruction, a label, a directive or a statement of halt: set"},
      {"halt kode=1", "line 1, column 6: expected a field of halt, found 'kode=1'"},
      {"halt code=65536", "line 1, column 11: expected for code: a number from 0 to 65535, found '65536'"},
      {"halt code=1 code=1", "line 1, column 13: expected code once only"},
      {"halt code", "line 1, column 10: expected '=' and a number from 0 to 65535, found the end of the line"},
      {"sum tiles=16", "line 1, column 11: expected for tiles: all, none, tiles such as 0,3-5"},
      {"sum tiles=5-3", "line 1, column 11: expected for tiles"},
      {"sum\n set scale=abc", "line 2, column 12: expected for scale: a decimal number"},
      {"sum\n set cells=0", "line 2, column 12: expected for cells: a number from 1 to 64"},
      {"sum\n in narrow word 3", "line 2, column 12: expected 'byte', found 'word'"},
      {"sum\n in narrow byte 0: for x0 +1", "line 2, column 25: expected steps, a number from 1"},
      {"sum\n in narrow byte 0: for x2 4", "line 2, column 27: expected a stride with its sign"},
      {"sum\n in narrow byte 0: for x2 +300000", "line 2, column 5: nest in: stride 300000"},
      {"sum\n in narrow byte 0\n in narrow byte 0", "line 3, column 2: expected in once only"},
      {"ring_send\n in wide line 0: for x1 +0, for x1 +0, for x1 +0, for x1 +0, for x1 +0",
       "line 2, column 62: expected at most 4 dimensions for in"},
      {"sum\n wait FOO >= 1", "line 2, column 7: expected a counter of the tile, such as AVDATA, found 'FOO'"},
      {"sum\n wait AVDATA > 1", "line 2, column 14: expected '>='"},
      {"sum\n wait AVDATA >= 1", "line 2, column 18: expected '+ INCREMENT*pass(level N)' or 'at level N'"},
      {"ring_send\n wait AVDATA >= 1 at level 0", "expected 'on', found the end of the line"},
      {"sum\n signal RING_WRITE each level 1", "line 2, column 9: expected a counter that sum counts (AVDATA, "},
      {"wide_to_narrow\n signal WIDE_TO_SCALING each level 1\nhalt",
       "line 2, column 9: the instruction counts WIDE_TO_NARROW here, because of to_scaling"},
      {"scalar r32 = mov 1", "line 1, column 8: expected r0 to r31, found 'r32'"},
      {"scalar r1 = mov 1 | r2 = mov 2",
       "line 1, column 26: expected another kind of slot: a bundle has one arithmetic"},
      {"scalar store [r1 += 128] = r2", "line 1, column 21: expected a step"},
      {"scalar r1 = blend r2", "line 1, column 13: expected an operation"},
      {"branch to nowhere", "line 1, column 11: expected a label of this program, 'nowhere' is none"},
      {"a:\na:", "line 2, column 1: expected a new label"},
      {"repeat 3 {\nscalar nop", "line 1, column 10: expected a '}'"},
      {"}", "line 1, column 2: expected an instruction: no repeat is open here"},
      {".include x", "line 1, column 1: expected the directive .program"},
      {".program name", "line 1, column 10: expected the program's name in double quotes, found 'name'"},
      {".program \"a", "expected the program's name in double quotes that end on this line"},
      {".program \"\\q\"", "line 1, column 11: expected one of the escapes"},
      {".program \"a\" key", "line 1, column 17: expected '='"},
      {"if p8 halt", "line 1, column 4: expected a predicate: p0 to p7"},
      {"load_activation\n segment 8: 1, 2", "line 2, column 10: expected a segment, a number from 0 to 7"},
      {"load_activation\n segment 0: 1, 2", "line 2, column 16: expected number 2 of 5, with commas between them"},
  };
  for (const auto& [text, message] : kCases) {
    EXPECT_NE(complaint_about(text).find(message), std::string::npos)
        << text << "\n-> " << complaint_about(text) << "\nwanted: " << message;
  }
  EXPECT_FALSE(assemble(".program \"a\"").ok());
}

TEST(IsaText, BranchTooFar) {
  std::string text = "branch to far\n";
  for (int i = 0; i < 964; ++i) text += "sum\n";
  EXPECT_NE(complaint_about(text + "far:").find("16389 rows away"), std::string::npos)
      << complaint_about(text + "far:");
}

// ---- Listings ----

TEST(IsaText, ListingRoundTrip) {
  std::mt19937_64 random(15);
  Listing listing;
  listing.programs.push_back({"", {}, random_program(5, random)});
  listing.programs.push_back({"exec \"0\"; \\ \n\t\x7f\xc3\xa9",
                              {{"chunk", "0"}, {"file name", "a b;c"}, {"chunk", ""}, {"", "x"}},
                              random_program(30, random)});
  listing.programs.push_back({"empty", {{"k", "\"quoted\""}}, {}});
  const std::string text = print_listing(listing);
  const auto again = parse_listing(text);
  ASSERT_TRUE(again.ok()) << again.status().message() << "\n" << text;
  EXPECT_EQ(*again, listing);
}

TEST(IsaText, ListingWithoutDirective) {
  const auto listing = parse_listing("; a comment\n\nhalt ; another\r\n.program \"b\" chunk=1\nhalt\n");
  ASSERT_TRUE(listing.ok()) << listing.status().message();
  ASSERT_EQ(listing->programs.size(), 2u);
  EXPECT_EQ(listing->programs[0].program.size(), 1u);
  EXPECT_EQ(listing->programs[1].attributes[0].second, "1");
  EXPECT_TRUE(parse_listing("")->programs.empty());
}

}  // namespace
}  // namespace reef::isa
