// SPDX-License-Identifier: Apache-2.0
#include "lower/layer.h"

#include <algorithm>

#include "formats/darwinn/parameters/loop_order.h"
#include "ir/describe.h"
#include "ops/window.h"

namespace reef::lower {
namespace {

using darwinn::LayerKind;
using tiled::TiledLayer;

constexpr std::int32_t kMaxExtent = 1 << 16;  // of images, kernels, strides: more than any tile could hold
constexpr std::int32_t kLanes = chip::kLanesPerCell;
// A line of fewer words than 16 would not fill a unit of 64 bytes of the host's parameter transfers.
constexpr std::int32_t kMinLineWords = 16;
// When sums are partial, these blocks of lines are not double buffered. Observed in Google's programs; why is not
// known.
constexpr std::int32_t kSingleBufferFrom = 16, kSingleBufferTo = 32;
constexpr std::int64_t kTieLines = 32;

constexpr std::int32_t round_up(std::int32_t value, std::int32_t unit) { return (value + unit - 1) / unit * unit; }

Result<tiled::Window> axis_window(std::int64_t size, std::int64_t kernel, std::int64_t stride, std::int64_t dilation,
                                  std::string_view padding, std::int32_t before) {
  const auto is_small = [](std::int64_t value) { return value >= 1 && value <= kMaxExtent; };
  if (!is_small(size) || !is_small(kernel) || !is_small(stride) || !is_small(dilation) ||
      (kernel - 1) * dilation >= kMaxExtent) {
    return unsupported("size {}, kernel {}, stride {} or dilation {} is out of range", size, kernel, stride, dilation);
  }
  REEF_ASSIGN_OR_RETURN(const ops::WindowAxis axis, ops::window_axis(size, kernel, stride, dilation, padding));
  tiled::Window window;
  window.outputs = axis.output_size;
  window.kernel = static_cast<std::int32_t>(kernel);
  window.stride = static_cast<std::int32_t>(stride);
  window.dilation = static_cast<std::int32_t>(dilation);
  window.pad_before = axis.pad_before + before;
  return window;
}

// Sums in the cells, or partial sums in wide memory: what takes fewer lines of it (codegen.md 4.4: holds for every
// convolution of more than 25 networks; the tie rests on two layers).
void choose_loop_order(const darwinn::LayerShape& shape, std::int64_t pixels, TiledLayer& layer) {
  const std::int32_t words = (shape.input_channels + kLanes - 1) / kLanes;
  const std::int64_t positions = layer.kernel_positions();
  const std::int32_t block_words = darwinn::partial_sum_block_words(shape);
  const std::int64_t all_lines = positions * words, block = positions * block_words;
  const std::int64_t with_sums = pixels + 2 * block, without = 2 * all_lines;
  layer.partial_sums = block_words < words && (with_sums < without || (with_sums == without && all_lines >= kTieLines));
  layer.block_words = layer.partial_sums ? block_words : words;
  layer.blocks = words / layer.block_words;
}

Status fill_parameters(const ir::Model& model, const ir::Operator& op, TiledLayer& layer) {
  darwinn::LayerOptions options;
  if (layer.partial_sums) options.order.block_words = layer.block_words;
  REEF_ASSIGN_OR_RETURN(darwinn::LayerParameters parameters,
                        darwinn::layer_parameters_of(model, model.subgraphs[0], op, options));
  tiled::ParameterChunk& chunk = layer.parameters;
  if (!layer.depthwise) {
    chunk.line_words = std::max(kMinLineWords, darwinn::cells_per_line(parameters.shape));
    parameters.shape.cells = chunk.line_words == 64 ? 0 : chunk.line_words;
    const std::int64_t lines =
        std::int64_t{layer.groups} * (layer.header.arrays() + std::int64_t{layer.block_lines} * layer.blocks);
    if (lines >= std::int64_t{chip::kTiles} * chip::kWideLines) {
      return unsupported("{} lines of parameters are more than the chip holds; streaming them is not generated yet",
                         lines);
    }
    chunk.lines = static_cast<std::int32_t>(lines);
  }
  REEF_ASSIGN_OR_RETURN(std::vector<std::uint8_t> bytes, darwinn::pack(parameters));
  if (layer.depthwise) {
    chunk.line_words = chip::kWideLineBytes / chip::kNarrowWordBytes;
    chunk.lines = static_cast<std::int32_t>((bytes.size() + chip::kWideLineBytes - 1) / chip::kWideLineBytes);
  }
  chunk.bytes = Bytes(std::move(bytes));
  return ok_status();
}

}  // namespace

Result<LayerWindows> windows_of(const ir::Subgraph& graph, const ir::Operator& op, const Padding& padding) {
  const ir::Tensor& input = graph.tensors[static_cast<std::size_t>(op.inputs[0])];
  const ir::Tensor& weights = graph.tensors[static_cast<std::size_t>(op.inputs[1])];
  const ir::Tensor& output = graph.tensors[static_cast<std::size_t>(op.outputs[0])];
  if (input.shape.rank() != 4 || weights.shape.rank() != 4 || output.shape.rank() != 4 || input.shape[0] != 1) {
    return unsupported("input {} and weights {} must have four dimensions, with a batch of one",
                       input.shape.to_string(), weights.shape.to_string());
  }
  const ir::Attributes& a = op.attributes;
  const std::string_view mode = a.get_enum("padding", "SAME");
  LayerWindows windows;
  REEF_ASSIGN_OR_RETURN(windows.y, axis_window(input.shape[1], weights.shape[1], a.get_int("stride_h"),
                                               a.get_int("dilation_h_factor", 1), mode, padding.top));
  REEF_ASSIGN_OR_RETURN(windows.x, axis_window(input.shape[2], weights.shape[2], a.get_int("stride_w"),
                                               a.get_int("dilation_w_factor", 1), mode, padding.left));
  REEF_REQUIRE(output.shape[0] == 1 && output.shape[1] == windows.y.outputs && output.shape[2] == windows.x.outputs,
               "output {} should have {} rows and {} columns", output.shape.to_string(), windows.y.outputs,
               windows.x.outputs);
  return windows;
}

Result<tiled::TiledLayer> layer_of(const ir::Model& model, std::int32_t op_index, std::int64_t pixels) {
  const ir::Subgraph& graph = model.subgraphs[0];
  const ir::Operator& op = graph.operators[static_cast<std::size_t>(op_index)];
  REEF_ASSIGN_OR_RETURN(const darwinn::LayerParameters parameters, darwinn::layer_parameters_of(model, graph, op));
  const darwinn::LayerShape& shape = parameters.shape;
  TiledLayer layer;
  layer.op = op_index;
  layer.depthwise = shape.kind == LayerKind::kDepthwise;
  layer.y.kernel = shape.kernel_height;
  layer.x.kernel = shape.kernel_width;
  const std::int32_t channels = round_up(shape.output_channels, kLanes);
  layer.cells = layer.depthwise ? kLanes : std::min(channels, chip::kCells);
  layer.groups = (channels + layer.cells - 1) / layer.cells;
  layer.last_cells = channels - (layer.groups - 1) * layer.cells;
  if (!layer.depthwise) choose_loop_order(shape, pixels, layer);
  layer.block_lines = layer.kernel_positions() * layer.block_words;
  layer.buffers = layer.block_lines >= kSingleBufferFrom && layer.block_lines < kSingleBufferTo ? 1 : 2;
  layer.header = parameters.presence();
  REEF_ASSIGN_OR_RETURN(layer.constants, darwinn::layer_requantization_of(model, graph, op, layer.header));
  REEF_RETURN_IF_ERROR(fill_parameters(model, op, layer));
  return layer;
}

}  // namespace reef::lower
