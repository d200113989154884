// SPDX-License-Identifier: Apache-2.0
// REDUCE_MAX and REDUCE_MIN over any axes: maxima under windows, stage by stage.
//
//   rows, columns   every tile takes the maximum of about what it owns (windows may overlap, they reach a few pixels
//   over
//                   the border), then the tile at the corner that of these
//   channels        become pixels of four channels in a row (the last one is repeated where they are no whole words),
//                   then the four that are left become pixels, too
//   minima          255 - max(255 - x)
// Every stage is exact, so their order does not matter: rows and columns go first.
//
// How it is known: the tensor unit's maximum is that of Google's MAX_POOL_2D and SOFTMAX. No compiled program with
// these operators is known; the stages are our own.
#include <algorithm>

#include "base/divide_up.h"
#include "ir/op.h"
#include "lower/elementwise.h"
#include "lower/lowerings.h"
#include "lower/reduce.h"
#include "lower/shared_steps.h"

namespace reef::lower {
namespace {

constexpr std::int32_t kTiles = tiled::kTilesPerAxis;
constexpr std::int32_t kMostWindow = 32;  // of a first stage, in pixels along an axis
constexpr std::int32_t kFewPixels = 64;   // in a row of which one tile may take the maximum
constexpr std::int32_t kHighest = 255;

// 255 - x. `like`: TiledProgram::tensors
Result<std::int32_t> add_complement(Builder& builder, std::int32_t op, std::int32_t source, std::int32_t input) {
  tiled::Elementwise work;
  work.input = input;
  REEF_ASSIGN_OR_RETURN(work.output, builder.new_like(source, input));
  work.multiplier = -1;
  work.output_zero = kHighest;
  work.clamp = numeric::kNoChipClamp;
  const std::int32_t output = work.output;
  const auto finish = [](Builder& to, tiled::Step& step) {
    auto& finished = std::get<tiled::Elementwise>(step.work);
    finished.identity = to.identity(step);
    to.take_place(finished.output, finished.input);
    return ok_status();
  };
  builder.add_step(op, work, {Read{input}}, {output}, finish);
  return output;
}

// The next stage along an axis of `size` elements: all of it where that is little.
tiled::Window next_stage(bool is_reduced, std::int32_t size) {
  if (!is_reduced) return {.outputs = size};
  if (size <= kTiles) return {.outputs = 1, .kernel = size};
  const std::int32_t outputs = std::max(kTiles, divide_up(size, kMostWindow)), stride = size / outputs;
  return {.outputs = outputs, .kernel = size - (outputs - 1) * stride, .stride = stride};
}

// `names`: the model's tensor whose quantization it has.
Result<std::int32_t> add_maximum(Builder& builder, std::int32_t op, std::int32_t names, std::int32_t input,
                                 const Windows& windows) {
  const Image image{windows.y.outputs, windows.x.outputs, builder.tensor(input).channels};
  REEF_ASSIGN_OR_RETURN(const std::int32_t output, builder.new_grid(names, image));
  add_pool(builder, op, plain_pool(builder, input, output, windows));
  return output;
}

Result<std::int32_t> reduce_pixels(Builder& builder, std::int32_t op, std::int32_t names, std::int32_t input, bool rows,
                                   bool columns) {
  for (;;) {
    const std::int32_t height = builder.tensor(input).height, width = builder.tensor(input).width;
    if ((!rows || height == 1) && (!columns || width == 1)) return input;
    const Windows windows{next_stage(rows, height), next_stage(columns, width)};
    REEF_ASSIGN_OR_RETURN(input, add_maximum(builder, op, names, input, windows));
  }
}

// `parts` pixels beside each other become one.
Result<std::int32_t> join_pixels(Builder& builder, std::int32_t op, std::int32_t names, std::int32_t input,
                                 std::int32_t parts) {
  const std::int32_t height = builder.tensor(input).height, width = builder.tensor(input).width / parts;
  return add_maximum(builder, op, names, input,
                     {{.outputs = height}, {.outputs = width, .kernel = parts, .stride = parts}});
}

Result<std::int32_t> reduce_channels(Builder& builder, std::int32_t op, std::int32_t names, std::int32_t input) {
  const TiledTensor image = builder.tensor(input);
  const std::int32_t parts = divide_up(image.channels, kWord);
  if (parts > 1) {
    const std::int64_t channels = image.channels, row = std::int64_t{parts} * kWord;
    const auto map = [=](std::int64_t element) {
      const std::int64_t pixel = element / row, at = std::min(element % row, channels - 1);
      return ElementSource{0, pixel * channels + at};
    };
    if (image.height * image.width == 1 && parts > kFewPixels) {  // a single vector: over all tiles
      std::int32_t side = 1;
      while (side * side < parts) ++side;
      const auto repeated = [=](std::int64_t element) { return ElementSource{0, std::min(element, channels - 1)}; };
      REEF_ASSIGN_OR_RETURN(input, moved_to_grid(builder, op, names, input, {side, side, kWord}, repeated));
      REEF_ASSIGN_OR_RETURN(input, reduce_pixels(builder, op, names, input, true, true));
    } else {
      const Image apart{image.height, image.width * parts, kWord};
      REEF_ASSIGN_OR_RETURN(input, moved_to_grid(builder, op, names, input, apart, map));
      REEF_ASSIGN_OR_RETURN(input, join_pixels(builder, op, names, input, parts));
    }
  }
  const TiledTensor words = builder.tensor(input);
  const Image apart{words.height, words.width * words.channels, 1};
  REEF_ASSIGN_OR_RETURN(input, moved_to_grid(builder, op, names, input, apart, [](std::int64_t element) {
                          return ElementSource{0, element};
                        }));
  return join_pixels(builder, op, names, input, words.channels);
}

}  // namespace

Status lower_reduced_extreme(Builder& builder, std::int32_t op) {
  REEF_ASSIGN_OR_RETURN(const Reduction reduction, reduction_of(builder, op));
  const std::int32_t from = reduction.from, to = reduction.to;
  REEF_ASSIGN_OR_RETURN(const bool same, same_quantization(builder.source(from), builder.source(to)));
  if (!same) return unsupported("input and output are quantized differently");
  if (reduction.is_nothing()) {
    REEF_ASSIGN_OR_RETURN(const std::int32_t as_it_is, elements_of(builder, from));
    builder.set_value(to, {as_it_is, {}});
    return ok_status();
  }
  REEF_RETURN_IF_ERROR(elements_of(builder, from).status());
  const bool is_minimum = builder.op(op).type == Op::REDUCE_MIN;
  REEF_ASSIGN_OR_RETURN(std::int32_t image, builder.grid(from, reduction.image));
  if (is_minimum) {
    REEF_ASSIGN_OR_RETURN(image, add_complement(builder, op, from, image));
  }
  REEF_ASSIGN_OR_RETURN(image, reduce_pixels(builder, op, from, image, reduction.rows, reduction.columns));
  if (reduction.channels) {
    REEF_ASSIGN_OR_RETURN(image, reduce_channels(builder, op, from, image));
  }
  if (is_minimum) {
    REEF_ASSIGN_OR_RETURN(image, add_complement(builder, op, to, image));
  }
  builder.program().tensor(image).source = to;  // its stages are made for the operand, whose quantization is the same
  builder.set_value(to, {image, {}});
  return ok_status();
}

}  // namespace reef::lower
