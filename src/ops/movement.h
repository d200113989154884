// SPDX-License-Identifier: Apache-2.0
// Shared by the ops that only move elements: reading their integer operands, checking types, describing copies.
//
// These ops take any element type that occupies whole bytes: the bytes are moved and never looked at, so quantization
// plays no part (TFLite takes for granted that input and output are quantized alike, and so do we). Each op computes
// its copy from the operands' values when it runs, since index tensors need not be constants.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "kernels/movement/strided_copy.h"
#include "ops/checks.h"
#include "ops/op_context.h"

namespace reef::ops {

// In words, for OpDef::types.
inline constexpr std::string_view kWholeByteTypes =
    "float32; float16; bfloat16; float64; int8; int16; int32; int64; uint8; uint16; uint32; uint64; bool; complex64; "
    "complex128";

// Most dimensions that the ops of this family take, as in TFLite.
inline constexpr int kMaxMovedRank = 8;

// Bytes of one element; refuses types that are packed into less than a byte or have no fixed size.
Result<std::int64_t> element_bytes(const Tensor& tensor, std::string_view role);

// Checks that `output` has `input`'s type, and that the type fills whole bytes.
Status check_moved(const Tensor& input, const Tensor& output);

// Values of an int32 or int64 tensor (with `small_too`, also of int8 and int16). The data must exist.
Result<std::vector<std::int64_t>> integers(const Tensor& tensor, std::string_view role, bool small_too = false);
// The same for a tensor of exactly one element.
Result<std::int64_t> integer(const Tensor& tensor, std::string_view role, bool small_too = false);

// Indices read in place, for tensors that may be large. The type is one that check_indices let pass.
class Indices {
 public:
  explicit Indices(const Tensor& tensor) : data_(tensor.data), type_(tensor.type) {}
  std::int64_t operator[](std::int64_t i) const {
    if (type_ == DataType::kInt32) return reinterpret_cast<const std::int32_t*>(data_)[i];
    if (type_ == DataType::kInt64) return reinterpret_cast<const std::int64_t*>(data_)[i];
    return reinterpret_cast<const std::int16_t*>(data_)[i];
  }

 private:
  const std::byte* data_;
  DataType type_;
};
inline Status check_indices(const Tensor& tensor) {
  return require_type(tensor, "indices", {DataType::kInt16, DataType::kInt32, DataType::kInt64});
}

// Bytes between neighbours along each dimension of a dense tensor. Without meaning where the tensor has no elements.
std::vector<std::int64_t> dense_strides(const Shape& shape, std::int64_t element_bytes);

// A shape from 64-bit sizes, each checked to be in [0, 2^31).
Result<Shape> shape_from(std::span<const std::int64_t> dims);

// The error for a kernel whose operands' values no longer fit the output it was given.
Status require_output_shape(const Tensor& output, const Shape& expected);

// For ops that give the same bytes another shape: checks the types, and copies. Packed types are fine here.
Result<Kernel> prepare_same_bytes(PrepareContext& ctx);

inline void copy(RunContext& ctx, kernels::StridedCopy what, const std::byte* from, std::byte* to) {
  kernels::strided_copy(ctx.environment()->threads(), std::move(what), from, to);
}

// One of the copies that make up an op.
struct Move {
  int input = 0, output = 0;
  kernels::StridedCopy copy;
};
// The kernel of an op that does nothing but these copies. They are computed once where the values they follow from,
// inputs `values`, are constants, else in every run. moves_of checks that outputs have the shapes that the values ask
// for.
using MovesOf = Result<std::vector<Move>> (*)(const OpContext&);
Result<Kernel> movement_kernel(const PrepareContext& ctx, std::initializer_list<int> values, MovesOf moves_of);

}  // namespace reef::ops
