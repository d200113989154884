// SPDX-License-Identifier: Apache-2.0
// Where everything is: narrow memory for activations, scratch lines of wide memory, tiles and lines for parameters.
//
// Activations and scratch are placed as Google's compiler places them (first_fit.h). Which tile keeps a layer's
// parameters is free; Google's choice is not known, ours is the tile with most room. A placement given from outside
// takes the place of ours, so that a program can be compared with one of Google's instruction by instruction.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/status.h"
#include "schedule/parameter_places.h"
#include "tiled/program.h"

namespace reef::schedule {

// Places that take the place of ours. Addresses and lines are used as given: that objects which exist together do not
// overlap is up to whoever gives them (src/audit and the virtual device find it where they do).
struct ScheduleOptions {
  CacheRoom cache;
  // By chunk, in order of first use: where its parameters are.
  std::optional<std::vector<std::vector<tiled::ParameterPiece>>> parameters;
  std::map<std::int32_t, std::int32_t> narrow_addresses;  // by TiledProgram::narrow: bytes
  std::map<std::int32_t, std::int32_t> wide_lines;        // by TiledProgram::wide: first lines
  std::int64_t narrow_bytes = chip::kNarrowBytes;         // of each tile that may be used
};

// Bytes of each tile's memory that the activations would take.
std::int64_t activation_bytes(tiled::TiledProgram& program);
// Whether they fit into so many bytes. With `may_put_aside`, steps may be added that put some of them aside in between,
// if they do not fit otherwise (spills.h).
bool activations_fit(tiled::TiledProgram& program, std::int64_t bytes, bool may_put_aside);

// The model's operator at which the activations' memory of `bytes` is shortest; -1: there is none. A step that by
// itself uses more than there is stands in the way whatever is put aside; else it is the step at which most exists.
std::int32_t fullest_op(const tiled::TiledProgram& program, std::int64_t bytes);

// Where memory is shortest, for whoever wants to cut the program there.
struct Shortage {
  std::int32_t op = -1;  // the model's operator; -1: not known
};

// Fills in all addresses, and adds steps that put activations aside where they do not fit otherwise. Fails with
// kUnsupported where activations or scratch do not fit; `shortage` then gets the place.
Status schedule(tiled::TiledProgram& program, const ScheduleOptions& options = {}, Shortage* shortage = nullptr);

}  // namespace reef::schedule
