// SPDX-License-Identifier: Apache-2.0
// RFFT2D: the Fourier transform of images of real numbers, cut or filled with zeros to fft_length (rows, columns). Of
// the columns the first fft_length / 2 + 1 are given, which determine the others. Networks for sound write a spectrum
// with it, one row at a time.
#include <algorithm>
#include <complex>

#include "kernels/signal/fft.h"
#include "ops/checks.h"
#include "ops/op_def.h"

namespace reef::ops {
namespace {

constexpr std::int64_t kRfft2dMaxLength = std::int64_t{1} << 24;

struct Lengths {
  std::int64_t rows = 1, columns = 1;
};

Result<Lengths> lengths(const InferContext& ctx) {
  REEF_RETURN_IF_ERROR(require_type(ctx.input(1), "fft_length", {DataType::kInt32}));
  REEF_ASSIGN_OR_RETURN(const std::vector<std::int64_t> values, ctx.ints(1));
  REEF_REQUIRE(values.size() == 2, "fft_length has {} numbers; rows and columns are needed", values.size());
  for (const std::int64_t value : values) {
    REEF_REQUIRE(value >= 1 && value <= kRfft2dMaxLength && (value & (value - 1)) == 0,
                 "fft_length is {}; powers of two up to {} are needed", value, kRfft2dMaxLength);
  }
  REEF_REQUIRE(ctx.input(0).shape.rank() >= 2, "input {} must have rows and columns", ctx.input(0).shape.to_string());
  return Lengths{values[0], values[1]};
}

Status rfft2d_infer(InferContext& ctx) {
  REEF_ASSIGN_OR_RETURN(const Lengths length, lengths(ctx));
  Shape shape = ctx.input(0).shape;
  shape[shape.rank() - 2] = static_cast<std::int32_t>(length.rows);
  shape[shape.rank() - 1] = static_cast<std::int32_t>(length.columns / 2 + 1);
  REEF_RETURN_IF_ERROR(check_shape(shape));
  return give_shape(ctx, std::move(shape));
}

// One image of `height` by `width`.
void rfft2d_transform(const float* from, std::int64_t height, std::int64_t width, const Lengths& length,
                      std::complex<float>* to) {
  const kernels::Fft along_row(static_cast<std::size_t>(length.columns)),
      along_column(static_cast<std::size_t>(length.rows));
  const std::int64_t columns = length.columns / 2 + 1;
  std::vector<std::complex<double>> line(along_row.length()), column(along_column.length());
  std::vector<std::complex<double>> rows(static_cast<std::size_t>(length.rows * columns));
  for (std::int64_t y = 0; y < std::min(height, length.rows); ++y) {
    std::fill(line.begin(), line.end(), 0.0);
    std::copy_n(from + y * width, std::min(width, length.columns), line.begin());
    along_row(line);
    std::copy_n(line.begin(), columns, rows.begin() + y * columns);
  }
  for (std::int64_t x = 0; x < columns; ++x) {
    for (std::int64_t y = 0; y < length.rows; ++y) {
      column[at(y)] = rows[at(y * columns + x)];
    }
    along_column(column);
    for (std::int64_t y = 0; y < length.rows; ++y) {
      to[y * columns + x] = std::complex<float>(column[at(y)]);
    }
  }
}

Status rfft2d_run(RunContext& ctx) {
  const Tensor &input = ctx.input(0), &output = ctx.output(0);
  const int rank = input.shape.rank();
  const std::int64_t height = input.shape[rank - 2], width = input.shape[rank - 1];
  const auto sizes = ctx.input(1).values<std::int32_t>();
  const Lengths length{sizes[0], sizes[1]};
  const std::int64_t images = output.elements() == 0 ? 0 : input.shape.product(0, rank - 2);
  const std::int64_t results = length.rows * (length.columns / 2 + 1);
  const float* from = input.values<float>().data();
  auto* to = ctx.output(0).mutable_values<std::complex<float>>().data();
  ctx.parallel_for(images, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      rfft2d_transform(from + i * height * width, height, width, length, to + i * results);
    }
  });
  return ok_status();
}

Result<Kernel> rfft2d_prepare(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(require_type(ctx.input(0), "input", {DataType::kFloat32}));
  REEF_RETURN_IF_ERROR(require_type(ctx.output(0), "output", {DataType::kComplex64}));
  return Kernel(rfft2d_run);
}

}  // namespace

constinit const OpDef rfft2d_op = define({.name = name_of(Op::RFFT2D),
                                          .summary = "Fourier transform of real numbers in two dimensions.",
                                          .inputs = {2, 2},
                                          .types = "float32 to complex64",
                                          .infer = rfft2d_infer,
                                          .prepare = rfft2d_prepare,
                                          .chip = {.instead = "Features of sound are computed on the CPU before the "
                                                              "network."}});

}  // namespace reef::ops
