// SPDX-License-Identifier: Apache-2.0
// The first round of lowering a part: operators in order, groups of them in slices, inputs where they are first needed,
// results when they are there, tensors to the host and back.
//
// Without groups and hosted tensors, inputs come one by one and results go out at the end, as in Google's programs.
// With them memory is short: results go out as soon as they are made.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "lower/attention_plan.h"
#include "lower/builder.h"
#include "lower/lower.h"

namespace reef::lower {

class PartLowering {
 public:
  PartLowering(Builder& builder, const PartBorder& part, const LowerOptions& options);

  // All operators; goes on behind one that there is no code for, to find the others.
  Status lower();
  std::vector<RefusedOp> take_refused() { return std::move(refused_); }

 private:
  std::string place_of(std::int32_t op) const;
  Status lower_op(std::int32_t op);
  Status lower_or_note(std::int32_t op);
  Status lower_by_itself(std::int32_t op);
  Status lower_group(const SlicedOps& group);
  Result<Builder::Slice> slice_of(const SlicedOps& group, std::int32_t slice,
                                  const std::map<std::int32_t, std::int32_t>& wholes) const;
  Status lower_slice(const SlicedOps& group, std::int32_t slice, const std::map<std::int32_t, std::int32_t>& wholes);
  // ---- Rows that are kept from slice to slice ----
  struct Keeping;
  Status make_room(const Keeping& keeping, std::int32_t id);
  Status join_rows(const Keeping& keeping, std::int32_t id, std::int32_t op);
  Status feed_rows(const Keeping& keeping, const RowOp& op);
  Status pass_on(const SlicedOps& group, const RowOp& op, std::int32_t slice,
                 const std::map<std::int32_t, std::int32_t>& wholes);
  // The rows of a result that a slice has made, by themselves, until all are put together.
  Status set_aside(const SlicedOps& group, const RowOp& op, const RowResult& result, std::int32_t slice);
  Status join_late(const SlicedOps& group, std::map<std::int32_t, std::int32_t>& wholes);

  // ---- Inputs ----
  // Brings the tensor in if it is an input that is not there.
  Status feed(std::int32_t tensor);
  // ---- Results ----
  bool is_output(std::int32_t tensor) const;
  // The operator of the part that computes the tensor; -1: none.
  std::int32_t maker_of(std::int32_t tensor) const;
  Status send(std::int32_t tensor, std::int32_t tiled);
  Status send_rest();
  // ---- The host's memory ----
  Status load(std::int32_t tensor);
  Status store(std::int32_t tensor, std::int32_t tiled);

  // Operators that are executed as a whole, and tensors that somebody else reads.
  AttentionPlan plan_attention() const;

  Builder& builder_;
  const PartBorder& part_;
  const LowerOptions& options_;
  const bool is_short_of_memory_;
  AttentionPlan attention_;
  std::map<std::int32_t, std::int32_t> kept_;  // by tensor: the tiled tensor with rows for the next slice
  struct RowsAside {
    std::int32_t op = -1, tiled = -1;
    tiled::TileRanges rows;
  };
  std::map<std::int32_t, std::vector<RowsAside>> aside_;    // by tensor: what slices have made of a result
  std::map<std::int32_t, std::int32_t> infeeds_;            // by input: one of its steps
  std::set<std::int32_t> present_;                          // inputs that are there
  std::map<std::int32_t, std::vector<std::int32_t>> sent_;  // by output: its steps
  std::map<std::int32_t, tiled::HostImage> images_;         // by tensor
  Status first_ = ok_status();
  std::set<std::int32_t> missing_;  // tensors that are not there because an operator was refused
  std::vector<RefusedOp> refused_;
};

}  // namespace reef::lower
