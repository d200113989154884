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
// Google's compiler cuts the image into rectangles instead, which all tiles work on together, and joins the results
// afterwards (codegen_large.md 1.1). Both are recomputation of halos; ours saves the joining and has more of it.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "ir/model.h"
#include "tiled/axis_partition.h"

namespace reef::lower {

// Operators first..last of a part (positions in its list), in `slices` slices.
struct SliceGroup {
  std::int32_t first = 0, last = 0;
  std::int32_t slices = 1;
  friend bool operator==(const SliceGroup&, const SliceGroup&) = default;
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

  // How rows of an operand follow from those of the result: rows o * stride - pad to o * stride - pad + reach.
  struct RowRead {
    std::int32_t tensor = -1;  // the model's
    std::int32_t stride = 1, pad = 0, reach = 1;
    std::int32_t id = -1;  // in tensors()
  };
  struct SlicedOp {
    std::int32_t op = -1;      // the model's
    std::int32_t result = -1;  // the model's tensor
    std::int32_t height = 0;   // of the result
    bool computes = true;      // false: another view of the operand, which exists only once
    bool reads_windows = false;
    bool pads = false;
    std::vector<RowRead> reads;
    std::int32_t id = -1;  // of the result, in tensors()
  };
  const std::vector<SlicedOp>& ops() const { return ops_; }
  // Everything that they read and compute, as tensors of the model.
  const std::vector<std::int32_t>& tensors() const { return tensors_; }

  // Positions in tensors(): what the group computes for others; inputs of the part that nothing else reads, which come
  // in slice by slice; what is computed before and read here.
  const std::vector<std::int32_t>& results() const { return results_; }
  const std::vector<std::int32_t>& inputs() const { return inputs_; }
  const std::vector<std::int32_t>& operands() const { return operands_; }
  std::int32_t tensor(std::int32_t id) const { return tensors_[static_cast<std::size_t>(id)]; }

  // The rows of each of tensors() that a slice needs; for results, those that it computes. Rows outside of the image
  // are padding.
  std::vector<tiled::TileRanges> rows(std::int32_t slice) const;

 private:
  friend class Sliceable;
  std::int32_t id_of(std::int32_t tensor);
  bool results_stay_in_place() const;

  SliceGroup group_;
  std::vector<SlicedOp> ops_;
  std::vector<std::int32_t> tensors_;
  std::vector<std::int32_t> heights_;  // of results()
  std::vector<std::int32_t> results_, inputs_, operands_;
};

// What of a part can be executed in slices.
class Sliceable {
 public:
  explicit Sliceable(const PartBorder& part);

  // Nothing: these operators cannot be executed in slices. That is so for operators that do not work row by row, and
  // where a result is needed inside of the group by more than the tile row that has it.
  std::optional<SlicedOps> group(const SliceGroup& group) const;

 private:
  bool add_borders(SlicedOps& sliced) const;

  // Where a tensor is read: positions of the first and last operator. Results of the part are read behind all.
  struct Readers {
    std::int32_t first = -1, last = -1;
    bool is_input = false;
  };
  std::vector<std::optional<SlicedOps::SlicedOp>> ops_;
  std::map<std::int32_t, Readers> readers_;
};

}  // namespace reef::lower
