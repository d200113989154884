// SPDX-License-Identifier: Apache-2.0
// The pieces that programs are put together from, in the order of an execution program:
//
//   prologue   everything idle, all counters 0, addresses of the host's buffers
//   infeed     the input from the host to the tiles, and its halo
//   layer      parameters to the tiles, the computation, the halo of the result; once for each layer
//   outfeed    a result to the host
//   epilogue   everything idle, counters of the ring as they were found, interrupt
//
// Each block's file says what happens on the chip and why each wait is there. Scheduled programs only: every place in
// the TiledProgram must be filled in.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "emit/program_writer.h"
#include "tiled/tiled_program.h"

namespace reef::emit {

void prologue_of_execution(ProgramWriter& writer);
void infeed(ProgramWriter& writer, const tiled::TiledProgram& program, const tiled::TiledInput& input,
            const std::string& layer_name);
void layer(ProgramWriter& writer, const tiled::TiledProgram& program, const tiled::TiledLayer& layer);
void outfeed(ProgramWriter& writer, const tiled::TiledProgram& program, const tiled::TiledOutput& output,
             const std::string& layer_name);
void epilogue_of_execution(ProgramWriter& writer);

// When the pixels that a tile owns are there: before channel block j (16 words) of them is sent, AVDATA must have
// reached first[tile] + increment * j.
struct OwnPixels {
  std::array<std::int64_t, chip::kTiles> first{};
  std::int64_t increment = 1;
};
// Fills in the tensor's halos: neighbours exchange what they own, the borders of the image get the zero point.
// `own` null: everything that is owned is there already.
void exchange_halo(ProgramWriter& writer, const tiled::TiledTensor& tensor, const OwnPixels* own);

// The program that keeps parameters on the chip, complete.
Result<isa::Program> caching_program(const tiled::TiledProgram& program,
                                     std::vector<darwinn::FieldOffset>& field_offsets);

// Shared by both kinds of programs.
void clear_chip(ProgramWriter& writer);
void halt(ProgramWriter& writer);

// How a result lies in what the outfeed sends: tile after tile, each padded to what the host reads at a time.
struct OutputStream {
  std::array<std::int32_t, chip::kTiles> offset{};  // of a tile's first byte
  std::array<std::int32_t, chip::kTiles> words{};   // of 4 bytes, without padding
  std::int32_t bytes = 0;                           // in all
};
OutputStream output_stream(const tiled::TiledTensor& tensor);

}  // namespace reef::emit
