// SPDX-License-Identifier: Apache-2.0
// Networks that do not fit, on the virtual device: more instructions than one piece holds, more parameters than the
// chip keeps, several networks on one chip. Outputs must be those of the chip reference to the last bit.
#include <cstdlib>
#include <random>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "generated_code.h"
#include "isa/opcode.h"
#include "isa/program.h"
#include "quantized_model.h"
#include "trials.h"

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
    const device::Schedule schedule = schedule_of(seed);
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

// ---- Activations ----

// Convolutions, paddings and sums, so that some tensors have several readers.
class RandomImageNetwork {
 public:
  explicit RandomImageNetwork(unsigned seed) : random_(seed) {}

  ir::Model make(int layers, int most_rows) {
    const int channels = among({1, 2, 3, 3, 4, 8, 12});
    std::int32_t x = model_.input({1, 1 + pick(most_rows), 1 + pick(40), channels});
    std::vector<std::int32_t> made = {x};
    for (int i = 0; i < layers; ++i) made.push_back(layer(made));
    return model_.finish({made.back()});
  }

 private:
  int pick(int end) { return static_cast<int>(random_() % static_cast<unsigned>(end)); }
  int among(std::initializer_list<int> values) { return *(values.begin() + pick(static_cast<int>(values.size()))); }

  std::int32_t layer(const std::vector<std::int32_t>& made) {
    const std::int32_t x = made.back();
    switch (pick(14)) {
      case 12:
        return limited(x);
      case 13:
        return squared(x);
      case 5:
        return model_.mul(x, model_.logistic(x));
      case 6:
        return prelu(x);
      case 4:
        return model_.max_pool(x, among({2, 3}), among({1, 2}));
      case 0:
        for (const std::int32_t other : made) {
          if (other != x && model_.shape(other) == model_.shape(x)) return model_.add(x, other);
        }
        return model_.depthwise(x, 3);
      case 1:
        return model_.depthwise(x, among({1, 3, 5}), among({1, 1, 2}));
      case 2:
        return padded_convolution(x);
      case 3:
        return model_.logistic(x);
      default:
        return model_.conv(x, pick(3) == 0 ? model_.shape(x).last() : among({4, 7, 16, 70}), among({1, 1, 2, 3, 5}),
                           among({1, 1, 1, 2, 3}));
    }
  }
  std::int32_t like(std::int32_t x) {
    const ir::Quantization& q = model_.tensor(x).quantization;
    return model_.computed(ir::Shape(model_.shape(x)), Quantized{ir::DataType::kInt8, q.scale[0], q.zero_point[0]});
  }
  // The maximum of it and one number, or one per channel.
  std::int32_t limited(std::int32_t x) {
    const std::int32_t limits = model_.weights(pick(2) == 0 ? ir::Shape{} : ir::Shape{model_.shape(x).last()});
    model_.tensor(limits).quantization = model_.tensor(x).quantization;
    return model_.op(pick(2) == 0 ? "MAXIMUM" : "MINIMUM", {x, limits}, {like(x)}, "MaximumMinimumOptions");
  }
  std::int32_t squared(std::int32_t x) {
    if (pick(2) == 0) return model_.op("RSQRT", {x}, {like(x)});
    return model_.op("SQUARED_DIFFERENCE", {x, model_.depthwise(x, 3)}, {like(x)}, "SquaredDifferenceOptions");
  }
  std::int32_t prelu(std::int32_t x) {
    const ir::Quantization like = model_.tensor(x).quantization;
    const std::int32_t slopes = model_.weights({1, 1, model_.shape(x).last()}, 0.005f);
    const std::int32_t y =
        model_.computed(ir::Shape(model_.shape(x)), Quantized{ir::DataType::kInt8, like.scale[0], like.zero_point[0]});
    return model_.op("PRELU", {x, slopes}, {y});
  }
  std::int32_t padded_convolution(std::int32_t x) {
    const ir::Shape shape = model_.shape(x);
    const int top = pick(3), bottom = pick(4), left = pick(3), right = pick(3);
    const int height = shape[1] + top + bottom, width = shape[2] + left + right;
    if (height < 3 || width < 3) return model_.conv(x, 8);
    const ir::Quantization like = model_.tensor(x).quantization;
    const std::int32_t padded = model_.computed({1, height, width, shape[3]},
                                                Quantized{ir::DataType::kInt8, like.scale[0], like.zero_point[0]});
    model_.op("PAD", {x, model_.ints({0, 0, top, bottom, left, right, 0, 0}, {4, 2})}, {padded}, "PadOptions");
    const std::int32_t y = model_.conv(padded, among({4, 12, 20}), 3, 2);
    model_.last_op().attributes.set("padding", ir::AttributeValue(ir::EnumName{"VALID"}));
    model_.tensor(y).shape = {1, (height - 3) / 2 + 1, (width - 3) / 2 + 1, model_.shape(y).last()};
    return y;
  }

  std::mt19937 random_;
  QuantizedModel model_;
};

std::string describe_ops(const ir::Model& model) {
  std::string text;
  for (const ir::Operator& op : model.subgraphs[0].operators) {
    text += op.type;
    for (const auto* list : {&op.inputs, &op.outputs}) {
      for (const std::int32_t t : *list) {
        text += t < 0 ? " -"
                      : fmt::format(" {}", model.subgraphs[0].tensors[static_cast<std::size_t>(t)].shape.to_string());
      }
      text += " ;";
    }
    text += "\n";
  }
  return text;
}

TEST(LargeNetworks, RandomSlicesAreBitExact) {
  const auto [begin, end] = seeds_to_try(120);
  int ran = 0, refused = 0;
  for (unsigned seed = begin; seed < end; ++seed) {
    const ir::Model model = RandomImageNetwork(seed).make(1 + static_cast<int>(seed % 6), 40);
    const WholeModel whole(model);
    std::mt19937 random(seed);
    const auto ops = static_cast<std::int32_t>(whole.ops.size());
    const auto from = static_cast<std::int32_t>(random() % 3 == 0 ? random() % static_cast<unsigned>(ops) : 0);
    const auto to = from + static_cast<std::int32_t>(random() % static_cast<unsigned>(ops - from));
    const lower::SliceGroup group{from, to, 1 + static_cast<std::int32_t>(random() % 5)};
    SCOPED_TRACE(fmt::format("seed {}, operators {} to {} in {} slices\n{}", seed, group.first, group.last,
                             group.slices, describe_ops(model)));
    if (!lower::Sliceable({model, whole.ops, whole.inputs, whole.outputs}).group(group)) {
      ++refused;
      continue;
    }
    compiler::GenerationOptions options;
    options.level = seed % 2 == 0 ? tiled::Level::kAsGoogle : tiled::Level::kBetter;
    options.slices = {group};
    const auto package = compiler::generate_code_with(whole.part(7), options);
    if (!package.ok()) {
      EXPECT_EQ(package.status().code(), StatusCode::kUnsupported) << package.status().message();
      std::printf("%u: %s\n", seed, package.status().message().c_str());
      ++refused;
      continue;
    }
    const device::Schedule schedule = schedule_of(seed);
    const Status runs = runs_as_chip_reference(model, *package, seed, &schedule);
    EXPECT_TRUE(runs.ok()) << runs.message();
    if (seed % 4 == 0) expect_sound(model, *package, seed);
    ++ran;
  }
  std::printf("%d networks ran, %d were refused\n", ran, refused);
  EXPECT_GE(ran, static_cast<int>(end - begin) / 2);
}

// Sizes from what fits easily to what does not by far: each must compile, none by luck.
TEST(LargeNetworks, GrowingImages) {
  for (const int size : {64, 160, 224, 300, 353, 481, 512, 640}) {
    SCOPED_TRACE(size);
    QuantizedModel builder;
    std::int32_t x = builder.conv(builder.input({1, size, size, 3}), 32, 3, 2);
    x = builder.conv(builder.depthwise(x), 64);
    x = builder.conv(builder.depthwise(x, 3, 2), 128);
    const std::int32_t skip = x;
    x = builder.add(builder.conv(builder.depthwise(x), 128), skip);
    x = builder.conv(builder.depthwise(x, 3, 2), 64);
    const ir::Model model = builder.finish({x});
    const auto package = compiler::generate_code(WholeModel(model).part(7));
    ASSERT_TRUE(package.ok()) << package.status().message();
    const Status runs = runs_as_chip_reference(model, *package, 3);
    EXPECT_TRUE(runs.ok()) << runs.message();
  }
}

// What is not used for a while waits in wide memory.
TEST(LargeNetworks, ActivationsArePutAside) {
  QuantizedModel builder;
  const std::int32_t a = builder.conv(builder.input({1, 126, 121, 3}), 80, 3);
  std::int32_t x = a;
  for (int i = 0; i < 3; ++i) x = builder.conv(x, 80);
  const ir::Model model = builder.finish({builder.conv(builder.add(x, a), 4)});
  compiler::GenerationOptions options;
  options.slices.emplace();  // none
  const auto package = compiler::generate_code_with(WholeModel(model).part(7), options);
  ASSERT_TRUE(package.ok()) << package.status().message();
  expect_sound(model, *package);
}

// MobileNet v2 without its head.
ir::Model mobile_net(int height, int width) {
  QuantizedModel model;
  std::int32_t x = model.conv(model.input({1, height, width, 3}), 32, 3, 2, "RELU6");
  struct Stage {
    int expansion, channels, blocks, stride;
  };
  for (const Stage& stage : {Stage{1, 16, 1, 1}, Stage{6, 24, 2, 2}, Stage{6, 32, 3, 2}, Stage{6, 64, 4, 2},
                             Stage{6, 96, 3, 1}, Stage{6, 160, 3, 2}, Stage{6, 320, 1, 1}}) {
    for (int i = 0; i < stage.blocks; ++i) {
      const std::int32_t before = x;
      const int channels = model.shape(x).last();
      if (stage.expansion > 1) x = model.conv(x, channels * stage.expansion, 1, 1, "RELU6");
      x = model.conv(model.depthwise(x, 3, i == 0 ? stage.stride : 1, "RELU6"), stage.channels);
      if (model.shape(x) == model.shape(before)) x = model.add(x, before);
    }
  }
  return model.finish({model.conv(x, 64)});
}

// None may fail where a larger one works, and memory must never run out.
TEST(LargeNetworks, MobileNetsOfAllSizes) {
  for (int size = 96; size <= 1024; size += size < 512 ? 32 : 128) {
    SCOPED_TRACE(size);
    const ir::Model model = mobile_net(size, size - size / 5);
    const auto package = compiler::generate_code(WholeModel(model).part(7));
    ASSERT_TRUE(package.ok()) << package.status().message();
    EXPECT_LE(package->executables[0].used_narrow_memory_bytes, chip::kNarrowBytes);
    if (size != 352) continue;
    const Status runs = runs_as_chip_reference(model, *package, 3);
    EXPECT_TRUE(runs.ok()) << runs.message();
  }
}

}  // namespace
}  // namespace reef::testing
