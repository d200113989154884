// SPDX-License-Identifier: Apache-2.0
// The two operands of an element-wise operator, brought together: both spread over the tiles in the same way, with as
// many elements as the result has.
//
//   one pixel for all, one channel for all   the tiles repeat it by themselves
//   dimensions of one element otherwise      elements are moved to all places that want them (rearrange.h)
//   constants                                are made on the chip first (constant_tensor.cpp)
//
// How it is known: our own; how Google's compiler repeats elements is not known.
#include "base/divide_up.h"
#include "lower/element_maps.h"
#include "lower/elementwise.h"
#include "lower/rearrange.h"
#include "lower/reduce.h"
#include "lower/shared_steps.h"

namespace reef::lower {
namespace {

using tiled::Elementwise;

bool are_spread_alike(const TiledTensor& a, const TiledTensor& b) {
  return a.spread == b.spread && a.height == b.height && a.width == b.width && a.channels == b.channels &&
         a.tiles == b.tiles && a.run == b.run;
}

// Spread over the tiles as `like` is, quantized as the model's tensor; in a slice with the rows of the result.
Result<std::int32_t> new_part(Builder& builder, std::int32_t op, std::int32_t source, const TiledTensor& like) {
  const ir::Tensor& part = builder.source(source);
  TiledTensor result = like;
  result.source = source;
  result.offset = 0;
  result.pitch = result.pixel_words() * chip::kNarrowWordBytes;
  REEF_ASSIGN_OR_RETURN(result.zero_point, chip_zero_point(part));
  result.scale = part.quantization.scale[0];
  return builder.add_tensor(std::move(result), builder.slice_rows(builder.op(op).outputs[0]));
}

// For each element of `whole` the element of `part` that it is computed with, whose dimensions of one element are
// repeated; those in front that it lacks, too.
Result<ElementMap> repeating_map(const ir::Shape& part, const ir::Shape& whole) {
  const std::vector<std::int64_t> strides = element_strides(part);
  AxisOffsets axes;
  for (int d = 0; d < whole.rank(); ++d) {
    const int of_part = d - (whole.rank() - part.rank());
    const std::int64_t size = of_part < 0 ? 1 : part[of_part];
    if (size != 1 && size != whole[d]) {
      return unsupported("operands of shapes {} and {} do not go together", part.to_string(), whole.to_string());
    }
    std::vector<std::int64_t> offsets(static_cast<std::size_t>(whole[d]));
    for (std::size_t i = 0; i < offsets.size() && size > 1; ++i) {
      offsets[i] = static_cast<std::int64_t>(i) * strides[at(of_part)];
    }
    axes.offsets.push_back(std::move(offsets));
  }
  return by_axes(std::move(axes));
}

// What the tiles can repeat by themselves: a single pixel of all channels, or a single channel of all pixels.
enum class Repetition { kNone, kPixel, kChannel };
Repetition repetition_of(const ir::Shape& few, const ir::Shape& many, const TiledTensor& like) {
  const bool is_image = many.rank() == 4 && many.elements() == std::int64_t{like.height} * like.width * like.channels;
  if (!is_image || few.rank() > 4 || like.spread != tiled::Spread::kGrid) return Repetition::kNone;
  const std::int64_t elements = few.elements();
  if (elements == 1 || (elements == like.channels && few.rank() > 0 && few.last() == elements)) {
    return Repetition::kPixel;
  }
  const bool all_pixels = few.rank() == 4 && few[1] == like.height && few[2] == like.width && few[3] == 1;
  return all_pixels ? Repetition::kChannel : Repetition::kNone;
}

// The model's tensor `part` as if it had the shape of `whole`, spread over the tiles as `like` is.
Result<std::int32_t> add_repeated(Builder& builder, std::int32_t op, std::int32_t part, const ir::Shape& whole,
                                  const TiledTensor& like) {
  const ir::Shape& few = builder.source(part).shape;
  const bool computed = !is_constant(builder, part);
  const Repetition repetition = computed ? repetition_of(few, whole, like) : Repetition::kNone;
  if (repetition != Repetition::kNone) {
    REEF_ASSIGN_OR_RETURN(const std::int32_t input, repetition == Repetition::kChannel
                                                        ? builder.grid(part)
                                                        : builder.packed_copies(part, tiled::kAllTiles));
    REEF_ASSIGN_OR_RETURN(const std::int32_t output, new_part(builder, op, part, like));
    return add_repetition(builder, op, input, output);
  }
  Rearrangement what;
  REEF_ASSIGN_OR_RETURN(what.source_of, repeating_map(few, whole));
  REEF_ASSIGN_OR_RETURN(const std::int32_t input,
                        computed ? elements_of(builder, part) : constant_vector(builder, op, part));
  what.operands = {Read{input}};
  REEF_ASSIGN_OR_RETURN(what.output, new_part(builder, op, part, like));
  return add_rearrangement(builder, op, std::move(what));
}

// Bytes of a row that a tile may have.
constexpr std::int64_t kLongRow = 16 << 10;

}  // namespace

std::int32_t add_repetition(Builder& builder, std::int32_t op, std::int32_t input, std::int32_t output) {
  Elementwise copy = copy_of(input, output);
  copy.repeats_channel = builder.tensor(output).channels > 1 && builder.tensor(input).channels == 1;
  const auto finish = [](Builder& to, tiled::Step& step) {
    auto& work = std::get<Elementwise>(step.work);
    if (!work.repeats_channel) {
      work.identity = to.identity(step);
      return ok_status();
    }
    work.repeater_words = to.new_narrow(tiled::kIdentityLineWords * chip::kNarrowWordBytes);
    work.repeater = to.new_wide(1);
    step.narrow_used.push_back(work.repeater_words);
    step.wide_used.push_back(work.repeater);
    return ok_status();
  };
  builder.add_step(op, copy, {Read{copy.input}}, {output}, finish);
  return output;
}

Result<Image> result_image(const Builder& builder, std::int32_t to) {
  REEF_ASSIGN_OR_RETURN(const Image image, image_of(builder.source(to)));
  const std::int64_t row = std::int64_t{divide_up(image.width, chip::kTileColumns)} * image.channels;
  const bool is_long = image.height == 1 && row > kLongRow && !builder.in_slice();
  return is_long ? square_image(image.width, image.channels) : image;
}

Result<Operands> spread_operands(Builder& builder, std::int32_t op) {
  REEF_ASSIGN_OR_RETURN(const std::int32_t a, builder.operand(op, 0));
  REEF_ASSIGN_OR_RETURN(const std::int32_t b, builder.operand(op, 1));
  const std::int32_t to = builder.op(op).outputs[0];
  const ir::Shape whole = builder.source(to).shape;
  const auto is_whole = [&](std::int32_t tensor) {
    return !is_constant(builder, tensor) && builder.source(tensor).shape.elements() == whole.elements();
  };
  Operands operands;
  if (is_whole(a) && is_whole(b)) {
    REEF_ASSIGN_OR_RETURN(operands.a, elements_of(builder, a));
    REEF_ASSIGN_OR_RETURN(operands.b, elements_of(builder, b));
    const TiledTensor &ta = builder.tensor(operands.a), &tb = builder.tensor(operands.b);
    if (are_spread_alike(ta, tb)) return operands;
    const bool as_vectors = ta.spread == tiled::Spread::kVector || tb.spread == tiled::Spread::kVector;
    REEF_ASSIGN_OR_RETURN(operands.a, as_vectors ? builder.vector(a) : builder.grid(a));
    REEF_ASSIGN_OR_RETURN(operands.b, as_vectors ? builder.vector(b) : builder.grid(b));
    REEF_REQUIRE(are_spread_alike(builder.tensor(operands.a), builder.tensor(operands.b)),
                 "the operands cannot be brought together");
    return operands;
  }
  REEF_ASSIGN_OR_RETURN(const Image image, result_image(builder, to));
  TiledTensor like;  // nothing is in it: for how it is spread
  like.height = image.height;
  like.width = image.width;
  like.channels = image.channels;
  for (const auto& [source, operand] : {std::pair{a, &operands.a}, {b, &operands.b}}) {
    if (is_whole(source)) {
      REEF_RETURN_IF_ERROR(elements_of(builder, source).status());
      REEF_ASSIGN_OR_RETURN(*operand, builder.grid(source, image));
    } else {
      REEF_ASSIGN_OR_RETURN(*operand, add_repeated(builder, op, source, whole, like));
    }
  }
  return operands;
}

}  // namespace reef::lower
