// SPDX-License-Identifier: Apache-2.0
// CONV_2D and DEPTHWISE_CONV_2D: geometry, loop order, parameters.
//
// Which pixels a tile computes, which halo it needs for that and in which order it walks kernel and channels follow
// from sizes alone, by the rules that Google's newest compiler was seen to follow (docs/codegen.md).
#include <algorithm>

#include "formats/darwinn/parameters/loop_order.h"
#include "ir/describe.h"
#include "ir/op.h"
#include "lower/convolution.h"
#include "lower/lowerings.h"
#include "lower/pixel_patches.h"
#include "lower/shared_steps.h"
#include "lower/windows.h"

namespace reef::lower {
namespace {

using darwinn::LayerKind;
using tiled::Convolution;

constexpr std::int32_t kConvolutionLanes = chip::kLanesPerCell;
// A line of fewer words than 16 would not fill a unit of 64 bytes of the host's parameter transfers.
constexpr std::int32_t kMinLineWords = 16;
// When sums are partial, these blocks of lines are not double buffered. Observed in Google's programs; why is not
// known.
constexpr std::int32_t kSingleBufferFrom = 16, kSingleBufferTo = 32;
constexpr std::int64_t kTieLines = 32;
// Of one layer: 256 MiB, which is more than a model file may hold.
constexpr std::int64_t kMostLines = 1 << 20;

constexpr std::int32_t round_up(std::int32_t value, std::int32_t unit) { return (value + unit - 1) / unit * unit; }

// Sums in the cells, or partial sums in wide memory: what takes fewer lines of it
// (docs/hardware/google_programs.md#loop-order: holds for every convolution of more than 25 networks; the tie rests on
// two layers).
void choose_loop_order(const darwinn::LayerShape& shape, std::int64_t pixels, Convolution& layer) {
  const std::int32_t words = (shape.input_channels + kConvolutionLanes - 1) / kConvolutionLanes;
  const std::int64_t positions = layer.kernel_positions();
  const std::int32_t block_words = darwinn::partial_sum_block_words(shape);
  const std::int64_t all_lines = positions * words, block = positions * block_words;
  const std::int64_t with_sums = pixels + 2 * block, without = 2 * all_lines;
  layer.partial_sums = block_words < words && (with_sums < without || (with_sums == without && all_lines >= kTieLines));
  layer.block_words = layer.partial_sums ? block_words : words;
  layer.blocks = words / layer.block_words;
}

Result<tiled::ParameterChunk> parameters_of(const ir::Model& model, const ir::Operator& op, const Convolution& layer,
                                            darwinn::LayerOptions options) {
  // Without neighbours all orders are the same.
  if (layer.partial_sums && layer.kernel_positions() > 1) options.order.block_words = layer.block_words;
  REEF_ASSIGN_OR_RETURN(darwinn::LayerParameters parameters,
                        darwinn::layer_parameters_of(model, model.subgraphs[0], op, options));
  tiled::ParameterChunk chunk;
  chunk.in_one_piece = layer.packed;
  chunk.can_stream = !layer.packed;
  if (layer.is_in_patches()) {
    REEF_ASSIGN_OR_RETURN(std::vector<std::uint8_t> patches, pack_patches(parameters, layer));
    chunk.line_words = patch_line_words(layer);
    chunk.lines = layer.groups * (layer.header.arrays() + layer.block_lines);
    chunk.bytes = Bytes(std::move(patches));
    return chunk;
  }
  if (!layer.packed) {
    chunk.line_words = std::max(kMinLineWords, darwinn::cells_per_line(parameters.shape));
    parameters.shape.cells = chunk.line_words == 64 ? 0 : chunk.line_words;
    const std::int64_t lines =
        std::int64_t{layer.groups} * (layer.header.arrays() + std::int64_t{layer.block_lines} * layer.blocks);
    if (lines > kMostLines) return unsupported("{} lines of parameters are more than can be sent", lines);
    chunk.lines = static_cast<std::int32_t>(lines);
  }
  REEF_ASSIGN_OR_RETURN(std::vector<std::uint8_t> bytes, darwinn::pack(parameters));
  if (layer.packed) {
    chunk.line_words = chip::kWideLineBytes / chip::kNarrowWordBytes;
    chunk.lines = static_cast<std::int32_t>((bytes.size() + chip::kWideLineBytes - 1) / chip::kWideLineBytes);
  }
  chunk.bytes = Bytes(std::move(bytes));
  return chunk;
}

// How the operator reads the image that `padding` surrounds. Checks everything about the operator's attributes.
Result<Windows> windows_of(const ir::Subgraph& graph, const ir::Operator& op, const Padding& padding) {
  const ir::Tensor& input = graph.tensors[at(op.inputs[0])];
  const ir::Tensor& weights = graph.tensors[at(op.inputs[1])];
  const ir::Tensor& output = graph.tensors[at(op.outputs[0])];
  if (input.shape.rank() != 4 || weights.shape.rank() != 4 || output.shape.rank() != 4 || input.shape[0] != 1) {
    return unsupported("input {} and weights {} must have four dimensions, with a batch of one",
                       input.shape.to_string(), weights.shape.to_string());
  }
  const ir::Attributes& a = op.attributes;
  const std::string_view mode = a.get_enum("padding", "SAME");
  Windows windows;
  REEF_ASSIGN_OR_RETURN(windows.y, axis_window(input.shape[1], weights.shape[1], a.get_int("stride_h"),
                                               a.get_int("dilation_h_factor", 1), mode, padding.top));
  REEF_ASSIGN_OR_RETURN(windows.x, axis_window(input.shape[2], weights.shape[2], a.get_int("stride_w"),
                                               a.get_int("dilation_w_factor", 1), mode, padding.left));
  REEF_REQUIRE(output.shape[0] == 1 && output.shape[1] == windows.y.outputs && output.shape[2] == windows.x.outputs,
               "output {} should have {} rows and {} columns", output.shape.to_string(), windows.y.outputs,
               windows.x.outputs);
  return windows;
}

// Groups, loop order and constants; the parameters' bytes are left to parameters_of. `begun` has windows and patches.
Result<Convolution> layer_of(const ir::Model& model, const ir::Operator& op, const Convolution& begun,
                             tiled::Level level, std::int64_t pixels, std::int32_t block_words,
                             const darwinn::LayerOptions& options) {
  const ir::Subgraph& graph = model.subgraphs[0];
  REEF_ASSIGN_OR_RETURN(const darwinn::LayerParameters parameters,
                        darwinn::layer_parameters_of(model, graph, op, options));
  const darwinn::LayerShape& shape = parameters.shape;
  Convolution layer = begun;
  layer.depthwise = shape.kind == LayerKind::kDepthwise;
  const std::int32_t channels = round_up(shape.output_channels, kConvolutionLanes);
  layer.cells = layer.depthwise ? kConvolutionLanes : std::min(channels, chip::kCells);
  layer.packed =
      layer.depthwise || (level == tiled::Level::kAsGoogle && darwinn::cells_per_line(shape) == kConvolutionLanes);
  layer.groups = (channels + layer.cells - 1) / layer.cells;
  layer.last_cells = channels - (layer.groups - 1) * layer.cells;
  if (layer.is_in_patches()) {
    layer.cells *= layer.patch_rows * layer.patch_columns;
    layer.last_cells = layer.cells;
    layer.packed = false;
    layer.block_words = layer.depthwise ? 1 : (shape.input_channels + kConvolutionLanes - 1) / kConvolutionLanes;
  } else if (block_words > 0) {
    layer.partial_sums = true;
    layer.block_words = block_words;
    layer.blocks = (shape.input_channels + kConvolutionLanes - 1) / kConvolutionLanes / block_words;
  } else if (!layer.depthwise) {
    choose_loop_order(shape, pixels, layer);
  }
  layer.block_lines = layer.kernel_positions() * layer.block_words;
  const bool one_buffer = layer.block_lines >= kSingleBufferFrom && layer.block_lines < kSingleBufferTo;
  layer.buffers = one_buffer && !layer.is_in_patches() ? 1 : 2;
  layer.header = parameters.presence();
  REEF_ASSIGN_OR_RETURN(layer.constants, darwinn::layer_requantization_of(model, graph, op, layer.header));
  return layer;
}

// Whether the padding of an axis can be read from halos: tiles that have no part of the image may need none of it, and
// the halos must not be much larger than the padded image would be.
bool reads_padding_from_halo(std::int32_t size, std::int32_t before, std::int32_t after, const tiled::Window& window) {
  constexpr std::int32_t kSpare = 8;
  const auto folded = tiled::AxisPartition::of(size, {&window, 1});
  tiled::Window real = window;
  real.pad_before -= before;
  const auto made = tiled::AxisPartition::of(size + before + after, {&real, 1});
  return !reads_beyond_owners(folded) && folded.max_length() <= 2 * made.max_length() + kSpare;
}

// `block_words`: of partial sums; 0: whatever takes least memory.
Status finish_convolution(Builder& builder, tiled::Step& step, const LayerSource& source, std::int32_t block_words) {
  const Convolution begun = std::get<Convolution>(step.work);
  const tiled::TiledTensor& input = builder.tensor(begun.input);
  const tiled::TiledTensor& output = builder.tensor(begun.output);
  REEF_RETURN_IF_ERROR(require_reachable_halos(input, output));
  if (builder.is_sketch()) return ok_status();
  std::int64_t pixels = std::int64_t{output.rows.max_own()} * output.columns.max_own();
  if (!source.model) {  // in slices all steps of the operator do the same, with the same parameters
    for (const std::int32_t index : builder.steps_of(step.op)) {
      const auto* other = std::get_if<Convolution>(&builder.program().steps[at(index)].work);
      if (other == nullptr) continue;
      const TiledTensor& part = builder.tensor(other->output);
      pixels = std::max(pixels, std::int64_t{part.rows.max_own()} * part.columns.max_own());
    }
  }
  const ir::Model& model = source.model ? *source.model : builder.model();
  const ir::Operator& op = source.model ? model.subgraphs[0].operators[at(source.op)] : builder.op(step.op);
  darwinn::LayerOptions options;
  options.keep_zero_biases = source.keep_zero_biases;
  REEF_ASSIGN_OR_RETURN(Convolution layer, layer_of(model, op, begun, builder.level(), pixels, block_words, options));
  REEF_ASSIGN_OR_RETURN(tiled::ParameterChunk chunk, parameters_of(model, op, layer, options));
  layer.parameters = builder.new_parameters(std::move(chunk));
  step.parameters_used = {layer.parameters};
  if (layer.partial_sums) {
    layer.sums = builder.new_wide(pixels);
    step.wide_used.push_back(layer.sums);
  }
  if (layer.header.arrays() > 0) {
    layer.header_lines =
        builder.new_wide(tiled::kHeaderSpareLines + std::int64_t{layer.header.arrays()} * layer.buffers);
    step.wide_used.push_back(layer.header_lines);
  }
  layer.weights = builder.new_wide(std::int64_t{layer.block_lines} * layer.buffers);
  step.wide_used.push_back(layer.weights);
  step.work = std::move(layer);
  return ok_status();
}

// A convolution without neighbours, of an image of a single pixel: every output depends on every input.
bool is_of_one_pixel(const Builder& builder, std::int32_t op) {
  const ir::Shape &image = builder.source(builder.op(op).inputs[0]).shape,
                  &weights = builder.source(builder.op(op).inputs[1]).shape;
  return builder.op(op).type == Op::CONV_2D && image.rank() == 4 && weights.rank() == 4 &&
         image.elements() == image.last() && weights[1] == 1 && weights[2] == 1;
}

}  // namespace

void add_convolution(Builder& builder, std::int32_t op, const ConvolutionOf& what) {
  Convolution layer;
  layer.y = what.windows.y;
  layer.x = what.windows.x;
  layer.input = what.input;
  layer.output = what.output;
  const auto finish = [source = what.source, block_words = what.block_words](Builder& finishing, tiled::Step& step) {
    return finish_convolution(finishing, step, source, block_words);
  };
  const std::int32_t step =
      builder.add_step(op, std::move(layer), {Read{what.input, what.windows}}, {what.output}, finish);
  if (!what.source.model && what.block_words == 0) builder.add_patchable(step);
}

Status lower_convolution(Builder& builder, std::int32_t op) {
  REEF_ASSIGN_OR_RETURN(const std::int32_t from, builder.operand(op, 0));
  REEF_RETURN_IF_ERROR(builder.operand(op, 1).status());
  if (is_of_one_pixel(builder, op)) return lower_dense(builder, op);
  REEF_ASSIGN_OR_RETURN(Value value, builder.image_for_windows(from));
  REEF_ASSIGN_OR_RETURN(Windows windows, windows_of(builder.graph(), builder.op(op), value.padding));
  const Padding& p = value.padding;
  const tiled::TiledTensor& image = builder.tensor(value.tensor);
  if (!reads_padding_from_halo(image.height, p.top, p.bottom, windows.y) ||
      !reads_padding_from_halo(image.width, p.left, p.right, windows.x)) {
    REEF_ASSIGN_OR_RETURN(const std::int32_t padded, builder.grid(from));
    value = {padded, {}};
    REEF_ASSIGN_OR_RETURN(windows, windows_of(builder.graph(), builder.op(op), {}));
  }
  const std::int32_t to = builder.op(op).outputs[0];
  REEF_ASSIGN_OR_RETURN(const std::int32_t output, builder.new_grid(to));
  builder.set_value(to, {output, {}});
  add_convolution(builder, op, {value.tensor, output, windows});
  return ok_status();
}

}  // namespace reef::lower
