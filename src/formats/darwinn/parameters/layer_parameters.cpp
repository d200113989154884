// SPDX-License-Identifier: Apache-2.0
#include "formats/darwinn/parameters/layer_parameters.h"

#include <bit>
#include <cstring>
#include <limits>

#include "formats/darwinn/parameters/layer_geometry.h"
#include "formats/darwinn/parameters/little_endian.h"

namespace reef::darwinn {
namespace {

constexpr std::int64_t kMaxChunkBytes = std::numeric_limits<std::int32_t>::max();
constexpr std::int32_t kMaxKernel = 1 << 15;  // chosen so that no product of sizes overflows 64 bits
constexpr std::int32_t kMaxChannels = 1 << 24;

std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

std::size_t weight_count(const LayerShape& shape) {
  const std::size_t inputs = shape.kind == LayerKind::kDepthwise ? 1 : static_cast<std::size_t>(shape.input_channels);
  return static_cast<std::size_t>(shape.kernel_height) * static_cast<std::size_t>(shape.kernel_width) *
         static_cast<std::size_t>(shape.output_channels) * inputs;
}

// visit(index into LayerParameters::weights, offset in the chunk, count) for every run of weights that are neighbours
// in both: the input channels of one word.
template <typename Visit>
void for_each_weight_run(const LayerShape& shape, const LayerGeometry& geometry, Visit visit) {
  std::size_t index = 0;
  const auto run = [&](std::int32_t output, std::int32_t ky, std::int32_t kx, std::int32_t input, std::int32_t count) {
    const auto length = static_cast<std::size_t>(count);
    visit(index, static_cast<std::size_t>(geometry.weight_offset(output, ky, kx, input)), length);
    index += length;
  };
  const bool depthwise = shape.kind == LayerKind::kDepthwise;
  // Depthwise tensors have their channels innermost, the others their output channels outermost.
  for (std::int32_t output = 0; output < (depthwise ? 1 : shape.output_channels); ++output) {
    for (std::int32_t ky = 0; ky < shape.kernel_height; ++ky) {
      for (std::int32_t kx = 0; kx < shape.kernel_width; ++kx) {
        const std::int32_t step = depthwise ? 1 : kInputChannelsPerWord;
        for (std::int32_t i = 0; i < shape.input_channels; i += step) {
          run(depthwise ? i : output, ky, kx, i, std::min(step, shape.input_channels - i));
        }
      }
    }
  }
}

// Is there a byte in the chunk that repeats the weight zero point?
bool zero_point_shows(const LayerShape& shape, Presence presence) {
  return presence.zero_points || shape.kind == LayerKind::kDepthwise ||
         shape.input_channels % kInputChannelsPerWord != 0 || shape.output_channels % 4 != 0;
}

Status check_order(const LayerShape& shape, LoopOrder order) {
  REEF_REQUIRE(order.block_words >= 0, "a block of {} words of input channels is not possible", order.block_words);
  REEF_REQUIRE(shape.kind == LayerKind::kConvolution || order.block_words == 0,
               "only convolutions have their input channels in blocks, this is a {} layer",
               layer_kind_name(shape.kind));
  return ok_status();
}

Status check_contents(const LayerParameters& layer) {
  REEF_RETURN_IF_ERROR(validate(layer.shape));
  REEF_RETURN_IF_ERROR(check_order(layer.shape, layer.order));
  const auto outputs = static_cast<std::size_t>(layer.shape.output_channels);
  REEF_REQUIRE(layer.weights.size() == weight_count(layer.shape), "{} weights are given for a layer that has {}",
               layer.weights.size(), weight_count(layer.shape));
  REEF_REQUIRE(layer.multipliers.empty() || layer.multipliers.size() == outputs,
               "{} multipliers are given for {} output channels", layer.multipliers.size(), outputs);
  REEF_REQUIRE(layer.biases.empty() || layer.biases.size() == outputs, "{} biases are given for {} output channels",
               layer.biases.size(), outputs);
  REEF_REQUIRE(layer.weight_zero_point.has_value() || !zero_point_shows(layer.shape, layer.presence()),
               "the weight zero point is not known, but this layer's padding needs it");
  return ok_status();
}

// The value of a multiplier beyond the output channels. Up to the next 4 cells the first channel's; further cells of
// the last of several groups 1, of a single group 0 (as found in packages).
float padding_multiplier(const LayerParameters& layer, const LayerGeometry& geometry, std::int32_t cell,
                         std::int32_t channels) {
  if (cell < round_up(channels, 4)) return layer.multipliers[0];
  return geometry.groups() > 1 && layer.shape.kind != LayerKind::kDepthwise ? 1.0f : 0.0f;
}

void write_headers(const LayerParameters& layer, const LayerGeometry& geometry, std::span<std::uint8_t> chunk) {
  const Presence presence = layer.presence();
  for (std::int32_t group = 0; group < geometry.groups(); ++group) {
    const std::int32_t channels = geometry.channels_in(group);
    const std::int32_t first = group * geometry.group_channels();
    for (std::int32_t cell = 0; cell < geometry.cells(); ++cell) {
      const bool exists = cell < channels;
      const auto output = static_cast<std::size_t>(first + cell);
      const std::int64_t within = std::int64_t{4} * cell;
      if (presence.multipliers) {
        const float value = exists ? layer.multipliers[output] : padding_multiplier(layer, geometry, cell, channels);
        store_u32(chunk, geometry.multiplier_offset(first) + within, std::bit_cast<std::uint32_t>(value));
      }
      if (presence.biases && exists) {
        store_u32(chunk, geometry.bias_offset(first) + within, static_cast<std::uint32_t>(layer.biases[output]));
      }
      if (presence.zero_points && cell < round_up(channels, 4)) {
        store_u32(chunk, geometry.zero_point_offset(first) + within, *layer.weight_zero_point);
      }
    }
  }
}

// Every weight byte that pads: cells up to the next 4 hold the zero point, the rest stay 0.
void fill_padding(const LayerGeometry& geometry, std::uint8_t zero_point, std::span<std::uint8_t> chunk) {
  if (zero_point == 0) return;
  for (std::int32_t group = 0; group < geometry.groups(); ++group) {
    const auto used = static_cast<std::ptrdiff_t>(round_up(geometry.channels_in(group), 4) * 4);
    auto line = chunk.begin() + static_cast<std::ptrdiff_t>(geometry.weights_offset(group));
    for (std::int64_t i = 0; i < geometry.lines(); ++i, line += static_cast<std::ptrdiff_t>(geometry.line_bytes())) {
      std::fill(line, line + used, zero_point);
    }
  }
}

// A byte that holds the weight zero point if the chunk is well formed; the final comparison says whether it is.
std::uint8_t zero_point_in(std::span<const std::uint8_t> chunk, const LayerShape& shape, Presence presence,
                           const LayerGeometry& geometry) {
  const auto at = [&](std::int64_t offset) { return chunk[reef::at(offset)]; };
  if (presence.zero_points) return at(geometry.zero_point_offset(0));
  if (shape.kind == LayerKind::kDepthwise) return at(geometry.weights_offset(0) + 1);  // in 1 of out 0
  if (shape.input_channels % kInputChannelsPerWord != 0) {
    return at(geometry.weight_offset(0, 0, 0, shape.input_channels - 1) + 1);
  }
  return at(geometry.weight_offset(shape.output_channels - 1, 0, 0, 0) + 4);  // the next cell
}

Status first_difference(std::span<const std::uint8_t> chunk, std::span<const std::uint8_t> expected) {
  const auto where = std::mismatch(chunk.begin(), chunk.end(), expected.begin()).first;
  if (where == chunk.end()) return ok_status();
  const auto offset = static_cast<std::size_t>(where - chunk.begin());
  return invalid_input(
      "byte {} of the chunk is padding and should be 0x{:02x}, but is 0x{:02x}: the chunk does not belong to a layer "
      "of "
      "this shape, or it is damaged",
      offset, expected[offset], chunk[offset]);
}

}  // namespace

std::string_view layer_kind_name(LayerKind kind) {
  switch (kind) {
    case LayerKind::kConvolution:
      return "convolution";
    case LayerKind::kDepthwise:
      return "depthwise";
    case LayerKind::kFullyConnected:
      return "fully connected";
  }
  return "unknown";
}

Status validate(const LayerShape& shape) {
  REEF_REQUIRE(shape.kernel_height >= 1 && shape.kernel_width >= 1 && shape.kernel_height <= kMaxKernel &&
                   shape.kernel_width <= kMaxKernel,
               "a {}x{} kernel is outside 1..{}", shape.kernel_height, shape.kernel_width, kMaxKernel);
  REEF_REQUIRE(shape.input_channels >= 1 && shape.output_channels >= 1 && shape.input_channels <= kMaxChannels &&
                   shape.output_channels <= kMaxChannels,
               "{} input and {} output channels are outside 1..{}", shape.input_channels, shape.output_channels,
               kMaxChannels);
  if (shape.kind == LayerKind::kDepthwise) {
    REEF_REQUIRE(shape.input_channels == shape.output_channels,
                 "a depthwise layer has as many output as input channels, not {} and {}", shape.output_channels,
                 shape.input_channels);
  }
  if (shape.kind == LayerKind::kFullyConnected) {
    REEF_REQUIRE(shape.kernel_height == 1 && shape.kernel_width == 1, "a fully connected layer has no {}x{} kernel",
                 shape.kernel_height, shape.kernel_width);
  }
  if (shape.cells != 0) {
    REEF_REQUIRE(shape.kind != LayerKind::kDepthwise && shape.output_channels <= kCellsPerTile &&
                     shape.cells % 4 == 0 && shape.cells >= shape.output_channels && shape.cells <= kCellsPerTile,
                 "lines of {} cells are not possible for a {} layer of {} output channels", shape.cells,
                 layer_kind_name(shape.kind), shape.output_channels);
  }
  const bool depthwise = shape.kind == LayerKind::kDepthwise;
  const std::int64_t line_bytes = depthwise ? 4 : round_up(shape.input_channels, 4);  // of one cell and kernel position
  const std::int64_t positions = std::int64_t{shape.kernel_height} * shape.kernel_width;
  const std::int64_t channels = round_up(shape.output_channels, depthwise ? 4 : kCellsPerTile);
  const bool small = positions <= kMaxChunkBytes / line_bytes && positions * line_bytes <= kMaxChunkBytes / channels;
  REEF_REQUIRE(small, "a layer of {}x{} kernel, {} input and {} output channels is larger than 2 GiB",
               shape.kernel_height, shape.kernel_width, shape.input_channels, shape.output_channels);
  return ok_status();
}

std::int32_t cells_per_line(const LayerShape& shape) {
  if (shape.kind == LayerKind::kDepthwise) return 4;
  if (shape.cells != 0) return shape.cells;
  if (shape.output_channels > kCellsPerTile) return kCellsPerTile;
  if (shape.output_channels <= 4 && shape.kind == LayerKind::kConvolution) return 4;
  return static_cast<std::int32_t>(round_up(shape.output_channels, 16));
}

Result<std::size_t> packed_size(const LayerShape& shape, Presence presence) {
  REEF_RETURN_IF_ERROR(validate(shape));
  const LayerGeometry geometry(shape, presence, LoopOrder::kernel_first());
  return static_cast<std::size_t>(round_up(geometry.unpadded_bytes(), kChunkAlignment));
}

Result<std::vector<std::uint8_t>> pack(const LayerParameters& layer) {
  REEF_RETURN_IF_ERROR(check_contents(layer));
  const Presence presence = layer.presence();
  REEF_ASSIGN_OR_RETURN(const std::size_t size, packed_size(layer.shape, presence));
  const LayerGeometry geometry(layer.shape, presence, layer.order);
  std::vector<std::uint8_t> chunk(size);
  write_headers(layer, geometry, chunk);
  fill_padding(geometry, layer.weight_zero_point.value_or(0), chunk);
  for_each_weight_run(layer.shape, geometry, [&](std::size_t index, std::size_t offset, std::size_t count) {
    std::memcpy(&chunk[offset], &layer.weights[index], count);
  });
  return chunk;
}

Result<LayerParameters> unpack(std::span<const std::uint8_t> chunk, const LayerShape& shape, Presence presence,
                               LoopOrder order, std::optional<std::uint8_t> weight_zero_point) {
  REEF_ASSIGN_OR_RETURN(const std::size_t size, packed_size(shape, presence));
  REEF_RETURN_IF_ERROR(check_order(shape, order));
  REEF_REQUIRE(chunk.size() == size, "the chunk has {} bytes, but a {} layer of this shape takes {}", chunk.size(),
               layer_kind_name(shape.kind), size);
  const LayerGeometry geometry(shape, presence, order);
  LayerParameters layer;
  layer.shape = shape;
  layer.order = order;
  layer.has_zero_points = presence.zero_points;
  layer.weight_zero_point = weight_zero_point;
  if (zero_point_shows(shape, presence)) layer.weight_zero_point = zero_point_in(chunk, shape, presence, geometry);
  REEF_REQUIRE(!weight_zero_point || weight_zero_point == layer.weight_zero_point,
               "the chunk's padding says that the weight zero point is {}, but it is {} elsewhere",
               *layer.weight_zero_point, *weight_zero_point);
  for (std::int32_t output = 0; output < shape.output_channels; ++output) {
    if (presence.multipliers) {
      layer.multipliers.push_back(std::bit_cast<float>(load_u32(chunk, geometry.multiplier_offset(output))));
    }
    if (presence.biases) {
      layer.biases.push_back(static_cast<std::int32_t>(load_u32(chunk, geometry.bias_offset(output))));
    }
  }
  layer.weights.resize(weight_count(shape));
  for_each_weight_run(shape, geometry, [&](std::size_t index, std::size_t offset, std::size_t count) {
    std::memcpy(&layer.weights[index], &chunk[offset], count);
  });
  REEF_ASSIGN_OR_RETURN(const std::vector<std::uint8_t> again, pack(layer));
  REEF_RETURN_IF_ERROR(first_difference(chunk, again));
  return layer;
}

}  // namespace reef::darwinn
