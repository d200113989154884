// SPDX-License-Identifier: Apache-2.0
// The program that brings parameters to the tiles that keep them. It runs once; execution programs rely on it.
//
//   host -> (DMA) -> parameter buffer -> pop -> ring A -> lines of wide memory
//
// Chunks come in the order of execution, one after the other in one transfer. The pops of a chunk follow the receives
// of all its pieces. Waits: a unit of 64 bytes is popped when it has come (PARAMETER_INFEED) and comes when its place
// in the buffer is free (PARAMETER_POP).
//
// How it is known: 84 of 84 such programs of Google's, word for word, with the placement taken from them.
#include <algorithm>

#include "emit/blocks.h"
#include "emit/registers.h"
#include "isa/host_queues.h"
#include "isa/ring.h"
#include "isa/scalar.h"

namespace reef::emit {
namespace {

namespace q = isa::host_queues;

constexpr std::uint16_t kFirstSequence = 0x8000;
// Long programs are cut at barriers, which this one needs for nothing else.
constexpr std::int64_t kRowsBetweenBarriers = isa::kMaxContentRows / 2;
constexpr std::int64_t kBlock = chip::kParameterFifoUnits / 2;
// Registers: the transfer's address, and those that queueing it changes.
constexpr int kHigh = 2, kLow = 3, kScratch = 4;

void queue(ProgramWriter& writer, std::int64_t bytes, isa::bundle::DescriptorTag tag) {
  writer.queue_transfer({kLow, kHigh, kScratch, static_cast<std::uint32_t>(bytes), static_cast<int>(tag)});
}

std::int64_t units_of(const tiled::ParameterChunk& chunk, const tiled::ParameterPiece& piece) {
  if (chunk.in_one_piece) return static_cast<std::int64_t>(chunk.bytes.size()) / chip::kParameterFifoUnitBytes;
  return std::int64_t{piece.lines} * chunk.line_words * chip::kNarrowWordBytes / chip::kParameterFifoUnitBytes;
}

// Headers that are only used in their place are received as such, as Google's compiler does it; they could be lines
// like others.
Draft receive_lines(const tiled::ParameterChunk& chunk, const tiled::ParameterPiece& piece) {
  namespace r = isa::ring;
  const std::int32_t header = chunk.part_header_lines, lines = piece.lines - header;
  Draft draft(Opcode::kRingReceiveA);
  draft.tiles(tiled::mask_of(piece.tile)).nest(r::kReceiveOut, LoopNest(piece.line + header, {{1, lines, lines > 1}}));
  if (header > 0) {
    draft.set(r::kHeader)
        .set(r::kHeaderFirst, piece.line)
        .set(r::kHeaderLines, header)
        .set(r::kHeaderLast, piece.line + header - 1)
        .set(r::kHeaderStep, header);
  }
  return draft;
}

void receive(ProgramWriter& writer, const tiled::ParameterChunk& chunk) {
  for (const tiled::ParameterPiece& piece : chunk.at) writer.add(receive_lines(chunk, piece));
  for (const tiled::ParameterPiece& piece : chunk.at) {
    const std::int64_t units = units_of(chunk, piece);
    const std::int64_t popped = writer.total(ScalarCounter::kParameterPop);
    const std::int64_t base = popped % chip::kParameterFifoUnits;
    const LoopNest nest =
        units > 1 ? buffer_blocks(base, units, kBlock) : LoopNest(base, {step(1, 1), repeat(1)}).swap(1, kBlock);
    writer.add(Draft(Opcode::kPop)
                   .nest(q::kPopIn, nest)
                   .wait(ScalarCounter::kParameterInfeed, {0, popped + 1, 1})
                   .signal(q::kSignalPop, 0)
                   .set(q::kPopTiles, tiled::mask_of(piece.tile))
                   .set(q::kPopLineWords, chunk.line_words));
  }
}

}  // namespace

Result<std::vector<ProgramPiece>> caching_program(const tiled::TiledProgram& program, AddressCode address_code) {
  std::int64_t bytes = 0;
  for (const tiled::ParameterChunk& chunk : program.parameters) {
    if (chunk.is_cached()) bytes += static_cast<std::int64_t>(chunk.bytes.size());
  }
  ProgramWriter writer(kFirstSequence, address_code);
  clear_chip(writer);
  writer.copy_address({kLow, kHigh}, {kParametersLow, kParametersHigh}, kScratch);
  queue(writer, bytes, isa::bundle::DescriptorTag::kParameters);
  const std::int64_t units = bytes / chip::kParameterFifoUnitBytes;
  const std::int64_t buffered = std::min<std::int64_t>(units, chip::kParameterFifoUnits);
  writer.add(Draft(Opcode::kInfeed)
                 .nest(q::kInfeedOut, buffer_blocks(0, units, kBlock))
                 .wait(ScalarCounter::kParameterPop, {0, 1 - buffered, 1})
                 .signal(q::kSignalInfeed, 0));
  std::int64_t rows = 0;  // at the last barrier
  for (const tiled::ParameterChunk& chunk : program.parameters) {
    if (!chunk.is_cached()) continue;
    if (writer.rows() - rows > kRowsBetweenBarriers) {
      rows = writer.rows();
      writer.barrier();
    }
    receive(writer, chunk);
  }
  writer.barrier(true);
  writer.load_register(kHigh, 0);
  writer.load_register(kLow, 0);
  queue(writer, 0, isa::bundle::DescriptorTag::kInterrupt);
  halt(writer);
  return std::move(writer).finish();
}

}  // namespace reef::emit
