// SPDX-License-Identifier: Apache-2.0
// Copies over the ring inside of a block: ring_copies.cpp says how they work.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "emit/blocks.h"
#include "tiled/ring_copies.h"

namespace reef::emit {

class RingCopyWriter : BlockWriter {
 public:
  // `lines`: the first of tiled::kRingCopyLines lines of wide memory.
  RingCopyWriter(Emission& to, std::int32_t lines, bool google_pace);

  // Behind a fence of all units: lines are used in turn from the first on.
  void start();
  void write(const tiled::RingCopy& copy);
  // Copies that differ only in where they come from, and in where they go by equal steps: one after the other, but all
  // that can be is shared. See can_share.
  void write_shared(std::span<const tiled::RingCopy> copies);
  // How many of the copies, from the first on, write_shared can take; at least 1.
  std::size_t can_share(std::span<const tiled::RingCopy> copies) const;

 private:
  // Words that a tile will have read of what it received.
  struct Read {
    std::int64_t before_last = 0;  // with the line before last
    std::int64_t all = 0;
    friend bool operator==(const Read&, const Read&) = default;
  };

  LoopNest lines_in_turn(std::int32_t first, std::int64_t lines) const;
  // Dimensions that one line takes.
  int line_level(std::int64_t lines) const { return google_pace_ && lines > 1 ? 0 : 1; }
  static LoopNest pair_of_lines(std::int32_t first, std::int64_t lines, bool used);
  LoopNest words_of(const tiled::WordWalk& walk) const;
  void read_lines(const tiled::RingCopy& copy, std::int64_t lines);
  void receive(const tiled::RingCopy& copy, std::int64_t lines);
  void send(const tiled::RingCopy& copy, std::int64_t lines);
  void fill_lines(const tiled::RingCopy& copy, std::int64_t lines);

  const bool google_pace_;
  const std::int32_t send_line_, receive_line_;
  std::array<Read, chip::kTiles> read_{};
};

}  // namespace reef::emit
