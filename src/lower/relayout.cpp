// SPDX-License-Identifier: Apache-2.0
// TRANSPOSE, TILE, SPACE_TO_DEPTH and DEPTH_TO_SPACE: elements in another order, or several times.
#include "lower/lowerings.h"
#include "lower/movement.h"

namespace reef::lower {
namespace {

Status require_image(const ir::Shape& shape) {
  REEF_REQUIRE(shape.rank() == 4 && shape.is_usable() && shape.elements() > 0, "{} is no image", shape.to_string());
  return ok_status();
}

// Blocks of block x block pixels, each to one of `block * block` times the channels; and back.
struct Blocks {
  std::int64_t size = 1;
  std::int64_t width = 1, channels = 1;  // of the image with more pixels

  // Of the image with more channels, which element is the given one of the image with more pixels.
  std::int64_t to_deep(std::int64_t element) const {
    const std::int64_t c = element % channels, x = element / channels % width, y = element / channels / width;
    const std::int64_t part = y % size * size + x % size;
    return ((y / size * (width / size) + x / size) * size * size + part) * channels + c;
  }
  std::int64_t to_flat(std::int64_t element) const {
    const std::int64_t c = element % channels, part = element / channels % (size * size);
    const std::int64_t pixel = element / channels / (size * size);
    const std::int64_t x = pixel % (width / size) * size + part % size;
    const std::int64_t y = pixel / (width / size) * size + part / size;
    return (y * width + x) * channels + c;
  }
};

Status move_blocks(Builder& builder, std::int32_t op, bool to_depth) {
  REEF_ASSIGN_OR_RETURN(const std::int32_t from, builder.operand(op, 0));
  const std::int32_t to = builder.op(op).outputs[0];
  const ir::Shape &flat = builder.source(to_depth ? from : to).shape,
                  &deep = builder.source(to_depth ? to : from).shape;
  REEF_RETURN_IF_ERROR(require_image(flat));
  REEF_RETURN_IF_ERROR(require_image(deep));
  const std::int64_t size = builder.op(op).attributes.get_int("block_size");
  REEF_REQUIRE(size >= 1 && size <= flat[1] && flat[1] == deep[1] * size && flat[2] == deep[2] * size &&
                   deep[3] == flat[3] * size * size,
               "blocks of {} between {} and {}", size, flat.to_string(), deep.to_string());
  const Blocks blocks{size, flat[2], flat[3]};
  return move_elements(builder, op, from, to, [=](std::int64_t element) {
    return ElementSource{0, to_depth ? blocks.to_flat(element) : blocks.to_deep(element),
                         blocks.channels - element % blocks.channels};
  });
}

}  // namespace

Status lower_transpose(Builder& builder, std::int32_t op) {
  REEF_ASSIGN_OR_RETURN(const std::int32_t from, builder.operand(op, 0));
  const std::int32_t to = builder.op(op).outputs[0];
  REEF_ASSIGN_OR_RETURN(const std::vector<std::int32_t> order, constant_ints(builder, op, 1, "the order"));
  const ir::Shape &shape = builder.source(from).shape, &result = builder.source(to).shape;
  REEF_REQUIRE(order.size() == static_cast<std::size_t>(shape.rank()) && result.rank() == shape.rank(),
               "an order of {} dimensions for {}", order.size(), shape.to_string());
  const std::vector<std::int64_t> strides = element_strides(shape);
  AxisOffsets axes;
  std::vector<bool> used(order.size());
  for (int d = 0; d < shape.rank(); ++d) {
    REEF_ASSIGN_OR_RETURN(const int source, dimension(order[at(d)], shape.rank()));
    REEF_REQUIRE(!used[at(source)] && result[d] == shape[source], "{} cannot become {}", shape.to_string(),
                 result.to_string());
    used[at(source)] = true;
    std::vector<std::int64_t> offsets;
    for (std::int64_t i = 0; i < result[d]; ++i) offsets.push_back(i * strides[at(source)]);
    axes.offsets.push_back(std::move(offsets));
  }
  return move_elements(builder, op, from, to, by_axes(std::move(axes)));
}

Status lower_tile(Builder& builder, std::int32_t op) {
  REEF_ASSIGN_OR_RETURN(const std::int32_t from, builder.operand(op, 0));
  const std::int32_t to = builder.op(op).outputs[0];
  const ir::Shape &shape = builder.source(from).shape, &result = builder.source(to).shape;
  REEF_RETURN_IF_ERROR(image_of(builder.source(to)).status());
  REEF_REQUIRE(result.rank() == shape.rank(), "{} cannot become {}", shape.to_string(), result.to_string());
  const std::vector<std::int64_t> strides = element_strides(shape);
  AxisOffsets axes;
  for (int d = 0; d < shape.rank(); ++d) {
    REEF_REQUIRE(shape[d] > 0 && result[d] % shape[d] == 0, "{} cannot become {}", shape.to_string(),
                 result.to_string());
    std::vector<std::int64_t> offsets;
    for (std::int64_t i = 0; i < result[d]; ++i) {
      offsets.push_back(i % shape[d] * strides[at(d)]);
    }
    axes.offsets.push_back(std::move(offsets));
  }
  return move_elements(builder, op, from, to, by_axes(std::move(axes)));
}

Status lower_space_to_depth(Builder& builder, std::int32_t op) { return move_blocks(builder, op, true); }
Status lower_depth_to_space(Builder& builder, std::int32_t op) { return move_blocks(builder, op, false); }

}  // namespace reef::lower
