// SPDX-License-Identifier: Apache-2.0
// EMBEDDING_LOOKUP: output[i] = table[ids[i]], row by row.
//
// Rows are copied as they are, or, when the table is an integer type and the output float32, multiplied by the table's
// scale (one, or one per row). Such a table must be symmetric. Rows of int4 and int2 tables must fill whole bytes:
// TFLite reads others from the wrong place.
#include <cstring>
#include <optional>

#include "ops/op_def.h"
#include "ops/weights.h"

namespace reef::ops {
namespace {

constexpr int kIds = 0;
constexpr int kTable = 1;

Status embedding_lookup_infer(InferContext& ctx) {
  REEF_RETURN_IF_ERROR(require_rank(ctx.input(kIds), "ids", 1, 1));
  REEF_REQUIRE(ctx.input(kTable).shape.rank() >= 2, "table ('{}') has shape {}; two or more dimensions are needed",
               ctx.input(kTable).name, ctx.input(kTable).shape.to_string());
  Shape shape = ctx.input(kTable).shape;
  shape[0] = ctx.input(kIds).shape[0];
  return give_shape(ctx, std::move(shape));
}

// copy_row(id, position) for each id, after checking it.
template <typename CopyRow>
Status for_each_id(const RunContext& ctx, const CopyRow& copy_row) {
  const std::int64_t rows = ctx.input(kTable).shape[0];
  std::int64_t position = 0;
  for (const std::int32_t id : ctx.input(kIds).values<std::int32_t>()) {
    REEF_REQUIRE(id >= 0 && id < rows, "id {} at position {} is outside of the table's {} rows", id, position, rows);
    copy_row(std::int64_t{id}, position++);
  }
  return ok_status();
}

Result<Kernel> prepare_copy(std::size_t row_bytes) {
  return Kernel([=](RunContext& ctx) {
    return for_each_id(ctx, [&](std::int64_t id, std::int64_t position) {
      std::memcpy(ctx.output(0).data + static_cast<std::size_t>(position) * row_bytes,
                  ctx.input(kTable).data + static_cast<std::size_t>(id) * row_bytes, row_bytes);
    });
  });
}

Result<Kernel> prepare_dequantizing(const PrepareContext& ctx, std::int64_t columns) {
  const Tensor& table = ctx.input(kTable);
  REEF_RETURN_IF_ERROR(
      require_type(table, "table", {DataType::kInt8, DataType::kUInt8, DataType::kInt4, DataType::kInt2}));
  REEF_RETURN_IF_ERROR(require_symmetric(table));
  REEF_RETURN_IF_ERROR(require_plain_storage(table));
  REEF_REQUIRE(table.quantization->is_quantized(), "table ('{}') has no quantization", table.name);
  REEF_RETURN_IF_ERROR(channel_scales(table, 0).status());
  return Kernel([=, scales = table.quantization->scale](RunContext& run_ctx) {
    Tensor bytes = run_ctx.input(kTable);  // TFLite reads a uint8 table as int8
    if (bytes.type == DataType::kUInt8) bytes.type = DataType::kInt8;
    float* output = run_ctx.output(0).mutable_values<float>().data();
    std::vector<std::int16_t> row(static_cast<std::size_t>(columns));
    return for_each_id(run_ctx, [&](std::int64_t id, std::int64_t position) {
      const float scale = scales[scales.size() == 1 ? 0 : static_cast<std::size_t>(id)];
      widen_elements(bytes, id * columns, columns, 0, row.data());
      for (std::int64_t c = 0; c < columns; ++c) {
        output[position * columns + c] = static_cast<float>(row[at(c)]) * scale;
      }
    });
  });
}

Result<Kernel> embedding_lookup_prepare(PrepareContext& ctx) {
  const Tensor& table = ctx.input(kTable);
  REEF_RETURN_IF_ERROR(require_type(ctx.input(kIds), "ids", {DataType::kInt32}));
  const int bits = ir::bits_per_element(table.type);
  REEF_REQUIRE(bits > 0, "table ('{}') is {}; a type of fixed size is needed", table.name, ir::type_name(table.type));
  REEF_RETURN_IF_ERROR(require_type(ctx.output(0), "output", {table.type, DataType::kFloat32}));
  const std::optional<std::int64_t> elements = table.shape.checked_elements();
  REEF_REQUIRE(elements, "table ('{}') has shape {}, which is negative or too large", table.name,
               table.shape.to_string());
  if (*elements == 0) {  // its other dimensions may be of any size
    return Kernel([](RunContext& run_ctx) { return for_each_id(run_ctx, [](std::int64_t, std::int64_t) {}); });
  }
  const std::int64_t columns = table.shape.product(1, table.shape.rank());
  REEF_REQUIRE(columns * bits % 8 == 0, "rows of table ('{}') are {} bits; whole bytes are needed", table.name,
               columns * bits);
  if (table.type == ctx.output(0).type) return prepare_copy(static_cast<std::size_t>(columns * bits / 8));
  return prepare_dequantizing(ctx, columns);
}

}  // namespace

constinit const OpDef embedding_lookup_op = define(
    {.name = name_of(Op::EMBEDDING_LOOKUP),
     .summary = "Picks rows of a table by number.",
     .inputs = {2, 2},
     .types = "any type of fixed size (rows are copied); hybrid: int8, uint8, int4 or int2 table to float32",
     .infer = embedding_lookup_infer,
     .prepare = embedding_lookup_prepare,
     .chip = {
         .instead =
             "Look rows up on the CPU and give the model the result, or use FULLY_CONNECTED on a one-hot input."}});

}  // namespace reef::ops
