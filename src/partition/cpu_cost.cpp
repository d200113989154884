// SPDX-License-Identifier: Apache-2.0
#include "partition/cpu_cost.h"

#include <algorithm>
#include <string_view>

namespace reef::partition {
namespace {

enum class Counted { kProducts, kElements };
struct Rate {
  std::string_view op;
  Counted counted;
  double ns_8bit, ns_float;
};
using enum Counted;
constexpr Rate kRates[] = {
#define CPU_RATE(op, counted, ns_8bit, ns_float) {op, counted, ns_8bit, ns_float},
#include "partition/cpu_rates.def"
#undef CPU_RATE
};
constexpr Rate kOther = {"", kElements, 1, 1};
constexpr double kCallMicroseconds = 0.3;

double elements_of(const ops::Tensor& tensor) {
  return tensor.shape.is_usable() ? static_cast<double>(tensor.elements()) : 0;
}

// The larger of what it reads and what it writes.
double elements_of(const ops::OpContext& ctx) {
  double in = 0, out = 0;
  for (int i = 0; i < ctx.input_count(); ++i) {
    if (ctx.has_input(i) && !ctx.input(i).is_constant) in += elements_of(ctx.input(i));
  }
  for (int i = 0; i < ctx.output_count(); ++i) out += elements_of(ctx.output(i));
  return std::max(in, out);
}

// Multiplications of ops with weights as input 1, the output channels of which are the last dimension of the output.
double products_of(const ops::OpContext& ctx) {
  if (ctx.output_count() == 0 || !ctx.has_input(1)) return 0;
  const ops::Tensor& output = ctx.output(0);
  const double weights = elements_of(ctx.input(1));
  if (output.shape.rank() == 0 || output.shape.last() <= 0) return 0;
  return elements_of(output) / output.shape.last() * weights;
}

}  // namespace

double cpu_microseconds(const ops::OpContext& ctx) {
  const auto* listed =
      std::find_if(std::begin(kRates), std::end(kRates), [&](const Rate& rate) { return rate.op == ctx.op().type; });
  const Rate& rate = listed == std::end(kRates) ? kOther : *listed;
  const bool is_8bit = ctx.has_input(0) && ir::is_integer_8(ctx.input(0).type);
  const double count = rate.counted == kProducts ? products_of(ctx) : elements_of(ctx);
  return kCallMicroseconds + count * (is_8bit ? rate.ns_8bit : rate.ns_float) / 1e3;
}

}  // namespace reef::partition
