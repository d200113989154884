// SPDX-License-Identifier: Apache-2.0
// BATCH_MATMUL: output[..., m, n] = sum over k of x[..., m, k] * y[..., k, n], leading dimensions broadcast.
//
// adj_x and adj_y say that the last two dimensions of x or y are swapped. Ranks 2 to 5.
// float32 adds in the order of k. int8 and int16 sums are exact and scaled as TFLite's reference kernel does (int8:
// 32-bit fixed point; int16: 48-bit sums, 16-bit multipliers); int8 with an int32 output ignores zero points and
// scales. Hybrid (float x, int8 y): each row of x is quantized while running. TFLite looks up a row's scale and a
// column's sum by adding, not multiplying out, the batch coordinates; with two or more leading dimensions above 1 that
// picks another batch's. We do the same, since equality with TFLite is the contract.
#include <algorithm>
#include <array>
#include <limits>

#include <fmt/format.h>

#include "kernels/elementwise/fixed_point_rows.h"
#include "ops/chip_rules.h"
#include "ops/float_panels.h"
#include "ops/op_def.h"
#include "ops/weights.h"

namespace reef::ops {
namespace {

using kernels::FloatPanels;
using kernels::PackedRows;
using kernels::Rounding;

constexpr AttributeDoc kBatchMatmulAttributes[] = {
    {"adj_x", "the last two dimensions of x are swapped"},
    {"adj_y", "the last two dimensions of y are swapped"},
    {"asymmetric_quantize_inputs", "float x, int8 y: quantize x asymmetrically"},
};
constexpr int kBatchDims = 3;  // of tensors seen as rank 5
constexpr std::int64_t kRowTile = 8;
constexpr std::int64_t kFloatRowTile = 24;
constexpr std::int64_t kColumnTile = 512;

struct Operand {
  std::array<std::int64_t, kBatchDims> batch = {1, 1, 1};
  std::int64_t matrices() const { return batch[0] * batch[1] * batch[2]; }
};

struct Product {
  Operand x, y;
  std::int64_t rows = 0, columns = 0, depth = 0;
  bool adj_x = false, adj_y = false;

  std::array<std::int64_t, kBatchDims> output_batch() const {
    std::array<std::int64_t, kBatchDims> result;
    for (std::size_t i = 0; i < kBatchDims; ++i) result[i] = x.batch[i] == 1 ? y.batch[i] : x.batch[i];
    return result;
  }
  std::int64_t batches() const {
    const auto b = output_batch();
    return b[0] * b[1] * b[2];
  }
  // Coordinates of output batch `index` in an operand, 0 where it is broadcast.
  std::array<std::int64_t, kBatchDims> coordinates(const Operand& operand, std::int64_t index) const {
    const auto all = output_batch();
    std::array<std::int64_t, kBatchDims> at = {index / (all[1] * all[2]), index / all[2] % all[1], index % all[2]};
    for (std::size_t i = 0; i < kBatchDims; ++i) at[i] = operand.batch[i] == 1 ? 0 : at[i];
    return at;
  }
  std::int64_t matrix(const Operand& operand, std::int64_t index) const {
    const auto at = coordinates(operand, index);
    return (at[0] * operand.batch[1] + at[1]) * operand.batch[2] + at[2];
  }
  // Which matrix's scales or sums the reference takes in hybrid products; see above.
  std::int64_t hybrid_matrix(const Operand& operand, std::int64_t index) const {
    const auto at = coordinates(operand, index);
    return at[0] + at[1] + at[2];
  }
};

Operand operand_of(const std::vector<std::int32_t>& dims) {
  Operand result;
  const std::size_t leading = dims.size() - 2;
  for (std::size_t i = 0; i < leading; ++i) result.batch[kBatchDims - leading + i] = dims[i];
  return result;
}

// Product of x [..., Q, R, K] and y [..., 1, K, N] is that of [..., Q * R, K] and [..., K, N]. It matters to hybrid
// products alone, see above.
void merge_rows(std::vector<std::int32_t>& x, std::vector<std::int32_t>& y) {
  const std::size_t nx = x.size(), ny = y.size();
  if (nx <= 2 || ny <= 2 || y[ny - 3] != 1) return;
  x[nx - 2] *= x[nx - 3];
  x.erase(x.end() - 3);
  y.erase(y.end() - 3);
}

Result<Product> product_of(const OpContext& ctx) {
  REEF_RETURN_IF_ERROR(require_rank(ctx.input(0), "x", 2, 2 + kBatchDims));
  REEF_RETURN_IF_ERROR(require_rank(ctx.input(1), "y", 2, 2 + kBatchDims));
  REEF_RETURN_IF_ERROR(check_shape(ctx.input(0).shape));
  REEF_RETURN_IF_ERROR(check_shape(ctx.input(1).shape));
  Product p;
  p.adj_x = ctx.attributes().get_bool("adj_x");
  p.adj_y = ctx.attributes().get_bool("adj_y");
  std::vector<std::int32_t> x = ctx.input(0).shape.dims(), y = ctx.input(1).shape.dims();
  if (!p.adj_x && ctx.input(0).elements() > 0) merge_rows(x, y);
  const auto last = [](const std::vector<std::int32_t>& dims, bool swapped) {
    return std::int64_t{dims[dims.size() - (swapped ? 2 : 1)]};
  };
  p.x = operand_of(x);
  p.y = operand_of(y);
  p.rows = last(x, !p.adj_x);
  p.depth = last(x, p.adj_x);
  p.columns = last(y, p.adj_y);
  REEF_REQUIRE(p.depth == last(y, !p.adj_y), "shapes {} and {} (adj_x {}, adj_y {}) cannot be multiplied",
               ctx.input(0).shape.to_string(), ctx.input(1).shape.to_string(), p.adj_x, p.adj_y);
  for (std::size_t i = 0; i < kBatchDims; ++i) {
    REEF_REQUIRE(p.x.batch[i] == p.y.batch[i] || p.x.batch[i] == 1 || p.y.batch[i] == 1,
                 "leading dimensions of {} and {} cannot be broadcast together", ctx.input(0).shape.to_string(),
                 ctx.input(1).shape.to_string());
  }
  return p;
}

Status batch_matmul_infer(InferContext& ctx) {
  REEF_ASSIGN_OR_RETURN(const Product p, product_of(ctx));
  const Shape& x = ctx.input(0).shape;
  const Shape& y = ctx.input(1).shape;
  std::vector<std::int32_t> dims;
  const int rank = std::max(x.rank(), y.rank());
  for (int i = rank - 1; i >= 2; --i) {
    const std::int32_t a = i < x.rank() ? x.last(i) : 1, b = i < y.rank() ? y.last(i) : 1;
    REEF_REQUIRE(a == b || a == 1 || b == 1, "leading dimensions of {} and {} cannot be broadcast together",
                 x.to_string(), y.to_string());
    dims.push_back(a == 1 ? b : a);
  }
  dims.push_back(x.last(p.adj_x ? 0 : 1));
  dims.push_back(static_cast<std::int32_t>(p.columns));
  return give_shape(ctx, Shape(std::move(dims)));
}

// Swaps the two dimensions of each of `count` matrices of `rows` rows and `columns` columns.
template <typename T>
std::vector<T> transposed(const T* from, std::int64_t count, std::int64_t rows, std::int64_t columns) {
  std::vector<T> result(static_cast<std::size_t>(count * rows * columns));
  for (std::int64_t m = 0; m < count; ++m) {
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t c = 0; c < columns; ++c) {
        result[reef::at((m * columns + c) * rows + r)] = from[(m * rows + r) * columns + c];
      }
    }
  }
  return result;
}

// x as rows of `depth`: its own memory, or `storage` if it has to be swapped.
template <typename T>
const T* rows_of_x(const Product& p, const Tensor& x, std::vector<T>& storage) {
  if (!p.adj_x) return x.values<T>().data();
  storage = transposed(x.values<T>().data(), p.x.matrices(), p.depth, p.rows);
  return storage.data();
}

// y's columns as padded 16-bit rows: matrix m, column n is row m * columns + n.
PackedRows pack_y(const Product& p, const Tensor& y, std::int32_t zero_point) {
  // Without depth, y has no elements to tell the number of rows from; sums of nothing still need their rows.
  if (p.adj_y && p.depth > 0) return pack_rows(y, p.depth, zero_point);
  PackedRows packed(p.y.matrices() * p.columns, p.depth);
  std::vector<std::int16_t> line(static_cast<std::size_t>(p.columns));
  for (std::int64_t m = 0; m < p.y.matrices(); ++m) {
    for (std::int64_t k = 0; k < p.depth; ++k) {
      widen_elements(y, (m * p.depth + k) * p.columns, p.columns, zero_point, line.data());
      for (std::int64_t n = 0; n < p.columns; ++n) packed.row(m * p.columns + n)[k] = line[reef::at(n)];
    }
  }
  return packed;
}

template <typename T>
PackedRows widen_rows(const T* from, std::int64_t rows, std::int64_t depth, std::int32_t zero_point) {
  PackedRows packed(rows, depth);
  for (std::int64_t r = 0; r < rows; ++r) kernels::widen(from + r * depth, depth, zero_point, packed.row(r));
  return packed;
}

// All exact sums. sink(batch, row, first column, sums, count).
template <typename Sink>
void batch_matmul_run_int(RunContext& ctx, const Product& p, const PackedRows& x, const PackedRows& y, std::int64_t run,
                          const Sink& sink) {
  const std::int64_t tiles = (p.rows + kRowTile - 1) / kRowTile;
  ctx.parallel_for(
      p.batches() * tiles, grain_for({kRowTile, p.columns, p.depth}), [&](std::int64_t begin, std::int64_t end) {
        std::vector<std::int64_t> sums(static_cast<std::size_t>(kRowTile * std::min(kColumnTile, p.columns)));
        for (std::int64_t i = begin; i < end; ++i) {
          const std::int64_t batch = i / tiles, row = i % tiles * kRowTile;
          const std::int64_t count = std::min(kRowTile, p.rows - row);
          const std::int64_t x_row = p.matrix(p.x, batch) * p.rows + row;
          for (std::int64_t column = 0; column < p.columns; column += kColumnTile) {
            const std::int64_t width = std::min(kColumnTile, p.columns - column);
            const std::int64_t y_row = p.matrix(p.y, batch) * p.columns + column;
            std::fill(sums.begin(), sums.end(), std::int64_t{0});
            kernels::add_row_products(x.row(x_row), x.stride, count, y.row(y_row), y.stride, width, x.stride, run,
                                      sums.data(), width);
            for (std::int64_t r = 0; r < count; ++r) sink(batch, row + r, column, sums.data() + r * width, width);
          }
        }
      });
}

Result<Kernel> batch_matmul_prepare_float(PrepareContext& ctx, const Product& p) {
  REEF_RETURN_IF_ERROR(require_type(ctx.output(0), "output", {DataType::kFloat32}));
  const FromTensor<FloatPanels> packed(ctx.input(1), [p](const Tensor& y) {
    FloatPanels result(p.y.matrices(), p.columns, p.depth);
    const float* from = y.values<float>().data();
    const std::int64_t column_step = p.adj_y ? p.depth : 1, depth_step = p.adj_y ? 1 : p.columns;
    for (std::int64_t m = 0; m < p.y.matrices(); ++m) {
      for (std::int64_t c = 0; c < p.columns; ++c) {
        result.set_column(m, c, from + m * p.columns * p.depth + c * column_step, depth_step);
      }
    }
    return result;
  });
  return Kernel([=](RunContext& run_ctx) {
    const auto weights = packed.get(run_ctx.input(1));
    std::vector<float> storage;
    const float* x = rows_of_x(p, run_ctx.input(0), storage);
    float* output = run_ctx.output(0).mutable_values<float>().data();
    constexpr float kNoLimit = std::numeric_limits<float>::infinity();
    const bool may_fuse = run_ctx.environment()->float_sums() == FloatSums::kFused;
    const kernels::FloatOutput finish{nullptr, -kNoLimit, kNoLimit, may_fuse};
    const kernels::ConvShape s = product_shape(p.rows, p.columns, p.depth);
    const std::int64_t tiles = (p.rows + kFloatRowTile - 1) / kFloatRowTile;
    run_ctx.parallel_for(
        p.batches() * tiles, grain_for({kFloatRowTile, p.columns, p.depth}), [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t i = begin; i < end; ++i) {
            const std::int64_t batch = i / tiles, row = i % tiles * kFloatRowTile;
            kernels::multiply_panels(s, x + p.matrix(p.x, batch) * p.rows * p.depth, *weights, p.matrix(p.y, batch),
                                     finish, row, std::min(row + kFloatRowTile, p.rows),
                                     output + batch * p.rows * p.columns);
          }
        });
    return ok_status();
  });
}

FromTensor<PackedRows> packed_y(const Product& p, const Tensor& y, std::int32_t zero_point) {
  return FromTensor<PackedRows>(y, [p, zero_point](const Tensor& tensor) { return pack_y(p, tensor, zero_point); });
}

template <typename T>
Result<Kernel> batch_matmul_prepare_quantized(PrepareContext& ctx, const Product& p) {
  REEF_ASSIGN_OR_RETURN(const double factor, tensor_factor(ctx.input(0), ctx.input(1), nullptr, ctx.output(0)));
  REEF_ASSIGN_OR_RETURN(const QuantParams x_params, per_tensor_quantization(ctx.input(0), "x"));
  REEF_ASSIGN_OR_RETURN(const QuantParams y_params, per_tensor_quantization(ctx.input(1), "y"));
  constexpr bool kWide = sizeof(T) == 2;
  if (kWide) {
    for (const Tensor* tensor : {&ctx.input(0), &ctx.input(1), &std::as_const(ctx).output(0)}) {
      REEF_RETURN_IF_ERROR(require_symmetric(*tensor));
    }
  }
  REEF_ASSIGN_OR_RETURN(const kernels::Requantizer requantizer,
                        make_requantizer(ctx, kWide ? Rounding::kFixedPoint48 : Rounding::kFixedPoint32, {factor}));
  const kernels::ByteRequantize byte_requantize{requantizer.multipliers[0], requantizer.zero_point, requantizer.lowest,
                                                requantizer.highest};
  const FromTensor<PackedRows> packed = packed_y(p, ctx.input(1), y_params.zero_point);
  const std::int64_t run = !kWide                                 ? kernels::kRunOf8BitProducts
                           : ctx.input(1).type == DataType::kInt8 ? kernels::kRunOf16By8BitProducts
                                                                  : kernels::kRunOf16BitProducts;
  return Kernel([=, zero_point = x_params.zero_point](RunContext& run_ctx) {
    const auto y = packed.get(run_ctx.input(1));
    std::vector<T> storage;
    const T* from = rows_of_x(p, run_ctx.input(0), storage);
    const PackedRows x = widen_rows(from, p.x.matrices() * p.rows, p.depth, zero_point);
    T* output = run_ctx.output(0).template mutable_values<T>().data();
    batch_matmul_run_int(
        run_ctx, p, x, *y, run,
        [&](std::int64_t batch, std::int64_t row, std::int64_t column, const std::int64_t* sums, std::int64_t count) {
          T* const to = output + (batch * p.rows + row) * p.columns + column;
          if constexpr (kWide) {
            kernels::requantize(requantizer, sums, nullptr, column, count, to);
          } else {
            kernels::requantize_row(byte_requantize, sums, count, to);
          }
        });
    return ok_status();
  });
}

Result<Kernel> prepare_int32_output(PrepareContext& ctx, const Product& p) {
  const FromTensor<PackedRows> packed = packed_y(p, ctx.input(1), 0);
  return Kernel([=](RunContext& run_ctx) {
    const auto y = packed.get(run_ctx.input(1));
    std::vector<std::int8_t> storage;
    const std::int8_t* from = rows_of_x(p, run_ctx.input(0), storage);
    const PackedRows x = widen_rows(from, p.x.matrices() * p.rows, p.depth, 0);
    std::int32_t* output = run_ctx.output(0).mutable_values<std::int32_t>().data();
    batch_matmul_run_int(
        run_ctx, p, x, *y, kernels::kRunOf8BitProducts,
        [&](std::int64_t batch, std::int64_t row, std::int64_t column, const std::int64_t* sums, std::int64_t count) {
          std::int32_t* to = output + (batch * p.rows + row) * p.columns + column;
          for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<std::int32_t>(sums[i]);
        });
    return ok_status();
  });
}

// Sum less row_sum * zero_point, in float as the reference computes it, back as an integer.
std::int32_t less_offset(std::int64_t sum, std::int32_t column_sum, std::int32_t zero_point) {
  const float offset = static_cast<float>(column_sum) * static_cast<float>(zero_point);
  const double less = std::trunc(static_cast<float>(static_cast<std::int32_t>(sum)) - offset);
  return numeric::round_to_int32(less);
}

Result<Kernel> batch_matmul_prepare_hybrid(PrepareContext& ctx, const Product& p) {
  const Tensor& y_tensor = ctx.input(1);
  REEF_RETURN_IF_ERROR(require_type(ctx.output(0), "output", {DataType::kFloat32}));
  REEF_RETURN_IF_ERROR(require_symmetric(y_tensor));
  REEF_REQUIRE(y_tensor.quantization->is_quantized(), "y ('{}') has no quantization", y_tensor.name);
  REEF_ASSIGN_OR_RETURN(const std::vector<float> scales,
                        channel_scales(y_tensor, y_tensor.shape.rank() - (p.adj_y ? 2 : 1)));
  const kernels::FloatQuantizer quantizer =
      float_quantizer(ctx, ctx.attributes().get_bool("asymmetric_quantize_inputs"));
  const FromTensor<PackedRows> packed = packed_y(p, y_tensor, 0);
  return Kernel([=](RunContext& run_ctx) {
    const auto y = packed.get(run_ctx.input(1));
    std::vector<std::int32_t> column_sums;
    for (std::int64_t r = 0; r < y->rows; ++r) {
      std::int64_t sum = 0;
      for (std::int64_t k = 0; k < y->depth; ++k) sum += y->row(r)[k];
      column_sums.push_back(static_cast<std::int32_t>(sum));
    }
    std::vector<float> storage;
    const std::int64_t x_rows = p.x.matrices() * p.rows;
    const QuantizedRows q = quantize_rows(rows_of_x(p, run_ctx.input(0), storage), x_rows, p.depth, quantizer);
    const PackedRows x = widen_rows(q.values.data(), x_rows, p.depth, 0);
    float* output = run_ctx.output(0).mutable_values<float>().data();
    batch_matmul_run_int(
        run_ctx, p, x, *y, kernels::kRunOf8BitProducts,
        [&](std::int64_t batch, std::int64_t row, std::int64_t column, const std::int64_t* sums, std::int64_t count) {
          const auto x_row = static_cast<std::size_t>(p.hybrid_matrix(p.x, batch) * p.rows + row);
          const std::int64_t y_row = p.hybrid_matrix(p.y, batch) * p.columns + column;
          for (std::int64_t i = 0; i < count; ++i) {
            const std::int32_t sum = less_offset(sums[i], column_sums[reef::at(y_row + i)], q.zero_points[x_row]);
            const float scale = q.scales[x_row] * scales[reef::at(column + i)];
            output[(batch * p.rows + row) * p.columns + column + i] = 0.0f + scale * static_cast<float>(sum);
          }
        });
    return ok_status();
  });
}

Result<Kernel> batch_matmul_prepare(PrepareContext& ctx) {
  REEF_ASSIGN_OR_RETURN(const Product p, product_of(ctx));
  REEF_RETURN_IF_ERROR(require_plain_storage(ctx.input(1)));
  REEF_REQUIRE(p.depth <= kMaxDepth, "{} products per output; at most {} are supported", p.depth, kMaxDepth);
  if (ctx.output(0).elements() == 0) return Kernel([](RunContext&) { return ok_status(); });
  const DataType x = ctx.input(0).type, y = ctx.input(1).type, out = ctx.output(0).type;
  if (x == DataType::kFloat32 && y == DataType::kFloat32) return batch_matmul_prepare_float(ctx, p);
  if (x == DataType::kFloat32 && y == DataType::kInt8) return batch_matmul_prepare_hybrid(ctx, p);
  if (x == DataType::kInt8 && y == DataType::kInt8 && out == DataType::kInt8)
    return batch_matmul_prepare_quantized<std::int8_t>(ctx, p);
  if (x == DataType::kInt8 && y == DataType::kInt8 && out == DataType::kInt32) return prepare_int32_output(ctx, p);
  const bool y_fits_int16 = y == DataType::kInt16 || y == DataType::kInt8;
  if (x == DataType::kInt16 && y_fits_int16 && out == DataType::kInt16)
    return batch_matmul_prepare_quantized<std::int16_t>(ctx, p);
  return unsupported_types(ctx);
}

constexpr std::int64_t kBatchMatmulDeepestOnChip = 3200;

// A constant matrix for all of x is a layer's weights.
std::string multiplies_by_constant(const OpContext& ctx) {
  const Tensor& y = ctx.input(1);
  const bool is_matrix = y.shape.rank() >= 2 && y.shape.product(0, y.shape.rank() - 2) == 1;
  if (!y.is_constant || !is_matrix) return "";
  return fmt::format("input 1 ('{}') is a constant {}", y.name, chip::shape_text(y.shape));
}

std::string batch_matmul_is_too_deep(const OpContext& ctx) {
  const Shape& x = ctx.input(0).shape;
  if (x.rank() < 2) return fmt::format("input 0 is {}", chip::shape_text(x));
  const std::int64_t depth = x.last(ctx.attributes().get_bool("adj_x") ? 1 : 0);
  if (depth <= kBatchMatmulDeepestOnChip) return "";
  return fmt::format("input 0 is {}: sums of {} products", chip::shape_text(x), chip::number_text(depth));
}

constexpr ChipRule kBatchMatmulChipRules[] = {
    {
        .id = "matmul-constant",
        .says = "The second operand is computed, or has several matrices.",
        .suggestion = "Use FULLY_CONNECTED or a CONV_2D with a 1x1 filter, whose weights stay on the chip.",
        .broken = multiplies_by_constant,
        .source = RuleSource::kAssumed,
        .evidence = "Reef's choice: a layer is faster.",
        .rewrite = "matmul",
    },
    {
        .id = "matmul-depth",
        .says = "Each result is the sum of at most 3,200 products.",
        .suggestion = "Split the sum, or leave the product to the CPU.",
        .broken = batch_matmul_is_too_deep,
        .source = RuleSource::kAssumed,
        .evidence = "Reef's limit: two matrices of 64 columns must fit into wide memory beside parameters.",
    },
};

}  // namespace

constinit const OpDef batch_matmul_op =
    define({.name = name_of(Op::BATCH_MATMUL),
            .summary = "Matrix products over broadcast leading dimensions.",
            .inputs = {2, 2},
            .attributes = kBatchMatmulAttributes,
            .types = "float32; int8 (output int8 or int32); int16 (y int16 or int8); hybrid: float32 x, int8 y (per "
                     "tensor or per column)",
            .infer = batch_matmul_infer,
            .prepare = batch_matmul_prepare,
            .chip = {.first_runtime = 10,
                     .rules = kBatchMatmulChipRules,
                     .evidence = "Reef's own code; Google's compilers leave products of two activations on the CPU. "
                                 "Nothing of it has run on silicon."}});

}  // namespace reef::ops
