// SPDX-License-Identifier: Apache-2.0
#include "kernels/recurrent/rnn.h"

#include <algorithm>

namespace reef::kernels {

void run_rnn_step(const RnnFloat& rnn, const RnnFloatStep& step, const ParallelFor& parallel_for) {
  constexpr std::int64_t kProductsPerChunk = 1 << 17;  // some 50 us of work
  VectorBatch input(SumOrder::kTailLast, step.input, rnn.batches, rnn.inputs, step.input_stride);
  VectorBatch state(SumOrder::kTailLast, step.state, rnn.batches, rnn.units, rnn.units);
  if (rnn.input.quantized != nullptr) input.quantize(rnn.quantizer);
  if (rnn.recurrent.quantized != nullptr) state.quantize(rnn.quantizer);
  const std::int64_t products = std::max<std::int64_t>(1, rnn.batches * (rnn.inputs + rnn.units));
  parallel_for(rnn.units, std::max<std::int64_t>(1, kProductsPerChunk / products),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t row = begin; row < end; ++row) {
                   for (std::int64_t b = 0; b < rnn.batches; ++b) {
                     const float sum = input.add_product(rnn.bias[row], rnn.input, row, b);
                     step.output[b * step.output_stride + row] = state.add_product(sum, rnn.recurrent, row, b);
                   }
                 }
               });
  for (std::int64_t b = 0; b < rnn.batches; ++b) {
    float* output = step.output + b * step.output_stride;
    activate(rnn.activation, rnn.functions, output, rnn.units);
    std::copy_n(output, rnn.units, step.state + b * rnn.units);
  }
}

}  // namespace reef::kernels
