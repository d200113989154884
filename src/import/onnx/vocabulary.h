// SPDX-License-Identifier: Apache-2.0
// TFLite's operators as functions, for converters: each appends one operator (or few) and gives its result.
//
// Types of operands are the caller's business: see widened() for integers that arithmetic kernels do not take. Sizes
// and axes are given as numbers and become int32 constants.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "import/onnx/graph_builder.h"
#include "ir/op.h"

namespace reef::import {

using Dims = std::vector<std::int64_t>;

ir::Shape shape_from(const Dims& dims);
Dims dims_of(const ir::Shape& shape);

// ---- Movement ----
Id reshape(GraphBuilder& b, Id x, const Dims& shape);
Id transpose(GraphBuilder& b, Id x, const std::vector<int>& permutation);  // nothing is emitted for the identity
Id concat(GraphBuilder& b, const std::vector<Id>& parts, int axis);
Id slice(GraphBuilder& b, Id x, const Dims& begins, const Dims& sizes);
// `size` elements of one axis from `begin` on.
Id slice_axis(GraphBuilder& b, Id x, int axis, std::int64_t begin, std::int64_t size);
// Elements begins[i], begins[i] + strides[i], ... below (above, for negative strides) ends[i]. An end of -1 with a
// negative stride means: down to element 0.
Id strided_slice(GraphBuilder& b, Id x, const Dims& begins, const Dims& ends, const Dims& strides);
Id pad_constant(GraphBuilder& b, Id x, const Dims& before, const Dims& after, double value);
Id tile(GraphBuilder& b, Id x, const Dims& times);
Id broadcast_to(GraphBuilder& b, Id x, const Dims& shape);
Id gather(GraphBuilder& b, Id x, Id indices, int axis);
Id gather_nd(GraphBuilder& b, Id x, Id indices);
Id scatter_nd(GraphBuilder& b, Id indices, Id updates, const Dims& shape);
Id stack(GraphBuilder& b, const std::vector<Id>& parts, int axis);
std::vector<Id> split_even(GraphBuilder& b, Id x, int axis, int pieces);
Id reverse(GraphBuilder& b, Id x, int axis);
Id cast(GraphBuilder& b, Id x, ir::DataType type);  // nothing is emitted where the type is the same

// NCHW -> NHWC and back, for any rank of 3 or more: the second axis becomes the last.
Id channels_last(GraphBuilder& b, Id x);
Id channels_first(GraphBuilder& b, Id x);

// ---- Arithmetic ----
Id unary(GraphBuilder& b, OpName op, Id x);
// ADD, SUB, MUL, DIV, MAXIMUM, MINIMUM, POW, SQUARED_DIFFERENCE, FLOOR_DIV, FLOOR_MOD ...: result of x's type.
Id binary(GraphBuilder& b, OpName op, Id x, Id y);
Id compare(GraphBuilder& b, OpName op, Id x, Id y);  // bool
inline Id add(GraphBuilder& b, Id x, Id y) { return binary(b, Op::ADD, x, y); }
inline Id sub(GraphBuilder& b, Id x, Id y) { return binary(b, Op::SUB, x, y); }
inline Id mul(GraphBuilder& b, Id x, Id y) { return binary(b, Op::MUL, x, y); }
inline Id div(GraphBuilder& b, Id x, Id y) { return binary(b, Op::DIV, x, y); }
inline Id maximum(GraphBuilder& b, Id x, Id y) { return binary(b, Op::MAXIMUM, x, y); }
inline Id minimum(GraphBuilder& b, Id x, Id y) { return binary(b, Op::MINIMUM, x, y); }
// With a number of x's type.
Id add(GraphBuilder& b, Id x, double y);
Id sub(GraphBuilder& b, Id x, double y);
Id mul(GraphBuilder& b, Id x, double y);
Id div(GraphBuilder& b, Id x, double y);
Id power(GraphBuilder& b, Id x, double y);
Id subtract_from(GraphBuilder& b, double x, Id y);
Id select(GraphBuilder& b, Id condition, Id yes, Id no);
// MEAN, SUM, REDUCE_MAX, REDUCE_MIN, REDUCE_PROD, REDUCE_ANY, REDUCE_ALL.
Id reduce(GraphBuilder& b, OpName op, Id x, const Dims& axes, bool keep_dims);
// [..., m, k] x [..., k, n], with broadcasting.
Id matmul(GraphBuilder& b, Id x, Id y, bool transpose_y = false);
// x [..., k], weights [n, k], bias [n] or kAbsent: [..., n].
Id fully_connected(GraphBuilder& b, Id x, Id weights, Id bias);
Id softmax_last(GraphBuilder& b, Id x);

// ---- Types ----
// What integer arithmetic is done in: int32 for 8 and 16 bits, int64 for uint32; others as they are.
ir::DataType arithmetic_type(ir::DataType type);
Id widened(GraphBuilder& b, Id x);
bool is_float(ir::DataType type);

}  // namespace reef::import
