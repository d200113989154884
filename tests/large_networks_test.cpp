// SPDX-License-Identifier: Apache-2.0
// Networks that do not fit, on the virtual device: more instructions than one piece holds, more parameters than the
// chip keeps, several networks on one chip. Outputs must be those of the chip reference to the last bit.
#include <random>

#include <gtest/gtest.h>

#include "generated_code.h"
#include "isa/opcode.h"
#include "isa/program.h"
#include "quantized_model.h"

namespace reef::testing {
namespace {

void expect_sound(const ir::Model& model, const darwinn::Package& package, unsigned seed = 1) {
  const Status runs = runs_as_chip_reference(model, package, seed);
  EXPECT_TRUE(runs.ok()) << runs.message();
  const Status races = has_no_races(package);
  EXPECT_TRUE(races.ok()) << races.message();
  const Status audit = passes_audit(package);
  EXPECT_TRUE(audit.ok()) << audit.message();
}

// Convolutions and depthwise convolutions in turn.
ir::Model chain(unsigned seed, int layers, ir::Shape shape) {
  std::mt19937 random(seed);
  const auto among = [&](std::initializer_list<int> values) { return *(values.begin() + random() % values.size()); };
  QuantizedModel model;
  std::int32_t x = model.input(std::move(shape));
  for (int i = 0; i < layers; ++i) {
    x = random() % 3 == 0 ? model.depthwise(x, among({1, 3, 5}))
                          : model.conv(x, among({4, 7, 16, 40, 64, 70, 130}), among({1, 1, 3}));
  }
  return model.finish({x});
}

// ---- Instructions ----

TEST(LargeNetworks, ProgramsOfSeveralPieces) {
  QuantizedModel builder;
  std::int32_t x = builder.input({1, 8, 8, 8});
  for (int i = 0; i < 350; ++i) x = builder.conv(x, 8, 3);
  const ir::Model model = builder.finish({x});
  const auto package = compiler::generate_code(WholeModel(model).part(7));
  ASSERT_TRUE(package.ok()) << package.status().message();
  const darwinn::Executable& program = *package->find(darwinn::ExecutableType::kExecutionOnly);
  ASSERT_GE(program.instruction_chunks.size(), 2u);
  // Instructions, input; instructions ...; result, interrupt.
  const auto& hints = program.dma_hints->hints;
  ASSERT_EQ(hints.size(), program.instruction_chunks.size() + 3);
  EXPECT_TRUE(std::holds_alternative<darwinn::DescriptorHint>(hints[1].hint));
  for (std::size_t i = 1; i < program.instruction_chunks.size(); ++i) {
    EXPECT_EQ(std::get<darwinn::InstructionHint>(hints[i + 1].hint).chunk_index, static_cast<int>(i));
  }
  expect_sound(model, *package);
}

// ---- Parameters ----

// Bytes that are sent with every inference.
std::size_t streamed(const darwinn::Package& package) { return package.executables[0].parameters.size(); }

TEST(LargeNetworks, ALayerLargerThanTheChip) {
  QuantizedModel builder;
  const std::int32_t x = builder.input({1, 4, 4, 2048});
  const ir::Model model = builder.finish({builder.conv(builder.conv(x, 1024, 3), 64)});
  const auto package = compiler::generate_code(WholeModel(model).part(7));
  ASSERT_TRUE(package.ok()) << package.status().message();
  EXPECT_GT(streamed(*package), std::size_t{16} << 20);
  EXPECT_NE(package->find(darwinn::ExecutableType::kParameterCaching), nullptr);
  const Status runs = runs_as_chip_reference(model, *package, 1);
  EXPECT_TRUE(runs.ok()) << runs.message();
}

TEST(LargeNetworks, NothingIsKept) {
  const ir::Model model = chain(5, 6, {1, 9, 14, 16});
  const WholeModel whole(model);
  compiler::PartProgram part = whole.part(7);
  part.shares_chip = true;
  const auto package = compiler::generate_code(part);
  ASSERT_TRUE(package.ok()) << package.status().message();
  ASSERT_EQ(package->executables.size(), 1u);
  EXPECT_EQ(package->executables[0].type, darwinn::ExecutableType::kStandAlone);
  EXPECT_EQ(package->executables[0].parameter_caching_token, 0u);
  expect_sound(model, *package);
}

// Room for some of the layers, whichever these are.
TEST(LargeNetworks, RandomRoomForParameters) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    const ir::Model model = chain(seed, 5, {1, 5 + static_cast<int>(seed % 9), 4 + static_cast<int>(seed % 7), 12});
    const WholeModel whole(model);
    compiler::PartProgram part = whole.part(7);
    std::mt19937 random(seed);
    part.shares_chip = true;
    part.cached_bytes_max = static_cast<std::int64_t>(random() % 120) * chip::kWideLineBytes;
    for (std::int32_t& line : part.room.first_line) line = static_cast<std::int32_t>(random() % 40);
    part.room.end_line = 60;
    const auto code = compiler::generate_part(part);
    ASSERT_TRUE(code.ok()) << code.status().message();
    EXPECT_LE(code->memory->cached_bytes, part.cached_bytes_max);
    EXPECT_EQ(static_cast<std::int64_t>(streamed(code->package)), code->memory->streamed_bytes);
    for (const std::int32_t line : code->memory->next_line) EXPECT_LE(line, part.room.end_line);
    const device::Schedule schedule{.seed = seed % 3, .reluctant = seed % 5 == 4 ? 1u << (seed / 5 % 10) : 0};
    const Status runs = runs_as_chip_reference(model, code->package, seed, &schedule);
    EXPECT_TRUE(runs.ok()) << runs.message();
    if (seed % 4 == 0) expect_sound(model, code->package, seed);
  }
}

// ---- Several networks on one chip ----

TEST(LargeNetworks, TwoNetworksOfOneTokenTakeTurns) {
  const ir::Model first = chain(1, 4, {1, 8, 8, 16}), second = chain(2, 5, {1, 6, 10, 8});
  const WholeModel whole_first(first), whole_second(second);
  compiler::PartProgram part = whole_first.part(7);
  const auto a = compiler::generate_part(part);
  ASSERT_TRUE(a.ok()) << a.status().message();
  compiler::PartProgram other = whole_second.part(7);
  other.room.first_line = a->memory->next_line;
  other.room.end_line = a->memory->lowest_scratch_line;
  const auto b = compiler::generate_part(other);
  ASSERT_TRUE(b.ok()) << b.status().message();
  device::Device device({.threads = 1});
  const auto loaded_a = device::LoadedPackage::load(a->package), loaded_b = device::LoadedPackage::load(b->package);
  ASSERT_TRUE(loaded_a.ok() && loaded_b.ok());
  for (unsigned round = 0; round < 3; ++round) {
    EXPECT_TRUE(runs_as_chip_reference_on(device, first, *loaded_a, round).ok());
    EXPECT_TRUE(runs_as_chip_reference_on(device, second, *loaded_b, round).ok());
  }
  EXPECT_EQ(device.parameter_loads(), 2);
}

}  // namespace
}  // namespace reef::testing
