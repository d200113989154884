// SPDX-License-Identifier: Apache-2.0
//
// The order of the calls is the order of the bytes, from the end of the buffer to its start. It was found by comparing
// with every program of 58 files of four compiler generations, which agree in it.
#include "formats/darwinn/executable_writer.h"

namespace reef::darwinn {
namespace {

Place write_use(BufferWriter& buffer, const std::optional<AddressUse>& use) {
  if (!use) return 0;
  TableWriter table(buffer, use->written_defaults);
  if (!use->name.empty()) {
    table.reference(AddressUse::kName, buffer.text(use->name));
  } else if (table.writes_default(AddressUse::kName)) {
    table.reference(AddressUse::kName, buffer.shared_empty_text());
  }
  table.enumeration(AddressUse::kBase, use->base);
  table.number(AddressUse::kBatch, use->batch);
  table.enumeration(AddressUse::kHalf, use->half);
  return table.finish();
}

Place write_field_offset(BufferWriter& buffer, const FieldOffset& field) {
  const Place use = write_use(buffer, field.use);
  TableWriter table(buffer, field.written_defaults);
  table.reference(FieldOffset::kUse, use);
  table.number(FieldOffset::kBitOffset, field.bit_offset);
  return table.finish();
}

Place write_chunk(BufferWriter& buffer, const InstructionChunk& chunk) {
  TableWriter table(buffer, chunk.written_defaults);
  if (!chunk.bitstream.empty() || table.writes_default(InstructionChunk::kBitstream)) {
    table.reference(InstructionChunk::kBitstream, buffer.bytes(chunk.bitstream));
  }
  std::vector<Place> fields;
  for (const FieldOffset& field : chunk.field_offsets) fields.push_back(write_field_offset(buffer, field));
  if (!fields.empty() || table.writes_default(InstructionChunk::kFieldOffsets)) {
    table.reference(InstructionChunk::kFieldOffsets, buffer.list(fields));
  }
  return table.finish();
}

Place write_any_hint(BufferWriter& buffer, const DmaHint& row) {
  if (const auto* descriptor = std::get_if<DescriptorHint>(&row.hint)) {
    const Place use = write_use(buffer, descriptor->use);
    TableWriter table(buffer, descriptor->written_defaults);
    table.reference(DescriptorHint::kUse, use);
    table.number(DescriptorHint::kOffsetBytes, descriptor->offset_bytes);
    table.number(DescriptorHint::kSizeBytes, descriptor->size_bytes);
    return table.finish();
  }
  if (const auto* instruction = std::get_if<InstructionHint>(&row.hint)) {
    TableWriter table(buffer, instruction->written_defaults);
    table.number(InstructionHint::kChunkIndex, instruction->chunk_index);
    return table.finish();
  }
  if (const auto* interrupt = std::get_if<InterruptHint>(&row.hint)) {
    TableWriter table(buffer, interrupt->written_defaults);
    table.number(InterruptHint::kInterrupt, interrupt->interrupt);
    return table.finish();
  }
  return std::holds_alternative<FenceHint>(row.hint) ? TableWriter(buffer, 0).finish() : 0;
}

Place write_hints(BufferWriter& buffer, const std::optional<DmaHints>& hints) {
  if (!hints) return 0;
  std::vector<Place> rows;
  for (const DmaHint& row : hints->hints) {
    const Place any = write_any_hint(buffer, row);
    TableWriter table(buffer, row.written_defaults);
    table.number(DmaHint::kAnyHintType, static_cast<std::uint8_t>(row.hint.index()));
    table.reference(DmaHint::kAnyHint, any);
    table.enumeration(DmaHint::kDirection, row.direction);
    rows.push_back(table.finish());
  }
  TableWriter table(buffer, hints->written_defaults);
  if (!rows.empty() || table.writes_default(DmaHints::kHints)) {
    table.reference(DmaHints::kHints, buffer.list(rows));
  }
  table.flag(DmaHints::kIsComplete, hints->is_complete);
  return table.finish();
}

void write_numbers(TableWriter& table, const Executable& executable) {
  table.number(Executable::kVersion, executable.version);
  table.number(Executable::kBatchSize, executable.batch_size);
  table.number(Executable::kScratchSizeBytes, executable.scratch_size_bytes);
  table.number(Executable::kEstimatedCycles32, executable.estimated_cycles_32);
  table.number(Executable::kUsedNarrowMemoryBytes, executable.used_narrow_memory_bytes);
  table.enumeration(Executable::kType, executable.type);
  table.number(Executable::kParameterCachingToken, executable.parameter_caching_token);
  table.flag(Executable::kUseTpuDramForParameters, executable.use_tpu_dram_for_parameters);
  table.number(Executable::kEstimatedCycles, executable.estimated_cycles);
}

}  // namespace

Place write_executable_table(BufferWriter& buffer, const Executable& executable, bool is_bare) {
  TableWriter table(buffer, executable.written_defaults);
  std::vector<Place> chunks, inputs, outputs;
  for (const InstructionChunk& chunk : executable.instruction_chunks) chunks.push_back(write_chunk(buffer, chunk));
  for (const Layer& layer : executable.input_layers) inputs.push_back(write_layer(buffer, layer, is_bare));
  for (const Layer& layer : executable.output_layers) outputs.push_back(write_layer(buffer, layer, is_bare));
  const auto is_written = [&](int slot, bool is_empty) { return !is_empty || table.writes_default(slot); };
  if (is_written(Executable::kParameters, executable.parameters.empty())) {
    table.reference(Executable::kParameters, buffer.bytes(executable.parameters, kPageBytes));
  }
  if (is_written(Executable::kName, executable.name.empty())) {
    table.reference(Executable::kName, buffer.text(executable.name));
  }
  if (is_written(Executable::kSerializedModel, executable.serialized_model.empty())) {
    table.reference(Executable::kSerializedModel, buffer.bytes(executable.serialized_model));
  }
  if (is_written(Executable::kInstructionChunks, chunks.empty())) {
    table.reference(Executable::kInstructionChunks, buffer.list(chunks));
  }
  table.reference(Executable::kDmaHints, write_hints(buffer, executable.dma_hints));
  if (is_written(Executable::kInputLayers, inputs.empty())) {
    table.reference(Executable::kInputLayers, buffer.list(inputs));
  }
  if (is_written(Executable::kOutputLayers, outputs.empty())) {
    table.reference(Executable::kOutputLayers, buffer.list(outputs));
  }
  if (is_written(Executable::kChip, executable.chip.empty())) {
    table.reference(Executable::kChip, buffer.text(executable.chip));
  }
  write_numbers(table, executable);
  return table.finish();
}

}  // namespace reef::darwinn
