// SPDX-License-Identifier: Apache-2.0
#include "formats/darwinn/executable_reader.h"

namespace reef::darwinn {

namespace {

// Members of the enums, as bits.
constexpr std::uint32_t kBaseAddresses = 0b1111, kAddressHalves = 0b11, kDirections = 0b11, kExecutableTypes = 0b111;
constexpr int kNoHint = 0, kDescriptorHint = 1, kInstructionHint = 2, kInterruptHint = 3,
              kFenceHint = 4;  // union codes
constexpr int kInterrupts = 4;
constexpr std::size_t kMaxPrintedChars = 32;
constexpr std::int64_t kAddressFieldBits = 32;

FieldOffset read_field_offset(const FlatBuffer& buffer, std::size_t at, std::size_t bitstream_bytes) {
  FieldOffset result;
  Table table(buffer, at, "FieldOffset", result.written_defaults);
  result.use = read_address_use(table, FieldOffset::kUse);
  result.bit_offset = table.size(FieldOffset::kBitOffset, "bit_offset");
  if (result.bit_offset + kAddressFieldBits > 8 * static_cast<std::int64_t>(bitstream_bytes)) {
    table.fail_field(FieldOffset::kBitOffset, "bit_offset",
                     fmt::format("bits {}..{} are not in the chunk's {} bytes of instructions", result.bit_offset,
                                 result.bit_offset + kAddressFieldBits - 1, bitstream_bytes));
  }
  table.note_newer_fields(FieldOffset::kBitOffset + 1);
  return result;
}

std::vector<InstructionChunk> read_chunks(Table& executable) {
  std::vector<InstructionChunk> result;
  for (const std::size_t at :
       executable.children(Executable::kInstructionChunks, "instruction_chunks", sizeof(InstructionChunk))) {
    InstructionChunk& chunk = result.emplace_back();
    Table table(executable.buffer(), at, "InstructionChunk", chunk.written_defaults);
    chunk.bitstream = table.bytes(InstructionChunk::kBitstream, "bitstream");
    for (const std::size_t row :
         table.children(InstructionChunk::kFieldOffsets, "field_offsets", sizeof(FieldOffset))) {
      chunk.field_offsets.push_back(read_field_offset(table.buffer(), row, chunk.bitstream.size()));
      if (!table.ok()) break;
    }
    table.note_newer_fields(InstructionChunk::kFieldOffsets + 1);
    if (!table.ok()) break;
  }
  return result;
}

DescriptorHint read_descriptor_hint(const FlatBuffer& buffer, std::size_t at) {
  DescriptorHint result;
  Table table(buffer, at, "DescriptorHint", result.written_defaults);
  result.use = read_address_use(table, DescriptorHint::kUse);
  result.offset_bytes = table.size(DescriptorHint::kOffsetBytes, "offset_bytes");
  result.size_bytes = table.size(DescriptorHint::kSizeBytes, "size_bytes");
  table.note_newer_fields(DescriptorHint::kSizeBytes + 1);
  return result;
}

InstructionHint read_instruction_hint(const FlatBuffer& buffer, std::size_t at, std::size_t chunks) {
  InstructionHint result;
  Table table(buffer, at, "InstructionHint", result.written_defaults);
  result.chunk_index = table.size(InstructionHint::kChunkIndex, "chunk_index");
  if (static_cast<std::size_t>(result.chunk_index) >= chunks) {
    table.fail_field(InstructionHint::kChunkIndex, "chunk_index",
                     fmt::format("chunk {} of {} does not exist", result.chunk_index, chunks));
  }
  table.note_newer_fields(InstructionHint::kChunkIndex + 1);
  return result;
}

InterruptHint read_interrupt_hint(const FlatBuffer& buffer, std::size_t at) {
  InterruptHint result;
  Table table(buffer, at, "InterruptHint", result.written_defaults);
  result.interrupt = table.number<std::int16_t>(InterruptHint::kInterrupt, "interrupt");
  if (result.interrupt < 0 || result.interrupt >= kInterrupts) {
    table.fail_field(InterruptHint::kInterrupt, "interrupt",
                     fmt::format("{} is not one of the {} interrupts", result.interrupt, kInterrupts));
  }
  table.note_newer_fields(InterruptHint::kInterrupt + 1);
  return result;
}

void read_any_hint(Table& table, DmaHint& result, std::size_t chunks) {
  const int code = table.number<std::uint8_t>(DmaHint::kAnyHintType, "any_hint_type");
  const auto at = table.child(DmaHint::kAnyHint, "any_hint");
  if (code > kFenceHint) {
    return table.fail_field(DmaHint::kAnyHintType, "any_hint_type", fmt::format("kind {} is not known", code));
  }
  if (at.has_value() != (code != kNoHint)) {
    return table.fail_field(DmaHint::kAnyHint, "any_hint", "a kind without content, or the reverse");
  }
  if (code == kDescriptorHint) result.hint = read_descriptor_hint(table.buffer(), *at);
  if (code == kInstructionHint) result.hint = read_instruction_hint(table.buffer(), *at, chunks);
  if (code == kInterruptHint) result.hint = read_interrupt_hint(table.buffer(), *at);
  if (code == kFenceHint) {
    FieldSet no_fields = 0;
    Table(table.buffer(), *at, "FenceHint", no_fields).note_newer_fields(0);
    result.hint = FenceHint{};
  }
}

std::optional<DmaHints> read_hints(Table& executable, std::size_t chunks) {
  const auto at = executable.child(Executable::kDmaHints, "dma_hints");
  if (!at) return std::nullopt;
  DmaHints result;
  Table table(executable.buffer(), *at, "DmaHints", result.written_defaults);
  for (const std::size_t row_at : table.children(DmaHints::kHints, "hints", sizeof(DmaHint))) {
    DmaHint& row = result.hints.emplace_back();
    Table row_table(table.buffer(), row_at, "DmaHint", row.written_defaults);
    read_any_hint(row_table, row, chunks);
    row.direction = row_table.enumeration<Direction>(DmaHint::kDirection, "direction", kDirections);
    row_table.note_newer_fields(DmaHint::kDirection + 1);
    if (!table.ok()) break;
  }
  result.is_complete = table.flag(DmaHints::kIsComplete, "is_complete");
  table.note_newer_fields(DmaHints::kIsComplete + 1);
  return result;
}

}  // namespace

std::optional<AddressUse> read_address_use(Table& parent, int slot) {
  const auto at = parent.child(slot, "use");
  if (!at) return std::nullopt;
  AddressUse result;
  Table table(parent.buffer(), *at, "AddressUse", result.written_defaults);
  result.base = table.enumeration<BaseAddress>(AddressUse::kBase, "base", kBaseAddresses);
  result.batch = table.size(AddressUse::kBatch, "batch");
  result.name = table.text(AddressUse::kName, "name");
  result.half = table.enumeration<AddressHalf>(AddressUse::kHalf, "half", kAddressHalves);
  table.note_newer_fields(AddressUse::kHalf + 1);
  return result;
}

Executable read_executable_buffer(const FlatBuffer& buffer, bool is_bare) {
  Executable result;
  Table table = buffer.root("Executable", "", result.written_defaults);
  result.version = table.number<std::int32_t>(Executable::kVersion, "version");
  result.name = table.text(Executable::kName, "name");
  result.serialized_model = table.bytes(Executable::kSerializedModel, "serialized_model");
  result.batch_size = table.size(Executable::kBatchSize, "batch_size");
  result.scratch_size_bytes = table.size(Executable::kScratchSizeBytes, "scratch_size_bytes");
  result.instruction_chunks = read_chunks(table);
  result.parameters = table.bytes(Executable::kParameters, "parameters");
  result.dma_hints = read_hints(table, result.instruction_chunks.size());
  result.input_layers = read_layers(table, Executable::kInputLayers, "input_layers", is_bare);
  result.output_layers = read_layers(table, Executable::kOutputLayers, "output_layers", is_bare);
  result.chip = table.text(Executable::kChip, "chip");
  if (is_bare && !table.has(Executable::kChip)) result.chip = kChipName;
  result.estimated_cycles_32 = table.number<std::int32_t>(Executable::kEstimatedCycles32, "estimated_cycles_32");
  result.used_narrow_memory_bytes = table.size(Executable::kUsedNarrowMemoryBytes, "used_narrow_memory_bytes");
  result.type = table.enumeration<ExecutableType>(Executable::kType, "type", kExecutableTypes);
  result.parameter_caching_token =
      table.number<std::uint64_t>(Executable::kParameterCachingToken, "parameter_caching_token");
  result.use_tpu_dram_for_parameters = table.flag(Executable::kUseTpuDramForParameters, "use_tpu_dram_for_parameters");
  result.estimated_cycles = table.number<std::int64_t>(Executable::kEstimatedCycles, "estimated_cycles");
  table.note_newer_fields(Executable::kEstimatedCycles + 1);
  // The one default whose presence depends on the type (see new_executable): a value must not hide what is usual.
  if (!result.serialized_model.empty()) {
    result.written_defaults |= new_executable(result.type).written_defaults & field_set(Executable::kSerializedModel);
  }
  if (table.ok() && result.chip != kChipName) {
    buffer.state().fail(
        unsupported("the program is for the chip '{}'; Reef knows only '{}', the Edge TPU of Coral "
                    "products: compile the model for that chip",
                    result.chip.substr(0, kMaxPrintedChars), kChipName));
  }
  return result;
}

}  // namespace reef::darwinn
