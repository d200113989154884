// SPDX-License-Identifier: Apache-2.0
// REAL: the real part of complex numbers.
#include <complex>

#include "ops/op_def.h"
#include "ops/unary.h"

namespace reef::ops {
namespace {

Result<Kernel> real_prepare(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(require_type(ctx.input(0), "input", {DataType::kComplex64}));
  REEF_RETURN_IF_ERROR(require_type(ctx.output(0), "output", {DataType::kFloat32}));
  return map_kernel<std::complex<float>, float>([](std::complex<float> x) { return x.real(); });
}

}  // namespace

constinit const OpDef real_op = define({.name = name_of(Op::REAL),
                                        .summary = "Real part.",
                                        .types = "complex64 to float32",
                                        .infer = infer_same_shape,
                                        .prepare = real_prepare,
                                        .chip = {.instead = "Spectra are computed on the CPU before the network."}});

}  // namespace reef::ops
