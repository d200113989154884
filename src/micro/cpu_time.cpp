// SPDX-License-Identifier: Apache-2.0
#include "micro/cpu_time.h"

#include "formats/darwinn/reader.h"
#include "micro/board.h"
#include "ops/cpu_work.h"
#include "ops/static_ops.h"

namespace reef::micro {
namespace {

constexpr double kCyclesPerProduct8 = 2.2, kCyclesPerProductFloat = 4;
constexpr double kCyclesPerElement = 20;
constexpr double kCyclesPerCall = 2000;

}  // namespace

double cortex_m7_microseconds(const ir::Model& model) {
  const ops::StaticOps ops(model);
  double cycles = 0;
  for (std::int32_t i = 0; i < ops.count(); ++i) {
    if (darwinn::is_edge_tpu_op(ops.op(i))) continue;
    const ops::OpContext context = ops.context(i);
    const bool is_8bit = context.has_input(0) && ir::is_integer_8(context.input(0).type);
    const double products = ops::products_of(context);
    cycles += kCyclesPerCall + products * (is_8bit ? kCyclesPerProduct8 : kCyclesPerProductFloat);
    if (products == 0) cycles += ops::elements_of(context) * kCyclesPerElement;
  }
  return cycles / kBoardHertz * 1e6;
}

}  // namespace reef::micro
