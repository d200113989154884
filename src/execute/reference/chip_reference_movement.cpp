// SPDX-License-Identifier: Apache-2.0
// Ops that put elements elsewhere, and resizing. Codes are copied; only CONCATENATION may change their scale.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "execute/reference/chip_reference_op.h"

namespace reef::reference {
namespace {

// Row-major positions of all elements of `shape`, in order.
class Positions {
 public:
  explicit Positions(const ir::Shape& shape) : shape_(shape), at_(static_cast<std::size_t>(shape.rank())) {}
  const std::vector<std::int64_t>& at() const { return at_; }
  void advance() {
    for (std::size_t d = at_.size(); d-- > 0;) {
      if (++at_[d] < shape_[static_cast<int>(d)]) return;
      at_[d] = 0;
    }
  }

 private:
  const ir::Shape& shape_;
  std::vector<std::int64_t> at_;
};

std::size_t offset(const ir::Shape& shape, const std::vector<std::int64_t>& at) {
  std::int64_t result = 0;
  for (int d = 0; d < shape.rank(); ++d) result = result * shape[d] + at[reef::at(d)];
  return static_cast<std::size_t>(result);
}

Status require_same_quantization(const ChipOp& op, const ir::Tensor& a, const ir::Tensor& b) {
  REEF_ASSIGN_OR_RETURN(const ChipQuantization from, op.quantization(a));
  REEF_ASSIGN_OR_RETURN(const ChipQuantization to, op.quantization(b));
  if (from == to) return ok_status();
  return unsupported("it is not known how the chip changes the scale with it");
}

// Every element of output `i` from where `source` says; nullopt: the zero point.
template <typename Source>
Status gather(ChipOp& op, std::size_t data, std::size_t i, const Source& source) {
  REEF_RETURN_IF_ERROR(require_same_quantization(op, op.input(data), op.output(i)));
  REEF_ASSIGN_OR_RETURN(const ChipQuantization q, op.quantization(op.input(data)));
  const ChipValue& in = op.value(data);
  std::vector<std::int32_t> codes;
  Positions position(op.output(i).shape);
  for (std::int64_t n = op.output(i).shape.elements(); n > 0; --n, position.advance()) {
    std::vector<std::int64_t> from = source(position.at());
    bool is_inside = true;
    for (int d = 0; d < in.shape.rank(); ++d) {
      const std::int64_t at = from[reef::at(d)];
      is_inside = is_inside && at >= 0 && at < in.shape[d];
    }
    codes.push_back(is_inside ? in.codes[offset(in.shape, from)] : q.zero());
  }
  op.set(i, std::move(codes));
  return ok_status();
}

Status reshape(ChipOp& op) {
  REEF_RETURN_IF_ERROR(require_same_quantization(op, op.input(0), op.output()));
  REEF_REQUIRE(op.value(0).shape.elements() == op.output().shape.elements(), "the number of elements changes");
  return op.give(op.value(0).codes);
}

Status pad(ChipOp& op) {
  const ChipValue& padding = op.value(1);
  REEF_REQUIRE(padding.codes.size() == 2 * static_cast<std::size_t>(op.value(0).shape.rank()), "{} numbers of padding",
               padding.codes.size());
  return gather(op, 0, 0, [&](std::vector<std::int64_t> at) {
    for (std::size_t d = 0; d < at.size(); ++d) at[d] -= padding.codes[2 * d];
    return at;
  });
}

Status transpose(ChipOp& op) {
  const ChipValue& order = op.value(1);
  const auto rank = static_cast<std::size_t>(op.value(0).shape.rank());
  REEF_REQUIRE(order.codes.size() == rank, "{} dimensions in the order", order.codes.size());
  for (const std::int32_t d : order.codes) {
    REEF_REQUIRE(d >= 0 && static_cast<std::size_t>(d) < rank, "there is no dimension {}", d);
  }
  return gather(op, 0, 0, [&](const std::vector<std::int64_t>& at) {
    std::vector<std::int64_t> from(rank);
    for (std::size_t d = 0; d < rank; ++d) from[reef::at(order.codes[d])] = at[d];
    return from;
  });
}

Status slice(ChipOp& op) {
  const ChipValue& begin = op.value(1);
  REEF_REQUIRE(begin.codes.size() == static_cast<std::size_t>(op.value(0).shape.rank()), "{} starts",
               begin.codes.size());
  return gather(op, 0, 0, [&](std::vector<std::int64_t> at) {
    for (std::size_t d = 0; d < at.size(); ++d) at[d] += begin.codes[d];
    return at;
  });
}

Status strided_slice(ChipOp& op) {
  const ChipValue &in = op.value(0), &begin = op.value(1), &strides = op.value(3);
  const ir::Attributes& attributes = op.attributes();
  const auto rank = static_cast<std::size_t>(in.shape.rank());
  REEF_REQUIRE(begin.codes.size() == rank && strides.codes.size() == rank, "starts and strides of other dimensions");
  for (const std::string_view mask : {"ellipsis_mask", "new_axis_mask"}) {
    if (attributes.get_int(mask) != 0) return unsupported("it is not known how the chip computes it with {}", mask);
  }
  // A start before the first or behind the last element is moved to it; the output's shape says where to end.
  const std::int64_t mask = attributes.get_int("begin_mask"), dropped = attributes.get_int("shrink_axis_mask");
  return gather(op, 0, 0, [&](std::vector<std::int64_t> at) {
    for (std::size_t d = 0; d < rank; ++d) {
      if ((dropped >> d & 1) != 0) at.insert(at.begin() + static_cast<std::ptrdiff_t>(std::min(d, at.size())), 0);
      const std::int64_t size = in.shape[static_cast<int>(d)], stride = strides.codes[d];
      std::int64_t first = begin.codes[d] < 0 ? begin.codes[d] + size : begin.codes[d];
      if ((mask >> d & 1) != 0) first = stride < 0 ? size - 1 : 0;
      if (d >= at.size()) at.resize(d + 1);
      at[d] = std::clamp<std::int64_t>(first, 0, size - 1) + at[d] * stride;
    }
    return at;
  });
}

Status split(ChipOp& op) {
  const int rank = op.value(1).shape.rank();
  REEF_REQUIRE(op.value(0).codes.size() == 1, "one dimension is split");
  const int axis = op.value(0).codes[0] < 0 ? op.value(0).codes[0] + rank : op.value(0).codes[0];
  REEF_REQUIRE(axis >= 0 && axis < rank, "there is no dimension {}", axis);
  std::int64_t before = 0;
  for (std::size_t i = 0; i < op.outputs(); ++i) {
    REEF_RETURN_IF_ERROR(gather(op, 1, i, [&](std::vector<std::int64_t> at) {
      at[reef::at(axis)] += before;
      return at;
    }));
    before += op.output(i).shape[axis];
  }
  return ok_status();
}

Status split_v(ChipOp& op) {
  const int rank = op.value(0).shape.rank();
  REEF_REQUIRE(op.value(2).codes.size() == 1, "one dimension is split");
  const int axis = op.value(2).codes[0] < 0 ? op.value(2).codes[0] + rank : op.value(2).codes[0];
  REEF_REQUIRE(axis >= 0 && axis < rank, "there is no dimension {}", axis);
  std::int64_t before = 0;
  for (std::size_t i = 0; i < op.outputs(); ++i) {
    REEF_RETURN_IF_ERROR(gather(op, 0, i, [&](std::vector<std::int64_t> at) {
      at[reef::at(axis)] += before;
      return at;
    }));
    before += op.output(i).shape[axis];
  }
  return ok_status();
}

Status unpack(ChipOp& op) {
  const int rank = op.value(0).shape.rank();
  auto axis = static_cast<int>(op.attributes().get_int("axis"));
  if (axis < 0) axis += rank;
  REEF_REQUIRE(axis >= 0 && axis < rank, "there is no dimension {}", axis);
  for (std::size_t i = 0; i < op.outputs(); ++i) {
    REEF_RETURN_IF_ERROR(gather(op, 0, i, [&](std::vector<std::int64_t> at) {
      at.insert(at.begin() + axis, static_cast<std::int64_t>(i));
      return at;
    }));
  }
  return ok_status();
}

Status pack(ChipOp& op) {
  const ir::Shape& shape = op.output().shape;
  auto axis = static_cast<int>(op.attributes().get_int("axis"));
  if (axis < 0) axis += shape.rank();
  REEF_REQUIRE(axis >= 0 && axis < shape.rank() && shape[axis] == static_cast<std::int32_t>(op.inputs()),
               "{} tensors are stacked to {}", op.inputs(), shape.to_string());
  std::vector<std::int32_t> codes;
  Positions position(shape);
  for (std::int64_t n = shape.elements(); n > 0; --n, position.advance()) {
    std::vector<std::int64_t> at = position.at();
    const auto i = static_cast<std::size_t>(at[reef::at(axis)]);
    at.erase(at.begin() + axis);
    codes.push_back(op.value(i).codes.at(offset(op.value(i).shape, at)));
  }
  for (std::size_t i = 0; i < op.inputs(); ++i) {
    REEF_RETURN_IF_ERROR(require_same_quantization(op, op.input(i), op.output()));
  }
  return op.give(std::move(codes));
}

Status tile(ChipOp& op) {
  const ir::Shape& shape = op.value(0).shape;
  return gather(op, 0, 0, [&](std::vector<std::int64_t> at) {
    for (std::size_t d = 0; d < at.size(); ++d) at[d] %= shape[static_cast<int>(d)];
    return at;
  });
}

Status space_to_depth(ChipOp& op) {
  const std::int64_t block = op.attributes().get_int("block_size"), channels = op.value(0).shape.last();
  return gather(op, 0, 0, [&](std::vector<std::int64_t> at) {
    const std::int64_t part = at[3] / channels;
    return std::vector<std::int64_t>{at[0], at[1] * block + part / block, at[2] * block + part % block,
                                     at[3] % channels};
  });
}

Status depth_to_space(ChipOp& op) {
  const std::int64_t block = op.attributes().get_int("block_size"), channels = op.output().shape.last();
  return gather(op, 0, 0, [&](std::vector<std::int64_t> at) {
    const std::int64_t part = at[1] % block * block + at[2] % block;
    return std::vector<std::int64_t>{at[0], at[1] / block, at[2] / block, part * channels + at[3]};
  });
}

Status concatenation(ChipOp& op) {
  REEF_ASSIGN_OR_RETURN(const ChipQuantization to, op.quantization(op.output()));
  REEF_ASSIGN_OR_RETURN(const numeric::ChipActivation activation, op.fused_activation());
  const ir::Shape& shape = op.output().shape;
  auto axis = static_cast<int>(op.attributes().get_int("axis"));
  if (axis < 0) axis += shape.rank();
  REEF_REQUIRE(axis >= 0 && axis < shape.rank(), "there is no dimension {}", axis);
  std::vector<std::int32_t> codes(static_cast<std::size_t>(shape.elements()));
  std::int64_t before = 0;
  for (std::size_t i = 0; i < op.inputs(); ++i) {
    ir::Shape expected = shape;
    expected[axis] = op.value(i).shape.rank() == shape.rank() ? op.value(i).shape[axis] : -1;
    before += expected[axis];
    REEF_REQUIRE(op.value(i).shape == expected && before <= shape[axis], "input {} of shape {} in an output of {}", i,
                 op.value(i).shape.to_string(), shape.to_string());
    REEF_ASSIGN_OR_RETURN(const ChipQuantization from, op.quantization(op.input(i)));
    REEF_ASSIGN_OR_RETURN(const std::vector<std::int32_t> part, rescaled(op.value(i).codes, from, to, activation));
    Positions position(op.value(i).shape);
    for (const std::int32_t code : part) {
      std::vector<std::int64_t> at = position.at();
      at[reef::at(axis)] += before - expected[axis];
      codes[offset(shape, at)] = code;
      position.advance();
    }
  }
  REEF_REQUIRE(before == shape[axis], "the inputs do not fill the output");
  return op.give(std::move(codes));
}

// ---- Resizing ----

// A position along an axis: between two pixels, of which `high` has `weight` parts of the axis's denominator.
struct Tap {
  std::int64_t low = 0, high = 0;
  std::int64_t weight = 0;
};
struct AxisTaps {
  std::int64_t denominator = 1;
  std::vector<Tap> taps;  // by output
};

// TFLite's positions, exactly: its kernels round them, to float32 or to 1/1024 of a pixel. Beyond the border is the
// pixel at the border. The denominator is the smallest that all positions have.
AxisTaps taps_along(std::int64_t from, std::int64_t to, bool align_corners, bool half_pixels) {
  AxisTaps axis;
  axis.taps.resize(static_cast<std::size_t>(to));
  if (from == 1) return axis;
  const std::int64_t trim = align_corners && to > 1 ? 1 : 0, in = from - trim, out = to - trim;
  const auto numerator = [&](std::int64_t i) { return half_pixels ? (2 * i + 1) * in - out : i * in; };
  const std::int64_t unit = half_pixels ? 2 * out : out;
  std::int64_t common = unit;
  for (std::int64_t i = 0; i < to; ++i) common = std::gcd(common, numerator(i));
  axis.denominator = unit / common;
  for (std::int64_t i = 0; i < to; ++i) {
    const std::int64_t at = numerator(i) / common;
    const std::int64_t low = at < 0 ? -((-at + axis.denominator - 1) / axis.denominator) : at / axis.denominator;
    axis.taps[reef::at(i)] = {std::clamp<std::int64_t>(low, 0, from - 1),
                              std::clamp<std::int64_t>(low + 1, 0, from - 1), at - axis.denominator * low};
  }
  return axis;
}

// An exact sum of four products, which is multiplied by a float32 and rounded, like everything on the chip. Known from
// Google's programs for twice the size with half_pixel_centers only.
Status resize_bilinear(ChipOp& op) {
  constexpr std::int64_t kMostWeight = 128;  // of 8 bits
  const ir::Shape from = op.value(0).shape, &to = op.output().shape;
  REEF_REQUIRE(from.rank() == 4 && to.rank() == 4, "tensors of four dimensions are needed");
  const bool align = op.attributes().get_bool("align_corners"), half = op.attributes().get_bool("half_pixel_centers");
  if (from == to) return gather(op, 0, 0, [](const std::vector<std::int64_t>& at) { return at; });
  REEF_REQUIRE(!align || !half, "align_corners and half_pixel_centers exclude each other");
  const AxisTaps rows = taps_along(from[1], to[1], align, half), columns = taps_along(from[2], to[2], align, half);
  const std::int64_t total = rows.denominator * columns.denominator;
  if (total > kMostWeight) return unsupported("weights in units of 1/{} are not numbers of 8 bits", total);
  REEF_RETURN_IF_ERROR(require_same_quantization(op, op.input(0), op.output()));
  const ChipValue& in = op.value(0);
  std::vector<std::int32_t> codes;
  Positions position(to);
  for (std::int64_t n = to.elements(); n > 0; --n, position.advance()) {
    const std::vector<std::int64_t>& at = position.at();
    const Tap &y = rows.taps[reef::at(at[1])], &x = columns.taps[reef::at(at[2])];
    const auto code = [&](std::int64_t iy, std::int64_t ix) {
      return std::int64_t{in.codes[offset(in.shape, {at[0], iy, ix, at[3]})]};
    };
    const auto across = [&](std::int64_t iy) {
      return code(iy, x.low) * (columns.denominator - x.weight) + code(iy, x.high) * x.weight;
    };
    const std::int64_t sum = across(y.low) * (rows.denominator - y.weight) + across(y.high) * y.weight;
    codes.push_back(requantized(sum, 1.0f / static_cast<float>(total), {.max = 255, .min = 0}, 0));
  }
  return op.give(std::move(codes));
}

// Which pixel is the nearest: TFLite's rule, in float as it computes it. Other factors than two are not known from
// Google's programs; pixels are only copied, so that there is nothing to round but the position.
std::int64_t nearest(std::int64_t i, std::int64_t from, std::int64_t to, bool align_corners, bool half_pixels) {
  const bool corners = align_corners && to > 1;
  const float scale = static_cast<float>(corners ? from - 1 : from) / static_cast<float>(corners ? to - 1 : to);
  const float at = (static_cast<float>(i) + (half_pixels ? 0.5f : 0.0f)) * scale;
  return std::min(static_cast<std::int64_t>(align_corners ? std::round(at) : std::floor(at)), from - 1);
}

Status resize_nearest_neighbor(ChipOp& op) {
  const ir::Shape &from = op.value(0).shape, &to = op.output().shape;
  REEF_REQUIRE(from.rank() == 4 && to.rank() == 4, "tensors of four dimensions are needed");
  const bool align = op.attributes().get_bool("align_corners"), half = op.attributes().get_bool("half_pixel_centers");
  return gather(op, 0, 0, [&](std::vector<std::int64_t> at) {
    at[1] = nearest(at[1], from[1], to[1], align, half);
    at[2] = nearest(at[2], from[2], to[2], align, half);
    return at;
  });
}

}  // namespace

std::vector<ChipOpEntry> chip_movement_ops() {
  return {{Op::RESHAPE, reshape},
          {Op::SQUEEZE, reshape},
          {Op::EXPAND_DIMS, reshape},
          {Op::PAD, pad, 2},
          {Op::TRANSPOSE, transpose, 2},
          {Op::SLICE, slice, 2},
          {Op::STRIDED_SLICE, strided_slice, 4},
          {Op::SPLIT, split, 2},
          {Op::SPLIT_V, split_v, 3},
          {Op::UNPACK, unpack},
          {Op::PACK, pack},
          {Op::TILE, tile},
          {Op::SPACE_TO_DEPTH, space_to_depth},
          {Op::DEPTH_TO_SPACE, depth_to_space},
          {Op::CONCATENATION, concatenation},
          {Op::RESIZE_BILINEAR, resize_bilinear},
          {Op::RESIZE_NEAREST_NEIGHBOR, resize_nearest_neighbor}};
}

}  // namespace reef::reference
