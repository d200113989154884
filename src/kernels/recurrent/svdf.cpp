// SPDX-License-Identifier: Apache-2.0
#include "kernels/recurrent/svdf.h"

#include <algorithm>
#include <vector>

#include "kernels/recurrent/int_vectors.h"

namespace reef::kernels {
namespace {

constexpr std::int64_t kProductsPerChunk = 1 << 17;  // some 50 us of work

std::int64_t filters_per_chunk(const SvdfSizes& s) {
  return std::max<std::int64_t>(1, kProductsPerChunk / std::max<std::int64_t>(1, s.inputs + s.memory));
}

// One step in time: everything moves one place towards the front. The last place of each filter is overwritten after.
template <typename T>
void forget_oldest(T* memory, std::int64_t count) {
  std::copy(memory + 1, memory + count, memory);
}

template <typename State>
void run_integer(const SvdfInt<State>& svdf, const std::int8_t* input, State* state, std::int8_t* output,
                 const ParallelFor& parallel_for) {
  const SvdfSizes& s = svdf.sizes;
  std::vector<std::int16_t> widened(static_cast<std::size_t>(s.batches * s.inputs));
  for (std::size_t i = 0; i < widened.size(); ++i)
    widened[i] = static_cast<std::int16_t>(input[i] - svdf.input_zero_point);
  std::vector<std::int32_t> by_filter(static_cast<std::size_t>(s.batches * s.filters));
  parallel_for(s.batches * s.filters, filters_per_chunk(s), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t filter = i % s.filters;
      State* memory = state + i * s.memory;
      forget_oldest(memory, s.memory);
      const std::int64_t product =
          int_dot_product(widened.data() + i / s.filters * s.inputs, svdf.features + filter * s.inputs, s.inputs);
      const std::int32_t scaled = numeric::multiply(static_cast<std::int32_t>(product), svdf.feature_factor);
      memory[s.memory - 1] = numeric::saturate<State>(numeric::wrapping_add(scaled, svdf.state_zero_point));
      std::int32_t sum = 0;
      for (std::int64_t t = 0; t < s.memory; ++t) {
        sum = numeric::wrapping_add(sum, svdf.time[filter * s.memory + t] * (memory[t] - svdf.state_zero_point));
      }
      by_filter[static_cast<std::size_t>(i)] = sum;
    }
  });
  for (std::int64_t i = 0; i < s.batches * s.units(); ++i) {
    std::int32_t sum = svdf.bias != nullptr ? svdf.bias[i % s.units()] : 0;
    for (std::int64_t r = 0; r < s.rank; ++r) {
      sum = numeric::wrapping_add(sum, by_filter[static_cast<std::size_t>(i * s.rank + r)]);
    }
    const std::int32_t scaled = numeric::multiply(sum, svdf.time_factor);
    output[i] = numeric::saturate<std::int8_t>(numeric::wrapping_add(scaled, svdf.output_zero_point));
  }
}

}  // namespace

void run_svdf(const SvdfFloat& svdf, const float* input, float* state, float* output, const ParallelFor& parallel_for) {
  const SvdfSizes& s = svdf.sizes;
  VectorBatch vectors(SumOrder::kTailLast, input, s.batches, s.inputs, s.inputs);
  if (svdf.features.quantized != nullptr) vectors.quantize(svdf.quantizer);
  std::vector<float> by_filter(static_cast<std::size_t>(s.batches * s.filters));
  parallel_for(s.batches * s.filters, filters_per_chunk(s), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t filter = i % s.filters;
      float* memory = state + i * s.memory;
      forget_oldest(memory, s.memory);
      memory[s.memory - 1] = vectors.add_product(0.0f, svdf.features, filter, i / s.filters);
      by_filter[static_cast<std::size_t>(i)] =
          add_dot_product(SumOrder::kTailLast, 0.0f, svdf.time + filter * s.memory, memory, s.memory);
    }
  });
  for (std::int64_t i = 0; i < s.batches * s.units(); ++i) {
    float sum = 0;
    for (std::int64_t r = 0; r < s.rank; ++r) sum += by_filter[static_cast<std::size_t>(i * s.rank + r)];
    output[i] = svdf.bias != nullptr ? sum + svdf.bias[i % s.units()] : sum;
  }
  activate(svdf.activation, svdf.functions, output, s.batches * s.units());
}

void run_svdf(const SvdfInt<std::int16_t>& svdf, const std::int8_t* input, std::int16_t* state, std::int8_t* output,
              const ParallelFor& parallel_for) {
  run_integer(svdf, input, state, output, parallel_for);
}
void run_svdf(const SvdfInt<std::int8_t>& svdf, const std::int8_t* input, std::int8_t* state, std::int8_t* output,
              const ParallelFor& parallel_for) {
  run_integer(svdf, input, state, output, parallel_for);
}

}  // namespace reef::kernels
