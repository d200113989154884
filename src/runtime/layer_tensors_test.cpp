// SPDX-License-Identifier: Apache-2.0
// A small package made by hand, from its source to its layer.
#include "runtime/layer_tensors.h"

#include <cmath>

#include <gtest/gtest.h>

#include "execute/device/device.h"
#include "formats/darwinn/reader.h"
#include "formats/tflite/reader.h"
#include "isa/assembler.h"
#include "isa/scalar.h"
#include "retarget/sample_package.h"

namespace reef::runtime {
namespace {

using retarget::testing::SampleLayer;

// The sample's programs leave transfers to hints; on a device they must ask for them.
void ask_for(darwinn::Executable& executable, darwinn::BaseAddress base, const std::string& layer, int bytes, int tag) {
  const auto ask =
      isa::assemble(fmt::format("scalar r0 = mov 0\nscalar r1 = mov 0\nscalar dma.address_lo = r0\n"
                                "scalar r2 = mov {} | dma.address_hi = r1\n"
                                "scalar r3 = mov {} | dma.bytes = r2\n"
                                "scalar dma.tag = r3\nscalar dma.issue\n",
                                bytes, tag));
  ASSERT_TRUE(ask.ok()) << ask.status().message();
  darwinn::InstructionChunk& chunk = executable.instruction_chunks[0];
  isa::Program program = *ask;
  const auto rest = isa::decode(chunk.bitstream.span());
  ASSERT_TRUE(rest.ok());
  program.insert(program.end(), rest->begin(), rest->end());
  chunk.bitstream = Bytes(isa::encode(program));
  for (darwinn::FieldOffset& field : chunk.field_offsets) field.bit_offset += 7 * isa::kRowBits;
  for (int row = 0; row < 2; ++row) {
    darwinn::FieldOffset field;
    field.use->base = base;
    field.use->name = layer;
    field.use->half = row == 0 ? darwinn::AddressHalf::kLower : darwinn::AddressHalf::kUpper;
    field.bit_offset = row * isa::kRowBits + isa::bundle::kAluOperand.bit;
    chunk.field_offsets.push_back(field);
  }
}

SampleLayer sample_layer() {
  SampleLayer layer;
  for (std::size_t i = 0; i < layer.weights.size(); ++i) layer.weights[i] = static_cast<std::uint8_t>(100 + 3 * i);
  layer.biases = {5, -70, 300, 0};
  return layer;
}

ir::Model compiled_from(const SampleLayer& layer) {
  const auto file = retarget::testing::sample_compiled(layer);
  EXPECT_TRUE(file.ok()) << file.status().message();
  ir::Model model = tflite::read_model(Bytes(*file)).value();
  ir::Operator& op = model.subgraphs[0].operators[0];
  darwinn::CustomOptions options = darwinn::read_custom_options(op.custom_options).value();
  ask_for(options.package.executables[0], darwinn::BaseAddress::kOutput, "out", 8, 3);
  ask_for(options.package.executables[0], darwinn::BaseAddress::kInput, "in", 8, 1);
  ask_for(options.package.executables[1], darwinn::BaseAddress::kParameter, "", 128, 2);
  op.custom_options = Bytes(darwinn::write_custom_options(options).value());
  return model;
}

TEST(LayerTensors, GivesALayerAsTheChipComputesIt) {
  const SampleLayer layer = sample_layer();
  const ir::Model compiled = compiled_from(layer), source = retarget::testing::sample_model(layer);
  const auto layers = LayerTensors::create(compiled, source);
  ASSERT_TRUE(layers.ok()) << layers.status().message();
  auto options = darwinn::read_custom_options(compiled.subgraphs[0].operators[0].custom_options);
  const auto package = device::LoadedPackage::load(std::move(options->package));
  ASSERT_TRUE(package.ok()) << package.status().message();
  device::Device device;
  device.set_observer(&(*layers)->observer());
  const std::vector<std::uint8_t> input = {10, 200, 33, 90};
  const auto returned = device.run(*package, {input});
  ASSERT_TRUE(returned.ok()) << returned.status().message();
  const std::vector<LayerTensor> found = (*layers)->tensors();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].state, LayerTensor::State::kComputed) << found[0].reason;
  std::vector<std::uint8_t> expected;
  for (std::size_t out = 0; out < 4; ++out) {
    int sum = layer.biases[out];
    for (std::size_t in = 0; in < 4; ++in) {
      sum += (input[in] - layer.input_zero) * (layer.weights[4 * out + in] - layer.weight_zero);
    }
    const double rounded = std::nearbyint(sum * (0.5 * 0.25)) + layer.output_zero;
    expected.push_back(static_cast<std::uint8_t>(std::min(std::max(rounded, 0.0), 255.0)));
  }
  EXPECT_EQ(found[0].bytes, expected);
  EXPECT_EQ((*returned)[0], expected);
}

TEST(LayerTensors, RefusesAnotherSource) {
  SampleLayer layer = sample_layer();
  const ir::Model compiled = compiled_from(layer);
  layer.weights[7] ^= 1;
  const ir::Model source = retarget::testing::sample_model(layer);
  const auto layers = LayerTensors::create(compiled, source);
  ASSERT_FALSE(layers.ok());
  EXPECT_NE(layers.status().message().find("was not made from this source"), std::string::npos)
      << layers.status().message();
}

}  // namespace
}  // namespace reef::runtime
