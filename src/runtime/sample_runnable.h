// SPDX-License-Identifier: Apache-2.0
// The sample package of retarget/sample_package.h, made to run on a device: for tests that run from a clone alone.
#pragma once

#include <string>

#include <gtest/gtest.h>

#include "formats/darwinn/reader.h"
#include "formats/tflite/reader.h"
#include "isa/assembler.h"
#include "isa/scalar.h"
#include "retarget/sample_package.h"

namespace reef::runtime::testing {

using retarget::testing::SampleLayer;

// The sample's programs leave transfers to hints; on a device they must ask for them.
inline void ask_for(darwinn::Executable& executable, darwinn::BaseAddress base, const std::string& layer, int bytes,
                    int tag) {
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

inline SampleLayer sample_weights() {
  SampleLayer layer;
  for (std::size_t i = 0; i < layer.weights.size(); ++i) layer.weights[i] = static_cast<std::uint8_t>(100 + 3 * i);
  layer.biases = {5, -70, 300, 0};
  return layer;
}

// sample_compiled(), made to run on a device.
inline ir::Model compiled_from(const SampleLayer& layer) {
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

}  // namespace reef::runtime::testing
