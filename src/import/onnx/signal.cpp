// SPDX-License-Identifier: Apache-2.0
// Signal processing: DFT and STFT as products with a constant matrix, which any runtime has, quantizes and maps, and
// the matrix of mel filters as a constant. Windows (Hann and others) are in generator.cpp.
//
// A transform of n points is a matrix of up to 4 n^2 numbers: short frames, as of speech, are small, long ones refused.
#include <cmath>
#include <numbers>

#include "import/onnx/converter.h"

namespace reef::import {
namespace {

constexpr std::int64_t kMostWeights = std::int64_t{1} << 24;

struct Transform {
  std::int64_t points = 0;
  bool is_inverse = false, is_onesided = false;
  bool is_complex = false;  // the input
};

std::int64_t bins_of(const Transform& t) { return t.is_onesided ? t.points / 2 + 1 : t.points; }

// Rows: real parts of all bins, then imaginary ones. Columns: real parts of all points, then, if there are such,
// imaginary ones. Angles are reduced before the cosine, so that large products of indices stay exact.
std::vector<float> transform_matrix(const Transform& t) {
  const std::int64_t bins = bins_of(t), columns = t.points * (t.is_complex ? 2 : 1);
  std::vector<float> weights(static_cast<std::size_t>(2 * bins * columns));
  const double scale = t.is_inverse ? 1.0 / static_cast<double>(t.points) : 1.0;
  const double sign = t.is_inverse ? 1.0 : -1.0;
  for (std::int64_t k = 0; k < bins; ++k) {
    for (std::int64_t n = 0; n < t.points; ++n) {
      const double turn = static_cast<double>(k * n % t.points) / static_cast<double>(t.points);
      const auto real = static_cast<float>(scale * std::cos(2 * std::numbers::pi * turn));
      const auto imaginary = static_cast<float>(scale * sign * std::sin(2 * std::numbers::pi * turn));
      const auto at = [&](std::int64_t row, std::int64_t column) -> float& {
        return weights[reef::at(row * columns + column)];
      };
      at(k, n) = real;
      at(bins + k, n) = imaginary;
      if (!t.is_complex) continue;
      at(k, t.points + n) = -imaginary;
      at(bins + k, t.points + n) = real;
    }
  }
  return weights;
}

// [..., n or 2 n] (real parts, then imaginary ones) -> [..., bins, 2].
Result<Id> transformed(GraphBuilder& b, Id rows, const Transform& t) {
  const std::int64_t columns = t.points * (t.is_complex ? 2 : 1), bins = bins_of(t);
  if (t.points < 1 || t.points > kMostWeights || 2 * bins * columns > kMostWeights) {
    return unsupported("a transform of {} points would be a matrix of {} numbers; at most {} are converted", t.points,
                       2 * bins * columns, kMostWeights);
  }
  const Id weights = b.floats(transform_matrix(t), shape_from({2 * bins, columns}));
  const Id parts = fully_connected(b, rows, weights, kAbsent);
  Dims dims = dims_of(b.shape(parts));
  dims.back() = 2;
  dims.push_back(bins);
  std::vector<int> order;
  for (int i = 0; i < static_cast<int>(dims.size()); ++i) order.push_back(i);
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return transpose(b, reshape(b, parts, dims), order);
}

// Cuts or fills up axis `axis` with zeros.
Id with_length(GraphBuilder& b, Id x, int axis, std::int64_t length) {
  const std::int64_t now = b.dim(x, axis);
  if (now >= length) return slice_axis(b, x, axis, 0, length);
  Dims before(static_cast<std::size_t>(b.rank(x)), 0), after = before;
  after[reef::at(axis)] = length - now;
  return pad_constant(b, x, before, after, 0);
}

Result<std::int64_t> one_number(NodeContext& ctx, int input) {
  REEF_ASSIGN_OR_RETURN(const Dims given, ctx.ints(input));
  REEF_REQUIRE(given.size() == 1, "input {} has {} elements; one is needed", input, given.size());
  return given[0];
}

}  // namespace

// [batch, ..., n, ..., 1 or 2]: the last axis has real and imaginary part.
Status convert_dft(NodeContext& ctx, GraphBuilder& b) {
  Id x = ctx.in(0);
  const int rank = b.rank(x);
  REEF_REQUIRE(rank >= 2 && (b.dim(x, rank - 1) == 1 || b.dim(x, rank - 1) == 2),
               "the input {} must end with an axis of 1 or 2 (real and imaginary part)", b.shape(x).to_string());
  std::int64_t given_axis = ctx.opset() >= 20 ? -2 : ctx.int_attribute("axis", 1);
  if (ctx.opset() >= 20 && ctx.has(2)) {
    REEF_ASSIGN_OR_RETURN(given_axis, one_number(ctx, 2));
  }
  REEF_ASSIGN_OR_RETURN(const int axis, ctx.axis(given_axis, rank));
  REEF_REQUIRE(axis < rank - 1, "axis {} is that of real and imaginary part", axis);
  Transform t;
  t.is_inverse = ctx.int_attribute("inverse", 0) != 0;
  t.is_onesided = ctx.int_attribute("onesided", 0) != 0;
  t.is_complex = b.dim(x, rank - 1) == 2;
  if (t.is_inverse && t.is_onesided) {
    return unsupported("attributes inverse and onesided together are not converted; give all bins and inverse alone");
  }
  t.points = b.dim(x, axis);
  if (ctx.has(1)) {
    REEF_ASSIGN_OR_RETURN(t.points, one_number(ctx, 1));
    REEF_REQUIRE(t.points >= 1 && t.points <= kMostWeights, "dft_length is {}", t.points);
  }
  x = with_length(b, x, axis, t.points);
  // [others..., part, points]
  std::vector<int> order;
  for (int i = 0; i < rank - 1; ++i) {
    if (i != axis) order.push_back(i);
  }
  order.insert(order.end(), {rank - 1, axis});
  x = transpose(b, x, order);
  Dims dims = dims_of(b.shape(x));
  dims.resize(dims.size() - 2);
  dims.push_back(t.points * (t.is_complex ? 2 : 1));
  REEF_ASSIGN_OR_RETURN(const Id bins, transformed(b, reshape(b, x, dims), t));
  // [others..., bins, part]: bins go back to the axis.
  std::vector<int> back;
  for (int i = 0; i < rank - 2; ++i) back.push_back(i);
  back.insert(back.begin() + axis, rank - 2);
  back.push_back(rank - 1);
  return ctx.give(transpose(b, bins, back));
}

// Frames of `signal` [batch, length, 1], windowed and transformed: [batch, frames, bins, 2].
Status convert_stft(NodeContext& ctx, GraphBuilder& b) {
  Id x = ctx.in(0);
  const int rank = b.rank(x);
  REEF_REQUIRE(rank == 2 || (rank == 3 && b.dim(x, 2) <= 2), "the signal {} must be [batch, length, 1 or 2]",
               b.shape(x).to_string());
  if (rank == 3 && b.dim(x, 2) == 2) return unsupported("complex signals are not converted");
  const std::int64_t batch = b.dim(x, 0), length = b.dim(x, 1);
  REEF_ASSIGN_OR_RETURN(const std::int64_t step, one_number(ctx, 1));
  Transform t;
  t.is_onesided = ctx.int_attribute("onesided", 1) != 0;
  t.points = ctx.has(2) ? b.dim(ctx.in(2), 0) : length;
  if (ctx.has(3)) {
    REEF_ASSIGN_OR_RETURN(t.points, one_number(ctx, 3));
  }
  REEF_REQUIRE(step >= 1 && t.points >= 1 && t.points <= length, "frames of {} every {} do not fit a signal of {}",
               t.points, step, length);
  const std::int64_t frames = (length - t.points) / step + 1;
  REEF_REQUIRE(frames * t.points <= kMostWeights, "{} frames of {} are too many", frames, t.points);
  Dims places;
  for (std::int64_t i = 0; i < frames * t.points; ++i) places.push_back(i / t.points * step + i % t.points);
  x = gather(b, reshape(b, x, {batch, length}), b.ints(places, shape_from({frames, t.points})), 1);
  if (ctx.has(2)) {
    REEF_REQUIRE(b.elements(ctx.in(2)) == t.points, "the window has {} elements for frames of {}",
                 b.elements(ctx.in(2)), t.points);
    x = mul(b, x, reshape(b, ctx.in(2), {t.points}));
  }
  REEF_ASSIGN_OR_RETURN(const Id bins, transformed(b, x, t));
  return ctx.give(bins);
}

// Weights that gather bins of a spectrum into triangles of equal width on the mel scale: [bins, filters].
Status convert_mel_weight_matrix(NodeContext& ctx, GraphBuilder& b) {
  double numbers[5] = {};
  for (int i = 0; i < 5; ++i) {
    REEF_ASSIGN_OR_RETURN(const std::vector<float> given, ctx.floats(i));
    REEF_REQUIRE(given.size() == 1 && std::isfinite(given[0]) && given[0] >= 0, "input {} is no number from 0 on", i);
    numbers[i] = given[0];
  }
  const auto filters = static_cast<std::int64_t>(numbers[0]), points = static_cast<std::int64_t>(numbers[1]);
  const double rate = numbers[2], lowest = numbers[3], highest = numbers[4];
  const std::int64_t bins = points / 2 + 1;
  REEF_REQUIRE(filters >= 1 && points >= 1 && rate >= 1 && filters <= kMostWeights && bins <= kMostWeights / filters,
               "{} filters for a transform of {} points at {} Hz", filters, points, rate);
  const auto type = static_cast<onnx::ElementType>(ctx.int_attribute("output_datatype", 1));
  const auto stored = stored_type(type);
  if (!stored) return unsupported("attribute output_datatype: {} is not converted", onnx::element_type_name(type));
  const auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  const double step = (mel(highest) - mel(lowest)) / static_cast<double>(filters + 2);
  Dims edges;  // of the triangles, in bins
  for (std::int64_t i = 0; i < filters + 2; ++i) {
    const double hertz = 700 * (std::pow(10, (mel(lowest) + step * static_cast<double>(i)) / 2595) - 1);
    edges.push_back(static_cast<std::int64_t>(std::floor(static_cast<double>(points + 1) * hertz / rate)));
    REEF_REQUIRE(edges.back() >= 0 && edges.back() <= bins, "upper_edge_hertz {} is beyond half of sample_rate {}",
                 highest, rate);
  }
  std::vector<float> weights(static_cast<std::size_t>(bins * filters), 0.0f);
  const auto set = [&](std::int64_t bin, std::int64_t filter, std::int64_t part, std::int64_t whole) {
    if (bin >= bins) return;
    weights[reef::at(bin * filters + filter)] =
        static_cast<float>(static_cast<double>(part) / static_cast<double>(whole));
  };
  for (std::int64_t i = 0; i < filters; ++i) {
    const std::int64_t low = edges[reef::at(i)], middle = edges[static_cast<std::size_t>(i) + 1],
                       high = edges[static_cast<std::size_t>(i) + 2];
    if (low == middle) set(middle, i, 1, 1);
    for (std::int64_t bin = low; bin <= middle && low < middle; ++bin) set(bin, i, bin - low, middle - low);
    for (std::int64_t bin = middle; bin < high; ++bin) set(bin, i, high - bin, high - middle);
  }
  return ctx.give({cast(b, b.floats(weights, shape_from({bins, filters})), *stored), type, {}});
}

}  // namespace reef::import
