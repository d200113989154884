// SPDX-License-Identifier: Apache-2.0
// Steps that copy over the ring, as lowerings make them.
//
// Where words lie is known when tensors are cut, so such a step is added empty, with the tensors it reads and writes,
// and gets its copies in its Finish:
//
//   builder.add_step(op, tiled::RingCopies{}, {Read{from}}, {to}, [=](Builder& builder, tiled::Step& step) -> Status {
//     tiled::RingCopies work;
//     work.copies.push_back({tile, mask, own_pixels(builder.tensor(from), tile), ...});
//     return set_ring_copies(builder, step, std::move(work));
//   });
#pragma once

#include "lower/builder.h"
#include "tiled/ring_copies.h"

namespace reef::lower {

// Makes `work` the step's, with the lines of wide memory that it needs. Fails with kInternal where a copy is not one
// that can be emitted (see tiled/ring_copies.h).
Status set_ring_copies(Builder& builder, tiled::Step& step, tiled::RingCopies work);

// All pixels that a tile owns of a tensor on the grid, which is cut; each with the padding that makes its channels
// whole words.
tiled::WordWalk own_pixels(const tiled::TiledTensor& grid, int tile);
// A rectangle of an image that lies in a tile as a whole (kCopies).
struct Rectangle {
  std::int32_t y = 0, x = 0, rows = 0, columns = 0;
};
tiled::WordWalk pixels_of(const tiled::TiledTensor& copies, const Rectangle& rectangle);

}  // namespace reef::lower
