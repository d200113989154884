// SPDX-License-Identifier: Apache-2.0
#include "lower/pixel_patches.h"
#include "ir/op.h"

#include <algorithm>
#include <map>

namespace reef::lower {
namespace {

using tiled::AxisPartition;
using tiled::Convolution;
using tiled::Window;

constexpr std::int32_t kPatchLanes = chip::kLanesPerCell;
// Cycles that a line takes on the ring; bytes of packed parameters through the loop-back buffer take a third of a cycle
// (docs/hardware/timing.md#formulas).
constexpr std::int64_t kLineCycles = 16, kLoopBackBytesPerCycle = 3;
constexpr std::int64_t kHeaderLines = 2;  // multipliers and biases; a third array is rare and makes no difference
// Blocks of more lines take scratch memory from the parameters that are kept.
constexpr std::int64_t kMostBlockLines = 128;
// What is computed beyond a tile's pixels, in each direction.
constexpr std::int32_t kMostBeyond = 1;
// Below this share of the time, patches are worth their memory.
constexpr std::int64_t kWorthPercent = 85;

constexpr std::int32_t round_up(std::int32_t value, std::int32_t unit) { return (value + unit - 1) / unit * unit; }

struct Patch {
  std::int32_t rows = 1, columns = 1;
};

// An operator whose pixels can be computed in patches, and its steps.
struct Layer {
  bool depthwise = false;
  std::int32_t channels = 0;     // of a pixel in one group, whole words
  std::int32_t groups = 1;       // of channels
  std::int32_t input_words = 1;  // of a group
  std::vector<std::int32_t> steps;
};

std::int32_t taps(const Window& window, std::int32_t patch) { return (patch - 1) * window.stride + window.kernel; }

bool read_shape(const Builder& builder, std::int32_t index, Layer& layer) {
  const ir::Operator& op = builder.op(index);
  const ir::Shape& weights = builder.source(op.inputs[1]).shape;
  if (op.type == Op::DEPTHWISE_CONV_2D) {
    const std::int32_t channels = builder.source(op.outputs[0]).shape.last();
    if (channels == 1 || channels != builder.source(op.inputs[0]).shape.last()) return false;
    layer.depthwise = true;
    layer.channels = kPatchLanes;
    layer.groups = (channels + kPatchLanes - 1) / kPatchLanes;
    return true;
  }
  if (op.type != Op::CONV_2D || weights.rank() != 4 || weights[3] != builder.source(op.inputs[0]).shape.last()) {
    return false;
  }
  layer.channels = round_up(weights[0], kPatchLanes);
  layer.input_words = (weights[3] + kPatchLanes - 1) / kPatchLanes;
  return 2 * layer.channels <= chip::kCells;
}

const Convolution& work_of(const Builder& builder, std::int32_t step) {
  return std::get<Convolution>(builder.program().steps[at(step)].work);
}

// The most that any tile computes beyond its pixels.
std::int32_t beyond(const AxisPartition& axis, std::int32_t patch) {
  return round_up(axis.max_own(), patch) - axis.max_own();
}

// Predicted cycles of all of the operator's steps, which are several in slices: steps of the busiest tile, and its
// parameters, which each of them sends anew.
std::int64_t cycles(const Builder& builder, const Layer& layer, const Patch& patch) {
  std::int64_t sum = 0;
  for (const std::int32_t step : layer.steps) {
    const Convolution& work = work_of(builder, step);
    const TiledTensor& output = builder.tensor(work.output);
    const std::int64_t lines = std::int64_t{taps(work.y, patch.rows)} * taps(work.x, patch.columns) * layer.input_words;
    const std::int64_t patches = std::int64_t{round_up(output.rows.max_own(), patch.rows) / patch.rows} *
                                 (round_up(output.columns.max_own(), patch.columns) / patch.columns);
    const std::int64_t words = std::int64_t{layer.channels} / kPatchLanes * patch.rows * patch.columns;
    sum += layer.groups * patches * std::max(lines, words);
    const bool is_packed = layer.depthwise && patch.rows * patch.columns == 1;
    const std::int64_t packed_bytes = (lines + kHeaderLines) * kPatchLanes * chip::kNarrowWordBytes;
    sum += layer.groups * (is_packed ? packed_bytes / kLoopBackBytesPerCycle : (lines + kHeaderLines) * kLineCycles);
  }
  return sum;
}

bool is_possible(const Builder& builder, const Layer& layer, const Patch& patch) {
  return std::all_of(layer.steps.begin(), layer.steps.end(), [&](std::int32_t step) {
    const Convolution& work = work_of(builder, step);
    const TiledTensor& output = builder.tensor(work.output);
    const auto fits = [&](const Window& window, const AxisPartition& axis, std::int32_t size) {
      return size == 1 || (window.dilation == 1 && window.enlarged == 1 && size <= std::max(1, axis.max_own()) &&
                           beyond(axis, size) <= kMostBeyond);
    };
    const std::int64_t lines = std::int64_t{taps(work.y, patch.rows)} * taps(work.x, patch.columns) * layer.input_words;
    return fits(work.y, output.rows, patch.rows) && fits(work.x, output.columns, patch.columns) &&
           lines <= kMostBlockLines;
  });
}

// Tensors that share memory must grow together.
class Objects {
 public:
  explicit Objects(Builder& builder) : builder_(builder), tensors_(builder.program().narrow.size()) {
    for (std::size_t t = 0; t < builder.program().tensors.size(); ++t) {
      tensors_[at(builder.program().tensors[t].object)].push_back(static_cast<std::int32_t>(t));
    }
  }

  // Whether all tensors in the tensor's memory lie in it in the same way.
  bool can_grow(std::int32_t index) const {
    const TiledTensor& tensor = builder_.tensor(index);
    const auto same = [](const AxisPartition& a, const AxisPartition& b) {
      for (int t = 0; t < tiled::kTilesPerAxis; ++t) {
        if (a.tile(t).base != b.tile(t).base || a.length(t) != b.length(t)) return false;
      }
      return a.front == b.front;
    };
    const auto& all = tensors_[at(tensor.object)];
    return std::all_of(all.begin(), all.end(), [&](std::int32_t t) {
      const TiledTensor& other = builder_.tensor(t);
      return other.spread == tiled::Spread::kGrid && other.pitch == tensor.pitch && same(other.rows, tensor.rows) &&
             same(other.columns, tensor.columns);
    });
  }

  // Room up to element `end` (exclusive) in the buffers of tile row or column `tile`.
  void reserve_rows(std::int32_t index, int tile, std::int32_t end) { reserve(index, &TiledTensor::rows, tile, end); }
  void reserve_columns(std::int32_t index, int tile, std::int32_t end) {
    reserve(index, &TiledTensor::columns, tile, end);
  }

 private:
  void reserve(std::int32_t index, AxisPartition TiledTensor::*axis, int tile, std::int32_t end) {
    tiled::TiledProgram& program = builder_.program();
    const std::int32_t object = program.tensor(index).object;
    for (const std::int32_t t : tensors_[at(object)]) {
      TiledTensor& tensor = program.tensor(t);
      tiled::TileShare& share = (tensor.*axis).tiles[at(tile)];
      share.held = std::max(share.held, end - share.base);
      std::int64_t& bytes = program.narrow[at(object)].bytes;
      bytes = std::max(bytes, tensor.tile_bytes());
    }
  }

  Builder& builder_;
  std::vector<std::vector<std::int32_t>> tensors_;  // by object
};

void use_patch(Builder& builder, Objects& objects, std::int32_t step, const Patch& patch) {
  auto& work = std::get<Convolution>(builder.program().steps[at(step)].work);
  work.patch_rows = patch.rows;
  work.patch_columns = patch.columns;
  const AxisPartition rows = builder.tensor(work.output).rows, columns = builder.tensor(work.output).columns;
  for (int t = 0; t < tiled::kTilesPerAxis; ++t) {
    if (const std::int32_t own = rows.tile(t).own(); own % patch.rows != 0) {
      const std::int32_t end = rows.tile(t).begin + round_up(own, patch.rows);
      objects.reserve_rows(work.output, t, end);
      objects.reserve_rows(work.input, t, work.y.end(end - 1));
    }
    if (const std::int32_t own = columns.tile(t).own(); own % patch.columns != 0) {
      const std::int32_t end = columns.tile(t).begin + round_up(own, patch.columns);
      objects.reserve_columns(work.output, t, end);
      objects.reserve_columns(work.input, t, work.x.end(end - 1));
    }
  }
}

Patch best_patch(const Builder& builder, const Layer& layer) {
  const std::int32_t most = chip::kCells / layer.channels;
  Patch best;
  std::int64_t least = cycles(builder, layer, best) * kWorthPercent / 100;
  for (std::int32_t rows = 1; rows <= most; ++rows) {
    for (std::int32_t columns = 1; rows * columns <= most; ++columns) {
      const Patch patch{rows, columns};
      if (rows * columns == 1 || !is_possible(builder, layer, patch)) continue;
      const std::int64_t time = cycles(builder, layer, patch);
      if (time >= least) continue;
      least = time;
      best = patch;
    }
  }
  return best;
}

}  // namespace

void choose_patches(Builder& builder) {
  std::map<std::int32_t, Layer> layers;  // by operator
  for (const std::int32_t step : builder.patchable_steps()) {
    layers[builder.program().steps[at(step)].op].steps.push_back(step);
  }
  Objects objects(builder);
  for (auto& [op, layer] : layers) {
    if (!read_shape(builder, op, layer)) continue;
    const bool can_grow = std::all_of(layer.steps.begin(), layer.steps.end(), [&](std::int32_t step) {
      return objects.can_grow(work_of(builder, step).input) && objects.can_grow(work_of(builder, step).output);
    });
    if (!can_grow) continue;
    const Patch patch = best_patch(builder, layer);
    if (patch.rows * patch.columns == 1) continue;
    for (const std::int32_t step : layer.steps) use_patch(builder, objects, step, patch);
  }
}

std::int32_t patch_line_words(const Convolution& layer) {
  constexpr std::int32_t kUnitWords = 16;  // lines are whole units of 64 bytes
  return round_up(layer.cells, kUnitWords);
}

Result<std::vector<std::uint8_t>> pack_patches(const darwinn::LayerParameters& from, const Convolution& layer) {
  const bool depthwise = from.shape.kind == darwinn::LayerKind::kDepthwise;
  const std::int32_t pixels = layer.patch_rows * layer.patch_columns;
  const std::int32_t channels = layer.cells / pixels, inputs = depthwise ? kPatchLanes : from.shape.input_channels;
  const std::int32_t all = from.shape.output_channels;
  REEF_REQUIRE(from.weight_zero_point.has_value(), "the weights' zero point is not known");
  std::vector<std::uint8_t> bytes;
  for (std::int32_t group = 0; group < layer.groups; ++group) {
    darwinn::LayerParameters patch;
    patch.shape = {darwinn::LayerKind::kConvolution, layer.taps_y(), layer.taps_x(), inputs, layer.cells,
                   patch_line_words(layer)};
    patch.weight_zero_point = from.weight_zero_point;
    patch.has_zero_points = from.has_zero_points;
    const auto line = static_cast<std::size_t>(inputs);
    patch.weights.assign(static_cast<std::size_t>(layer.cells * layer.kernel_positions()) * line,
                         *from.weight_zero_point);
    for (std::int32_t cell = 0; cell < layer.cells; ++cell) {
      const std::int32_t channel = group * channels + cell % channels, pixel = cell / channels;
      const auto known = static_cast<std::size_t>(std::min(channel, all - 1));
      if (!from.multipliers.empty()) patch.multipliers.push_back(from.multipliers[channel < all ? known : 0]);
      if (!from.biases.empty()) patch.biases.push_back(channel < all ? from.biases[known] : 0);
      if (channel >= all) continue;
      const std::int32_t first_y = pixel / layer.patch_columns * layer.y.stride;
      const std::int32_t first_x = pixel % layer.patch_columns * layer.x.stride;
      for (std::int32_t ky = 0; ky < from.shape.kernel_height; ++ky) {
        for (std::int32_t kx = 0; kx < from.shape.kernel_width; ++kx) {
          const auto to =
              static_cast<std::size_t>((cell * layer.taps_y() + first_y + ky) * layer.taps_x() + first_x + kx) * line;
          const std::int32_t position = ky * from.shape.kernel_width + kx;
          if (depthwise) {
            patch.weights[to + static_cast<std::size_t>(channel % kPatchLanes)] =
                from.weights[static_cast<std::size_t>(position) * static_cast<std::size_t>(all) + known];
          } else {
            const auto first =
                from.weights.begin() +
                static_cast<std::ptrdiff_t>(
                    (std::int64_t{channel} * from.shape.kernel_height * from.shape.kernel_width + position) * inputs);
            std::copy(first, first + inputs, patch.weights.begin() + static_cast<std::ptrdiff_t>(to));
          }
        }
      }
    }
    REEF_ASSIGN_OR_RETURN(const std::vector<std::uint8_t> packed, darwinn::pack(patch));
    bytes.insert(bytes.end(), packed.begin(), packed.end());
  }
  return bytes;
}

}  // namespace reef::lower
