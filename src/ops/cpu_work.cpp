// SPDX-License-Identifier: Apache-2.0
#include "ops/cpu_work.h"
#include "ir/op.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace reef::ops {
namespace {

constexpr double kCall = 100;

constexpr std::array<Op, 5> kMultiply = {Op::CONV_2D, Op::DEPTHWISE_CONV_2D, Op::TRANSPOSE_CONV, Op::FULLY_CONNECTED,
                                         Op::BATCH_MATMUL};

}  // namespace

double element_count(const Tensor& tensor) {
  return tensor.shape.is_usable() ? static_cast<double>(tensor.elements()) : 0;
}

double elements_of(const OpContext& ctx) {
  double in = 0, out = 0;
  for (int i = 0; i < ctx.input_count(); ++i) {
    if (ctx.has_input(i) && !ctx.input(i).is_constant) in += element_count(ctx.input(i));
  }
  for (int i = 0; i < ctx.output_count(); ++i) out += element_count(ctx.output(i));
  return std::max(in, out);
}

double products_of(const OpContext& ctx) {
  const std::string_view type = ctx.op().type;
  if (std::find(kMultiply.begin(), kMultiply.end(), type) == kMultiply.end()) return 0;
  if (ctx.output_count() == 0 || !ctx.has_input(0) || !ctx.has_input(1)) return 0;
  const Tensor& weights = ctx.input(1);
  const auto share_of = [&](int dimension) {  // weights of one index of a dimension
    if (weights.shape.rank() <= dimension || weights.shape[dimension] <= 0) return 0.0;
    return element_count(weights) / weights.shape[dimension];
  };
  const double results = element_count(ctx.output(0));
  if (type == Op::BATCH_MATMUL) {
    const Tensor& left = ctx.input(0);
    const bool is_usable = left.shape.is_usable() && left.shape.rank() > 0;
    return is_usable ? results * left.shape.last(ctx.attributes().get_bool("adj_x") && left.shape.rank() > 1 ? 1 : 0)
                     : 0;
  }
  if (type == Op::TRANSPOSE_CONV) return ctx.has_input(2) ? element_count(ctx.input(2)) * share_of(3) : 0;
  return results * share_of(type == Op::DEPTHWISE_CONV_2D ? 3 : 0);
}

double cpu_work(const OpContext& ctx) {
  double elements = 0;
  for (int i = 0; i < ctx.input_count(); ++i) {
    if (ctx.has_input(i)) elements += element_count(ctx.input(i));
  }
  for (int i = 0; i < ctx.output_count(); ++i) elements += element_count(ctx.output(i));
  return kCall + elements + products_of(ctx);
}

}  // namespace reef::ops
