// SPDX-License-Identifier: Apache-2.0
// Landmarks2TransformMatrix (MediaPipe, version 2): the matrix that takes pixels of a small picture of a part of the
// face to places in the large one, from the landmarks of that part. The line between two landmarks gives the angle; the
// box around a subset, turned by it, gives middle and size.
#include <algorithm>
#include <array>
#include <cmath>

#include "ops/checks.h"
#include "ops/flex_options.h"
#include "ops/op_def.h"

namespace reef::ops {
namespace {

constexpr AttributeDoc kLandmarks2TransformMatrixAttributes[] = {
    {"left_rotation_idx, right_rotation_idx", "landmarks whose line gives the angle"},
    {"target_rotation_radians", "angle that this line gets"},
    {"subset_idxs", "landmarks around which the box goes"},
    {"scale_x, scale_y", "what its sizes are multiplied by"},
    {"output_height, output_width", "size of the small picture"}};

using Matrix = std::array<float, 16>;

Matrix landmarks2_transform_matrix_product(const Matrix& a, const Matrix& b) {
  Matrix result{};
  for (std::size_t row = 0; row < 4; ++row) {
    for (std::size_t column = 0; column < 4; ++column) {
      float sum = 0;
      for (std::size_t k = 0; k < 4; ++k) sum += a[row * 4 + k] * b[k * 4 + column];
      result[row * 4 + column] = sum;
    }
  }
  return result;
}

Matrix shifted(float x, float y) { return {1, 0, 0, x, 0, 1, 0, y, 0, 0, 1, 0, 0, 0, 0, 1}; }
Matrix scaled(float x, float y) { return {x, 0, 0, 0, 0, y, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1}; }
Matrix turned(float angle) {
  const float c = std::cos(angle), s = std::sin(angle);
  return {c, -s, 0, 0, s, c, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1};
}

struct Landmarks2TransformMatrixOptions {
  std::int32_t left = 0, right = 0, height = 0, width = 0;
  float angle = 0, scale_x = 1, scale_y = 1;
  std::vector<std::int64_t> subset;
};

struct Point {
  float x = 0, y = 0;
};

Matrix landmarks2_transform_matrix_transform(const Landmarks2TransformMatrixOptions& o,
                                             std::span<const float> landmarks) {
  const auto at = [&](std::int64_t i) { return Point{landmarks[reef::at(i * 3)], landmarks[reef::at(i * 3 + 1)]}; };
  const Point left = at(o.left), right = at(o.right);
  const float angle = o.angle - std::atan2(right.y - left.y, right.x - left.x);
  const auto rotated = [](Point p, float by) {
    return Point{std::cos(by) * p.x - std::sin(by) * p.y, std::sin(by) * p.x + std::cos(by) * p.y};
  };
  Point low = rotated(at(o.subset[0]), angle), high = low;
  for (const std::int64_t i : o.subset) {
    const Point p = rotated(at(i), angle);
    low = {std::min(low.x, p.x), std::min(low.y, p.y)};
    high = {std::max(high.x, p.x), std::max(high.y, p.y)};
  }
  const Point middle = rotated({(low.x + high.x) / 2, (low.y + high.y) / 2}, -angle);
  const auto width = static_cast<float>(o.width), height = static_cast<float>(o.height);
  Matrix result = landmarks2_transform_matrix_product(shifted(middle.x, middle.y), turned(-angle));
  result = landmarks2_transform_matrix_product(
      result, scaled(o.scale_x * (high.x - low.x) / width, o.scale_y * (high.y - low.y) / height));
  return landmarks2_transform_matrix_product(result, shifted(-width / 2, -height / 2));
}

Status landmarks2_transform_matrix_infer(InferContext& ctx) {
  REEF_RETURN_IF_ERROR(require_rank(ctx.input(0), "landmarks", 3, 3));
  return give_shape(ctx, {1, 4, 4});
}

Result<Landmarks2TransformMatrixOptions> landmarks2_transform_matrix_read_options(const OpContext& ctx) {
  REEF_ASSIGN_OR_RETURN(const FlexOptions map, FlexOptions::parse(ctx.op().custom_options));
  Landmarks2TransformMatrixOptions o;
  REEF_ASSIGN_OR_RETURN(o.left, map.get_int("left_rotation_idx"));
  REEF_ASSIGN_OR_RETURN(o.right, map.get_int("right_rotation_idx"));
  REEF_ASSIGN_OR_RETURN(o.height, map.get_int("output_height"));
  REEF_ASSIGN_OR_RETURN(o.width, map.get_int("output_width"));
  REEF_ASSIGN_OR_RETURN(o.angle, map.get_float("target_rotation_radians"));
  REEF_ASSIGN_OR_RETURN(o.scale_x, map.get_float("scale_x"));
  REEF_ASSIGN_OR_RETURN(o.scale_y, map.get_float("scale_y"));
  o.subset = map.get_ints("subset_idxs");
  return o;
}

Result<Kernel> landmarks2_transform_matrix_prepare(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(require_type(ctx.input(0), "landmarks", {DataType::kFloat32}));
  REEF_RETURN_IF_ERROR(require_type(ctx.output(0), "matrix", {DataType::kFloat32}));
  if (ctx.op().version != 2) return unsupported("version {} of it; version 2 is known", ctx.op().version);
  REEF_REQUIRE(ctx.input(0).shape[2] == 3, "landmarks must have three coordinates each, not {}", ctx.input(0).shape[2]);
  REEF_ASSIGN_OR_RETURN(Landmarks2TransformMatrixOptions o, landmarks2_transform_matrix_read_options(ctx));
  const std::int64_t count = ctx.input(0).shape[1];
  const auto is_landmark = [&](std::int64_t i) { return i >= 0 && i < count; };
  REEF_REQUIRE(is_landmark(o.left) && is_landmark(o.right) && !o.subset.empty() &&
                   std::all_of(o.subset.begin(), o.subset.end(), is_landmark),
               "left_rotation_idx, right_rotation_idx or subset_idxs name a landmark outside of the {} there are",
               count);
  REEF_REQUIRE(o.height > 0 && o.width > 0 && o.scale_x > 0 && o.scale_y > 0,
               "output_height {}, output_width {}, scale_x {} and scale_y {} must be above 0", o.height, o.width,
               o.scale_x, o.scale_y);
  return Kernel([o](RunContext& run) {
    const Matrix matrix = landmarks2_transform_matrix_transform(o, run.input(0).values<float>());
    std::copy(matrix.begin(), matrix.end(), run.output(0).mutable_values<float>().begin());
    return ok_status();
  });
}

}  // namespace

constinit const OpDef landmarks2_transform_matrix_op =
    define({.name = name_of(Op::Landmarks2TransformMatrix),
            .summary = "The matrix from a picture of a part of the face to the whole, from landmarks (MediaPipe).",
            .attributes = kLandmarks2TransformMatrixAttributes,
            .types = "float32",
            .is_custom = true,
            .infer = landmarks2_transform_matrix_infer,
            .prepare = landmarks2_transform_matrix_prepare,
            .chip = {.instead = "It takes a few hundred operations; the CPU does it."}});

}  // namespace reef::ops
