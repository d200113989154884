// SPDX-License-Identifier: Apache-2.0
// A part of a model as work for 4x4 tiles: the plain data that lowering, scheduling and emission share.
//
//   lower      fills in what follows from the model: tensors and their partitions, layers, loop orders, parameters
//   schedule   fills in where things are: narrow addresses, wide lines, places of parameters
//   emit       turns it into instructions
//
// Fields that a later stage fills in start as kNowhere. Sizes are in the unit that the chip addresses: bytes of narrow
// memory, lines of 256 bytes of wide memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "formats/darwinn/parameters/from_operator.h"
#include "formats/darwinn/parameters/layer_parameters.h"
#include "tiled/axis_partition.h"

namespace reef::tiled {

inline constexpr std::int32_t kNowhere = -1;

// Tile t is bit t; row t / 4, column t % 4.
using TileMask = std::uint16_t;
inline constexpr TileMask kAllTiles = 0xffff;
constexpr TileMask mask_of(int tile) { return static_cast<TileMask>(1u << tile); }

// An activation: height x width pixels of `pitch` bytes, spread over the tiles by rows and columns. In a tile's narrow
// memory, pixels lie row by row; rows of a tile's buffer are as long as its column's buffer.
struct TiledTensor {
  std::int32_t source = -1;  // the model's tensor
  std::int32_t height = 0, width = 0, channels = 0;
  std::int32_t pitch = 0;       // bytes per pixel: channels rounded up to 4
  std::int32_t zero_point = 0;  // the chip's, 0..255: what padding holds
  AxisPartition rows, columns;
  // Steps of the program during which it must exist: -1 is the infeed, i is layer i, the number of layers the outfeed.
  std::int32_t first_step = 0, last_step = 0;
  std::int32_t address = kNowhere;  // byte of narrow memory, the same in all tiles

  // Bytes that the largest tile buffer takes; all tiles reserve as much.
  std::int64_t tile_bytes() const { return std::int64_t{rows.max_length()} * columns.max_length() * pitch; }
  std::int32_t row_bytes(int column) const { return columns.length(column) * pitch; }
  bool has_halo() const { return rows.has_halo() || columns.has_halo(); }
  // Where tile (row, column) keeps pixel (y, x) of the image.
  std::int32_t byte_of(int row, int column, std::int32_t y, std::int32_t x) const {
    return address + rows.place(row, y) * row_bytes(column) + columns.place(column, x) * pitch;
  }
  // Where it keeps the first pixel it owns.
  std::int32_t first_own_byte(int row, int column) const {
    return byte_of(row, column, rows.tile(row).begin, columns.tile(column).begin);
  }
};

// Lines of a layer's parameters on one tile.
struct ParameterPiece {
  int tile = 0;
  std::int32_t line = 0, lines = 0;
  friend bool operator==(const ParameterPiece&, const ParameterPiece&) = default;
};

// The parameters of a layer as they are kept between inferences.
struct ParameterChunk {
  Bytes bytes;                     // formats/darwinn/parameters: whole units of 64 bytes
  std::int32_t line_words = 64;    // words of 4 bytes that go into one wide line
  std::int32_t lines = 0;          // lines of wide memory it takes
  std::vector<ParameterPiece> at;  // in order; a depthwise layer has one
};

// A convolution or depthwise convolution. Every tile computes the pixels it owns of the output, `cells` channels at a
// time ("a group"). For each group, parameters arrive in blocks of `block_lines` lines:
//   sums in the cells    one block per group: all kernel positions and input channels for a pixel, then the next pixel
//   partial sums         `blocks` blocks per group: all pixels for a block, sums wait in wide memory for the next one
struct TiledLayer {
  std::int32_t op = -1;  // the model's operator
  bool depthwise = false;
  std::int32_t input = 0, output = 0;  // TiledProgram::tensors
  Window y, x;

  darwinn::Presence header;  // lines before the weights of each group, one per array
  darwinn::LayerRequantization constants;
  std::int32_t cells = 64;       // channels per group
  std::int32_t last_cells = 64;  // of the last group
  std::int32_t groups = 1;
  std::int32_t block_words = 1;  // words of 4 input channels in a block
  std::int32_t block_lines = 1;  // kernel positions * block_words
  std::int32_t blocks = 1;       // per group
  bool partial_sums = false;
  std::int32_t buffers = 2;  // parameter blocks (and headers) in wide memory at a time

  ParameterChunk parameters;
  // Scratch in wide memory, schedule's. Partial sums: one line per pixel of the busiest tile.
  std::int32_t sums_line = kNowhere, header_line = kNowhere, weights_line = kNowhere;

  std::int32_t kernel_positions() const { return y.kernel * x.kernel; }
};

// How the network's input comes in: rows wait in a buffer beside the input tensor and in wide memory.
struct TiledInput {
  std::int32_t tensor = 0;                // TiledProgram::tensors
  std::int32_t row_buffer = kNowhere;     // byte of narrow memory
  std::int32_t row_lines = kNowhere;      // wide lines of incoming rows
  std::int32_t identity_line = kNowhere;  // wide line of the parameters that copy
};

struct TiledOutput {
  std::int32_t tensor = 0;  // TiledProgram::tensors
  std::int32_t lines = kNowhere;
};

struct TiledProgram {
  std::vector<TiledTensor> tensors;
  std::vector<TiledLayer> layers;  // in order of execution
  // In the order of the custom op's operands; `names` are the model's tensors at the border, whose names the host uses.
  std::vector<TiledInput> inputs;
  std::vector<std::int32_t> input_names;
  std::vector<TiledOutput> outputs;
  std::vector<std::int32_t> output_names;
  // Schedule's: bytes of narrow memory in use, and the lowest wide line that is scratch: parameters are kept below.
  std::int32_t narrow_bytes = 0;
  std::int32_t lowest_scratch_line = 0;
};

// ---- Sizes that schedule and emission must agree on ----

// A row of the network's input, as it comes from the host.
struct InputRows {
  std::int32_t bytes = 0;           // of one row of the image
  std::int32_t lines = 0;           // wide lines that a row takes, rounded up
  std::int32_t slot_bytes = 0;      // narrow memory for one row; there are two
  std::int32_t constant_words = 0;  // of the copy's parameters, made in narrow memory behind the slots
  std::int32_t identity_lines = 0;  // that these take in wide memory

  static InputRows of(const TiledTensor& tensor) {
    InputRows rows;
    rows.bytes = tensor.width * tensor.channels;
    rows.lines = (rows.bytes + chip::kWideLineBytes - 1) / chip::kWideLineBytes;
    rows.slot_bytes = std::max(chip::kWideLineBytes, rows.bytes);
    const bool whole_words = tensor.channels % chip::kNarrowWordBytes == 0;
    // 4 words of identity; single bytes are copied with a line of zeros behind it, which pads pixels to 4 bytes.
    rows.constant_words = whole_words ? 4 : 4 + chip::kWideLineBytes / chip::kNarrowWordBytes;
    rows.identity_lines = whole_words ? 1 : 2;
    return rows;
  }
};

// Lines that a layer's header takes in wide memory: all buffers and 32 lines more. Google's compiler leaves these free;
// nothing is known to use them.
inline constexpr std::int32_t kHeaderSpareLines = 32;

// The outfeed sends through two lines at the top of wide memory.
inline constexpr std::int32_t kOutfeedLines = 2;

}  // namespace reef::tiled
