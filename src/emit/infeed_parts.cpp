// SPDX-License-Identifier: Apache-2.0
#include "emit/infeed_parts.h"

#include "emit/registers.h"
#include "isa/host_queues.h"
#include "isa/mesh.h"
#include "isa/movers.h"
#include "isa/scalar.h"

namespace reef::emit {

namespace q = isa::host_queues;
void make_identity(ProgramWriter& writer, const tiled::InputRows& rows, std::int32_t word, std::int32_t line) {
  namespace m = isa::mesh;
  constexpr int kWord = chip::kNarrowWordBytes;
  const bool whole_words = rows.constant_words == kWord;
  const auto fill = [&](std::int32_t at, std::int32_t words, std::uint32_t value, bool signals) {
    Draft draft(Opcode::kMeshNorth);
    draft.tiles(tiled::kAllTiles).nest(m::kOut, LoopNest(at, {{1, words, words > 1}}));
    if (signals) draft.signal(m::producers(Opcode::kMeshNorth)[1], 1);
    writer.add(draft.set(m::kFill).set(m::kFillValue, value));
  };
  const std::int64_t fills = writer.total(TileCounter::kMeshSouthIn, 0);
  for (int k = 0; k < kWord; ++k) fill(word + k, 1, std::uint32_t{1} << (8 * k), whole_words && k == kWord - 1);
  if (!whole_words) {
    fill(word + kWord, rows.constant_words - kWord, 0, false);
    writer.tile_fence(kAllUnits, 0);
  }
  Draft move(Opcode::kNarrowToWide);
  move.tiles(tiled::kAllTiles)
      .nest(isa::movers::kToWideIn, LoopNest(word, {step(1, rows.constant_words)}))
      .nest(isa::movers::kToWideOut, LoopNest(line, {{1, rows.identity_lines, rows.identity_lines > 1}}))
      .set(isa::movers::kToWideLineLevel, 1);
  if (whole_words) {
    move.wait(TileCounter::kMeshSouthIn, {1, fills + 1, 0}).signal(isa::movers::kSignalNarrowToWide, 1);
  }
  writer.add(move);
  writer.tile_fence(unit_mask(isa::Unit::kNarrowToWide), 0);
}

void request_input(Emission& to, const tiled::Infeed& input) {
  ProgramWriter& writer = to.writer;
  const std::string& layer_name = to.name_of(input.border);
  constexpr std::int32_t kFree = chip::kActivationFifoUnits - kUnitsKeptFree;
  load_layer_address(writer, darwinn::BaseAddress::kInput, layer_name);
  reset_scalar_counters(writer, {ScalarCounter::kAvdataPop}, kFree);
  reset_scalar_counters(writer, {ScalarCounter::kAvdataInfeed}, 0);
  const std::int32_t bytes = tiled::input_bytes(to.program.tensor(input.tensor));
  writer.add(Draft(Opcode::kInfeed)
                 .set(q::kInfeedBuffer)
                 .nest(q::kInfeedOut, buffer_blocks(0, bytes / chip::kActivationFifoUnitBytes, kActivationBlock))
                 .wait(ScalarCounter::kAvdataPop, {0, writer.total(ScalarCounter::kAvdataPop) - kFree, 1})
                 .signal(q::kSignalInfeed, 0));
  use_layer_address(writer);
  writer.queue_transfer({kAddressLow, kAddressHigh, kDescriptorScratch, static_cast<std::uint32_t>(bytes),
                         static_cast<int>(isa::bundle::DescriptorTag::kInput)});
  to.hint_transfer(darwinn::BaseAddress::kInput, layer_name, 0, bytes, darwinn::Direction::kToDevice);
}

void begin_requests(Emission& to, const tiled::Infeed& input) {
  load_layer_address(to.writer, darwinn::BaseAddress::kInput, to.name_of(input.border));
  reset_scalar_counters(to.writer, {ScalarCounter::kAvdataPop}, chip::kActivationFifoUnits - kUnitsKeptFree);
  reset_scalar_counters(to.writer, {ScalarCounter::kAvdataInfeed}, 0);
}

void request_units(Emission& to, const tiled::Infeed& input, std::int64_t first_unit, std::int64_t units) {
  ProgramWriter& writer = to.writer;
  const std::int64_t come = writer.total(ScalarCounter::kAvdataInfeed);
  const auto offset = static_cast<std::uint32_t>(first_unit * chip::kActivationFifoUnitBytes);
  const std::int64_t bytes = units * chip::kActivationFifoUnitBytes;
  writer.add(Draft(Opcode::kInfeed)
                 .set(q::kInfeedBuffer)
                 .nest(q::kInfeedOut, buffer_blocks(come % chip::kActivationFifoUnits, units, kActivationBlock))
                 .wait(ScalarCounter::kAvdataPop, {0, come, 1})
                 .signal(q::kSignalInfeed, 0));
  if (offset == 0) {
    use_layer_address(writer);
  } else {
    writer.add_offset({kAddressLow, kAddressHigh}, layer_registers(writer), kDescriptorScratch, offset);
  }
  writer.queue_transfer({kAddressLow, kAddressHigh, kDescriptorScratch, static_cast<std::uint32_t>(bytes),
                         static_cast<int>(isa::bundle::DescriptorTag::kInput)});
  to.hint_transfer(darwinn::BaseAddress::kInput, to.name_of(input.border), offset, bytes,
                   darwinn::Direction::kToDevice);
}

LoopNest lines_by_turns(std::int32_t first, std::int64_t lines, std::int64_t at_a_time) {
  const std::int64_t times = (lines + at_a_time - 1) / at_a_time;
  return LoopNest(first, {step(1, at_a_time), repeat(times)})
      .swap(1, at_a_time)
      .clip(1, lines - at_a_time * (times - 1));
}

void send_units(ProgramWriter& writer, std::int64_t first_unit, std::int64_t units, TileMask tiles) {
  writer.add(Draft(Opcode::kPop)
                 .set(q::kPopSource, 1)
                 .nest(q::kPopIn, buffer_blocks(first_unit % chip::kActivationFifoUnits, units, kActivationBlock))
                 .wait(ScalarCounter::kAvdataInfeed, {0, first_unit + 1, 1})
                 .signal(q::kSignalPop, 0)
                 .set(q::kPopTiles, tiles)
                 .set(q::kPopLineWords, kLineWords));
}

}  // namespace reef::emit
