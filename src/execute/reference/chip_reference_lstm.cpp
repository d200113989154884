// SPDX-License-Identifier: Apache-2.0
// UNIDIRECTIONAL_SEQUENCE_LSTM, as the one program known does it (docs/hardware, keras_lstm_mnist_ptq), or as Reef's
// programs do: a step rounds far more often than TFLite's. What a step computes: numeric/chip_lstm.h.
#include <algorithm>
#include <array>
#include <span>

#include "execute/reference/chip_reference_op.h"
#include "numeric/chip_lstm.h"
#include "numeric/chip_tables.h"

namespace reef::reference {
namespace {

constexpr std::int32_t kFineZero = 16384, kCellZero = 32768, kMax16 = 65535;

// Positions in the op's list of inputs.
constexpr std::size_t kInput = 0, kInputWeights = 1, kRecurrentWeights = 5, kBiases = 12, kHidden = 18, kCell = 19;
enum Gate : std::size_t { kInputGate, kForgetGate, kCellGate, kOutputGate };

class Lstm {
 public:
  static Result<Lstm> create(const ChipOp& op) {
    Lstm lstm(op);
    REEF_ASSIGN_OR_RETURN(lstm.x_, op.quantization(op.input(kInput)));
    REEF_ASSIGN_OR_RETURN(lstm.h_, op.quantization(op.input(kHidden)));
    REEF_ASSIGN_OR_RETURN(lstm.c_, op.quantization(op.input(kCell)));
    REEF_ASSIGN_OR_RETURN(const ChipQuantization out, op.quantization(op.output()));
    if (!(lstm.h_ == out)) return unsupported("it is not known how the chip rescales an LSTM's output");
    for (std::size_t g = 0; g < 4; ++g) {
      REEF_ASSIGN_OR_RETURN(lstm.w_[g], op.quantization(op.input(kInputWeights + g)));
      REEF_ASSIGN_OR_RETURN(lstm.r_[g], op.quantization(op.input(kRecurrentWeights + g)));
    }
    const auto clip = static_cast<float>(op.attributes().get_float("cell_clip"));
    const auto step = numeric::chip_lstm_step(lstm.c_.scale(), lstm.h_.scale(), lstm.h_.zero(), clip);
    REEF_REQUIRE(step, "scales {} and {} are no scales", lstm.c_.scale(), lstm.h_.scale());
    lstm.step_ = *step;
    const auto kind = op.options().compiler_generation >= kReefGeneration ? numeric::LstmArguments::kWide
                                                                          : numeric::LstmArguments::kGoogles;
    for (std::size_t g = 0; g < 4; ++g) {
      lstm.held_[g] = numeric::chip_lstm_argument(kind, g == kCellGate, lstm.h_.scale(), lstm.h_.zero());
    }
    return lstm;
  }

  void step(std::span<const std::int32_t> x, std::vector<std::int32_t>& h, std::vector<std::int32_t>& c) const {
    const std::vector<std::int32_t> i = gate(kInputGate, x, h), f = gate(kForgetGate, x, h), g = gate(kCellGate, x, h),
                                    o = gate(kOutputGate, x, h);
    const numeric::ChipFunction tanh = numeric::chip_tanh(numeric::kLstmFineScale);
    for (std::size_t n = 0; n < h.size(); ++n) {
      const std::int32_t update = requantized(std::int64_t{i[n]} * (g[n] - numeric::kLstmCellGateZero),
                                              step_.update_multiplier, step_.update_clamp, kFineZero, kMax16);
      const std::int32_t kept = requantized(std::int64_t{f[n]} * (c[n] - kCellZero), step_.kept_multiplier,
                                            step_.kept_clamp, kCellZero, kMax16);
      const std::int64_t sum = std::int64_t{step_.kept_weight} * (kept - kCellZero) +
                               std::int64_t{step_.update_weight} * (update - kFineZero);
      c[n] = requantized(sum, step_.state_multiplier, step_.state_clamp, kCellZero, kMax16);
      const float state = std::clamp(static_cast<float>(sum) * step_.state_unit, -step_.state_limit, step_.state_limit);
      const std::int32_t t = numeric::chip_round(tanh.at(state), kFineZero, kMax16);
      h[n] = requantized(std::int64_t{o[n]} * (t - kFineZero), step_.output_multiplier, step_.output_clamp, h_.zero());
    }
  }

 private:
  explicit Lstm(const ChipOp& op) : op_(op) {}

  // One row of weights times a vector, in 8 bits.
  std::int32_t product(std::size_t weights, const ChipQuantization& w, std::span<const std::int32_t> vector,
                       const ChipQuantization& v, std::size_t row, std::int64_t bias,
                       const numeric::ChipLstmArgument& held) const {
    std::int64_t sum = bias;
    const std::vector<std::int32_t>& codes = op_.value(weights).codes;
    for (std::size_t k = 0; k < vector.size(); ++k) {
      sum += std::int64_t{codes[row * vector.size() + k] - w.zero()} * (vector[k] - v.zero());
    }
    return requantized(sum, numeric::chip_layer_multiplier(v.scale(), w.scale(), held.unit),
                       numeric::chip_clamp(held.unit, held.zero, numeric::ChipActivation::kNone), held.zero);
  }

  std::vector<std::int32_t> gate(Gate g, std::span<const std::int32_t> x, const std::vector<std::int32_t>& h) const {
    const numeric::ChipFunction function = g == kCellGate ? numeric::chip_tanh(numeric::kLstmCellGateScale)
                                                          : numeric::chip_logistic(numeric::kLstmGateScale);
    std::vector<std::int32_t> result;
    for (std::size_t n = 0; n < h.size(); ++n) {
      const std::int32_t of_input =
          product(kInputWeights + g, w_[g], x, x_, n, op_.value(kBiases + g).codes[n], held_[g]);
      const std::int32_t of_state = product(kRecurrentWeights + g, r_[g], h, h_, n, 0, held_[g]);
      const float argument = static_cast<float>(of_input + of_state - 2 * held_[g].zero) * held_[g].unit;
      result.push_back(
          numeric::chip_round(function.at(argument), g == kCellGate ? numeric::kLstmCellGateZero : 0, 255));
    }
    return result;
  }

  const ChipOp& op_;
  ChipQuantization x_, h_, c_;
  std::array<ChipQuantization, 4> w_, r_;
  std::array<numeric::ChipLstmArgument, 4> held_;
  numeric::ChipLstmStep step_;
};

Status require_known_form(const ChipOp& op) {
  for (std::size_t i = 0; i < op.inputs(); ++i) {
    const bool is_needed = i <= 8 || (i >= kBiases && i < kBiases + 4) || i == kHidden || i == kCell;
    if (op.has(i) == is_needed) continue;
    return unsupported("it is known only without peephole, projection and layer normalization (input {})", i);
  }
  REEF_REQUIRE(op.inputs() > kCell, "inputs are missing");
  const ir::Shape& shape = op.value(kInput).shape;
  REEF_ASSIGN_OR_RETURN(const ChipQuantization cell, op.quantization(op.input(kCell)));
  REEF_REQUIRE(cell.zero() == kCellZero, "the state's zero point is not 0");
  const int batch = op.attributes().get_bool("time_major") ? 1 : 0;
  if (shape.rank() == 3 && shape[batch] == 1 && op.attributes().get_enum("fused_activation_function") == "TANH") {
    return ok_status();
  }
  return unsupported("it is known only for a batch of one and tanh");
}

// Checks the sizes of weights, biases and states for a step's input of `width` numbers.
Status require_sizes(const ChipOp& op, std::size_t width) {
  const std::size_t cells = op.value(kHidden).codes.size();
  bool fits = op.value(kCell).codes.size() == cells;
  for (std::size_t g = 0; g < 4; ++g) {
    fits = fits && op.value(kInputWeights + g).codes.size() == cells * width &&
           op.value(kRecurrentWeights + g).codes.size() == cells * cells && op.value(kBiases + g).codes.size() == cells;
  }
  REEF_REQUIRE(fits, "operands of sizes that do not go together");
  return ok_status();
}

Status unidirectional_sequence_lstm(ChipOp& op) {
  REEF_RETURN_IF_ERROR(require_known_form(op));
  REEF_RETURN_IF_ERROR(require_sizes(op, static_cast<std::size_t>(op.value(kInput).shape[2])));
  REEF_ASSIGN_OR_RETURN(const Lstm lstm, Lstm::create(op));
  const ir::Shape& shape = op.value(kInput).shape;
  const auto steps = static_cast<std::size_t>(shape[op.attributes().get_bool("time_major") ? 0 : 1]);
  const auto width = static_cast<std::size_t>(shape[2]);
  std::vector<std::int32_t> h = op.value(kHidden).codes, c = op.value(kCell).codes, codes;
  for (std::size_t t = 0; t < steps; ++t) {
    lstm.step(std::span(op.value(kInput).codes).subspan(t * width, width), h, c);
    codes.insert(codes.end(), h.begin(), h.end());
  }
  op.set(0, std::move(codes));
  op.set_variable(kHidden, std::move(h));
  op.set_variable(kCell, std::move(c));
  return ok_status();
}

}  // namespace

std::vector<ChipOpEntry> chip_lstm_ops() { return {{Op::UNIDIRECTIONAL_SEQUENCE_LSTM, unidirectional_sequence_lstm}}; }

}  // namespace reef::reference
