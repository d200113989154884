// SPDX-License-Identifier: Apache-2.0
// One 8-bit layer, run as many times as asked for on the target that REEF_SIMD names: something to count the
// instructions of (tools/count_arm64.sh). Usage: layers LAYER TIMES. Layers are of the sizes that MobileNets have.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "kernels/conv/conv_int.h"
#include "kernels/conv/depthwise.h"
#include "kernels/conv/depthwise_bytes.h"
#include "kernels/elementwise/byte_pairs.h"
#include "kernels/elementwise/byte_table.h"
#include "kernels/matmul/byte_panels.h"

namespace reef::kernels {
namespace {

using Bytes = std::vector<std::int8_t>;

Bytes random_bytes(std::int64_t count) {
  static std::mt19937 random(1);
  Bytes bytes(static_cast<std::size_t>(count));
  for (std::int8_t& b : bytes) b = static_cast<std::int8_t>(static_cast<int>(random() % 255) - 127);
  return bytes;
}

ConvShape square(std::int64_t size, std::int64_t inputs, std::int64_t outputs, std::int64_t window) {
  ConvAxis axis;
  axis.input = axis.output = size;
  axis.window = window;
  axis.pad_before = window / 2;
  return {1, inputs, outputs, 1, axis, axis};
}

Requantizer requantizer(std::int64_t channels) {
  Requantizer q;
  q.set_factors(Rounding::kFixedPoint32, std::vector<double>(static_cast<std::size_t>(channels), 0.0007));
  q.zero_point = q.lowest = -128;
  q.highest = 127;
  return q;
}

void convolve_layer(const ConvShape& s, int times) {
  const Bytes input = random_bytes(s.input_batch_size()), weights = random_bytes(s.output_channels * s.depth());
  Bytes output(static_cast<std::size_t>(s.output_pixels() * s.output_channels));
  const Requantizer q = requantizer(s.output_channels);
  const std::int32_t zero = -5;
  PackedRows rows(s.output_channels, s.depth());
  for (std::int64_t o = 0; o < s.output_channels; ++o) {
    widen(weights.data() + o * s.depth(), s.depth(), 0, rows.row(o));
  }
  BytePanels panels(s);
  panels.pack([&](std::int64_t channel, std::int16_t* to) { std::copy_n(rows.row(channel), s.depth(), to); });
  const ByteScaling scaling = byte_scaling<std::int8_t>(panels, std::make_shared<const Requantizer>(q), nullptr, zero);
  for (int i = 0; i < times; ++i) {
    if (has_byte_panels()) {
      convolve_bytes<std::int8_t>(s, input.data(), zero, panels, 0, scaling, 0, s.output_pixels(), 0, panels.panels(),
                                  output.data());
      continue;
    }
    convolve(s, input.data(), {&zero, 1}, rows, kRunOf8BitProducts, 0, s.output_pixels(), 0, s.output_channels,
             [&](std::int64_t pixel, std::int64_t channel, const std::int64_t* sums, std::int64_t count) {
               requantize(q, sums, nullptr, channel, count, output.data() + pixel * s.output_channels + channel);
             });
  }
}

void depthwise_layer(const ConvShape& s, int times) {
  const Bytes input = random_bytes(s.input_batch_size()), weights = random_bytes(s.taps() * s.output_channels);
  Bytes output(static_cast<std::size_t>(s.output_pixels() * s.output_channels));
  const Requantizer q = requantizer(s.output_channels);
  const std::int32_t zero = -5;
  std::vector<std::int16_t> wide(weights.size());
  widen(weights.data(), static_cast<std::int64_t>(weights.size()), 0, wide.data());
  const DepthwiseWeights packed = pack_depthwise(s, wide.data());
  const ByteScaling scaling =
      depthwise_scaling<std::int8_t>(s, packed, std::make_shared<const Requantizer>(q), nullptr, zero);
  const std::int64_t blocks = (s.output_channels + kDepthwiseBlock - 1) / kDepthwiseBlock;
  for (int i = 0; i < times; ++i) {
    if (has_depthwise_bytes(s)) {
      depthwise_bytes<std::int8_t>(s, input.data(), zero, packed, scaling, 0, s.output_rows(), 0, blocks,
                                   output.data());
      continue;
    }
    for (std::int64_t row = 0; row < s.output_rows(); ++row) {
      depthwise_convolve(
          s, input.data(), {&zero, 1}, wide.data(), kRunOf8BitProducts, {row, 0, s.x.output, 0, s.output_channels},
          [&](std::int64_t pixel, std::int64_t channel, const std::int64_t* sums, std::int64_t count) {
            requantize(q, sums, nullptr, channel, count, output.data() + pixel * s.output_channels + channel);
          });
    }
  }
}

void add_layer(std::int64_t count, int times) {
  const Bytes a = random_bytes(count), b = random_bytes(count);
  Bytes output(a.size());
  const Requantize result{numeric::make_multiplier(2.0 / (1 << 20)), 3, -128, 127};
  const BytePairs pairs = BytePairs::sum<std::int8_t>({-4, 20, numeric::make_multiplier(0.4)},
                                                      {9, 20, numeric::make_multiplier(0.3)}, false, result);
  const auto* first = reinterpret_cast<const std::uint8_t*>(a.data());
  const auto* second = reinterpret_cast<const std::uint8_t*>(b.data());
  for (int i = 0; i < times; ++i) {
    pairs.row(first, 1, second, 1, reinterpret_cast<std::uint8_t*>(output.data()), count);
  }
}

void table_layer(std::int64_t count, int times) {
  const Bytes a = random_bytes(count);
  Bytes output(a.size());
  ByteTable table{};
  for (int i = 0; i < times; ++i) {
    look_up_bytes(reinterpret_cast<const std::uint8_t*>(a.data()), count, table,
                  reinterpret_cast<std::uint8_t*>(output.data()));
  }
}

int run(const std::string& layer, int times) {
  if (layer == "conv1x1") {
    convolve_layer(square(14, 96, 96, 1), times);
  } else if (layer == "conv3x3") {
    convolve_layer(square(14, 32, 48, 3), times);
  } else if (layer == "dense") {
    convolve_layer(square(1, 1024, 1000, 1), times);
  } else if (layer == "depthwise3x3") {
    depthwise_layer(square(28, 96, 96, 3), times);
  } else if (layer == "depthwise5x5") {
    depthwise_layer(square(14, 96, 96, 5), times);
  } else if (layer == "add") {
    add_layer(100000, times);
  } else if (layer == "table") {
    table_layer(100000, times);
  } else {
    std::fprintf(stderr, "no layer named %s\n", layer.c_str());
    return 2;
  }
  return 0;
}

}  // namespace
}  // namespace reef::kernels

int main(int count, char** arguments) {
  if (count != 3) return 2;
  return reef::kernels::run(arguments[1], std::atoi(arguments[2]));
}
