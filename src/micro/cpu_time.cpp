// SPDX-License-Identifier: Apache-2.0
#include "micro/cpu_time.h"

#include <algorithm>

#include "formats/darwinn/reader.h"
#include "ir/op.h"
#include "micro/board.h"
#include "ops/cpu_work.h"
#include "ops/static_ops.h"

namespace reef::micro {
namespace {

struct Rate {
  std::string_view op, type;
  double instructions[2];  // current release, Coral's
};
constexpr Rate kRates[] = {
#define MICRO_RATE(op, type, current, coral) {op, type, {current, coral}},
#include "micro/cpu_rates.def"
#undef MICRO_RATE
};

// Assumed: a Cortex-M7 executes up to two instructions a cycle and waits for SDRAM.
constexpr double kCyclesPerInstruction = 1;
constexpr double kInstructionsPerCall = 2000;
// Assumed for operators whose instructions were not counted: about what plain C code takes.
constexpr double kInstructionsPerElement = 40;

double instructions_of(std::string_view op, bool is_integer, bool has_products, std::size_t release) {
  const auto find = [&](OpName name) {
    const std::string_view type = is_integer ? "int8" : "float32";
    const auto* at = std::find_if(std::begin(kRates), std::end(kRates),
                                  [&](const Rate& rate) { return rate.op == name && rate.type == type; });
    return at == std::end(kRates) ? 0.0 : at->instructions[release];
  };
  if (const double counted = find(op); counted > 0) return counted;
  return has_products ? find(Op::CONV_2D) : kInstructionsPerElement;
}

}  // namespace

double cortex_m7_microseconds(const ir::Model& model, Target target) {
  const ops::StaticOps ops(model);
  const std::size_t release = target == Target::kMicro ? 1 : 0;
  double cycles = 0;
  for (std::int32_t i = 0; i < ops.count(); ++i) {
    if (darwinn::is_edge_tpu_op(ops.op(i))) continue;
    const ops::OpContext context = ops.context(i);
    const bool is_integer = context.has_input(0) && context.input(0).type != ir::DataType::kFloat32;
    const double products = ops::products_of(context);
    const double work = products > 0 ? products : ops::elements_of(context);
    cycles += (kInstructionsPerCall + work * instructions_of(ops.op(i).type, is_integer, products > 0, release)) *
              kCyclesPerInstruction;
  }
  return cycles / kBoardHertz * 1e6;
}

}  // namespace reef::micro
