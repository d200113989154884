// SPDX-License-Identifier: Apache-2.0
// Which rows of its operands an operator reads for some rows of its results: what work in slices (row_slices.h) rests
// on.
//
// Only operators for which that is a window that moves down with the result, and whose lowering asks for no more rows
// than it says, are known here. What is said may be a row or two too many, never too few.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/model.h"
#include "tiled/axis_partition.h"

namespace reef::lower {

struct RowRead {
  std::int32_t tensor = -1;    // the model's
  std::int32_t result = 0;     // of the operator's results, the one whose rows these are needed for
  tiled::Window window;        // `outputs` is not used
  std::int32_t height = 0;     // of the operand
  bool keeps_columns = false;  // pixels are read where they are, never those of neighbours
  bool sees_padding = false;   // rows outside of the image are read, too: it is padded
  std::int32_t id = -1;        // SlicedOps::tensors()

  tiled::Range rows(const tiled::Range& results) const {
    if (results.is_empty()) return {};
    const tiled::Range all{window.first(results.begin), window.end(results.end - 1)};
    return sees_padding ? all : all.within(0, height);
  }
};

struct RowResult {
  std::int32_t tensor = -1;  // the model's
  std::int32_t height = 0;
  std::int32_t id = -1;  // SlicedOps::tensors()
};

struct RowOp {
  std::int32_t op = -1;  // the model's
  std::vector<RowResult> results;
  std::vector<RowRead> reads;
  bool computes = true;        // false: the result is another view of the operand, which exists only once
  bool reads_windows = false;  // padding in front of it need not be made
  bool pads = false;           // computes only for readers that are not so
};

// Nothing: not row by row, or not known to be.
std::optional<RowOp> row_op(const ir::Model& model, std::int32_t index);

// Of the operators whose geometry their own files know; both images.
std::optional<tiled::Window> resize_rows(const ir::Subgraph& graph, const ir::Operator& op);
std::optional<tiled::Window> transpose_conv_rows(const ir::Subgraph& graph, const ir::Operator& op);

}  // namespace reef::lower
