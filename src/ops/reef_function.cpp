// SPDX-License-Identifier: Apache-2.0
// ReefFunction: a function of one 8-bit tensor by its 256 results.
//
// The rewrite `function-table` puts it in the place of operators that together are such a function (softplus, Mish, a
// quick GELU) where the chip computes them in one pass by a table. It is never in files: where it stays on the CPU,
// graph::write_out_functions() writes operators of TFLite in its place before a model is saved.
#include "ops/checks.h"
#include "ops/op_def.h"
#include "ops/table_functions.h"
#include "ops/unary.h"

namespace reef::ops {
namespace {

constexpr AttributeDoc kReefFunctionAttributes[] = {
    {kCodes, "256 results, as stored numbers, from the lowest input to the highest"},
    {kValues, "the same as real numbers, before rounding: what the chip's table is fitted to"}};

Result<Kernel> reef_function_prepare(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(require_same_type(ctx.input(0), ctx.output(0)));
  if (!ir::is_integer_8(ctx.input(0).type)) return unsupported_types(ctx);
  const std::vector<std::int64_t> codes = ctx.attributes().get_ints(kCodes);
  REEF_REQUIRE(codes.size() == 256, "it has {} results instead of 256", codes.size());
  const std::size_t lowest = ctx.input(0).type == DataType::kInt8 ? 128 : 0;  // the byte of the lowest number
  kernels::ByteTable table;
  for (std::size_t i = 0; i < codes.size(); ++i) table[(i + lowest) % 256] = static_cast<std::uint8_t>(codes[i]);
  return byte_table_kernel(table);
}

}  // namespace

constinit const OpDef reef_function_op =
    define({.name = name_of(Op::ReefFunction),
            .summary = "A function of one 8-bit tensor by its 256 results. Reef makes it while it compiles; it is "
                       "never in files.",
            .attributes = kReefFunctionAttributes,
            .types = "int8; uint8",
            .is_custom = true,
            .form = Form::kUnary,
            .prepare = reef_function_prepare,
            .chip = {.first_runtime = kOldestRuntime}});

}  // namespace reef::ops
