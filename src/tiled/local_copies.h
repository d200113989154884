// SPDX-License-Identifier: Apache-2.0
// Bytes that tiles move within their own narrow memories: what is left of a change of layout when everything that a
// tile needs has come to it.
//
// Results are words of 4 bytes, always written whole. A word is put together from parts:
//   whole words    the sum of `parts` words, byte by byte; one part: a plain copy
//   single bytes   part k becomes byte `first_byte` + k of the word; the other bytes get the zero point
// A word of several pieces that do not lie in step is made in two rounds: each piece as a word of its own, with the
// zero point everywhere else, then their sum (values are taken relative to the zero point, so that each byte of the sum
// is the one piece that it has).
#pragma once

#include <cstdint>
#include <vector>

#include "tiled/elementwise.h"
#include "tiled/memory.h"

namespace reef::tiled {

struct CopyDim {
  std::int32_t count = 1;
  std::int32_t source_stride = 0, target_stride = 0;  // bytes
  friend auto operator<=>(const CopyDim&, const CopyDim&) = default;
};
inline constexpr std::size_t kMostCopyDims = 6;
inline constexpr std::int32_t kMostCopyCount = 1 << 14;  // of a loop of the tensor unit

struct LocalCopy {
  std::int32_t source = kNowhere, target = kNowhere;  // TiledProgram::narrow
  std::int32_t source_offset = 0, target_offset = 0;  // bytes from the objects' starts; the target's a multiple of 4
  bool single_bytes = false;
  std::int32_t parts = 1, part_stride = 0;  // bytes
  std::int32_t first_byte = 0;              // of the word, where parts are single bytes
  std::vector<CopyDim> dims;                // of words; dims[0] is innermost. At most kMostCopyDims
  TileMask tiles = 0;
  friend auto operator<=>(const LocalCopy&, const LocalCopy&) = default;
};

// Words that get the zero point. Only the target of the dimensions counts.
struct LocalFill {
  std::int32_t target = kNowhere;
  std::int32_t target_offset = 0;
  std::vector<CopyDim> dims;  // at most kMostFillDims
  TileMask tiles = 0;
  friend auto operator<=>(const LocalFill&, const LocalFill&) = default;
};
inline constexpr std::size_t kMostFillDims = 4;

// The copies of a round may be made in any order; rounds follow each other. Nothing that a round writes is read by it.
struct LocalCopies {
  std::int32_t output = kNowhere;  // TiledProgram::tensors: whose halo is exchanged at the end; kNowhere: of none
  std::vector<LocalFill> fills;
  std::vector<LocalCopy> first_round, second_round;
  std::int32_t source_zero = 0, target_zero = 0;  // the chip's zero points
  // Requantization of what is copied: scaled, then clamped (relative to target_zero).
  float multiplier = 1.0f;
  float min = 0, max = 0;
  Identity identity;  // where anything is copied
  bool copies() const { return !first_round.empty() || !second_round.empty(); }
};
}  // namespace reef::tiled
