// SPDX-License-Identifier: Apache-2.0
#include "kernels/recurrent/lstm_basic.h"

#include <algorithm>

#include "numeric/fixed_point_math.h"

namespace reef::kernels {
namespace {

constexpr std::int64_t kProductsPerChunk = 1 << 17;  // some 50 us of work
constexpr int kGates = 4;

std::int64_t rows_per_chunk(const BasicLstmSizes& s) {
  return std::max<std::int64_t>(1, kProductsPerChunk / std::max<std::int64_t>(1, s.batches * s.depth()));
}

template <typename T>
void join(const BasicLstmSizes& s, const T* input, const T* previous_output, T* joined) {
  for (std::int64_t b = 0; b < s.batches; ++b) {
    std::copy_n(input + b * s.inputs, s.inputs, joined + b * s.depth());
    std::copy_n(previous_output + b * s.cells, s.cells, joined + b * s.depth() + s.inputs);
  }
}

void update_cell(const std::int16_t* gates, std::int64_t cells, std::int64_t c, std::int16_t previous_state,
                 std::int16_t& state, std::uint8_t& output) {
  constexpr int kStateBits = 4;
  constexpr int kOutputShift = 8;  // from Q0.15 to Q0.7
  using numeric::Fixed;
  const auto gate = [&](int k) { return Fixed<std::int16_t, 3>{gates[k * cells + c]}; };
  const Fixed<std::int16_t, 0> input = numeric::logistic(gate(0));
  const Fixed<std::int16_t, 0> new_input = numeric::tanh(gate(1));
  const Fixed<std::int16_t, 0> forget = numeric::logistic(gate(2));
  const Fixed<std::int16_t, 0> out = numeric::logistic(gate(3));
  const Fixed<std::int16_t, kStateBits> kept = forget * Fixed<std::int16_t, kStateBits>{previous_state};
  const Fixed<std::int16_t, kStateBits> added = numeric::rescale<kStateBits>(input * new_input);
  const Fixed<std::int16_t, kStateBits> sum = {numeric::saturating_add(added.raw, kept.raw)};
  const Fixed<std::int16_t, 0> result = out * numeric::tanh(sum);
  state = sum.raw;
  const std::int32_t shifted = numeric::rounding_divide_by_power_of_two(result.raw, kOutputShift);
  output = static_cast<std::uint8_t>(128 + numeric::clamp(shifted, -128, 127));
}

}  // namespace

void run_basic_lstm(const BasicLstmFloat& lstm, const ParallelFor& parallel_for) {
  const BasicLstmSizes& s = lstm.sizes;
  join(s, lstm.input, lstm.previous_output, lstm.joined);
  parallel_for(kGates * s.cells, rows_per_chunk(s), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      for (std::int64_t b = 0; b < s.batches; ++b) {
        lstm.gates[b * kGates * s.cells + row] =
            add_dot_product(SumOrder::kTailLast, 0.0f, lstm.weights + row * s.depth(), lstm.joined + b * s.depth(),
                            s.depth()) +
            lstm.bias[row];
      }
    }
  });
  for (std::int64_t b = 0; b < s.batches; ++b) {
    for (std::int64_t c = 0; c < s.cells; ++c) {
      const float* gates = lstm.gates + b * kGates * s.cells + c;
      float input = gates[0], new_input = gates[s.cells], forget = gates[2 * s.cells], out = gates[3 * s.cells];
      activate(Activation::kSigmoid, FloatFunctions::kCurrent, &input, 1);
      activate(Activation::kTanh, FloatFunctions::kCurrent, &new_input, 1);
      activate(Activation::kSigmoid, FloatFunctions::kCurrent, &forget, 1);
      activate(Activation::kSigmoid, FloatFunctions::kCurrent, &out, 1);
      const std::int64_t i = b * s.cells + c;
      const float state = input * new_input + forget * lstm.previous_state[i];
      float squashed = state;
      activate(Activation::kTanh, FloatFunctions::kCurrent, &squashed, 1);
      lstm.state[i] = state;
      lstm.output[i] = out * squashed;
    }
  }
}

void run_basic_lstm(const BasicLstmInt& lstm, const ParallelFor& parallel_for) {
  constexpr std::int32_t kInputZeroPoint = 128;
  const BasicLstmSizes& s = lstm.sizes;
  join(s, lstm.input, lstm.previous_output, lstm.joined);
  parallel_for(kGates * s.cells, rows_per_chunk(s), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      for (std::int64_t b = 0; b < s.batches; ++b) {
        std::int32_t sum = lstm.bias[row];
        for (std::int64_t d = 0; d < s.depth(); ++d) {
          const std::int32_t value = lstm.joined[b * s.depth() + d] - kInputZeroPoint;
          sum = numeric::wrapping_add(sum, value * (lstm.weights[row * s.depth() + d] - lstm.weights_zero_point));
        }
        lstm.gates[b * kGates * s.cells + row] = numeric::saturate<std::int16_t>(numeric::multiply(sum, lstm.factor));
      }
    }
  });
  for (std::int64_t b = 0; b < s.batches; ++b) {
    for (std::int64_t c = 0; c < s.cells; ++c) {
      const std::int64_t i = b * s.cells + c;
      update_cell(lstm.gates + b * kGates * s.cells, s.cells, c, lstm.previous_state[i], lstm.state[i], lstm.output[i]);
    }
  }
}

}  // namespace reef::kernels
