// SPDX-License-Identifier: Apache-2.0
// The blocks that programs are put together from, in the order of an execution program:
//
//   prologue    everything idle, all counters 0, addresses of the host's buffers
//   emit_step   a block of instructions for each step of the TiledProgram: infeeds, computations, outfeeds
//   epilogue    everything idle, counters of the ring as they were found, interrupt
//
// What a block may rely on: everything before it has been queued, nothing more. Work of the block before may still be
// running, and counters are what ProgramWriter::total says. So a block begins with the fence or barrier that it needs
// (or waits for counters instead), and ends without one; halos of what it computes are its own task (exchange_halo).
// The prologue ends with a barrier.
//
// Each block's file says what happens on the chip and why each wait is there. Scheduled programs only: every place in
// the TiledProgram must be filled in.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "emit/program_writer.h"
#include "ir/model.h"
#include "numeric/chip_tensor.h"
#include "tiled/program.h"

namespace reef::emit {

// What blocks write to.
struct Emission {
  ProgramWriter& writer;
  const tiled::TiledProgram& program;
  const ir::Model& model;  // for names of host buffers only
  // Transfers in the order in which the program queues them, as the driver must send or read them; each noted right
  // after it has been queued.
  struct Hint {
    darwinn::DmaHint hint;
    std::size_t position = 0;  // ProgramWriter::position()
  };
  std::vector<Hint> hints = {};
  std::map<std::int32_t, std::int64_t> bytes_sent = {};  // by the model's tensor: of results that go out in pieces
  // Parameters that the program itself asks for, in the order in which it does.
  std::vector<std::uint8_t> parameters = {};

  const std::string& name_of(std::int32_t source) const { return model.subgraphs[0].tensors[at(source)].name; }
  // The name by which the host knows a result.
  std::string name_of(const tiled::Outfeed& output) const;
  void hint_transfer(darwinn::BaseAddress base, const std::string& name, std::int64_t offset, std::int64_t bytes,
                     darwinn::Direction direction);
  // The driver ends all transfers before it begins any behind.
  void hint_fence();
};

// What a class that writes a block stands on.
struct BlockWriter {
  explicit BlockWriter(Emission& to) : to_(to), writer_(to.writer), program_(to.program) {}

  Emission& to_;
  ProgramWriter& writer_;
  const tiled::TiledProgram& program_;
};

void prologue_of_execution(ProgramWriter& writer);
void emit_step(Emission& to, const tiled::Infeed& input);
void emit_step(Emission& to, const tiled::Convolution& layer);
void emit_step(Emission& to, const tiled::Outfeed& output);
void emit_step(Emission& to, const tiled::RingCopies& step);
void emit_step(Emission& to, const tiled::FullyConnected& layer);
void emit_step(Emission& to, const tiled::Relayout& step);
void emit_step(Emission& to, const tiled::GlobalPool& step);
void emit_step(Emission& to, const tiled::PixelSums& step);
void emit_step(Emission& to, const tiled::SummedPool& pool);
void emit_step(Emission& to, const tiled::Softmax& step);
void emit_step(Emission& to, const tiled::SpreadSoftmax& step);
void emit_step(Emission& to, const tiled::SmallSoftmax& step);
void emit_step(Emission& to, const tiled::LocalCopies& step);
void emit_step(Emission& to, const tiled::Resample& step);
void emit_step(Emission& to, const tiled::Reflow& step);
void emit_step(Emission& to, const tiled::Elementwise& op);
void emit_step(Emission& to, const tiled::Sum& sum);
void emit_step(Emission& to, const tiled::HaloUpdate& update);
void emit_step(Emission& to, const tiled::Spill& spill);
void emit_step(Emission& to, const tiled::HostStore& store);
void emit_step(Emission& to, const tiled::HostLoad& load);
void emit_step(Emission& to, const tiled::Pool& pool);
void emit_step(Emission& to, const tiled::Product& product);
void emit_step(Emission& to, const tiled::MatrixProduct& product);
void emit_step(Emission& to, const tiled::LstmInputs& inputs);
void emit_step(Emission& to, const tiled::LstmStep& step);
void emit_step(Emission& to, const tiled::ChannelSums& sums);
void emit_step(Emission& to, const tiled::PixelNumbers& step);
void emit_step(Emission& to, const tiled::PixelRoots& step);
void emit_step(Emission& to, const tiled::LstmLoop& loop);
void epilogue_of_execution(ProgramWriter& writer);

// When the pixels that a tile owns are there: before channel block j (of block_words words) of them is sent, AVDATA
// must have reached first[tile] + increment * j.
struct OwnPixels {
  std::array<std::int64_t, chip::kTiles> first{};
  std::int64_t increment = 1;
  std::int32_t block_words = 16;
};
// Fills in the tensor's halos: neighbours exchange what they own, the borders of the image get the zero point.
// `own` null: everything that is owned is there already.
void exchange_halo(ProgramWriter& writer, const tiled::TiledTensor& tensor, const OwnPixels* own);

// The results' side of a weighted sum: scale, limits, zero point, and the function whose table is loaded.
void set_results(Draft& draft, const tiled::WeightedSum& sum);

// Gives the tensor units of tiles a table; everything that uses the one before ends first.
void load_table(ProgramWriter& writer, const numeric::ChipTable& table, TileMask tiles = tiled::kAllTiles);

// A chunk of parameters from the host, to some tiles over ring A, as lines of chunk.line_words words. Receiving is the
// caller's part, who must have queued it.
void send_from_host(Emission& to, const tiled::ParameterChunk& chunk, TileMask tiles);
// Brings a chunk to the lines of one tile, if it is one that is brought before each use; complete with a fence.
void fetch_parameters(Emission& to, const tiled::ParameterChunk& chunk);

// The program that keeps parameters on the chip, complete.
Result<std::vector<ProgramPiece>> caching_program(const tiled::TiledProgram& program, AddressCode address_code);

// Shared by both kinds of programs.
void clear_chip(ProgramWriter& writer);
void halt(ProgramWriter& writer);
// When all tiles are done with everything: turns on the ring are counted from 0 again.
void clear_ring_turns(ProgramWriter& writer);

// How a result lies in what the outfeed sends: tile after tile, each padded to what the host reads at a time.
struct OutputStream {
  std::array<std::int32_t, chip::kTiles> offset{};  // of a tile's first byte
  std::array<std::int32_t, chip::kTiles> words{};   // of 4 bytes, without padding
  std::int32_t bytes = 0;                           // in all
};
OutputStream output_stream(const tiled::TiledTensor& tensor);

}  // namespace reef::emit
