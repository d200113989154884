// SPDX-License-Identifier: Apache-2.0
// How much memory and time work in slices would take, estimated from the part without slices: good enough to compare
// groups of operators, and to find those that may fit. What really fits shows when it is lowered and placed.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "lower/row_slices.h"
#include "tiled/program.h"

namespace reef::compiler {

// The part without slices: what there is of each tensor, and how much exists at each operator. What can be put aside
// (everything, or what the host keeps) exists only where an operator uses it.
class Whole {
 public:
  Whole(const lower::PartBorder& part, tiled::TiledProgram program, bool may_put_aside,
        const std::set<std::int32_t>& hosted);

  const lower::PartBorder& part() const { return part_; }
  std::int32_t ops() const { return static_cast<std::int32_t>(bytes_.size()); }
  // The most that exists at one of the operator's steps.
  std::int64_t bytes_at(std::int32_t op) const { return bytes_[at(op)]; }
  // The part of it that only this operator knows: the most that exists at one step.
  std::int64_t scratch_at(std::int32_t op) const { return scratch_[at(op)]; }

  // The tensor of the model on the chip; null: it is another view of one, or no image.
  const tiled::TiledTensor* tensor(std::int32_t source) const;
  // All memory of tensors that stand for it on the chip, copies too.
  std::vector<std::int32_t> objects(std::int32_t source) const;
  bool exists_at(std::int32_t object, std::int32_t op) const;
  bool is_scratch(std::int32_t object) const { return scratch_of_[at(object)] >= 0; }
  std::int64_t bytes_of(std::int32_t object) const { return program_.narrow[at(object)].bytes; }

 private:
  std::int32_t position(std::int32_t step) const { return position_of_step_[at(step)]; }
  void find_presence(bool may_put_aside, const std::set<std::int32_t>& hosted);
  void find_scratch();
  void count_bytes(bool scratch_only, std::vector<std::int64_t>& most) const;

  const lower::PartBorder& part_;
  tiled::TiledProgram program_;
  std::vector<std::int32_t> position_of_step_;                 // of the operator, or of the one before
  std::vector<std::int64_t> bytes_, scratch_;                  // by operator
  std::vector<std::vector<tiled::Lifetime>> presence_;         // by object: steps
  std::vector<std::int32_t> scratch_of_;                       // by object: the operator; -1: it is known to others
  std::map<std::int32_t, std::vector<std::int32_t>> tensors_;  // by source
};

// The memory that a group takes and the time that it costs.
class GroupEstimate {
 public:
  GroupEstimate(const Whole& whole, const lower::SlicedOps& group);

  // The most that exists at one time, in bytes of a tile, in so many slices.
  std::int64_t bytes(std::int32_t slices);
  // Where rows are kept, more than this make nothing smaller.
  std::int32_t most_slices() const;
  // More slices do not make it less than this.
  std::int64_t least_bytes() const;
  // Cycles of the busiest tile in all slices.
  std::int64_t cycles(std::int32_t slices);

 private:
  void find_lives();
  void find_others();
  std::vector<std::int64_t> slice_bytes(const std::vector<tiled::TileRanges>& rows) const;
  std::int64_t scratch_bytes(std::size_t op, const std::vector<tiled::TileRanges>& rows) const;
  std::int64_t input_buffers() const;
  std::int64_t slice_cycles(const lower::SliceRows& rows) const;
  std::int64_t kept_bytes(const lower::SliceRows& rows) const;
  std::int64_t keeping_cycles(const lower::SliceRows& rows) const;
  tiled::TileRanges kept_rows(std::size_t id, const lower::SliceRows& rows) const;
  std::int64_t host_cycles(const lower::SliceRows& slice) const;
  const ir::Subgraph& graph() const { return whole_.part().model.subgraphs[0]; }
  std::int64_t pixel_cycles(const lower::RowOp& op) const;
  std::int64_t parameter_cycles(const lower::RowOp& op) const;

  const Whole& whole_;
  lower::SlicedOps group_;
  std::vector<const tiled::TiledTensor*> tensors_;  // by position in group_.tensors(); null: another view of one
  std::vector<tiled::Lifetime> lives_;              // the same; none: it exists as a whole
  std::vector<std::int64_t> others_;                // by operator of the group: what exists whole
  std::int64_t joined_ = 0;                         // the largest result that is put together late
};

}  // namespace reef::compiler
