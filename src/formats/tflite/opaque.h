// SPDX-License-Identifier: Apache-2.0
// Tables that the schema does not describe: cutting them out of a file, putting them into another.
//
// Without a schema one cannot tell an offset from a number. But offsets in FlatBuffers are relative and point forward,
// so a piece of the file that covers everything the table could possibly refer to works anywhere, provided it keeps its
// position modulo 16. Only vtables are referred to backward or far away (writers share them over the whole file); a
// distant one is copied to the front of the piece.
//
// Which numbers could be offsets depends on what surrounds the table, so a second cut could come out larger than the
// first. Pieces are therefore put into a file with a frame in front, 16 bytes that no table refers to: "REEFopq1", the
// size of the piece and the offset of its table in it, 32 bits each. A framed table is cut exactly as it was put.
//
// Not guaranteed: that the piece is minimal (a number that looks like an offset drags in what lies there), nor that it
// is complete for a table that holds vectors of structs wider than 8 bytes (TFLite has none) or more than
// kMaxOpaqueBytes
// (`complete` then says so).
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include <flatbuffers/flatbuffers.h>

#include "base/bytes.h"
#include "base/status.h"
#include "ir/model.h"

namespace reef::tflite {

inline constexpr std::uint32_t kMaxOpaqueBytes = 1 << 20;

struct OpaquePiece {
  ir::OpaqueTable table;
  bool complete = true;
};

class OpaqueFinder {
 public:
  // Bytes [begin, end) of the file are known to be something else (weights): nothing opaque reaches into them.
  void add_barrier(std::uint64_t begin, std::uint64_t end);

  // The table at `position` with all that it may refer to. Any bytes are safe. Barriers may not be added afterwards.
  Result<OpaquePiece> cut(const Bytes& file, std::uint64_t position, int union_type);

 private:
  void prepare(const Bytes& file);

  std::vector<std::pair<std::uint64_t, std::uint64_t>> barriers_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> frames_;  // where the table is, where its piece starts; sorted
  bool prepared_ = false;
};

// Adds the piece to a buffer under construction and returns where its table is, as the builder counts. An error when
// `table` is not a piece that cut() could have made.
Result<flatbuffers::uoffset_t> put_opaque(flatbuffers::FlatBufferBuilder& builder, const ir::OpaqueTable& table);

}  // namespace reef::tflite
