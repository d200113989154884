// SPDX-License-Identifier: Apache-2.0
#include "formats/darwinn/listing.h"

#include <gtest/gtest.h>

#include "formats/darwinn/reader.h"
#include "formats/darwinn/sample_packages.h"
#include "formats/darwinn/writer.h"
#include "isa/assembler.h"

namespace reef::darwinn {
namespace {

Bytes encoded(std::string_view text) {
  const auto program = isa::assemble(text);
  EXPECT_TRUE(program.ok()) << program.status().message();
  return program.ok() ? Bytes(isa::encode(*program)) : Bytes();
}

// One Edge TPU op with an execution-only and a parameter-caching program. The driver writes an address into row 1.
ir::Model sample_model() {
  CustomOptions options = testing::make_options();
  Executable& run = options.package.executables[0];
  run.instruction_chunks[0].bitstream = encoded("start\nscalar r1 = mov 0\nhalt\nend\n");
  run.instruction_chunks[0].field_offsets = {
      testing::make_field_offset(BaseAddress::kParameter, "", AddressHalf::kLower, 128 + 70)};
  options.package.executables[1].instruction_chunks[0].bitstream = encoded("start\nend\n");
  ir::Model model;
  ir::Operator op;
  op.type = kCustomOpName;
  op.builtin_code = ir::kCustomBuiltinCode;
  op.custom_options = Bytes(write_custom_options(options).value());
  model.subgraphs.emplace_back().operators = {op};
  return model;
}

TEST(Listing, PuttingBackWhatWasListedChangesNothing) {
  ir::Model model = sample_model();
  const Bytes before = model.subgraphs[0].operators[0].custom_options;
  const auto listing = list_programs(model);
  ASSERT_TRUE(listing.ok()) << listing.status().message();
  ASSERT_EQ(listing->programs.size(), 2u);
  EXPECT_EQ(listing->programs[0].program.size(), 4u);
  const Status status = replace_programs(model, *listing);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(model.subgraphs[0].operators[0].custom_options, before);
}

TEST(Listing, ReplacesOnlyTheProgramItNames) {
  ir::Model model = sample_model();
  auto listing = list_programs(model);
  ASSERT_TRUE(listing.ok());
  listing->programs.erase(listing->programs.begin());
  listing->programs[0].program = isa::assemble("start\nscalar r2 = mov 5\nend\n").value();
  ASSERT_TRUE(replace_programs(model, *listing).ok());
  const auto again = list_programs(model);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->programs[0].program.size(), 4u);
  EXPECT_EQ(again->programs[1].program, listing->programs[0].program);
}

void expect_refused(const isa::Listing& listing, std::string_view because) {
  ir::Model model = sample_model();
  const Bytes before = model.subgraphs[0].operators[0].custom_options;
  const Status status = replace_programs(model, listing);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.message().find(because), std::string::npos) << status.message();
  EXPECT_EQ(model.subgraphs[0].operators[0].custom_options, before);
}

TEST(Listing, RefusesWhatHasNoPlace) {
  const isa::Listing listing = list_programs(sample_model()).value();
  isa::Listing changed = listing;
  changed.programs[0].attributes[1].second = "7";
  expect_refused(changed, "op 7");
  changed = listing;
  changed.programs[0].attributes[2].second = "2";
  expect_refused(changed, "no executable 2");
  changed = listing;
  changed.programs[0].attributes[3].second = "x";
  expect_refused(changed, "not a number");
  changed = listing;
  changed.programs[0].attributes.clear();
  expect_refused(changed, "does not say its subgraph");
  changed = listing;
  changed.programs.push_back(changed.programs[0]);
  expect_refused(changed, "twice");
}

TEST(Listing, RefusesAProgramThatMovesAnAddress) {
  isa::Listing listing = list_programs(sample_model()).value();
  listing.programs[0].program = isa::assemble("start\nhalt\nscalar r1 = mov 0\nend\n").value();
  expect_refused(listing, "row 1");
}

}  // namespace
}  // namespace reef::darwinn
