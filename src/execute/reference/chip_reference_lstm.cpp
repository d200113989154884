// SPDX-License-Identifier: Apache-2.0
// UNIDIRECTIONAL_SEQUENCE_LSTM, as the one program known does it (docs/hardware, keras_lstm_mnist_ptq): a step rounds
// far more often than TFLite's.
//
//   gate     W x + b and R h, each rounded to 8 bits in units of h; their sum through a table
//            (input, forget, output: logistic in 1/255; cell: tanh in 1/127.5)
//   i g      16 bits in units of 1/16383.5
//   f c      16 bits in units of c
//   c'       p (f c) + q (i g), p : q the closest fraction as in ADD; rounded to 16 bits for the next step
//   h'       o tanh(c'), where tanh takes the unrounded sum and gives 16 bits in units of 1/16383.5
#include <array>
#include <span>

#include "execute/reference/chip_reference_op.h"
#include "numeric/chip_tables.h"

namespace reef::reference {
namespace {

using numeric::ChipClamp;

constexpr float kLogisticScale = 1.0f / 255, kTanhScale = 1.0f / 127.5f, kFineScale = 1.0f / 16383.5f;
constexpr std::int32_t kTanhZero = 128, kFineZero = 16384, kCellZero = 32768, kMax16 = 65535;
constexpr std::int64_t kMaxWeight = 32767;

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
    lstm.clamp_ = numeric::chip_clamp(lstm.h_.scale(), lstm.h_.zero(), numeric::ChipActivation::kNone);
    return lstm;
  }

  void step(std::span<const std::int32_t> x, std::vector<std::int32_t>& h, std::vector<std::int32_t>& c) const {
    const std::vector<std::int32_t> i = gate(kInputGate, x, h), f = gate(kForgetGate, x, h), g = gate(kCellGate, x, h),
                                    o = gate(kOutputGate, x, h);
    const float ig_multiplier = numeric::chip_product_multiplier(kLogisticScale, kTanhScale, kFineScale);
    const float fc_multiplier = numeric::chip_product_multiplier(kLogisticScale, c_.scale(), c_.scale());
    const float h_multiplier = numeric::chip_product_multiplier(kLogisticScale, kFineScale, h_.scale());
    const numeric::Fraction ratio = numeric::closest_fraction(double{kFineScale} / double{c_.scale()}, kMaxWeight);
    const float unit = c_.scale() / static_cast<float>(ratio.denominator);
    const numeric::ChipFunction tanh = numeric::chip_tanh(kFineScale);
    for (std::size_t n = 0; n < h.size(); ++n) {
      const std::int32_t ig =
          requantized(std::int64_t{i[n]} * (g[n] - kTanhZero), ig_multiplier, limits(kFineZero), kFineZero, kMax16);
      const std::int32_t fc =
          requantized(std::int64_t{f[n]} * (c[n] - kCellZero), fc_multiplier, limits(kCellZero), kCellZero, kMax16);
      const std::int64_t sum = ratio.denominator * (fc - kCellZero) + ratio.numerator * (ig - kFineZero);
      c[n] = requantized(sum, (1.0f / c_.scale()) * unit, limits(kCellZero), kCellZero, kMax16);
      const std::int32_t t = numeric::chip_round(tanh.at(static_cast<float>(sum) * unit), kFineZero, kMax16);
      h[n] = requantized(std::int64_t{o[n]} * (t - kFineZero), h_multiplier, clamp_, h_.zero());
    }
  }

 private:
  explicit Lstm(const ChipOp& op) : op_(op) {}

  static ChipClamp limits(std::int32_t zero) {
    return {.max = static_cast<float>(kMax16 - zero), .min = static_cast<float>(-zero)};
  }

  // One row of weights times a vector, in units of h.
  std::int32_t product(std::size_t weights, const ChipQuantization& w, std::span<const std::int32_t> vector,
                       const ChipQuantization& v, std::size_t row, std::int64_t bias) const {
    std::int64_t sum = bias;
    const std::vector<std::int32_t>& codes = op_.value(weights).codes;
    for (std::size_t k = 0; k < vector.size(); ++k) {
      sum += std::int64_t{codes[row * vector.size() + k] - w.zero()} * (vector[k] - v.zero());
    }
    return requantized(sum, numeric::chip_layer_multiplier(v.scale(), w.scale(), h_.scale()), clamp_, h_.zero());
  }

  std::vector<std::int32_t> gate(Gate g, std::span<const std::int32_t> x, const std::vector<std::int32_t>& h) const {
    const numeric::ChipFunction function =
        g == kCellGate ? numeric::chip_tanh(kTanhScale) : numeric::chip_logistic(kLogisticScale);
    std::vector<std::int32_t> result;
    for (std::size_t n = 0; n < h.size(); ++n) {
      const std::int32_t of_input = product(kInputWeights + g, w_[g], x, x_, n, op_.value(kBiases + g).codes[n]);
      const std::int32_t of_state = product(kRecurrentWeights + g, r_[g], h, h_, n, 0);
      const float argument = static_cast<float>(of_input + of_state - 2 * h_.zero()) * h_.scale();
      result.push_back(numeric::chip_round(function.at(argument), g == kCellGate ? kTanhZero : 0, 255));
    }
    return result;
  }

  const ChipOp& op_;
  ChipQuantization x_, h_, c_;
  std::array<ChipQuantization, 4> w_, r_;
  ChipClamp clamp_;
};

Status require_known_form(const ChipOp& op) {
  for (std::size_t i = 0; i < op.inputs(); ++i) {
    const bool is_needed = i <= 8 || (i >= kBiases && i < kBiases + 4) || i == kHidden || i == kCell;
    if (op.has(i) == is_needed) continue;
    return unsupported("it is known only without peephole, projection and layer normalization (input {})", i);
  }
  REEF_REQUIRE(op.inputs() > kCell, "inputs are missing");
  const ir::Shape& shape = op.value(kInput).shape;
  const double clip = op.attributes().get_float("cell_clip");
  REEF_ASSIGN_OR_RETURN(const ChipQuantization cell, op.quantization(op.input(kCell)));
  REEF_REQUIRE(cell.zero() == kCellZero, "the state's zero point is not 0");
  const bool clips = clip > 0 && clip < kCellZero * double{cell.scale()};
  if (shape.rank() == 3 && shape[0] == 1 && !op.attributes().get_bool("time_major") && !clips &&
      op.attributes().get_enum("fused_activation_function") == "TANH") {
    return ok_status();
  }
  return unsupported("it is known only for a batch of one, tanh, and without clipping of the state");
}

// Of weights, biases and states, for a step's input of `width` numbers.
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
  const auto steps = static_cast<std::size_t>(shape[1]), width = static_cast<std::size_t>(shape[2]);
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

std::vector<ChipOpEntry> chip_lstm_ops() { return {{"UNIDIRECTIONAL_SEQUENCE_LSTM", unidirectional_sequence_lstm}}; }

}  // namespace reef::reference
