// SPDX-License-Identifier: Apache-2.0
#include "lower/row_slices.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "lower/builder.h"
#include "ops/window.h"

namespace reef::lower {
namespace {

using tiled::TileRanges;
using RowRead = SlicedOps::RowRead;
using SlicedOp = SlicedOps::SlicedOp;

constexpr std::int32_t kMostRows = 1 << 20;  // of images, windows and paddings: far more than fits

constexpr std::int32_t kMostPadding = 4, kLeastPadded = 12;

const ir::Tensor& tensor_of(const ir::Subgraph& graph, std::int32_t index) {
  return graph.tensors[static_cast<std::size_t>(index)];
}

bool is_image(const ir::Subgraph& graph, std::int32_t tensor) {
  if (tensor < 0) return false;
  const ir::Shape& shape = tensor_of(graph, tensor).shape;
  return shape.rank() == 4 && shape.is_usable() && shape[0] == 1 && shape.elements() > 0 && shape[1] <= kMostRows;
}

std::optional<RowRead> window_read(const ir::Subgraph& graph, const ir::Operator& op, std::int64_t kernel) {
  const ir::Attributes& a = op.attributes;
  const std::int64_t stride = a.get_int("stride_h"), dilation = a.get_int("dilation_h_factor", 1);
  const auto is_small = [](std::int64_t value) { return value >= 1 && value <= kMostRows; };
  if (!is_small(kernel) || !is_small(stride) || !is_small(dilation) || (kernel - 1) * dilation >= kMostRows) return {};
  const auto axis = ops::window_axis(tensor_of(graph, op.inputs[0]).shape[1], kernel, stride, dilation,
                                     a.get_enum("padding", "SAME"));
  if (!axis.ok() || axis->output_size != tensor_of(graph, op.outputs[0]).shape[1]) return {};
  return RowRead{op.inputs[0], static_cast<std::int32_t>(stride), axis->pad_before,
                 static_cast<std::int32_t>((kernel - 1) * dilation + 1)};
}

// A padding in front of windows, which is made by those who read it.
std::optional<RowRead> padded_read(const ir::Model& model, const ir::Operator& op) {
  const ir::Tensor& amounts = tensor_of(model.subgraphs[0], op.inputs[1]);
  const Bytes& data = ir::constant_data(model, amounts);
  std::int32_t pads[8];
  if (amounts.type != ir::DataType::kInt32 || data.size() != sizeof(pads)) return {};
  std::memcpy(pads, data.data(), sizeof(pads));
  if (std::any_of(pads, pads + 8, [](std::int32_t p) { return p < 0 || p > kMostRows; })) return {};
  if (pads[0] != 0 || pads[1] != 0 || pads[6] != 0 || pads[7] != 0) return {};
  // Where little is added to a large image, it is only seen by windows; otherwise it may have to be made.
  const ir::Shape& shape = tensor_of(model.subgraphs[0], op.inputs[0]).shape;
  if (*std::max_element(pads, pads + 8) > kMostPadding || std::min(shape[1], shape[2]) < kLeastPadded) return {};
  return RowRead{op.inputs[0], 1, pads[2], 1};
}

bool is_one_of(const std::string& type, std::initializer_list<const char*> types) {
  return std::any_of(types.begin(), types.end(), [&](const char* other) { return type == other; });
}

// Row by row: every computed operand has the shape of the result.
std::optional<SlicedOp> same_rows(const ir::Model& model, const ir::Operator& op, SlicedOp sliced) {
  const ir::Subgraph& graph = model.subgraphs[0];
  for (const std::int32_t operand : op.inputs) {
    if (operand < 0) return {};
    const ir::Tensor& tensor = tensor_of(graph, operand);
    if (!ir::constant_data(model, tensor).empty()) {
      // Others than one number, or one per channel, are images with rows of their own.
      if (tensor.shape.elements() != 1 && tensor.shape.elements() != tensor.shape.last()) return {};
      continue;
    }
    if (!is_image(graph, operand) || !(tensor.shape == tensor_of(graph, sliced.result).shape)) return {};
    sliced.reads.push_back({operand});
  }
  if (sliced.reads.empty()) return {};
  return sliced;
}

std::optional<SlicedOp> sliced_op(const ir::Model& model, std::int32_t index) {
  const ir::Subgraph& graph = model.subgraphs[0];
  const ir::Operator& op = graph.operators[static_cast<std::size_t>(index)];
  if (op.outputs.size() != 1 || op.inputs.empty() || !is_image(graph, op.outputs[0]) || !is_image(graph, op.inputs[0]))
    return {};
  SlicedOp sliced;
  sliced.op = index;
  sliced.result = op.outputs[0];
  sliced.height = tensor_of(graph, sliced.result).shape[1];
  std::optional<RowRead> read;
  if (is_one_of(op.type, {"CONV_2D", "DEPTHWISE_CONV_2D"}) && op.inputs.size() >= 2 && op.inputs[1] >= 0) {
    const ir::Shape& weights = tensor_of(graph, op.inputs[1]).shape;
    if (weights.rank() == 4) read = window_read(graph, op, weights[1]);
    sliced.reads_windows = true;
  } else if (is_one_of(op.type, {"MAX_POOL_2D", "AVERAGE_POOL_2D"})) {
    // A pool over the whole image ends in a single pixel, which is no image any more.
    if (sliced.height > 1) read = window_read(graph, op, op.attributes.get_int("filter_height"));
    sliced.reads_windows = true;
  } else if (op.type == "PAD" && op.inputs.size() == 2 && op.inputs[1] >= 0) {
    sliced.computes = false;
    sliced.pads = true;
    read = padded_read(model, op);
  } else if (is_one_of(op.type, {"ADD", "SUB", "MUL", "PRELU", "MAXIMUM", "MINIMUM", "RELU", "RELU6", "RELU_N1_TO_1",
                                 "LOGISTIC", "TANH"})) {
    return same_rows(model, op, sliced);
  } else if (op.type == "QUANTIZE") {
    const ir::Tensor &from = tensor_of(graph, op.inputs[0]), &to = tensor_of(graph, sliced.result);
    const auto same = same_quantization(from, to);
    if (!same.ok()) return {};
    sliced.computes = !*same;
    return same_rows(model, op, sliced);
  }
  if (!read) return {};
  sliced.reads = {*read};
  return sliced;
}

// The s-th of n shares of what a tile row owns.
tiled::Range share_of(std::int32_t height, int tile_row, std::int32_t slice, std::int32_t slices) {
  const std::int32_t begin = tiled::cut(height, tile_row);
  const std::int64_t own = tiled::cut(height, tile_row + 1) - begin;
  return {begin + static_cast<std::int32_t>(own * slice / slices),
          begin + static_cast<std::int32_t>(own * (slice + 1) / slices)};
}

}  // namespace

Sliceable::Sliceable(const PartBorder& part) {
  const ir::Subgraph& graph = part.model.subgraphs[0];
  for (std::size_t i = 0; i < part.ops.size(); ++i) {
    ops_.push_back(sliced_op(part.model, part.ops[i]));
    for (const std::int32_t tensor : graph.operators[static_cast<std::size_t>(part.ops[i])].inputs) {
      Readers& readers = readers_[tensor];
      if (readers.first < 0) readers.first = static_cast<std::int32_t>(i);
      readers.last = static_cast<std::int32_t>(i);
    }
  }
  for (const std::int32_t tensor : part.outputs) {
    Readers& readers = readers_[tensor];
    readers.last = static_cast<std::int32_t>(part.ops.size());
    if (readers.first < 0) readers.first = readers.last;
  }
  for (const std::int32_t tensor : part.inputs) readers_[tensor].is_input = true;
}

std::optional<SlicedOps> Sliceable::group(const SliceGroup& group) const {
  if (group.first < 0 || group.last < group.first || static_cast<std::size_t>(group.last) >= ops_.size() ||
      group.slices < 1) {
    return {};
  }
  SlicedOps sliced;
  sliced.group_ = group;
  for (std::int32_t i = group.first; i <= group.last; ++i) {
    const auto& op = ops_[static_cast<std::size_t>(i)];
    if (!op) return {};
    sliced.ops_.push_back(*op);
  }
  if (!add_borders(sliced) || !sliced.results_stay_in_place()) return {};
  return sliced;
}

bool Sliceable::add_borders(SlicedOps& sliced) const {
  const SliceGroup& group = sliced.group_;
  const auto is_read_outside = [&](std::int32_t tensor) {
    const auto found = readers_.find(tensor);
    if (found == readers_.end()) return false;
    return found->second.first < group.first || found->second.last > group.last;
  };
  std::set<std::int32_t> padded;
  for (SlicedOp& op : sliced.ops_) {
    for (RowRead& read : op.reads) {
      const std::size_t known = sliced.tensors_.size();
      read.id = sliced.id_of(read.tensor);
      // Padding is made by windows that read it.
      if (!op.reads_windows && padded.contains(read.tensor)) return false;
      if (known == sliced.tensors_.size()) continue;
      const bool comes_in = readers_.at(read.tensor).is_input && !is_read_outside(read.tensor);
      (comes_in ? sliced.inputs_ : sliced.operands_).push_back(read.id);
    }
    op.id = sliced.id_of(op.result);
    if (op.pads) padded.insert(op.result);
    if (!is_read_outside(op.result)) continue;
    if (!op.computes) return false;  // no tensor of its own that others could read
    sliced.results_.push_back(op.id);
    sliced.heights_.push_back(op.height);
  }
  return !sliced.results_.empty();
}

std::int32_t SlicedOps::id_of(std::int32_t tensor) {
  const auto found = std::find(tensors_.begin(), tensors_.end(), tensor);
  if (found != tensors_.end()) return static_cast<std::int32_t>(found - tensors_.begin());
  tensors_.push_back(tensor);
  return static_cast<std::int32_t>(tensors_.size() - 1);
}

// In every slice, each tile row computes the rows that are its own and no others.
bool SlicedOps::results_stay_in_place() const {
  for (const std::int32_t slice : {0, group_.slices / 2, group_.slices - 1}) {
    const std::vector<TileRanges> all = rows(slice);
    for (std::size_t i = 0; i < results_.size(); ++i) {
      for (int t = 0; t < tiled::kTilesPerAxis; ++t) {
        const tiled::Range share = share_of(heights_[i], t, slice, group_.slices);
        const tiled::Range& needed = all[static_cast<std::size_t>(results_[i])][static_cast<std::size_t>(t)];
        if (needed.is_empty() ? !share.is_empty() : !(needed == share)) return false;
      }
    }
  }
  return true;
}

std::vector<TileRanges> SlicedOps::rows(std::int32_t slice) const {
  std::vector<TileRanges> rows(tensors_.size());
  for (std::size_t i = 0; i < results_.size(); ++i) {
    for (int t = 0; t < tiled::kTilesPerAxis; ++t) {
      rows[static_cast<std::size_t>(results_[i])][static_cast<std::size_t>(t)].include(
          share_of(heights_[i], t, slice, group_.slices));
    }
  }
  for (auto op = ops_.rbegin(); op != ops_.rend(); ++op) {
    const TileRanges needed = rows[static_cast<std::size_t>(op->id)];  // by all that read it, which come behind
    for (const RowRead& read : op->reads) {
      TileRanges& operand = rows[static_cast<std::size_t>(read.id)];
      for (std::size_t t = 0; t < needed.size(); ++t) {
        tiled::Range range = needed[t];
        if (op->computes) range = range.within(0, op->height);
        if (range.is_empty()) continue;
        operand[t].include(
            {range.begin * read.stride - read.pad, (range.end - 1) * read.stride - read.pad + read.reach});
      }
    }
  }
  return rows;
}

}  // namespace reef::lower
