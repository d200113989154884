// SPDX-License-Identifier: Apache-2.0
// Work in slices: a group of operators is executed several times, each time for some rows of its results, so that what
// lies between its operands and its results never exists as a whole.
//
// Every tile row has a quarter of the rows of a result, as always; in slice s of n it computes the s-th n-th of them.
// Which rows of the tensors in between it needs for that follows from the operators' windows. It computes all of them
// itself, those too that its neighbours need (and compute) as well: nothing is exchanged between rows of tiles within a
// group. So results are where they belong without being moved, and an operator may read fewer rows of an operand than
// others do. The price is rows that are computed more than once, at the borders of all slices.
//
// Columns are spread over the tiles as always.
//
// A group may keep rows (SliceGroup::keeps_rows): then every tile row works its way down its share, and what a slice
// has computed of a tensor that later slices read again is kept instead of computed or brought in anew:
//
//   slice s of a tensor:   [ kept: computed by slices before s ] [ made: computed or brought in by slice s ]
//
// Windows move down with the results, so both are single ranges, and what is kept is the end of what slice s - 1 held.
// The first slice would have to make all that the first rows of results need; some slices that make no results come
// before, so that no slice has more to do, or takes more memory, than the others.
//
// No row is computed twice by one row of tiles then. Rows at the borders between rows of tiles still are; kept rows
// take memory from slice to slice, and time to be copied in front of the new ones.
//
// Results may be put together late (SliceGroup::joins_late): the rows of each slice are a tensor of their own until all
// slices are done, which can wait in wide memory (schedule/spills.h); then they are copied to where they belong. So a
// group's operands and results need not have room in narrow memory at the same time.
//
// What a group reads and makes for others need not exist as a whole on the chip either:
//   inputs of the part       come in slice by slice
//   tensors kept by the host  are loaded and stored slice by slice (tiled/transfers.h)
//   results of the part       go out slice by slice
// With all of that, a network of any height needs no more memory than a few rows of each of one operator's tensors.
//
// Google's compiler cuts the image into rectangles instead, which all tiles work on together, and joins the results
// afterwards (docs/hardware/google_large_networks.md#pieces-of-an-image). Both are recomputation of halos; ours saves
// the joining and has more of it, unless rows are kept: then it has less.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "base/at.h"
#include "ir/model.h"
#include "lower/row_relations.h"
#include "tiled/axis_partition.h"

namespace reef::lower {

// The s-th of n shares of the rows of an image that a row of tiles owns.
tiled::Range share_of(std::int32_t height, int tile_row, std::int32_t slice, std::int32_t slices);

// Operators first..last of a part (positions in its list), in `slices` slices.
struct SliceGroup {
  std::int32_t first = 0, last = 0;
  std::int32_t slices = 1;
  bool keeps_rows = false, joins_late = false;
  friend bool operator==(const SliceGroup&, const SliceGroup&) = default;
};

// The rows of each tensor of a group in one slice, by position in SlicedOps::tensors(). Without kept rows both are the
// same, but for rows outside of the image, which are padding: `held` has them, `made` does not.
struct SliceRows {
  std::vector<tiled::TileRanges> held;  // that the slice needs
  std::vector<tiled::TileRanges> made;  // of these, what the slice itself computes or brings in

  // Nothing is to be made.
  bool is_empty() const;
  // What is there already, inside of an image of so many rows.
  tiled::TileRanges kept(std::int32_t id, std::int32_t height) const;
};

// A part of a model: operators (ascending) and the tensors at its border.
struct PartBorder {
  const ir::Model& model;
  const std::vector<std::int32_t>& ops;
  const std::vector<std::int32_t>& inputs;
  const std::vector<std::int32_t>& outputs;
};

// Operators that are executed in slices together.
class SlicedOps {
 public:
  const SliceGroup& group() const { return group_; }
  // The same in another number of slices, at least 1.
  void set_slices(std::int32_t slices);
  // With those that come first and make no results, only what later ones need.
  std::int32_t slice_count() const { return warm_up_ + group_.slices; }
  std::int32_t warm_up() const { return warm_up_; }
  const std::vector<RowOp>& ops() const { return ops_; }
  // Everything that they read and compute, as tensors of the model.
  const std::vector<std::int32_t>& tensors() const { return tensors_; }
  std::int32_t tensor(std::int32_t id) const { return tensors_[at(id)]; }

  // Positions in tensors(). What others read afterwards: on the chip as a whole, or kept by the host; results of the
  // part that go out slice by slice (and may be kept by the host as well).
  const std::vector<std::int32_t>& results() const { return results_; }
  const std::vector<std::int32_t>& stored() const { return stored_; }
  const std::vector<std::int32_t>& outputs() const { return outputs_; }
  // Positions in tensors(). What is read: inputs of the part that come in slice by slice; what the host keeps; what is
  // on the chip as a whole.
  const std::vector<std::int32_t>& inputs() const { return inputs_; }
  const std::vector<std::int32_t>& loaded() const { return loaded_; }
  const std::vector<std::int32_t>& operands() const { return operands_; }

  SliceRows rows(std::int32_t slice) const;
  std::int32_t height(std::int32_t id) const { return heights_[at(id)]; }
  // The rows of a result that belong to a slice; it may need more of them.
  tiled::TileRanges share(std::int32_t id, std::int32_t slice) const;
  // Of results(): every tile row needs the rows that are its own and no others, so that they are computed in their
  // place. Others are computed beside it and then copied.
  bool is_in_place(std::int32_t id) const { return !group_.joins_late && in_place_.contains(id); }

 private:
  friend class Sliceable;
  using Rows = std::vector<tiled::TileRanges>;  // by position in tensors()
  Rows needed(std::int32_t first_slice, std::int32_t end_slice) const;
  using Ends = std::vector<std::array<std::int32_t, tiled::kTilesPerAxis>>;  // the same
  Ends ends(std::int32_t slice, std::int32_t warm_up) const;
  std::int32_t find_warm_up() const;
  Rows still_needed(std::int32_t slice, const Ends& done, const Rows& all) const;
  std::int32_t id_of(std::int32_t tensor, std::int32_t height);
  void find_those_in_place();

  SliceGroup group_;
  std::int32_t warm_up_ = 0;
  std::vector<RowOp> ops_;
  std::vector<std::int32_t> tensors_, heights_;
  std::vector<std::int32_t> results_, stored_, outputs_, inputs_, loaded_, operands_;
  std::set<std::int32_t> in_place_;
};

// What of a part can be executed in slices.
class Sliceable {
 public:
  // `hosted`: tensors of the model that the host keeps; of inputs of the part, those that come in anew for each group.
  explicit Sliceable(const PartBorder& part, const std::set<std::int32_t>& hosted = {});

  // Nothing: one of these operators does not work row by row.
  std::optional<SlicedOps> group(const SliceGroup& group) const;
  bool is_sliceable(std::int32_t op) const { return ops_[at(op)].has_value(); }

 private:
  struct Readers {
    std::int32_t first = -1, last = -1;  // positions of operators
    bool is_input = false, is_output = false;
  };
  Readers readers_of(std::int32_t tensor) const;
  bool is_read_outside(std::int32_t tensor, const SliceGroup& group) const;
  void make_paddings(SlicedOps& sliced) const;
  void add_borders(SlicedOps& sliced) const;

  std::vector<std::optional<RowOp>> ops_;
  std::map<std::int32_t, Readers> readers_;
  std::set<std::int32_t> hosted_;
};

}  // namespace reef::lower
