// SPDX-License-Identifier: Apache-2.0
// Every function table in the model collection's programs is one of src/numeric/chip_tables.h, to the bit.
#include <map>

#include <gtest/gtest.h>

#include "formats/darwinn/listing.h"
#include "formats/tflite/reader.h"
#include "isa/operation.h"
#include "numeric/chip_tables.h"
#include "zoo.h"

namespace reef::testing {
namespace {

bool equals(const isa::LoadActivation& found, const numeric::ChipTable& table) {
  return found.segments == table.segments && found.breaks == table.breaks;
}

// The function that a table is, with its output scale; empty where it is none of the known.
std::string function_of(const isa::LoadActivation& found) {
  if (equals(found, numeric::chip_exp().table)) return "exp";
  if (equals(found, numeric::chip_root_table())) return "root";
  for (const float steps : {128.0f, 127.5f, 255.0f, 256.0f, 16383.5f}) {
    if (equals(found, numeric::chip_logistic(1.0f / steps).table)) return fmt::format("logistic in 1/{}", steps);
    if (equals(found, numeric::chip_tanh(1.0f / steps).table)) return fmt::format("tanh in 1/{}", steps);
  }
  return "";
}

void collect(const isa::Program& program, const std::string& path, std::map<std::string, int>& counts) {
  for (const isa::Instruction& instruction : program) {
    if (instruction.opcode() != isa::Opcode::kLoadActivation) continue;
    const auto operation = isa::operation_of(instruction);
    ASSERT_TRUE(operation.ok()) << path << ": " << operation.status().message();
    const std::string name = function_of(std::get<isa::LoadActivation>(operation->code));
    EXPECT_NE(name, "") << path << ": a table of another function";
    ++counts[name];
  }
}

TEST(ZooTables, EveryProgramHoldsTheKnownTables) {
  REEF_SKIP_WITHOUT_ZOO(zoo);
  std::map<std::string, int> counts;
  for (const std::string& path : tflite_files(zoo + "/pairs")) {
    const auto model = tflite::load_model(path);
    if (!model.ok()) continue;
    const auto listing = darwinn::list_programs(*model);
    ASSERT_TRUE(listing.ok()) << path << ": " << listing.status().message();
    for (const isa::NamedProgram& program : listing->programs) collect(program.program, path, counts);
  }
  for (const auto& [name, count] : counts) std::printf("%3d tables of %s\n", count, name.c_str());
  EXPECT_GE(counts["exp"], 5);
  EXPECT_GE(counts["root"], 5);
  EXPECT_GE(counts["logistic in 1/256"], 1);
  EXPECT_GE(counts["logistic in 1/255"], 3);
  EXPECT_GE(counts["tanh in 1/16383.5"], 1);
}

}  // namespace
}  // namespace reef::testing
