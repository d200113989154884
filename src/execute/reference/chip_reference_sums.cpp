// SPDX-License-Identifier: Apache-2.0
// Convolutions, fully connected layers and averages: sums, brought to the output's scale once.
#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <span>

#include "execute/reference/chip_reference_op.h"

namespace reef::reference {
namespace {

using numeric::ChipClamp;

// One dimension of a window sliding over an input.
struct Window {
  std::int64_t input = 0, output = 0, taps = 0, stride = 1, dilation = 1, before = 0;

  // Position of a tap in the input; outside of it: padding.
  std::int64_t at(std::int64_t o, std::int64_t tap) const { return o * stride + tap * dilation - before; }
  bool holds(std::int64_t position) const { return position >= 0 && position < input; }
  // Whether some tap of some output lies in the padding.
  bool is_padded() const { return before > 0 || at(output - 1, taps - 1) >= input; }
};

Result<Window> window(const ChipOp& op, int dimension, std::int64_t taps, std::string_view suffix) {
  Window w;
  w.input = op.value(0).shape[dimension];
  w.output = op.output().shape[dimension];
  w.taps = taps;
  w.stride = op.attributes().get_int(fmt::format("stride_{}", suffix), 1);
  w.dilation = op.attributes().get_int(fmt::format("dilation_{}_factor", suffix), 1);
  REEF_REQUIRE(w.stride > 0 && w.dilation > 0 && w.taps > 0, "a window of {} taps, stride {}, dilation {}", w.taps,
               w.stride, w.dilation);
  const std::int64_t reach = (w.taps - 1) * w.dilation + 1;
  const bool same = op.attributes().get_enum("padding") == "SAME";
  const std::int64_t expected = same ? (w.input + w.stride - 1) / w.stride : (w.input - reach) / w.stride + 1;
  REEF_REQUIRE(w.output == expected, "dimension {} of the output is {}, not {}", dimension, w.output, expected);
  if (same) w.before = std::max<std::int64_t>((w.output - 1) * w.stride + reach - w.input, 0) / 2;
  return w;
}

// The result's side of a layer: bias, multipliers and clamp of every channel.
struct Layer {
  std::vector<std::int64_t> bias;
  std::vector<float> multiplier;
  ChipClamp clamp;
  std::int32_t zero = 0;

  std::int32_t code(std::int64_t sum, std::size_t channel) const {
    return requantized(sum + bias[channel], multiplier[channel], clamp, zero);
  }
};

Result<Layer> layer(const ChipOp& op, std::size_t channels) {
  REEF_ASSIGN_OR_RETURN(const ChipQuantization in, op.quantization(op.input(0)));
  REEF_ASSIGN_OR_RETURN(const ChipQuantization weights, op.quantization(op.input(1)));
  REEF_ASSIGN_OR_RETURN(const ChipQuantization out, op.quantization(op.output()));
  REEF_ASSIGN_OR_RETURN(const numeric::ChipActivation activation, op.fused_activation());
  REEF_REQUIRE(weights.scales.size() == 1 || weights.scales.size() == channels, "{} scales of weights for {} channels",
               weights.scales.size(), channels);
  REEF_REQUIRE(!op.has(2) || op.value(2).codes.size() == channels, "a bias that is not one number per channel");
  // Which operand is constant makes no difference to the numbers. Google's compilers load the constant one as weights
  // (decision forests, which multiply a constant matrix with computed "weights", show it), and where both are computed
  // the second (attention by FULLY_CONNECTED: docs/hardware/public_files.md#larger-files).
  Layer result;
  result.zero = out.zero();
  result.clamp = numeric::chip_clamp(out.scale(), out.zero(), activation);
  for (std::size_t c = 0; c < channels; ++c) {
    const float scale = weights.scales[weights.scales.size() == 1 ? 0 : c];
    result.multiplier.push_back(numeric::chip_layer_multiplier(in.scale(), scale, out.scale()));
    result.bias.push_back(op.has(2) ? op.value(2).codes[c] : 0);
  }
  return result;
}

// Differences of two codes fit 16 bits.
std::vector<std::int16_t> minus(const std::vector<std::int32_t>& codes, std::int32_t zero) {
  std::vector<std::int16_t> result;
  result.reserve(codes.size());
  for (const std::int32_t code : codes) result.push_back(static_cast<std::int16_t>(code - zero));
  return result;
}

// Weights minus their zero points as [tap][input channel][output channel], from [output channel][tap][input channel].
std::vector<std::int16_t> by_output_channel(const ChipValue& weights, const ChipQuantization& q, std::size_t outputs,
                                            std::size_t taps, std::size_t inputs) {
  std::vector<std::int16_t> result(weights.codes.size());
  for (std::size_t o = 0; o < outputs; ++o) {
    const std::int32_t zero = q.zeros[q.zeros.size() == 1 ? 0 : o];
    for (std::size_t i = 0; i < taps * inputs; ++i) {
      result[i * outputs + o] = static_cast<std::int16_t>(weights.codes[o * taps * inputs + i] - zero);
    }
  }
  return result;
}

// Sums of all output channels at once. 32-bit partial sums hold kMaxTerms products of differences of codes (at most
// 255 * 255 each); then they are moved to 64 bits.
class ChannelSums {
 public:
  explicit ChannelSums(std::size_t channels) : part_(channels), sums_(channels) {}

  void add(std::int16_t x, const std::int16_t* weights) {
    if (x == 0) return;
    for (std::size_t o = 0; o < part_.size(); ++o) part_[o] += std::int32_t{x} * weights[o];
    if (++terms_ == kMaxTerms) carry();
  }
  const std::vector<std::int64_t>& finish() {
    carry();
    return sums_;
  }
  void restart() { std::fill(sums_.begin(), sums_.end(), 0); }

 private:
  static constexpr int kMaxTerms = 32768;
  void carry() {
    for (std::size_t o = 0; o < part_.size(); ++o) sums_[o] += part_[o];
    std::fill(part_.begin(), part_.end(), 0);
    terms_ = 0;
  }
  std::vector<std::int32_t> part_;
  std::vector<std::int64_t> sums_;
  int terms_ = 0;
};

// Every input pixel times every weight, added where it falls (TFLite's definition). Each output is rounded once: the
// chip makes it by ordinary convolutions of the weights that reach it.
Status transpose_conv(ChipOp& op) {
  const ir::Shape &shape = op.value(1).shape, &in_shape = op.value(2).shape, &out_shape = op.output().shape;
  REEF_REQUIRE(in_shape.rank() == 4 && shape.rank() == 4 && in_shape[3] == shape[3] && shape[0] == out_shape[3],
               "weights that do not fit");
  const std::int64_t strides[] = {op.attributes().get_int("stride_h"), op.attributes().get_int("stride_w")};
  REEF_REQUIRE(in_shape[0] == 1 && strides[0] > 0 && strides[1] > 0, "a batch of {} and strides of {} and {}",
               in_shape[0], strides[0], strides[1]);
  const bool same = op.attributes().get_enum("padding") == "SAME";
  std::int64_t before[2];
  for (int d = 0; d < 2; ++d) {
    const std::int64_t out = out_shape[d + 1], kernel = shape[d + 1];
    const std::int64_t forward = same ? (out + strides[d] - 1) / strides[d] : (out + strides[d] - kernel) / strides[d];
    before[d] = std::max<std::int64_t>((forward - 1) * strides[d] + kernel - out, 0) / 2;
  }
  REEF_ASSIGN_OR_RETURN(const ChipQuantization in, op.quantization(op.input(2)));
  REEF_ASSIGN_OR_RETURN(const ChipQuantization weights, op.quantization(op.input(1)));
  REEF_ASSIGN_OR_RETURN(const ChipQuantization out, op.quantization(op.output()));
  REEF_ASSIGN_OR_RETURN(const numeric::ChipActivation activation, op.fused_activation());
  const ChipClamp clamp = numeric::chip_clamp(out.scale(), out.zero(), activation);
  const auto outputs = static_cast<std::size_t>(shape[0]), inputs = static_cast<std::size_t>(shape[3]);
  std::vector<std::int64_t> sums(static_cast<std::size_t>(out_shape.elements()));
  REEF_REQUIRE(weights.scales.size() == 1 || weights.scales.size() == outputs, "{} scales of weights for {} channels",
               weights.scales.size(), outputs);
  REEF_REQUIRE(!op.has(3) || op.value(3).codes.size() == outputs, "a bias that is not one number per channel");
  for (std::int64_t i = 0; i < std::int64_t{in_shape[1]} * in_shape[2]; ++i) {
    REEF_RETURN_IF_ERROR(op.check_budget());
    for (std::int64_t k = 0; k < std::int64_t{shape[1]} * shape[2]; ++k) {
      const std::int64_t y = i / in_shape[2] * strides[0] + k / shape[2] - before[0];
      const std::int64_t x = i % in_shape[2] * strides[1] + k % shape[2] - before[1];
      if (y < 0 || y >= out_shape[1] || x < 0 || x >= out_shape[2]) continue;
      for (std::size_t o = 0; o < outputs; ++o) {
        const std::int32_t zero = weights.zeros[weights.zeros.size() == 1 ? 0 : o];
        std::int64_t sum = 0;
        for (std::size_t c = 0; c < inputs; ++c) {
          const auto tap = (o * static_cast<std::size_t>(shape[1] * shape[2]) + static_cast<std::size_t>(k)) * inputs;
          sum += std::int64_t{op.value(2).codes[static_cast<std::size_t>(i) * inputs + c] - in.zero()} *
                 (op.value(1).codes[tap + c] - zero);
        }
        sums[static_cast<std::size_t>(y * out_shape[2] + x) * outputs + o] += sum;
      }
    }
  }
  std::vector<std::int32_t> codes;
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const std::size_t o = i % outputs;
    const float scale = weights.scales[weights.scales.size() == 1 ? 0 : o];
    const std::int64_t bias = op.has(3) ? op.value(3).codes[o] : 0;
    codes.push_back(
        requantized(sums[i] + bias, numeric::chip_layer_multiplier(in.scale(), scale, out.scale()), clamp, out.zero()));
  }
  return op.give(std::move(codes));
}

Status conv_2d(ChipOp& op) {
  const ir::Shape& shape = op.value(1).shape;  // [output channels, height, width, input channels]
  REEF_REQUIRE(op.value(0).shape.rank() == 4 && shape.rank() == 4 && op.value(0).shape[3] == shape[3],
               "grouped convolutions are not known");
  REEF_ASSIGN_OR_RETURN(const Window y, window(op, 1, shape[1], "h"));
  REEF_ASSIGN_OR_RETURN(const Window x, window(op, 2, shape[2], "w"));
  REEF_ASSIGN_OR_RETURN(const ChipQuantization in, op.quantization(op.input(0)));
  REEF_ASSIGN_OR_RETURN(const ChipQuantization weight_quantization, op.quantization(op.input(1)));
  const auto outputs = static_cast<std::size_t>(shape[0]), inputs = static_cast<std::size_t>(shape[3]);
  REEF_ASSIGN_OR_RETURN(const Layer result, layer(op, outputs));
  const auto weights =
      by_output_channel(op.value(1), weight_quantization, outputs, static_cast<std::size_t>(y.taps * x.taps), inputs);
  const auto data = minus(op.value(0).codes, in.zero());
  std::vector<std::int32_t> codes;
  codes.reserve(static_cast<std::size_t>(op.output().shape.elements()));
  ChannelSums sums(outputs);
  for (std::int64_t row = 0; row < op.output().shape[0] * y.output; ++row) {
    REEF_RETURN_IF_ERROR(op.check_budget());
    const std::int64_t batch = row / y.output, oy = row % y.output;
    for (std::int64_t ox = 0; ox < x.output; ++ox) {
      sums.restart();
      for (std::int64_t tap = 0; tap < y.taps * x.taps; ++tap) {
        const std::int64_t iy = y.at(oy, tap / x.taps), ix = x.at(ox, tap % x.taps);
        if (!y.holds(iy) || !x.holds(ix)) continue;
        const auto pixel = static_cast<std::size_t>((batch * y.input + iy) * x.input + ix) * inputs;
        const std::int16_t* of_tap = weights.data() + static_cast<std::size_t>(tap) * inputs * outputs;
        for (std::size_t c = 0; c < inputs; ++c) sums.add(data[pixel + c], of_tap + c * outputs);
      }
      const std::vector<std::int64_t>& whole = sums.finish();
      for (std::size_t o = 0; o < outputs; ++o) codes.push_back(result.code(whole[o], o));
    }
  }
  return op.give(std::move(codes));
}

Status depthwise_conv_2d(ChipOp& op) {
  const ir::Shape& shape = op.value(1).shape;  // [1, height, width, output channels]
  REEF_REQUIRE(op.value(0).shape.rank() == 4 && shape.rank() == 4, "tensors of four dimensions are needed");
  REEF_ASSIGN_OR_RETURN(const Window y, window(op, 1, shape[1], "h"));
  REEF_ASSIGN_OR_RETURN(const Window x, window(op, 2, shape[2], "w"));
  REEF_ASSIGN_OR_RETURN(const ChipQuantization in, op.quantization(op.input(0)));
  REEF_ASSIGN_OR_RETURN(const ChipQuantization q, op.quantization(op.input(1)));
  const auto outputs = static_cast<std::size_t>(shape[3]), inputs = static_cast<std::size_t>(op.value(0).shape[3]);
  REEF_REQUIRE(inputs > 0 && outputs % inputs == 0, "{} output channels for {} input channels", outputs, inputs);
  const std::size_t multiplier = outputs / inputs;
  REEF_ASSIGN_OR_RETURN(const Layer result, layer(op, outputs));
  const auto data = minus(op.value(0).codes, in.zero());
  std::vector<std::int32_t> weights = op.value(1).codes;
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] -= q.zeros[q.zeros.size() == 1 ? 0 : i % outputs];
  std::vector<std::int32_t> codes;
  codes.reserve(static_cast<std::size_t>(op.output().shape.elements()));
  std::vector<std::int64_t> sums(outputs);
  for (std::int64_t row = 0; row < op.output().shape[0] * y.output; ++row) {
    REEF_RETURN_IF_ERROR(op.check_budget());
    const std::int64_t batch = row / y.output, oy = row % y.output;
    for (std::int64_t ox = 0; ox < x.output; ++ox) {
      std::fill(sums.begin(), sums.end(), 0);
      for (std::int64_t tap = 0; tap < y.taps * x.taps; ++tap) {
        const std::int64_t iy = y.at(oy, tap / x.taps), ix = x.at(ox, tap % x.taps);
        if (!y.holds(iy) || !x.holds(ix)) continue;
        const std::int16_t* pixel =
            data.data() + static_cast<std::size_t>((batch * y.input + iy) * x.input + ix) * inputs;
        const std::int32_t* of_tap = weights.data() + static_cast<std::size_t>(tap) * outputs;
        if (multiplier == 1) {
          for (std::size_t o = 0; o < outputs; ++o) sums[o] += pixel[o] * of_tap[o];
        } else {
          for (std::size_t o = 0; o < outputs; ++o) sums[o] += pixel[o / multiplier] * of_tap[o];
        }
      }
      for (std::size_t o = 0; o < outputs; ++o) codes.push_back(result.code(sums[o], o));
    }
  }
  return op.give(std::move(codes));
}

Status fully_connected(ChipOp& op) {
  const ir::Shape& shape = op.value(1).shape;  // [outputs, inputs]
  REEF_REQUIRE(shape.rank() == 2 && op.value(0).shape.elements() % shape[1] == 0, "weights of a shape {}",
               shape.to_string());
  REEF_ASSIGN_OR_RETURN(const ChipQuantization in, op.quantization(op.input(0)));
  REEF_ASSIGN_OR_RETURN(const ChipQuantization q, op.quantization(op.input(1)));
  const auto outputs = static_cast<std::size_t>(shape[0]), inputs = static_cast<std::size_t>(shape[1]);
  REEF_ASSIGN_OR_RETURN(const Layer result, layer(op, outputs));
  const auto weights = by_output_channel(op.value(1), q, outputs, 1, inputs);
  const auto data = minus(op.value(0).codes, in.zero());
  std::vector<std::int32_t> codes;
  ChannelSums sums(outputs);
  for (std::size_t row = 0; row < data.size() / inputs; ++row) {
    REEF_RETURN_IF_ERROR(op.check_budget());
    sums.restart();
    for (std::size_t c = 0; c < inputs; ++c) sums.add(data[row * inputs + c], weights.data() + c * outputs);
    const std::vector<std::int64_t>& whole = sums.finish();
    for (std::size_t o = 0; o < outputs; ++o) codes.push_back(result.code(whole[o], o));
  }
  return op.give(std::move(codes));
}

numeric::ChipPoolOrder pool_order(const ChipOp& op, bool whole_map) {
  const bool output_last = whole_map && op.options().compiler_generation >= 15;
  return output_last ? numeric::ChipPoolOrder::kOutputLast : numeric::ChipPoolOrder::kCountLast;
}

// Reduces the values under one window of a pool to one value.
using Reduction = std::function<std::int32_t(std::span<const std::int32_t> codes)>;

Status pool(ChipOp& op, const Window& y, const Window& x, const Reduction& reduction) {
  const ChipValue& in = op.value(0);
  const std::int64_t channels = in.shape[3];
  std::vector<std::int32_t> codes, under;
  for (std::int64_t i = 0; i < op.output().shape.elements(); ++i) {
    const std::int64_t c = i % channels, ox = i / channels % x.output, oy = i / channels / x.output % y.output;
    const std::int64_t batch = i / channels / x.output / y.output;
    if (c == 0) REEF_RETURN_IF_ERROR(op.check_budget());
    under.clear();
    for (std::int64_t tap = 0; tap < y.taps * x.taps; ++tap) {
      const std::int64_t iy = y.at(oy, tap / x.taps), ix = x.at(ox, tap % x.taps);
      if (!y.holds(iy) || !x.holds(ix)) continue;
      under.push_back(in.codes[reef::at(((batch * y.input + iy) * x.input + ix) * channels + c)]);
    }
    codes.push_back(reduction(under));
  }
  return op.give(std::move(codes));
}

struct PoolWindow {
  Window y, x;
};
Result<PoolWindow> pool_window(const ChipOp& op) {
  REEF_REQUIRE(op.value(0).shape.rank() == 4, "a tensor of four dimensions is needed");
  REEF_ASSIGN_OR_RETURN(const Window y, window(op, 1, op.attributes().get_int("filter_height"), "h"));
  REEF_ASSIGN_OR_RETURN(const Window x, window(op, 2, op.attributes().get_int("filter_width"), "w"));
  return PoolWindow{y, x};
}

// Values under each window along an axis.
std::vector<std::int64_t> values_inside(const Window& w) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(w.output));
  for (std::int64_t o = 0; o < w.output; ++o) {
    for (std::int64_t tap = 0; tap < w.taps; ++tap) counts[reef::at(o)] += w.holds(w.at(o, tap)) ? 1 : 0;
  }
  return counts;
}

// The smallest number that the number of values under every window divides.
std::int64_t common_count(const PoolWindow& w) {
  constexpr std::int64_t kMost = std::int64_t{1} << 31;
  std::int64_t common = 1;
  for (const std::int64_t rows : values_inside(w.y)) {
    for (const std::int64_t columns : values_inside(w.x)) {
      if (rows * columns > 0 && common < kMost) common = std::lcm(common, rows * columns);
    }
  }
  return common;
}

// Windows that reach over the border: the average of what lies inside. Google's compilers weight the values of a window
// of n with common / n and divide by the common multiple (seen in one program: 4, 6 and 9 for a window of 3 x 3, and
// 1/36). Reef's own programs have one multiplier for each number of values.
Status average_pool_2d(ChipOp& op) {
  REEF_ASSIGN_OR_RETURN(const PoolWindow w, pool_window(op));
  REEF_ASSIGN_OR_RETURN(const ChipQuantization in, op.quantization(op.input(0)));
  REEF_ASSIGN_OR_RETURN(const ChipQuantization out, op.quantization(op.output()));
  REEF_ASSIGN_OR_RETURN(const numeric::ChipActivation activation, op.fused_activation());
  const bool whole_map = w.y.output == 1 && w.x.output == 1 && w.y.taps == w.y.input && w.x.taps == w.x.input;
  const ChipClamp clamp = numeric::chip_clamp(out.scale(), out.zero(), activation);
  const bool is_googles = op.options().compiler_generation < kReefGeneration;
  const std::int64_t common = is_googles ? common_count(w) : 0;
  if (common > std::numeric_limits<std::int32_t>::max()) return unsupported("windows of too many sizes");
  return pool(op, w.y, w.x, [&](std::span<const std::int32_t> codes) {
    std::int64_t sum = 0;
    for (const std::int32_t code : codes) sum += code - in.zero();
    const auto count = std::max<std::int64_t>(static_cast<std::int64_t>(codes.size()), 1),
               divisor = is_googles ? common : count;
    const float multiplier = numeric::chip_pool_multiplier(in.scale(), out.scale(), static_cast<std::int32_t>(divisor),
                                                           pool_order(op, whole_map));
    return requantized(sum * (divisor / count), multiplier, clamp, out.zero());
  });
}

Status max_pool_2d(ChipOp& op) {
  REEF_ASSIGN_OR_RETURN(const PoolWindow w, pool_window(op));
  REEF_ASSIGN_OR_RETURN(const ChipQuantization in, op.quantization(op.input(0)));
  REEF_ASSIGN_OR_RETURN(const ChipQuantization out, op.quantization(op.output()));
  REEF_ASSIGN_OR_RETURN(const numeric::ChipActivation activation, op.fused_activation());
  if (!(in == out)) return unsupported("it is not known how the chip takes a maximum and changes the scale");
  const ChipClamp clamp = numeric::chip_clamp(out.scale(), out.zero(), activation);
  return pool(op, w.y, w.x, [&](std::span<const std::int32_t> codes) {
    return requantized(*std::max_element(codes.begin(), codes.end()) - in.zero(), 1.0f, clamp, out.zero());
  });
}

}  // namespace

std::vector<ChipOpEntry> chip_sum_ops() {
  return {{Op::TRANSPOSE_CONV, transpose_conv, 3},       {Op::CONV_2D, conv_2d, 2},
          {Op::DEPTHWISE_CONV_2D, depthwise_conv_2d, 2}, {Op::FULLY_CONNECTED, fully_connected, 2},
          {Op::AVERAGE_POOL_2D, average_pool_2d},        {Op::MAX_POOL_2D, max_pool_2d}};
}

}  // namespace reef::reference
