// SPDX-License-Identifier: Apache-2.0
// Every program of every compiled file of the collection: decodes to the last bit, is rebuilt field by field, survives
// the text form; its parameters' places in the tiles account for every byte.
#include <iostream>

#include <gtest/gtest.h>

#include "base/file.h"
#include "formats/darwinn/cached_parameters.h"
#include "formats/darwinn/listing.h"
#include "formats/darwinn/reader.h"
#include "formats/tflite/reader.h"
#include "isa/assembler.h"
#include "isa/disassembler.h"
#include "isa/format.h"
#include "isa/seen.h"
#include "isa/unknown.h"
#include "report/compute_steps.h"
#include "zoo.h"

namespace reef {
namespace {

// An instruction made from nothing but its fields' values.
Result<isa::Instruction> rebuilt(const isa::Instruction& instruction) {
  isa::Instruction copy(instruction.opcode());
  for (const isa::Field& field : isa::fields(instruction.opcode())) {
    REEF_RETURN_IF_ERROR(copy.set(field, instruction.get(field)));
  }
  return copy;
}

// Of every program of every compiled file below a folder.
void expect_every_bit_is_kept(const std::string& folder, int files_at_least) {
  int files = 0, programs = 0;
  std::int64_t rows = 0, instructions = 0;
  for (const std::string& path : testing::tflite_files(folder)) {
    const auto file = read_file(path, tflite::kMaxFileBytes);
    ASSERT_TRUE(file.ok());
    const auto model = tflite::read_model(*file);
    if (!model.ok()) continue;
    const auto listing = darwinn::list_programs(*model);
    ASSERT_TRUE(listing.ok()) << path << ": " << listing.status().message();
    if (listing->programs.empty()) continue;
    ++files;
    for (const isa::NamedProgram& program : listing->programs) {
      ++programs;
      rows += isa::row_count(program.program);
      instructions += static_cast<std::int64_t>(program.program.size());
      for (const isa::Instruction& instruction : program.program) {
        const auto copy = rebuilt(instruction);
        ASSERT_TRUE(copy.ok() && *copy == instruction) << path << ' ' << program.name;
      }
    }
    const auto parsed = isa::parse_listing(isa::print_listing(*listing));
    ASSERT_TRUE(parsed.ok()) << path << ": " << parsed.status().message();
    EXPECT_TRUE(*parsed == *listing) << path;
    ir::Model copy = *model;
    ASSERT_TRUE(darwinn::replace_programs(copy, *parsed).ok()) << path;
    EXPECT_TRUE(copy.subgraphs == model->subgraphs) << path << ": the package's bytes changed";
  }
  std::cout << files << " files, " << programs << " programs, " << instructions << " instructions in " << rows
            << " rows\n";
  EXPECT_GE(files, files_at_least);
}

TEST(ZooPrograms, DecodeEncodeAndTextKeepEveryBit) {
  REEF_SKIP_WITHOUT_ZOO(folder);
  expect_every_bit_is_kept(folder, 58);
}

TEST(WildPrograms, DecodeEncodeAndTextKeepEveryBit) {
  REEF_SKIP_WITHOUT_WILD(folder);
  expect_every_bit_is_kept(folder, 45);
}

// seen.def is what the collections hold (tools/count_seen.cpp): no value of any field is missing from it, and nothing
// is what the device would have to guess.
TEST(WildPrograms, EveryFieldHasAValueThatWasSeen) {
  REEF_SKIP_WITHOUT_WILD(wild);
  std::int64_t instructions = 0;
  std::vector<std::string> files = testing::tflite_files(wild);
  for (const std::string& path : testing::tflite_files(testing::zoo_folder() + "/pairs")) files.push_back(path);
  for (const std::string& path : files) {
    const auto model = tflite::load_model(path);
    ASSERT_TRUE(model.ok()) << path;
    const auto listing = darwinn::list_programs(*model);
    ASSERT_TRUE(listing.ok()) << path << ": " << listing.status().message();
    for (const isa::NamedProgram& program : listing->programs) {
      for (const isa::Instruction& instruction : program.program) {
        ++instructions;
        const std::vector<isa::Unseen> unseen = isa::unseen_in(instruction);
        ASSERT_TRUE(unseen.empty()) << path << ": " << isa::info(instruction.opcode()).mnemonic << ' '
                                    << unseen[0].field->full_name() << " = " << unseen[0].value
                                    << ": run count_seen again";
        ASSERT_TRUE(isa::unknowns_of(instruction).empty()) << path;
      }
    }
  }
  EXPECT_GT(instructions, 100'000);
}

// What a caching program stores, and what the running program reads, is all of the parameters.
TEST(ZooPrograms, EveryParameterByteHasAPlaceInATile) {
  REEF_SKIP_WITHOUT_ZOO(folder);
  std::uint64_t stored = 0, total = 0;
  int caching_programs = 0, steps_with_parameters = 0;
  for (const std::string& path : testing::tflite_files(folder)) {
    const auto file = read_file(path, tflite::kMaxFileBytes);
    ASSERT_TRUE(file.ok());
    const auto model = tflite::read_model(*file);
    if (!model.ok()) continue;
    for (const ir::Operator& op : model->subgraphs.at(0).operators) {
      if (op.type != darwinn::kCustomOpName) continue;
      const auto options = darwinn::read_custom_options(op.custom_options);
      ASSERT_TRUE(options.ok()) << path;
      const auto* caching = options->package.find(darwinn::ExecutableType::kParameterCaching);
      if (caching == nullptr) continue;
      ++caching_programs;
      const auto pieces = darwinn::find_cached_pieces(*caching);
      ASSERT_TRUE(pieces.ok()) << path << ": " << pieces.status().message();
      std::uint64_t next = 0;
      for (const darwinn::CachedPiece& piece : *pieces) {
        EXPECT_LE(piece.offset, next) << path << ": bytes left out before " << piece.offset;
        next = std::max(next, piece.offset + piece.bytes);
      }
      EXPECT_EQ(next, caching->parameters.size()) << path;
      stored += next;
      total += caching->parameters.size();
      for (const darwinn::Executable& program : options->package.executables) {
        if (program.type == darwinn::ExecutableType::kParameterCaching) continue;
        const auto steps = report::compute_steps(program, *pieces);
        ASSERT_TRUE(steps.ok()) << path;
        for (const report::ComputeStep& step : *steps) steps_with_parameters += !step.parameters.empty();
      }
    }
  }
  std::cout << caching_programs << " caching programs place " << stored << " of " << total << " parameter bytes; "
            << steps_with_parameters << " computation steps use them\n";
  EXPECT_GE(caching_programs, 45);
}

}  // namespace
}  // namespace reef
