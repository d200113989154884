// SPDX-License-Identifier: Apache-2.0
// Vector arithmetic that the recurrent float kernels share (LSTM, RNN, SVDF).
//
// TFLite has no separate reference kernel for these ops: there is one kernel, and its inner products run in four lanes.
// So the order of additions below (four partial sums, then the lanes, then the tail) is the reference's order.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/function_ref.h"
#include "kernels/matmul/quantize_floats.h"

namespace reef::kernels {

// body(begin, end) over [0, count) in chunks of about `grain`; see ThreadPool.
using ParallelFor =
    std::function<void(std::int64_t count, std::int64_t grain, FunctionRef<void(std::int64_t, std::int64_t)> body)>;

enum class Activation { kNone, kRelu, kReluN1To1, kRelu6, kTanh, kSignBit, kSigmoid };

// Whose tanh and logistic function: TFLite 2.9.1's or LiteRT 2.3's, as built for x86-64.
enum class FloatFunctions { kTflite29, kCurrent };

// TFLite computes the logistic function in aligned vectors of eight (2.9.1) or four (LiteRT), and what is left over at
// the ends of an array with another exponential function, so that the last bit depends on where an element lies.
// `offset` is the number of floats from a boundary to the array, `size` its length, `first` the number of our first
// element.
struct ArrayPlace {
  std::int64_t offset = 0, size = 0, first = 0;
};

void activate(Activation activation, FloatFunctions functions, ArrayPlace place, float* values, std::int64_t count);
inline void activate(Activation activation, FloatFunctions functions, float* values, std::int64_t count) {
  activate(activation, functions, {0, count, 0}, values, count);
}

// Order of additions in start + a . b: four running sums s0 .. s3 over the whole groups of four, then the tail, one by
// one.
enum class SumOrder {
  kTailLast,   // (start + (((s0 + s1) + s2) + s3)) + tail...
  kStartLast,  // start + (((s0 + s2) + (s1 + s3)) + tail...): LSTMs of LiteRT
};
float add_dot_product(SumOrder order, float start, const float* a, const float* b, std::int64_t count);

// values = (values - mean) / sqrt(variance + 1e-8)
void normalize_to_unit_variance(float* values, std::int64_t count);

// min(max(value, -limit), limit); a limit of 0 or less means none.
void clip(float* values, std::int64_t count, float limit);

// A matrix of weights, row after row: floats, or int8 numbers times one scale.
struct WeightMatrix {
  const float* real = nullptr;
  const std::int8_t* quantized = nullptr;
  float scale = 1;

  bool present() const { return real != nullptr || quantized != nullptr; }
};

// Vectors that weight matrices are multiplied with. Those for int8 weights are quantized here, each vector by itself.
class VectorBatch {
 public:
  VectorBatch(SumOrder order, const float* values, std::int64_t vectors, std::int64_t length, std::int64_t stride)
      : order_(order), values_(values), vectors_(vectors), length_(length), stride_(stride) {}

  void quantize(FloatQuantizer quantizer);
  // start + (row of `matrix`) . (vector `index`)
  float add_product(float start, const WeightMatrix& matrix, std::int64_t row, std::int64_t index) const;
  // The same for rows [row, row + rows): sums[r] are start and result.
  void add_products(const WeightMatrix& matrix, std::int64_t row, std::int64_t rows, std::int64_t index,
                    float* sums) const;

 private:
  SumOrder order_;
  const float* values_;
  std::int64_t vectors_, length_, stride_;
  std::vector<std::int16_t> quantized_;  // zero points already subtracted
  std::vector<float> scales_;            // one per vector
};

}  // namespace reef::kernels
