// SPDX-License-Identifier: Apache-2.0
#include "ops/chip_rules.h"

#include <cstring>

#include <fmt/format.h>

namespace reef::ops::chip {
namespace {

template <typename T>
std::vector<std::int64_t> read(const Tensor& tensor) {
  std::vector<std::int64_t> values(tensor.bytes / sizeof(T));
  for (std::size_t i = 0; i < values.size(); ++i) {
    T value;  // the file's data need not be aligned
    std::memcpy(&value, tensor.data + i * sizeof(T), sizeof(T));
    values[i] = value;
  }
  return values;
}

}  // namespace

std::string shape_text(const Shape& shape) {
  if (shape.rank() == 0) return "a scalar";
  std::string text = std::to_string(shape[0]);
  for (int i = 1; i < shape.rank(); ++i) text += fmt::format("x{}", shape[i]);
  return text;
}

std::string number_text(std::int64_t number) {
  std::string digits = std::to_string(number);
  const std::size_t first = number < 0 ? 1 : 0;
  for (std::size_t at = digits.size(); at > first + 3;) {
    at -= 3;
    digits.insert(at, 1, ',');
  }
  return digits;
}

std::string tensor_text(const Tensor& tensor) {
  return fmt::format("{}, {} elements", shape_text(tensor.shape), number_text(tensor.elements()));
}

std::optional<std::vector<std::int64_t>> constant_integers(const OpContext& ctx, int input) {
  if (!ctx.has_input(input) || !ctx.input(input).is_constant) return std::nullopt;
  const Tensor& tensor = ctx.input(input);
  if (tensor.type == DataType::kInt32) return read<std::int32_t>(tensor);
  if (tensor.type == DataType::kInt64) return read<std::int64_t>(tensor);
  return std::nullopt;
}

std::optional<std::vector<bool>> named_axes(const OpContext& ctx) {
  const auto axes = constant_integers(ctx, 1);
  if (!axes) return std::nullopt;
  const int rank = ctx.input(0).shape.rank();
  std::vector<bool> named(static_cast<std::size_t>(rank));
  for (const std::int64_t axis : *axes) {
    if (axis < -rank || axis >= rank) return std::nullopt;
    named[reef::at(axis < 0 ? axis + rank : axis)] = true;
  }
  return named;
}

std::string fuses_activation(const OpContext& ctx) {
  const std::string_view name = ctx.attributes().get_enum("fused_activation_function", "NONE");
  return name == "NONE" ? "" : fmt::format("{} is fused into it", name);
}

Dilation dilation(const OpContext& ctx) {
  const Shape& weights = ctx.input(1).shape;
  const auto along = [&](int dimension, std::string_view name) -> std::int64_t {
    return weights.rank() == 4 && weights[dimension] == 1 ? 0 : ctx.attributes().get_int(name, 1);
  };
  return {along(1, "dilation_h_factor"), along(2, "dilation_w_factor")};
}

std::string dilates_unevenly(const OpContext& ctx) {
  const auto [y, x] = dilation(ctx);
  if (y == x || y == 0 || x == 0 || ctx.input(1).shape.rank() != 4) return "";
  return fmt::format("the dilation of the {}x{} filter is {} in y and {} in x", ctx.input(1).shape[1],
                     ctx.input(1).shape[2], y, x);
}

std::string reduces_batch(const OpContext& ctx) {
  const auto axes = named_axes(ctx);
  if (!axes || axes->empty() || !axes->front()) return "";
  return fmt::format("dimension 0 of input {} is reduced", shape_text(ctx.input(0).shape));
}

std::string pads_batch(const OpContext& ctx) {
  const auto paddings = constant_integers(ctx, 1);
  if (!paddings || paddings->size() < 2 || ((*paddings)[0] == 0 && (*paddings)[1] == 0)) return "";
  return fmt::format("dimension 0 of input {} is padded by {} and {}", shape_text(ctx.input(0).shape), (*paddings)[0],
                     (*paddings)[1]);
}

std::string enlarges_one_pixel(const OpContext& ctx) {
  const Shape& input = ctx.input(0).shape;
  const Shape& output = ctx.output(0).shape;
  if (input.rank() != 4 || output.rank() != 4) return "";
  for (const int axis : {1, 2}) {
    if (input[axis] == 1 && output[axis] > 1) {
      return fmt::format("input {} is one pixel {}, and output {} has {}", shape_text(input),
                         axis == 1 ? "high" : "wide", shape_text(output), output[axis]);
    }
  }
  return "";
}

std::string uses_half_pixels(const OpContext& ctx) {
  if (ctx.attributes().get_bool("half_pixel_centers")) return "half_pixel_centers is set";
  return ctx.op().version >= 3 ? fmt::format("it is version {} of the op", ctx.op().version) : "";
}

}  // namespace reef::ops::chip
