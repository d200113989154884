// SPDX-License-Identifier: Apache-2.0
// Parameters that come from the host with every inference.
//
//   host -> (DMA) -> parameter buffer -> pop -> ring A -> lines of wide memory
//
// The program has parameters of its own beside those that are cached: chunks in the order of their uses, each as often
// as it is used. A transfer is queued for each use. The host runs ahead as far as the buffer (128 KiB) has room; that
// is all the overlap there is.
// Waits: a unit of 64 bytes is popped when it has come (PARAMETER_INFEED) and the lines that others have put on ring A
// are gone (RING_PRODUCER_A); it comes when its place in the buffer is free (PARAMETER_POP), but for 4 units.
//
// How it is known: layers that Google's compiler streams in one program and keeps in another differ by exactly these
// instructions (docs/hardware/google_large_networks.md#streamed-parameters; tests compare). What it never streams
// (depthwise layers) is brought to the lines of its tiles first, with the instructions that caching programs use.
#include "emit/blocks.h"
#include "emit/registers.h"
#include "isa/host_queues.h"
#include "isa/ring.h"
#include "isa/scalar.h"

namespace reef::emit {
namespace {

namespace q = isa::host_queues;

constexpr std::int64_t kBlock = chip::kParameterFifoUnits / 2;
constexpr std::int64_t kUnitsKeptFree = 4;

LoopNest units_of_buffer(std::int64_t first, std::int64_t units) {
  const std::int64_t base = first % chip::kParameterFifoUnits;
  if (units == 1) return LoopNest(base, {step(1, 1), repeat(1)}).swap(1, kBlock);
  return buffer_blocks(base, units, kBlock);
}

std::int64_t units_of_chunk(const tiled::ParameterChunk& chunk) {
  return static_cast<std::int64_t>(chunk.bytes.size()) / chip::kParameterFifoUnitBytes;
}

// Queues the transfer of a chunk into the buffer. The unit that it begins with, counted over the whole program.
std::int64_t ask_host(Emission& to, const tiled::ParameterChunk& chunk) {
  ProgramWriter& writer = to.writer;
  const auto bytes = chunk.bytes.span();
  const auto offset = static_cast<std::uint32_t>(to.parameters.size());
  const std::int64_t come = writer.total(ScalarCounter::kParameterInfeed);
  writer.add(Draft(Opcode::kInfeed)
                 .nest(q::kInfeedOut, units_of_buffer(come, units_of_chunk(chunk)))
                 .wait(ScalarCounter::kParameterPop, {0, come - (chip::kParameterFifoUnits - kUnitsKeptFree), 1})
                 .signal(q::kSignalInfeed, 0));
  if (offset == 0) {
    writer.copy_address({kAddressLow, kAddressHigh}, {kParametersLow, kParametersHigh}, kDescriptorScratch);
  } else {
    writer.add_offset({kAddressLow, kAddressHigh}, {kParametersLow, kParametersHigh}, kDescriptorScratch, offset);
  }
  writer.queue_transfer({kAddressLow, kAddressHigh, kDescriptorScratch, static_cast<std::uint32_t>(bytes.size()),
                         static_cast<int>(isa::bundle::DescriptorTag::kParameters)});
  to.hint_transfer(darwinn::BaseAddress::kParameter, "", offset, static_cast<std::int64_t>(bytes.size()),
                   darwinn::Direction::kToDevice);
  to.parameters.insert(to.parameters.end(), bytes.begin(), bytes.end());
  return come;
}

struct Units {
  std::int64_t first = 0, count = 0;
};
void pop_lines(ProgramWriter& writer, const Units& units, TileMask tiles, std::int32_t line_words) {
  writer.add(Draft(Opcode::kPop)
                 .nest(q::kPopIn, units_of_buffer(units.first, units.count))
                 .wait(ScalarCounter::kParameterInfeed, {0, units.first + 1, 1})
                 .wait(ScalarCounter::kRingProducerA, {2, writer.total(ScalarCounter::kRingProducerA), 0})
                 .signal(q::kSignalPop, 0)
                 .set(q::kPopTiles, tiles)
                 .set(q::kPopLineWords, line_words));
}

}  // namespace

void send_from_host(Emission& to, const tiled::ParameterChunk& chunk, TileMask tiles) {
  const std::int64_t first = ask_host(to, chunk);
  pop_lines(to.writer, {first, units_of_chunk(chunk)}, tiles, chunk.line_words);
}

void fetch_parameters(Emission& to, const tiled::ParameterChunk& chunk) {
  if (!chunk.is_fetched()) return;
  to.writer.barrier();  // the lines may have been scratch of the step before
  for (const tiled::ParameterPiece& piece : chunk.at) {
    to.writer.add(Draft(Opcode::kRingReceiveA)
                      .tiles(tiled::mask_of(piece.tile))
                      .nest(isa::ring::kReceiveOut, LoopNest(piece.line, {{1, piece.lines, piece.lines > 1}})));
  }
  std::int64_t first = ask_host(to, chunk);
  for (const tiled::ParameterPiece& piece : chunk.at) {
    const std::int64_t units = chunk.at.size() == 1 ? units_of_chunk(chunk)
                                                    : std::int64_t{piece.lines} * chunk.line_words *
                                                          chip::kNarrowWordBytes / chip::kParameterFifoUnitBytes;
    pop_lines(to.writer, {first, units}, tiled::mask_of(piece.tile), chunk.line_words);
    first += units;
  }
  to.writer.tile_fence(kAllUnits, 0);
}

}  // namespace reef::emit
