// SPDX-License-Identifier: Apache-2.0
// Bilinear interpolation as convolutions.
//
// Problem: an output pixel is a mean of four input pixels, weighted by its place between them. The chip has an
// instruction for twice the size only (resize.cpp). Approach: along an axis of n_in pixels that become n_out, places
// repeat. With n_out / n_in = P / Q in lowest terms, outputs r, r + P, r + 2P, ... (a phase) lie between inputs that
// are Q apart and have the same weights: a depthwise convolution of two by two weights with stride Q.
//
//   image -> border repeated, where a phase reads beyond it -> a convolution for each phase -> between each other
//
// Phases that meet pixels exactly take them as they are; an axis of one pixel is only repeated.
//
// Arithmetic: weights are whole numbers whose sum is d = d_y * d_x, where places are multiples of 1/d_y and 1/d_x. The
// exact sum of four products has one multiplication by the float32 1/d and one rounding, half to even; zero points play
// no part, as the weights of a pixel add up to one. For twice the size that is what the chip's own instruction
// computes. How it is known: no program of Google's does that; it is our own way, from operations that Google's
// programs have.
//
// What is not guaranteed: that it is fast. There are P_y * P_x convolutions, of an image each that is a fraction of the
// output.
#include "lower/resize_bilinear.h"

#include <algorithm>
#include <numeric>

#include "ir/op.h"
#include "lower/convolution.h"
#include "lower/movement.h"

namespace reef::lower {
namespace {

// Sums of weights up to here are held by the 8 bits of a weight; also the checker's limit (ops/resize_bilinear.cpp).
constexpr std::int64_t kMostWeight = 128;

// Outputs r, r + P, ... of an axis.
struct Phase {
  std::int32_t first = 0;   // input pixel before or at the first of them; perhaps outside of the image
  std::int32_t weight = 0;  // of the pixel behind it, in units of 1/denominator; 0: that pixel is not read
  std::int32_t outputs = 0;
  std::int32_t taps() const { return weight == 0 ? 1 : 2; }
};

struct Axis {
  std::int32_t inputs = 1, outputs = 1;
  std::int32_t stride = 1;  // Q; 0: all outputs are the same pixel
  std::int32_t denominator = 1;
  std::vector<Phase> phases;           // P of them
  std::int32_t begin = 0, extent = 0;  // pixels that are read, or more; outside of the image the border is meant

  std::int32_t period() const { return static_cast<std::int32_t>(phases.size()); }
  bool is_extended() const { return begin < 0 || begin + extent > inputs; }
  // Pixels of a phase that are among some of the output, which are not none.
  tiled::Range of_phase(std::int32_t remainder, const tiled::Range& range) const {
    if (stride == 0) return {0, 1};
    return {std::max(0, range.begin - remainder + period() - 1) / period(),
            (range.end - 1 - remainder + period()) / period()};
  }
  // Through which the output finds pixels of a phase, among others.
  tiled::Window in_phase(std::int32_t remainder) const {
    const std::int32_t size = phases[reef::at(remainder)].outputs;
    bool is_own = true;  // tiles need no others than they compute, so there need be no halo
    for (int t = 0; t < tiled::kTilesPerAxis; ++t) {
      const tiled::Range range{tiled::cut(outputs, t), tiled::cut(outputs, t + 1)};
      if (range.is_empty()) continue;
      const tiled::Range needed = of_phase(remainder, range);
      is_own = is_own &&
               (needed.is_empty() || (needed.begin >= tiled::cut(size, t) && needed.end <= tiled::cut(size, t + 1)));
    }
    if (is_own) return {.outputs = size};
    if (stride == 0) return {.outputs = outputs, .stride = 0};
    return {.outputs = outputs, .pad_before = remainder, .enlarged = period()};
  }
  // The same of the pixels at or before them, in the extended image.
  tiled::Window in_image(std::int32_t remainder) const {
    if (stride == 0) return {.outputs = outputs, .stride = 0};
    const std::int32_t first = phases[reef::at(remainder)].first - begin;
    return {.outputs = outputs,
            .stride = stride,
            .pad_before = remainder * stride - first * period(),
            .enlarged = period()};
  }
  // How a phase reads the extended image.
  tiled::Window taps_of(const Phase& phase) const {
    return {.outputs = phase.outputs,
            .kernel = phase.taps(),
            .stride = std::max(stride, 1),
            .pad_before = begin - phase.first};
  }
};

std::int64_t floor_division(std::int64_t a, std::int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

void set_extent(Axis& axis) {
  std::int32_t begin = axis.inputs, end = 0;
  for (const Phase& phase : axis.phases) {
    begin = std::min(begin, phase.first);
    end = std::max(end, phase.first + (phase.outputs - 1) * axis.stride + phase.taps());
  }
  axis.begin = begin;
  axis.extent = end - begin;
}

// Output i lies at (first + i * step) / denominator, in lowest terms for all of them. With `in` and `out` pixels that
// is i * in / out, or with half pixels ((2i + 1) * in - out) / (2 * out); with aligned corners these are distances.
struct Positions {
  std::int64_t first = 0, step = 0, denominator = 1;
  std::int64_t period = 1, stride = 0;  // P and Q
};
Positions positions_of(std::int32_t inputs, std::int32_t outputs, const PixelGrid& grid) {
  const std::int64_t trim = grid.align_corners && outputs > 1 ? 1 : 0;
  const std::int64_t in = inputs - trim, out = outputs - trim;
  const std::int64_t first = grid.half_pixels ? in - out : 0, step = grid.half_pixels ? 2 * in : in;
  const std::int64_t unit = grid.half_pixels ? 2 * out : out;
  const std::int64_t common = std::gcd(std::gcd(step, first), unit), repeat = std::gcd(in, out);
  return {first / common, step / common, unit / common, out / repeat, in / repeat};
}

Result<Axis> axis_of(std::int32_t inputs, std::int32_t outputs, const PixelGrid& grid) {
  Axis axis;
  axis.inputs = inputs;
  axis.outputs = outputs;
  if (inputs == 1) {
    axis.stride = 0;
    axis.phases = {{.outputs = 1}};
    set_extent(axis);
    return axis;
  }
  const Positions at = positions_of(inputs, outputs, grid);
  if (at.denominator > kMostWeight) {
    return unsupported("from {} to {} pixels the weights are multiples of 1/{}; at most 1/{} is generated", inputs,
                       outputs, at.denominator, kMostWeight);
  }
  axis.denominator = static_cast<std::int32_t>(at.denominator);
  axis.stride = static_cast<std::int32_t>(at.stride);
  for (std::int64_t r = 0; r < std::min<std::int64_t>(at.period, outputs); ++r) {
    const std::int64_t place = at.first + r * at.step, first = floor_division(place, at.denominator);
    axis.phases.push_back({.first = static_cast<std::int32_t>(first),
                           .weight = static_cast<std::int32_t>(place - first * at.denominator),
                           .outputs = static_cast<std::int32_t>((outputs - r + at.period - 1) / at.period)});
  }
  set_extent(axis);
  return axis;
}

struct Axes {
  Axis y, x;
};

// ---- Work in slices ----

// The rows of the extended image that some rows of the output are made of.
tiled::TileRanges image_rows(const Axis& axis, const tiled::TileRanges& outputs) {
  tiled::TileRanges rows;
  for (std::size_t t = 0; t < rows.size(); ++t) {
    const tiled::Range range = outputs[t].within(0, axis.outputs);
    for (std::int32_t o = range.begin; o < range.end; ++o) {
      const Phase& phase = axis.phases[reef::at(o % axis.period())];
      const std::int32_t first = phase.first + o / axis.period() * axis.stride - axis.begin;
      rows[t].include({first, first + phase.taps()});
    }
  }
  return rows;
}

// The same of a phase.
tiled::TileRanges phase_rows(const Axis& axis, std::int32_t remainder, const tiled::TileRanges& outputs) {
  tiled::TileRanges rows;
  for (std::size_t t = 0; t < rows.size(); ++t) {
    const tiled::Range range = outputs[t].within(0, axis.outputs);
    if (range.is_empty()) continue;
    const tiled::Range in_phase = axis.of_phase(remainder, range);
    if (!in_phase.is_empty()) rows[t] = in_phase;
  }
  return rows;
}

bool is_empty(const tiled::TileRanges& rows) {
  return std::all_of(rows.begin(), rows.end(), [](const tiled::Range& range) { return range.is_empty(); });
}

Result<std::int32_t> new_image(Builder& builder, std::int32_t source, const Image& image,
                               const std::optional<tiled::TileRanges>& rows) {
  return rows ? builder.new_grid(source, image, *rows) : builder.new_grid(source, image);
}

// ---- The border, repeated ----

// Offsets of pixels begin..begin+extent-1 of an axis, those outside of the image being its first or last.
std::vector<std::int64_t> held_inside(const Axis& axis, std::int64_t pixel_elements) {
  std::vector<std::int64_t> offsets;
  for (std::int32_t i = axis.begin; i < axis.begin + axis.extent; ++i) {
    offsets.push_back(std::clamp(i, 0, axis.inputs - 1) * pixel_elements);
  }
  return offsets;
}

AxisOffsets extended(const Axes& axes, std::int32_t channels) {
  AxisOffsets map;
  map.offsets.push_back(held_inside(axes.y, std::int64_t{axes.x.inputs} * channels));
  map.offsets.push_back(held_inside(axes.x, channels));
  map.offsets.emplace_back(static_cast<std::size_t>(channels));
  std::iota(map.offsets.back().begin(), map.offsets.back().end(), 0);
  return map;
}

// The part of the image that is read, with its border repeated; the image itself where nothing beyond it is read, the
// axes then begin with it.
Result<std::int32_t> image_to_read(Builder& builder, std::int32_t op, std::int32_t from,
                                   const std::optional<tiled::TileRanges>& slice, Axes& axes) {
  REEF_ASSIGN_OR_RETURN(const std::int32_t image, builder.grid(from));
  if (!axes.y.is_extended() && !axes.x.is_extended()) {
    for (Axis* axis : {&axes.y, &axes.x}) {
      axis->begin = 0;
      axis->extent = axis->inputs;
    }
    return image;
  }
  const std::int32_t channels = builder.tensor(image).channels;
  Rearrangement what;
  std::optional<tiled::TileRanges> rows;
  if (slice) rows = image_rows(axes.y, *slice);
  REEF_ASSIGN_OR_RETURN(what.output, new_image(builder, from, {axes.y.extent, axes.x.extent, channels}, rows));
  what.operands = {Read{image, Windows{{.outputs = axes.y.extent, .pad_before = -axes.y.begin},
                                       {.outputs = axes.x.extent, .pad_before = -axes.x.begin}}}};
  what.source_of = by_axes(extended(axes, channels));
  return add_rearrangement(builder, op, std::move(what));
}

// ---- Phases ----

// A graph of depthwise convolutions, one for each phase that computes. Its tensors have the scale 1 and the zero point
// 0: bytes are taken as the numbers that they are.
class PhaseModel {
 public:
  PhaseModel(const Axes& axes, std::int32_t channels) : axes_(axes), channels_(channels) {
    model_.buffers.emplace_back();
    model_.subgraphs.emplace_back();
    add_tensor({1, axes.y.extent, axes.x.extent, channels}, 1.0f);
    add_tensor({1, axes.y.outputs, axes.x.outputs, channels}, 1.0f);
  }

  // The operator of a phase.
  std::int32_t add(const Phase& y, const Phase& x) {
    ir::Subgraph& graph = model_.subgraphs[0];
    ir::Operator convolution;
    convolution.type = name_of(Op::DEPTHWISE_CONV_2D);
    convolution.inputs = {0, add_weights(y, x)};
    convolution.outputs = {1};
    convolution.attributes.set("padding", ir::EnumName{"VALID"});
    convolution.attributes.set("stride_w", std::int64_t{std::max(axes_.x.stride, 1)});
    convolution.attributes.set("stride_h", std::int64_t{std::max(axes_.y.stride, 1)});
    convolution.attributes.set("depth_multiplier", std::int64_t{1});
    convolution.attributes.set("dilation_w_factor", std::int64_t{1});
    convolution.attributes.set("dilation_h_factor", std::int64_t{1});
    convolution.attributes.set("fused_activation_function", ir::EnumName{"NONE"});
    graph.operators.push_back(std::move(convolution));
    return static_cast<std::int32_t>(graph.operators.size()) - 1;
  }
  std::shared_ptr<const ir::Model> finish() && { return std::make_shared<const ir::Model>(std::move(model_)); }

 private:
  std::int32_t add_tensor(ir::Shape shape, float scale) {
    ir::Tensor tensor;
    tensor.type = ir::DataType::kUInt8;
    tensor.shape = std::move(shape);
    tensor.quantization.scale = {scale};
    tensor.quantization.zero_point = {0};
    std::vector<ir::Tensor>& tensors = model_.subgraphs[0].tensors;
    tensors.push_back(std::move(tensor));
    return static_cast<std::int32_t>(tensors.size()) - 1;
  }

  std::int32_t add_weights(const Phase& y, const Phase& x) {
    const std::int32_t d_y = axes_.y.denominator, d_x = axes_.x.denominator;
    std::vector<std::uint8_t> bytes;
    for (std::int32_t ky = 0; ky < y.taps(); ++ky) {
      for (std::int32_t kx = 0; kx < x.taps(); ++kx) {
        const std::int32_t weight = (ky == 0 ? d_y - y.weight : y.weight) * (kx == 0 ? d_x - x.weight : x.weight);
        bytes.insert(bytes.end(), static_cast<std::size_t>(channels_), static_cast<std::uint8_t>(weight));
      }
    }
    const std::int32_t tensor = add_tensor({1, y.taps(), x.taps(), channels_}, 1.0f / static_cast<float>(d_y * d_x));
    model_.subgraphs[0].tensors.back().buffer = static_cast<std::int32_t>(model_.buffers.size());
    ir::Buffer buffer;
    buffer.data = Bytes(std::move(bytes));
    model_.buffers.push_back(std::move(buffer));
    return tensor;
  }

  const Axes& axes_;
  const std::int32_t channels_;
  ir::Model model_;
};

// Where the output's elements of a phase are.
struct PhaseOperand {
  std::int32_t operand = 0;                        // of the join
  std::int64_t first = 0, row_step = 0, step = 0;  // elements: of the first pixel; from a row or pixel to the next
};

ElementMap interleaved(const Axes& axes, std::int64_t channels, std::vector<PhaseOperand> phases) {
  const std::int64_t width = axes.x.outputs, p_y = axes.y.period(), p_x = axes.x.period();
  const bool repeats_y = axes.y.stride == 0, repeats_x = axes.x.stride == 0;
  return [=, phases = std::move(phases)](std::int64_t element) {
    const std::int64_t c = element % channels, x = element / channels % width, y = element / channels / width;
    const PhaseOperand& phase = phases[reef::at(y % p_y * p_x + x % p_x)];
    const std::int64_t row = repeats_y ? 0 : y / p_y, column = repeats_x ? 0 : x / p_x;
    return ElementSource{phase.operand, phase.first + row * phase.row_step + column * phase.step + c};
  };
}

// The pixels themselves, `stride` apart in the extended image.
PhaseOperand pixels_of(const Axes& axes, const Phase& y, const Phase& x, std::int32_t operand, std::int64_t channels) {
  const std::int64_t row = axes.x.extent * channels;
  return {operand, (y.first - axes.y.begin) * row + (x.first - axes.x.begin) * channels, axes.y.stride * row,
          axes.x.stride * channels};
}

}  // namespace

std::optional<tiled::Window> interpolated_rows(std::int32_t inputs, std::int32_t outputs, const PixelGrid& grid) {
  const auto axis = axis_of(inputs, outputs, grid);
  if (!axis.ok()) return std::nullopt;
  if (axis->stride == 0) return tiled::Window{.stride = 0};
  // Positions are multiples of 1 / denominator.
  const Positions at = positions_of(inputs, outputs, grid);
  return tiled::Window{.kernel = 2,
                       .stride = static_cast<std::int32_t>(at.step),
                       .pad_before = static_cast<std::int32_t>(-at.first),
                       .enlarged = static_cast<std::int32_t>(at.denominator)};
}

Status interpolate(Builder& builder, std::int32_t op, std::int32_t from, std::int32_t to, const PixelGrid& grid) {
  if (grid.align_corners && grid.half_pixels)
    return unsupported("align_corners and half_pixel_centers exclude each other");
  const ir::Shape in = builder.source(from).shape, out = builder.source(to).shape;
  Axes axes;
  REEF_ASSIGN_OR_RETURN(axes.y, axis_of(in[1], out[1], grid));
  REEF_ASSIGN_OR_RETURN(axes.x, axis_of(in[2], out[2], grid));
  if (axes.y.denominator * axes.x.denominator > kMostWeight) {
    return unsupported("from {}x{} to {}x{} pixels the weights are multiples of 1/{}; at most 1/{} is generated", in[1],
                       in[2], out[1], out[2], axes.y.denominator * axes.x.denominator, kMostWeight);
  }
  const std::optional<tiled::TileRanges> slice = builder.slice_rows(to);
  REEF_ASSIGN_OR_RETURN(const std::int32_t image, image_to_read(builder, op, from, slice, axes));
  PhaseModel model(axes, in[3]);
  struct Layer {
    std::int32_t output, op;
    Windows windows;
  };
  std::vector<Layer> layers;
  std::vector<PhaseOperand> phases;
  Rearrangement join;
  for (std::int32_t r_y = 0; r_y < axes.y.period(); ++r_y) {
    for (std::int32_t r_x = 0; r_x < axes.x.period(); ++r_x) {
      const Phase &y = axes.y.phases[reef::at(r_y)], &x = axes.x.phases[reef::at(r_x)];
      const auto operand = static_cast<std::int32_t>(join.operands.size());
      if (y.weight == 0 && x.weight == 0) {
        phases.push_back(pixels_of(axes, y, x, operand, in[3]));
        join.operands.push_back(Read{image, Windows{axes.y.in_image(r_y), axes.x.in_image(r_x)}});
        continue;
      }
      std::optional<tiled::TileRanges> rows;
      if (slice) rows = phase_rows(axes.y, r_y, *slice);
      if (rows && is_empty(*rows)) {  // no pixel of the slice is of this phase
        phases.emplace_back();
        continue;
      }
      REEF_ASSIGN_OR_RETURN(const std::int32_t phase, new_image(builder, to, {y.outputs, x.outputs, in[3]}, rows));
      phases.push_back({operand, 0, std::int64_t{x.outputs} * in[3], in[3]});
      join.operands.push_back(Read{phase, Windows{axes.y.in_phase(r_y), axes.x.in_phase(r_x)}});
      layers.push_back({phase, model.add(y, x), {axes.y.taps_of(y), axes.x.taps_of(x)}});
    }
  }
  const auto source = std::move(model).finish();
  for (const Layer& layer : layers) {
    add_convolution(builder, op, {image, layer.output, layer.windows, 0, {source, layer.op}});
  }
  REEF_ASSIGN_OR_RETURN(join.output, builder.new_grid(to));
  builder.set_value(to, {join.output, {}});
  join.source_of = interleaved(axes, in[3], std::move(phases));
  add_rearrangement(builder, op, std::move(join));
  return ok_status();
}

}  // namespace reef::lower
