// SPDX-License-Identifier: Apache-2.0
#include "host/programs.h"

#include "formats/darwinn/without_code.h"

namespace reef::host {
namespace {

constexpr int kAddressBits = 32;  // of one half

// Addresses lie anywhere in a row of instructions; no Google file has them at a whole byte.
void set_bits(std::span<std::uint8_t> bytes, std::size_t bit, std::uint32_t value) {
  for (int i = 0; i < kAddressBits; ++i, ++bit) {
    const auto mask = static_cast<std::uint8_t>(1u << (bit % 8));
    std::uint8_t& byte = bytes[bit / 8];
    byte = (value >> i & 1) != 0 ? static_cast<std::uint8_t>(byte | mask) : static_cast<std::uint8_t>(byte & ~mask);
  }
}

}  // namespace

Result<Programs> find_programs(const darwinn::Package& package) {
  REEF_RETURN_IF_ERROR(darwinn::require_code(package));
  Programs programs;
  for (const darwinn::Executable& executable : package.executables) {
    if (executable.type == darwinn::ExecutableType::kParameterCaching) {
      programs.caching = &executable;
    } else if (programs.execution == nullptr || executable.type == darwinn::ExecutableType::kExecutionOnly) {
      programs.execution = &executable;
    }
  }
  REEF_REQUIRE(programs.execution != nullptr, "the package has no program to run");
  return programs;
}

BufferIndex::BufferIndex(const darwinn::Executable& executable) {
  for (const darwinn::Layer& layer : executable.input_layers) inputs_.emplace(layer.name, count_++);
  for (const darwinn::Layer& layer : executable.output_layers) outputs_.emplace(layer.name, count_++);
}

Result<std::size_t> BufferIndex::find(const darwinn::AddressUse& use) const {
  if (use.base == darwinn::BaseAddress::kParameter) return kParameters;
  if (use.base == darwinn::BaseAddress::kScratch) return kScratch;
  const auto& layers = use.base == darwinn::BaseAddress::kInput ? inputs_ : outputs_;
  const auto found = layers.find(use.name);
  REEF_REQUIRE(found != layers.end(), "the program addresses a layer '{}' that the package does not have", use.name);
  return found->second;
}

Result<std::vector<std::vector<std::uint8_t>>> relocated(const darwinn::Executable& executable,
                                                         std::span<const std::uint64_t> addresses) {
  const BufferIndex index(executable);
  if (addresses.size() != index.count()) {
    return internal_error("{} addresses were given for {} buffers", addresses.size(), index.count());
  }
  std::vector<std::vector<std::uint8_t>> chunks;
  for (std::size_t c = 0; c < executable.instruction_chunks.size(); ++c) {
    const darwinn::InstructionChunk& chunk = executable.instruction_chunks[c];
    const auto bytes = chunk.bitstream.span();
    auto& copy = chunks.emplace_back(bytes.begin(), bytes.end());
    for (const darwinn::FieldOffset& field : chunk.field_offsets) {
      if (!field.use) continue;
      REEF_ASSIGN_OR_RETURN(const std::size_t buffer, index.find(*field.use));
      const std::int64_t last_start = static_cast<std::int64_t>(copy.size()) * 8 - kAddressBits;
      REEF_REQUIRE(field.bit_offset >= 0 && field.bit_offset <= last_start,
                   "the package wants an address at bit {} of chunk {}, which has {} bytes", field.bit_offset, c,
                   copy.size());
      const bool upper = field.use->half == darwinn::AddressHalf::kUpper;
      set_bits(copy, static_cast<std::size_t>(field.bit_offset),
               static_cast<std::uint32_t>(upper ? addresses[buffer] >> 32 : addresses[buffer]));
    }
  }
  return chunks;
}

}  // namespace reef::host
