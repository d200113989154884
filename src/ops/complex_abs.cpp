// SPDX-License-Identifier: Apache-2.0
// COMPLEX_ABS: the magnitude of complex numbers.
#include <cmath>
#include <complex>

#include "ops/op_def.h"
#include "ops/unary.h"

namespace reef::ops {
namespace {

Result<Kernel> complex_abs_prepare(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(require_type(ctx.input(0), "input", {DataType::kComplex64}));
  REEF_RETURN_IF_ERROR(require_type(ctx.output(0), "output", {DataType::kFloat32}));
  return map_kernel<std::complex<float>, float>([](std::complex<float> x) { return std::hypot(x.real(), x.imag()); });
}

}  // namespace

constinit const OpDef complex_abs_op =
    define({.name = name_of(Op::COMPLEX_ABS),
            .summary = "Magnitude of complex numbers.",
            .types = "complex64 to float32",
            .infer = infer_same_shape,
            .prepare = complex_abs_prepare,
            .chip = {.instead = "Spectra are computed on the CPU before the network."}});

}  // namespace reef::ops
