// SPDX-License-Identifier: Apache-2.0
// Packages for tests and fuzzers: made by hand, no instruction in them means anything.
#pragma once

#include <string>
#include <vector>

#include "formats/darwinn/package.h"

namespace reef::darwinn::testing {

inline Bytes counted_bytes(std::size_t count, std::uint8_t first) {
  std::vector<std::uint8_t> bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::uint8_t>(first + i);
  return Bytes(std::move(bytes));
}

inline FieldOffset make_field_offset(BaseAddress base, std::string name, AddressHalf half, std::int32_t bit_offset) {
  FieldOffset field;
  field.use->base = base;
  field.use->name = std::move(name);
  field.use->half = half;
  field.bit_offset = bit_offset;
  return field;
}

inline DmaHint make_descriptor_hint(BaseAddress base, std::string name, Direction direction, std::int32_t size) {
  DescriptorHint descriptor;
  descriptor.use->base = base;
  descriptor.use->name = std::move(name);
  descriptor.size_bytes = size;
  DmaHint hint;
  hint.hint = descriptor;
  hint.direction = direction;
  return hint;
}

inline Layer make_input_layer() {
  Layer layer;
  layer.name = "input";
  layer.size_bytes = 16;
  layer.y_dim = 2;
  layer.x_dim = 2;
  layer.z_dim = 3;
  layer.numerics = Numerics{.zero_point = 128, .dequantization_factor = 0.5f};
  layer.info = InputInfo{};
  return layer;
}

inline Layer make_output_layer() {
  Layer layer;
  layer.name = "output";
  layer.size_bytes = 8;
  layer.y_dim = 1;
  layer.x_dim = 2;
  layer.z_dim = 4;
  layer.numerics = Numerics{.zero_point = 0, .dequantization_factor = 0.25f};
  layer.data_type = DataType::kInt8;
  OutputInfo info;
  info.layout = OutputLayout{.y_to_tile = {0},
                             .x_to_tile = {0, 1},
                             .tile_offset = {0, 4},
                             .x_to_local_offset = {0, 0},
                             .y_to_local_row = {0},
                             .x_to_row_size = {4, 4}};
  layer.info = info;
  layer.shape = TensorShape{.dimensions = {{0, 0}, {0, 0}, {0, 1}, {0, 3}}};
  return layer;
}

// As Google's newest compiler makes them: one program that runs and one that loads its parameters.
inline CustomOptions make_options() {
  CustomOptions options;
  Executable run = new_executable(ExecutableType::kExecutionOnly);
  InstructionChunk& chunk = run.instruction_chunks.emplace_back();
  chunk.bitstream = counted_bytes(160, 0);
  chunk.field_offsets = {make_field_offset(BaseAddress::kInput, "input", AddressHalf::kUpper, 70),
                         make_field_offset(BaseAddress::kInput, "input", AddressHalf::kLower, 198),
                         make_field_offset(BaseAddress::kScratch, "", AddressHalf::kLower, 326)};
  run.dma_hints.emplace();
  run.dma_hints->hints = {DmaHint{.hint = InstructionHint{}},
                          make_descriptor_hint(BaseAddress::kInput, "input", Direction::kToDevice, 16),
                          make_descriptor_hint(BaseAddress::kOutput, "output", Direction::kToHost, 8),
                          DmaHint{.hint = InterruptHint{}, .direction = Direction::kToHost}};
  run.input_layers = {make_input_layer()};
  run.output_layers = {make_output_layer()};
  run.used_narrow_memory_bytes = 64;
  run.parameter_caching_token = 0x0123456789abcdef;
  Executable cache = new_executable(ExecutableType::kParameterCaching);
  cache.instruction_chunks.emplace_back().bitstream = counted_bytes(32, 7);
  cache.parameters = counted_bytes(100, 3);
  cache.dma_hints.emplace();
  cache.dma_hints->hints = {DmaHint{.hint = InstructionHint{}},
                            make_descriptor_hint(BaseAddress::kParameter, "", Direction::kToDevice, 100)};
  cache.parameter_caching_token = run.parameter_caching_token;
  options.package.executables = {run, cache};
  return options;
}

// Says something in every field.
inline CustomOptions make_full_options() {
  CustomOptions options = make_options();
  options.version = 1;
  options.chip_name = "beagle";
  options.parameter_caching_package = counted_bytes(5, 1);
  options.execution_preference = 2;
  options.chip_versions = std::vector<std::int32_t>{kBeagleChipVersion, 300};
  options.other_packages = std::vector<Bytes>{counted_bytes(300, 9)};
  Package& package = options.package;
  package.signature = counted_bytes(64, 1);
  package.keypair_version = 3;
  package.compiler_version = "cl/123";
  package.virtual_chip_id = -1;
  package.multi_chip_packages = {counted_bytes(10, 0), counted_bytes(7, 5)};
  package.model_identifier = "of a test";
  Executable& run = package.executables[0];
  run.version = 5;
  run.serialized_model = counted_bytes(9, 1);
  run.batch_size = 2;
  run.scratch_size_bytes = 672;
  run.parameters = counted_bytes(64, 2);
  run.estimated_cycles_32 = 77;
  run.use_tpu_dram_for_parameters = true;
  run.estimated_cycles = std::int64_t{1} << 40;
  InstructionChunk& second = run.instruction_chunks.emplace_back();
  second.bitstream = counted_bytes(16, 1);
  second.field_offsets = {make_field_offset(BaseAddress::kParameter, "named", AddressHalf::kLower, 96)};
  second.field_offsets[0].use->batch = 1;
  second.field_offsets.push_back({.use = std::nullopt, .bit_offset = 4});
  std::get<DescriptorHint>(run.dma_hints->hints[1].hint).offset_bytes = 4;
  run.dma_hints->hints.push_back({.hint = FenceHint{}});
  run.dma_hints->hints.push_back({.hint = InstructionHint{.chunk_index = 1}});
  run.dma_hints->hints.push_back({.hint = InterruptHint{.interrupt = 3}});
  run.dma_hints->hints.push_back({});
  run.dma_hints->is_complete = false;
  Layer sliced = make_output_layer();
  sliced.name = "sliced";
  auto& info = std::get<OutputInfo>(sliced.info);
  info.layout.reset();
  info.data_type = DataType::kInt16;
  info.slices.emplace();
  info.slices->layouts = {{.shape = TensorShape{.dimensions = {{0, 1}, {2, 3}}}, .stride = {4, 1}}, {}};
  info.slices->offsets = {0, 128};
  sliced.executions_per_inference = 7;
  sliced.cache_on_dram = true;
  Layer bare;
  bare.executions_per_inference = 0;
  run.output_layers.push_back(sliced);
  run.output_layers.push_back(bare);
  return options;
}

}  // namespace reef::darwinn::testing
