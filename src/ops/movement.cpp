// SPDX-License-Identifier: Apache-2.0
#include "ops/movement.h"

#include <algorithm>

#include <limits>

namespace reef::ops {
namespace {

template <typename T>
std::vector<std::int64_t> movement_widened(const Tensor& tensor) {
  const std::span<const T> values = tensor.values<T>();
  return {values.begin(), values.end()};
}

}  // namespace

Result<std::int64_t> element_bytes(const Tensor& tensor, std::string_view role) {
  const int bits = ir::bits_per_element(tensor.type);
  if (bits < 8) {
    return unsupported("{} ('{}') is {}; a type of one or more whole bytes is needed", role, tensor.name,
                       ir::type_name(tensor.type));
  }
  return bits / 8;
}

Status check_moved(const Tensor& input, const Tensor& output) {
  REEF_RETURN_IF_ERROR(require_same_type(input, output));
  return element_bytes(input, "input").status();
}

Result<std::vector<std::int64_t>> integers(const Tensor& tensor, std::string_view role, bool small_too) {
  if (tensor.type == DataType::kInt32) return movement_widened<std::int32_t>(tensor);
  if (tensor.type == DataType::kInt64) return movement_widened<std::int64_t>(tensor);
  if (small_too && tensor.type == DataType::kInt8) return movement_widened<std::int8_t>(tensor);
  if (small_too && tensor.type == DataType::kInt16) return movement_widened<std::int16_t>(tensor);
  return unsupported("{} ('{}') is {}; int32 or int64 is needed", role, tensor.name, ir::type_name(tensor.type));
}

Result<std::int64_t> integer(const Tensor& tensor, std::string_view role, bool small_too) {
  REEF_REQUIRE(tensor.elements() == 1, "{} ('{}') has shape {}; one element is needed", role, tensor.name,
               tensor.shape.to_string());
  REEF_ASSIGN_OR_RETURN(const std::vector<std::int64_t> values, integers(tensor, role, small_too));
  return values[0];
}

std::vector<std::int64_t> dense_strides(const Shape& shape, std::int64_t element_bytes) {
  std::vector<std::int64_t> strides(static_cast<std::size_t>(shape.rank()));
  // Unsigned: with an empty dimension the others may be of any size, and their product meaningless.
  auto stride = static_cast<std::uint64_t>(element_bytes);
  for (int d = shape.rank(); d-- > 0;) {
    strides[at(d)] = static_cast<std::int64_t>(stride);
    stride *= static_cast<std::uint64_t>(shape[d]);
  }
  return strides;
}

Result<Shape> shape_from(std::span<const std::int64_t> dims) {
  std::vector<std::int32_t> result;
  for (const std::int64_t dim : dims) {
    REEF_REQUIRE(dim >= 0 && dim <= std::numeric_limits<std::int32_t>::max(),
                 "dimension {} of the result would have size {}", result.size(), dim);
    result.push_back(static_cast<std::int32_t>(dim));
  }
  Shape shape(std::move(result));
  REEF_RETURN_IF_ERROR(check_shape(shape));
  return shape;
}

Status require_output_shape(const Tensor& output, const Shape& expected) {
  REEF_REQUIRE(output.shape == expected, "output '{}' was planned with shape {}, but the operands now ask for {}",
               output.name, output.shape.to_string(), expected.to_string());
  return ok_status();
}

namespace {

void run_moves(RunContext& ctx, const std::vector<Move>& moves) {
  for (const Move& move : moves) {
    kernels::run_simplified(ctx.environment()->threads(), move.copy, ctx.input(move.input).data,
                            ctx.output(move.output).data);
  }
}

Result<std::vector<Move>> simplified_moves(const OpContext& ctx, MovesOf moves_of) {
  REEF_ASSIGN_OR_RETURN(std::vector<Move> moves, moves_of(ctx));
  for (Move& move : moves) move.copy = kernels::simplified(std::move(move.copy));
  return moves;
}

}  // namespace

Result<Kernel> movement_kernel(const PrepareContext& ctx, std::initializer_list<int> values, MovesOf moves_of) {
  const bool are_known = std::all_of(values.begin(), values.end(), [&](int i) {
    return ctx.input(i).is_constant && (ctx.input(i).data != nullptr || ctx.input(i).elements() == 0);
  });
  if (!are_known) {
    return Kernel([moves_of](RunContext& run) -> Status {
      REEF_ASSIGN_OR_RETURN(const std::vector<Move> moves, simplified_moves(run, moves_of));
      run_moves(run, moves);
      return ok_status();
    });
  }
  REEF_ASSIGN_OR_RETURN(std::vector<Move> moves, simplified_moves(ctx, moves_of));
  return Kernel([moves = std::move(moves)](RunContext& run) {
    run_moves(run, moves);
    return ok_status();
  });
}

Result<Kernel> prepare_same_bytes(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(require_same_type(ctx.input(0), ctx.output(0)));
  if (ir::bits_per_element(ctx.input(0).type) == 0) return unsupported_types(ctx);
  return Kernel([](RunContext& run) -> Status {
    REEF_REQUIRE(run.output(0).bytes == run.input(0).bytes, "input and output differ in size");
    copy(run, {.loops = {}, .run_bytes = static_cast<std::int64_t>(run.input(0).bytes)}, run.input(0).data,
         run.output(0).data);
    return ok_status();
  });
}

}  // namespace reef::ops
