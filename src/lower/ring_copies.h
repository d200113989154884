// SPDX-License-Identifier: Apache-2.0
// Steps that copy over the ring, as lowerings make them.
//
// Where words lie is known when tensors are cut, so such a step is added empty, with the tensors it reads and writes,
// and gets its copies in its Finish:
//
//   builder.add_step(op, tiled::RingCopies{}, {Read{from}}, {to}, [=](Builder& builder, tiled::Step& step) -> Status {
//     tiled::RingCopies work;
//     work.copies.push_back({tile, mask, own_words(builder.tensor(from), tile), ...});
//     return set_ring_copies(builder, step, std::move(work));
//   });
#pragma once

#include "lower/builder.h"
#include "tiled/ring_copies.h"

namespace reef::lower {

// Makes `work` the step's, with the lines of wide memory that it needs. Fails with kInternal where a copy is not one
// that can be emitted (see tiled/ring_copies.h).
Status set_ring_copies(Builder& builder, tiled::Step& step, tiled::RingCopies work);

}  // namespace reef::lower
