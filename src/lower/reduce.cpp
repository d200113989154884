// SPDX-License-Identifier: Apache-2.0
// MEAN and SUM over any axes. Each result is one exact sum, brought to its scale once:
//
//   rows and columns              by pixel sums on each tile (lower/global_pool.cpp)
//   rows or columns               a pool whose window is the whole row or column
//   channels                      products with a line of ones, all words of a pixel into one result
//   channels and some of these    the same, once everything that is summed up has become the channels of a pixel; very
//                                 many elements of one sum become pixels of one channel instead
//
// How it is known: MEAN of rows and columns is as Google's compiler makes it. Of other axes, and of SUM, no compiled
// program is known: these are our own, with the same arithmetic. The multiplier of a mean is that of an average over a
// whole image, (1/s_out) * (s_in * (1/n)); of a sum, that of a change of scale.
#include "lower/reduce.h"
#include "base/divide_up.h"

#include <algorithm>
#include <cmath>

#include "ir/describe.h"
#include "ir/op.h"
#include "lower/elementwise.h"
#include "lower/global_pool.h"
#include "lower/lowerings.h"
#include "lower/movement.h"
#include "lower/shared_steps.h"

namespace reef::lower {
namespace {

constexpr std::int32_t kTilesPerAxis = tiled::kTilesPerAxis;
// Of a tile, that a window over a whole row or column of the image may need; above it the image is laid out anew.
constexpr std::int64_t kMostWindowBytes = 48 << 10;
// Channels of a pixel that are summed up at once; a single sum of more is one of pixels.
constexpr std::int64_t kMostSummedChannels = 4096;

// The three inner dimensions, with those in front, which must be of one element, left away.
struct ThreeDimensions {
  std::int32_t size[3] = {1, 1, 1};
  bool reduced[3] = {};
};
Result<ThreeDimensions> inner_dimensions(const ir::Tensor& tensor, const std::vector<bool>& reduced) {
  const ir::Shape& shape = tensor.shape;
  ThreeDimensions inner;
  for (int d = 0; d < shape.rank(); ++d) {
    const int at = 3 - shape.rank() + d;
    if (at < 0) {
      if (shape[d] != 1) {
        return unsupported("tensor '{}' is {}; reductions of batches are not generated", ir::describe_name(tensor.name),
                           shape.to_string());
      }
      continue;
    }
    inner.size[at] = shape[d];
    inner.reduced[at] = reduced[reef::at(d)] && shape[d] > 1;
  }
  return inner;
}

struct Scaling {
  float multiplier = 1;
  numeric::ChipClamp clamp;
};
Result<Scaling> scaling_of(const Builder& builder, std::int32_t op, const Reduction& reduction) {
  const ir::Tensor &from = builder.source(reduction.from), &to = builder.source(reduction.to);
  REEF_RETURN_IF_ERROR(chip_zero_point(from).status());
  REEF_ASSIGN_OR_RETURN(const std::int32_t zero, chip_zero_point(to));
  const float in = from.quantization.scale[0], out = to.quantization.scale[0];
  for (const float scale : {in, out}) {
    if (!(scale > 0) || !std::isfinite(scale)) return unsupported("{} is no scale", scale);
  }
  Scaling scaling;
  scaling.multiplier = builder.op(op).type == Op::SUM
                           ? numeric::chip_rescale_multiplier(in, out)
                           : numeric::chip_pool_multiplier(in, out, static_cast<std::int32_t>(reduction.count),
                                                           numeric::ChipPoolOrder::kOutputLast);
  scaling.clamp = numeric::chip_clamp(out, zero, numeric::ChipActivation::kNone);
  return scaling;
}

// Nothing to sum up: another scale at most.
Status add_change_of_scale(Builder& builder, std::int32_t op, const Reduction& reduction, const Scaling& scaling) {
  REEF_ASSIGN_OR_RETURN(const bool same,
                        same_quantization(builder.source(reduction.from), builder.source(reduction.to)));
  REEF_ASSIGN_OR_RETURN(const std::int32_t input, elements_of(builder, reduction.from));
  if (same) {
    builder.set_value(reduction.to, {input, {}});
    return ok_status();
  }
  tiled::Elementwise work;
  work.input = input;
  work.input_zero = builder.tensor(input).zero_point;
  REEF_ASSIGN_OR_RETURN(work.output_zero, chip_zero_point(builder.source(reduction.to)));
  work.multiplier = scaling.multiplier;
  work.clamp = scaling.clamp;
  return add_elementwise(builder, op, work);
}

// ---- Rows, columns ----

Status add_total(Builder& builder, std::int32_t op, std::int32_t image, const Scaling& scaling) {
  return add_pixel_total(builder, {op, image, scaling.multiplier, scaling.clamp});
}

Status sum_pixels(Builder& builder, std::int32_t op, const Reduction& reduction, const Scaling& scaling) {
  Image image = reduction.image;
  const std::int64_t pixels = std::int64_t{image.height} * image.width;
  if (divide_up(image.width, kTilesPerAxis) > tiled::kMostSummedPixels) image = square_image(pixels, image.channels);
  REEF_ASSIGN_OR_RETURN(const std::int32_t input, builder.grid(reduction.from, image));
  return add_total(builder, op, input, scaling);
}

void add_sum_of_windows(Builder& builder, std::int32_t op, std::int32_t input, std::int32_t output,
                        const Windows& windows, const Scaling& scaling) {
  tiled::Pool pool = plain_pool(builder, input, output, windows);
  pool.is_average = true;
  pool.multiplier = scaling.multiplier;
  pool.clamp = scaling.clamp;
  add_pool(builder, op, pool);
}

// Windows over whole rows (or columns) of the image as it is: a quarter of the tiles has everything.
Status sum_in_place(Builder& builder, std::int32_t op, const Reduction& reduction, const Scaling& scaling) {
  const Image& image = reduction.image;
  REEF_ASSIGN_OR_RETURN(const std::int32_t input, builder.grid(reduction.from, image));
  REEF_ASSIGN_OR_RETURN(const std::int32_t output, builder.new_grid(reduction.to, reduction.result()));
  const auto window = [](bool is_reduced, std::int32_t size) {
    return is_reduced ? tiled::Window{.outputs = 1, .kernel = size} : tiled::Window{.outputs = size};
  };
  builder.set_value(reduction.to, {output, {}});
  add_sum_of_windows(builder, op, input, output,
                     {window(reduction.rows, image.height), window(reduction.columns, image.width)}, scaling);
  return ok_status();
}

// What is summed up in a row of its own, of which there are as many beside as below each other.
Status sum_rows_apart(Builder& builder, std::int32_t op, const Reduction& reduction, const Scaling& scaling) {
  const Image& image = reduction.image;
  const std::int32_t kept = reduction.rows ? image.width : image.height;
  const std::int32_t summed = reduction.rows ? image.height : image.width;
  const Image result = square_image(kept, image.channels);
  const Image apart{result.height, result.width * summed, image.channels};
  std::int32_t input = -1;
  if (reduction.rows) {
    const std::int64_t channels = image.channels, pixel = channels * summed, width = image.width;
    REEF_ASSIGN_OR_RETURN(const std::int32_t from, builder.any_layout(reduction.from));
    REEF_ASSIGN_OR_RETURN(input, moved_to_grid(builder, op, reduction.from, from, apart, [=](std::int64_t element) {
                            const std::int64_t x = element / pixel, y = element % pixel / channels;
                            return ElementSource{0, (y * width + x) * channels + element % channels};
                          }));
  } else {
    REEF_ASSIGN_OR_RETURN(input, builder.grid(reduction.from, apart));
  }
  REEF_ASSIGN_OR_RETURN(const std::int32_t output, builder.new_grid(reduction.to, result));
  builder.set_value(reduction.to, {output, {}});
  add_sum_of_windows(builder, op, input, output,
                     {{.outputs = result.height}, {.outputs = result.width, .kernel = summed, .stride = summed}},
                     scaling);
  return ok_status();
}

// ---- Channels ----

// The channels of each pixel of `input`, on the grid.
Status sum_channels(Builder& builder, std::int32_t op, const Reduction& reduction, std::int32_t input,
                    const Scaling& scaling) {
  const TiledTensor& image = builder.tensor(input);
  REEF_ASSIGN_OR_RETURN(const std::int32_t output, builder.new_grid(reduction.to, {image.height, image.width, 1}));
  builder.set_value(reduction.to, {output, {}});
  return add_channel_sums(builder, op, input, output, scaling.multiplier, scaling.clamp);
}

// Everything is one sum: elements as pixels of one channel. Those behind the last have the zero point and add nothing.
Status sum_elements(Builder& builder, std::int32_t op, const Reduction& reduction, const Scaling& scaling) {
  const auto width = static_cast<std::int32_t>(std::ceil(std::sqrt(static_cast<double>(reduction.count))));
  const auto height = static_cast<std::int32_t>((reduction.count + width - 1) / width);
  REEF_ASSIGN_OR_RETURN(const std::int32_t from, builder.any_layout(reduction.from));
  REEF_ASSIGN_OR_RETURN(const std::int32_t pixels,
                        moved_to_grid(builder, op, reduction.from, from, {height, width, 1},
                                      [count = reduction.count](std::int64_t element) {
                                        return element < count ? ElementSource{0, element} : ElementSource{};
                                      }));
  return add_total(builder, op, pixels, scaling);
}

// Channels and rows, channels and columns, or everything.
Status sum_with_channels(Builder& builder, std::int32_t op, const Reduction& reduction, const Scaling& scaling) {
  const Image &image = reduction.image, left = reduction.result();
  const std::int32_t kept = left.height * left.width;
  if (kept == 1 && reduction.count > kMostSummedChannels) return sum_elements(builder, op, reduction, scaling);
  const Image pixels = square_image(kept, static_cast<std::int32_t>(reduction.count));
  if (!reduction.rows || kept == 1) {
    REEF_ASSIGN_OR_RETURN(const std::int32_t input, builder.grid(reduction.from, pixels));
    return sum_channels(builder, op, reduction, input, scaling);
  }
  const std::int64_t channels = image.channels, count = reduction.count, width = image.width;
  REEF_ASSIGN_OR_RETURN(const std::int32_t from, builder.any_layout(reduction.from));
  REEF_ASSIGN_OR_RETURN(const std::int32_t input,
                        moved_to_grid(builder, op, reduction.from, from, pixels, [=](std::int64_t element) {
                          const std::int64_t x = element / count;
                          const std::int64_t y = element % count / channels;
                          const std::int64_t c = element % channels;
                          return ElementSource{0, (y * width + x) * channels + c};
                        }));
  return sum_channels(builder, op, reduction, input, scaling);
}

}  // namespace

Image square_image(std::int64_t pixels, std::int32_t channels) {
  Image image{1, static_cast<std::int32_t>(pixels), channels};
  for (std::int32_t rows = 2; std::int64_t{rows} * rows <= pixels; ++rows) {
    if (pixels % rows == 0) image.height = rows;
  }
  image.width = static_cast<std::int32_t>(pixels / image.height);
  return image;
}

Result<std::int32_t> moved_to_grid(Builder& builder, std::int32_t op, std::int32_t source, std::int32_t from,
                                   const Image& image, ElementMap map) {
  Rearrangement what;
  what.operands = {Read{from}};
  REEF_ASSIGN_OR_RETURN(what.output, builder.new_grid(source, image));
  what.source_of = std::move(map);
  return add_rearrangement(builder, op, std::move(what));
}

Result<Reduction> reduction_of(const Builder& builder, std::int32_t op) {
  Reduction reduction;
  REEF_ASSIGN_OR_RETURN(reduction.from, builder.operand(op, 0));
  reduction.to = builder.op(op).outputs[0];
  const ir::Tensor& from = builder.source(reduction.from);
  REEF_ASSIGN_OR_RETURN(const std::vector<std::int32_t> axes, constant_ints(builder, op, 1, "axes"));
  std::vector<bool> reduced(static_cast<std::size_t>(from.shape.rank()));
  for (const std::int32_t axis : axes) {
    REEF_ASSIGN_OR_RETURN(const int d, dimension(axis, from.shape.rank()));
    reduced[reef::at(d)] = true;
  }
  constexpr std::int64_t kMostElements = 1 << 26;  // far more than the chip holds
  if (!from.shape.is_usable() || from.shape.rank() == 0 || from.shape.elements() == 0 ||
      from.shape.elements() > kMostElements) {
    return unsupported("tensor '{}' is {}, of which no reduction is generated", ir::describe_name(from.name),
                       from.shape.to_string());
  }
  REEF_ASSIGN_OR_RETURN(const ThreeDimensions d, inner_dimensions(from, reduced));
  reduction.image = {d.size[0], d.size[1], d.size[2]};
  reduction.rows = d.reduced[0];
  reduction.columns = d.reduced[1];
  reduction.channels = d.reduced[2];
  for (int i = 0; i < 3; ++i) reduction.count *= d.reduced[i] ? d.size[i] : 1;
  // Rows and columns that share their fate need not lie as the tensor has them: on as many tiles as possible, unless it
  // is an image already.
  const bool alike = reduction.rows == reduction.columns || d.size[0] == 1 || d.size[1] == 1;
  if (alike && from.shape.rank() < 4) {
    reduction.rows = reduction.columns = reduction.rows || reduction.columns;
    reduction.image = square_image(std::int64_t{d.size[0]} * d.size[1], d.size[2]);
  }
  const Image left = reduction.result();
  const ir::Shape& to = builder.source(reduction.to).shape;
  REEF_REQUIRE(to.is_usable() && to.elements() == std::int64_t{left.height} * left.width * left.channels,
               "the result '{}' is {}, which does not fit {} without these axes",
               ir::describe_name(builder.source(reduction.to).name), to.to_string(), from.shape.to_string());
  return reduction;
}

Status lower_total(Builder& builder, std::int32_t op) {
  REEF_ASSIGN_OR_RETURN(const Reduction reduction, reduction_of(builder, op));
  REEF_ASSIGN_OR_RETURN(const Scaling scaling, scaling_of(builder, op, reduction));
  if (reduction.is_nothing()) return add_change_of_scale(builder, op, reduction, scaling);
  const Image& image = reduction.image;
  if (reduction.channels && !reduction.rows && !reduction.columns) {
    REEF_ASSIGN_OR_RETURN(const std::int32_t input, builder.grid(reduction.from, image));
    return sum_channels(builder, op, reduction, input, scaling);
  }
  if (reduction.channels) return sum_with_channels(builder, op, reduction, scaling);
  const bool all_pixels = (reduction.rows || image.height == 1) && (reduction.columns || image.width == 1);
  const bool fits = divide_up(image.width, kTilesPerAxis) <= tiled::kMostSummedPixels;
  if (all_pixels && fits && builder.op(op).type == Op::MEAN && builder.source(reduction.from).shape.rank() == 4) {
    return add_global_pool(builder, op, 1, numeric::ChipActivation::kNone);
  }
  if (all_pixels) return sum_pixels(builder, op, reduction, scaling);
  const std::int32_t kept = reduction.rows ? image.width : image.height;
  const std::int64_t bytes = reduction.count * divide_up(kept, kTilesPerAxis) * image.channels;
  if (bytes <= kMostWindowBytes) return sum_in_place(builder, op, reduction, scaling);
  return sum_rows_apart(builder, op, reduction, scaling);
}

}  // namespace reef::lower
