// SPDX-License-Identifier: Apache-2.0
// A part of a model as work for 4x4 tiles: the plain data that lowering, scheduling and emission share.
//
//   lower      fills in what follows from the model: tensors and their partitions, steps, loop orders, parameters, and
//              which objects of memory exist when
//   schedule   fills in where things are: narrow addresses, wide lines, places of parameters
//   emit       turns it into instructions, one block per step
//
// Fields that a later stage fills in start as kNowhere. Sizes are in the unit that the chip addresses: bytes of narrow
// memory, lines of 256 bytes of wide memory. Things refer to each other by index.
//
// To add a kind of step: a header here with its data, its name in Work, an overload of emit_step (emit/blocks.h).
#pragma once

#include <cstdint>
#include <deque>
#include <variant>
#include <vector>

#include "tiled/convolution.h"
#include "tiled/elementwise.h"
#include "tiled/fully_connected.h"
#include "tiled/global_pool.h"
#include "tiled/local_copies.h"
#include "tiled/lstm.h"
#include "tiled/matrix_product.h"
#include "tiled/memory.h"
#include "tiled/parameters.h"
#include "tiled/pixel_numbers.h"
#include "tiled/pixel_sums.h"
#include "tiled/pool.h"
#include "tiled/product.h"
#include "tiled/reflow.h"
#include "tiled/resample.h"
#include "tiled/ring_copies.h"
#include "tiled/softmax.h"
#include "tiled/spread_softmax.h"
#include "tiled/squares.h"
#include "tiled/sum.h"
#include "tiled/tensor.h"
#include "tiled/transfers.h"

namespace reef::tiled {

// Whose choices are made where several are right.
//   kAsGoogle   those of Google's newest compiler, as far as they are known: its bytes can be compared with ours
//   kBetter     our own: fewer instructions, fewer cycles
//   kFast       besides, what trades memory and instructions for time: rows kept from slice to slice, several pixels at
//               a time in the cells, instructions that arrive while others run
enum class Level : std::uint8_t { kAsGoogle, kBetter, kFast };
inline constexpr Level kDefaultLevel = Level::kBetter;

// One to a line.
// clang-format off
using Work = std::variant<Infeed
                          , Convolution
                          , Outfeed
                          , RingCopies
                          , FullyConnected
                          , Elementwise
                          , Sum
                          , Relayout
                          , GlobalPool
                          , PixelSums
                          , SummedPool
                          , LocalCopies
                          , Pool
                          , Softmax
                          , SpreadSoftmax
                          , SmallSoftmax
                          , Product
                          , Resample
                          , HaloUpdate
                          , Spill
                          , LstmInputs
                          , LstmStep
                          , HostStore
                          , HostLoad
                          , Reflow
                          , ChannelSums
                          , PixelNumbers
                          , PixelRoots
                          , LstmLoop
                          , MatrixProduct
                          >;
// clang-format on

struct Step {
  std::int32_t op = -1;  // the model's operator that it is, or is a part of; -1: none (infeed, outfeed)
  Work work;
  // Everything it touches; lifetimes follow from these.
  std::vector<std::int32_t> reads, writes;  // TiledProgram::tensors
  std::vector<std::int32_t> narrow_used,
      wide_used;                              // TiledProgram::narrow, wide: scratch, and what it shares with others
  std::vector<std::int32_t> parameters_used;  // TiledProgram::parameters
};

struct TiledProgram {
  Level level = Level::kAsGoogle;
  std::deque<TiledTensor> tensors;  // references stay good while others are added
  std::vector<NarrowObject> narrow;
  std::vector<WideObject> wide;
  std::vector<ParameterChunk> parameters;  // in order of first use
  std::vector<Step> steps;                 // in order of execution
  // Steps that are infeeds and outfeeds, in the order of the custom op's operands.
  std::vector<std::int32_t> inputs, outputs;
  std::int64_t host_bytes = 0;  // of scratch memory that the host keeps for HostStore and HostLoad
  // Schedule's: bytes of narrow memory in use, and the lowest wide line that is scratch: parameters are kept below.
  std::int32_t narrow_bytes = 0;
  std::int32_t lowest_scratch_line = 0;

  const TiledTensor& tensor(std::int32_t index) const { return tensors[at(index)]; }
  TiledTensor& tensor(std::int32_t index) { return tensors[at(index)]; }
  // Where an object is, after scheduling.
  std::int32_t address_of(std::int32_t object) const { return narrow[at(object)].address; }
  std::int32_t line_of(std::int32_t object) const { return object == kNowhere ? kNowhere : wide[at(object)].line; }
  const ParameterChunk& chunk(std::int32_t index) const { return parameters[at(index)]; }
};

}  // namespace reef::tiled
