// SPDX-License-Identifier: Apache-2.0
// Nodes that place pixels: columns back into an image (F.fold), cropping and padding around the middle, grids of
// coordinates; and running products.
#include <algorithm>

#include "import/onnx/converter.h"

namespace reef::import {
namespace {

constexpr std::int64_t kMostPictures = std::int64_t{1} << 24;

Dims or_filled(Dims given, std::size_t size, std::int64_t value) {
  if (given.empty()) given.assign(size, value);
  return given;
}

// For each element of a window (outer) and each place of it (inner) the pixel it adds to, or `pixels` for none.
Dims fold_targets(const Dims& image, const Dims& block, const Dims& places, const Dims& strides, const Dims& dilations,
                  const Dims& before, std::int64_t pixels) {
  std::int64_t elements = 1, windows = 1;
  for (const std::int64_t size : block) elements *= size;
  for (const std::int64_t size : places) windows *= size;
  Dims targets(static_cast<std::size_t>(elements * windows), 0);
  for (std::int64_t i = 0; i < elements * windows; ++i) {
    std::int64_t element = i / windows, window = i % windows, target = 0, step = 1;
    bool inside = true;
    for (std::size_t axis = image.size(); axis-- > 0;) {
      const std::int64_t at =
          window % places[axis] * strides[axis] + element % block[axis] * dilations[axis] - before[axis];
      inside = inside && at >= 0 && at < image[axis];
      target += at * step;
      step *= image[axis];
      window /= places[axis];
      element /= block[axis];
    }
    targets[reef::at(i)] = inside ? target : pixels;
  }
  return targets;
}

}  // namespace

// [n, c * elements of a block, windows] -> [n, c, image...]: what falls on one pixel is added.
Status convert_col2im(NodeContext& ctx, GraphBuilder& b) {
  const Id x = ctx.in(0);
  REEF_ASSIGN_OR_RETURN(const Dims image, ctx.ints(1));
  REEF_ASSIGN_OR_RETURN(const Dims block, ctx.ints(2));
  const std::size_t axes = image.size();
  const Dims dilations = or_filled(ctx.ints_attribute("dilations"), axes, 1),
             strides = or_filled(ctx.ints_attribute("strides"), axes, 1),
             pads = or_filled(ctx.ints_attribute("pads"), 2 * axes, 0);
  REEF_REQUIRE(axes >= 1 && block.size() == axes && dilations.size() == axes && strides.size() == axes &&
                   pads.size() == 2 * axes && b.rank(x) == 3,
               "image_shape, block_shape and attributes have different lengths");
  Dims places;
  std::int64_t pixels = 1, elements = 1, windows = 1;
  for (std::size_t i = 0; i < axes; ++i) {
    REEF_REQUIRE(image[i] >= 1 && image[i] < kMostPictures && block[i] >= 1 && block[i] < kMostPictures &&
                     strides[i] >= 1 && dilations[i] >= 1 && dilations[i] < kMostPictures && pads[i] >= 0 &&
                     pads[i + axes] >= 0 && pads[i] < kMostPictures && pads[i + axes] < kMostPictures,
                 "axis {}: image {}, block {}", i, image[i], block[i]);
    places.push_back((image[i] + pads[i] + pads[i + axes] - dilations[i] * (block[i] - 1) - 1) / strides[i] + 1);
    REEF_REQUIRE(places.back() >= 1, "axis {}: the block is larger than the image", i);
    pixels *= image[i], elements *= block[i], windows *= places.back();
    REEF_REQUIRE(pixels < kMostPictures && elements < kMostPictures && windows < kMostPictures,
                 "the image is too large");
  }
  REEF_REQUIRE(elements * windows < kMostPictures && b.dim(x, 2) == windows && b.dim(x, 1) % elements == 0,
               "the input {} does not fit {} windows of {} elements", b.shape(x).to_string(), windows, elements);
  const std::int64_t images = b.dim(x, 0), channels = b.dim(x, 1) / elements;
  const Id rows = transpose(b, reshape(b, x, {images * channels, elements * windows}), {1, 0});
  const Dims targets = fold_targets(image, block, places, strides, dilations, pads, pixels);
  const Id sums =
      scatter_nd(b, b.ints(targets, shape_from({elements * windows, 1})), rows, {pixels + 1, images * channels});
  Dims dims = {images, channels};
  dims.insert(dims.end(), image.begin(), image.end());
  return ctx.give(reshape(b, transpose(b, slice_axis(b, sums, 0, 0, pixels), {1, 0}), dims));
}

Status convert_center_crop_pad(NodeContext& ctx, GraphBuilder& b) {
  Id x = ctx.in(0);
  REEF_ASSIGN_OR_RETURN(const Dims wanted, ctx.ints(1));
  Dims given = ctx.ints_attribute("axes");
  if (given.empty()) {
    for (int i = 0; i < b.rank(x); ++i) given.push_back(i);
  }
  REEF_ASSIGN_OR_RETURN(const std::vector<int> axes, ctx.axes(given, b.rank(x)));
  REEF_REQUIRE(axes.size() == wanted.size(), "there are {} sizes for {} axes", wanted.size(), axes.size());
  Dims before(static_cast<std::size_t>(b.rank(x)), 0), after = before;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::int64_t size = b.dim(x, axes[i]), more = wanted[i] - size;
    REEF_REQUIRE(wanted[i] >= 0 && wanted[i] < kMostPictures, "size {} is {}", i, wanted[i]);
    if (more < 0) {
      x = slice_axis(b, x, axes[i], -more / 2, wanted[i]);
    } else {
      before[reef::at(axes[i])] = more / 2;
      after[reef::at(axes[i])] = more - more / 2;
    }
  }
  const Id wide = widened(b, x);
  return ctx.give(cast(b, pad_constant(b, wide, before, after, 0), b.type(x)));
}

// Coordinates -1 to 1 of all pixels, moved by theta [n, axes, axes + 1]: the last axis counts from the innermost on.
Status convert_affine_grid(NodeContext& ctx, GraphBuilder& b) {
  REEF_ASSIGN_OR_RETURN(const Dims size, ctx.ints(1));
  const int axes = static_cast<int>(size.size()) - 2;
  const Id theta = ctx.in(0);
  REEF_REQUIRE((axes == 2 || axes == 3) && b.rank(theta) == 3 && b.dim(theta, 1) == axes && b.dim(theta, 2) == axes + 1,
               "theta {} does not fit {} sizes", b.shape(theta).to_string(), size.size());
  const bool aligns = ctx.int_attribute("align_corners", 0) != 0;
  std::int64_t pixels = 1;
  for (std::size_t i = 2; i < size.size(); ++i) {
    REEF_REQUIRE(size[i] >= 1 && size[i] < kMostPictures, "size {} is {}", i, size[i]);
    pixels *= size[i];
    REEF_REQUIRE(pixels < kMostPictures, "the grid is too large");
  }
  std::vector<float> grid;
  for (std::int64_t i = 0; i < pixels; ++i) {
    std::int64_t rest = i;
    for (std::size_t axis = size.size(); axis-- > 2;) {
      const auto at = static_cast<double>(rest % size[axis]), count = static_cast<double>(size[axis]);
      rest /= size[axis];
      const double place = aligns ? (count > 1 ? 2 * at / (count - 1) - 1 : -1) : (2 * at + 1) / count - 1;
      grid.push_back(static_cast<float>(place));
    }
    grid.push_back(1);
  }
  const Id base = b.floats(grid, shape_from({1, pixels, axes + 1}));
  Dims dims = {b.dim(theta, 0)};
  dims.insert(dims.end(), size.begin() + 2, size.end());
  dims.push_back(axes);
  const Id tiled = b.dim(theta, 0) == 1 ? base : tile(b, base, {b.dim(theta, 0), 1, 1});
  return ctx.give(reshape(b, matmul(b, tiled, theta, true), dims));
}

// Products of all elements up to each, along an axis.
Status convert_cumprod(NodeContext& ctx, GraphBuilder& b) {
  REEF_ASSIGN_OR_RETURN(const Dims given, ctx.ints(1));
  REEF_REQUIRE(given.size() == 1, "axis has {} elements", given.size());
  REEF_ASSIGN_OR_RETURN(const int axis, ctx.axis(given[0], b.rank(ctx.in(0))));
  Id x = widened(b, ctx.in(0));
  const std::int64_t length = b.dim(x, axis);
  if (length < 1 || length > 4096) return unsupported("products over {} elements are not converted", length);
  const bool is_reverse = ctx.int_attribute("reverse", 0) != 0, is_exclusive = ctx.int_attribute("exclusive", 0) != 0;
  std::vector<Id> parts;
  Id product = kAbsent;
  for (std::int64_t i = 0; i < length; ++i) {
    const Id own = slice_axis(b, x, axis, is_reverse ? length - 1 - i : i, 1);
    if (is_exclusive) parts.push_back(product == kAbsent ? b.filled(b.type(x), b.shape(own), 1) : product);
    product = product == kAbsent ? own : mul(b, product, own);
    if (!is_exclusive) parts.push_back(product);
  }
  if (is_reverse) std::reverse(parts.begin(), parts.end());
  return ctx.give(cast(b, concat(b, parts, axis), b.type(ctx.in(0))));
}

}  // namespace reef::import
