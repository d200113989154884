// SPDX-License-Identifier: Apache-2.0
#include "data/array_sample.h"

#include <algorithm>

#include "data/picture.h"
#include "data/values.h"

namespace reef::data {
namespace {

using ir::DataType;
using Dims = std::vector<std::int64_t>;

Dims without_ones(const Dims& dims) {
  Dims result;
  for (const std::int64_t size : dims) {
    if (size != 1) result.push_back(size);
  }
  return result;
}

Dims dims_of(const InputSpec& input) { return {input.shape.begin(), input.shape.end()}; }

Dims sample_dims(const numpy::Array& array) {
  return array.shape.empty() ? Dims{} : Dims(array.shape.begin() + 1, array.shape.end());
}

enum class Arrangement { kSame, kChannelsToEnd, kChannelsToFront, kDiffers };

Arrangement arrangement(const Dims& sample, const Dims& input) {
  const Dims from = without_ones(sample), to = without_ones(input);
  if (from == to) return Arrangement::kSame;
  if (from.size() >= 2 && from.size() == to.size()) {
    Dims to_end = from, to_front = from;
    std::rotate(to_end.begin(), to_end.begin() + 1, to_end.end());
    std::rotate(to_front.begin(), to_front.end() - 1, to_front.end());
    if (to_end == to) return Arrangement::kChannelsToEnd;
    if (to_front == to) return Arrangement::kChannelsToFront;
  }
  return Arrangement::kDiffers;
}

std::vector<double> transposed(const std::vector<double>& values, std::size_t rows) {
  std::vector<double> result(values.size());
  const std::size_t columns = values.size() / rows;
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t c = 0; c < columns; ++c) result[c * rows + r] = values[r * columns + c];
  }
  return result;
}

bool is_picture_input(const InputSpec& input) { return picture_layout(input).ok(); }

std::int64_t sample_elements(const numpy::Array& array) {
  std::int64_t count = 1;
  for (const std::int64_t size : sample_dims(array)) count *= size;
  return count;
}

bool is_stored_type(const numpy::Array& array, const InputSpec& input) {
  return array.type == input.type && (input.type == DataType::kInt8 || input.type == DataType::kInt16);
}

Status store_pixels(std::span<const std::uint8_t> pixels, const InputSpec& input, const Preprocess& preprocess,
                    std::span<std::byte> target) {
  if (preprocess.pixels_are_codes && ir::is_integer_8(input.type)) {
    for (std::size_t i = 0; i < pixels.size(); ++i)
      target[i] = static_cast<std::byte>(input.type == DataType::kInt8 ? pixels[i] ^ 0x80 : pixels[i]);
    return ok_status();
  }
  std::vector<double> values(pixels.size());
  for (std::size_t i = 0; i < pixels.size(); ++i)
    values[i] = (pixels[i] * preprocess.scale - preprocess.mean[0]) / preprocess.std[0];
  return store_reals(values, input, target);
}

}  // namespace

std::optional<PictureArray> picture_array(const numpy::Array& array) {
  if (array.type != DataType::kUInt8) return std::nullopt;
  const auto& s = array.shape;
  constexpr std::int64_t kMaxSide = 1 << 16;
  for (const std::int64_t size : sample_dims(array)) {
    if (size <= 0 || size > kMaxSide) return std::nullopt;
  }
  const auto is_channels = [](std::int64_t n) { return n == 1 || n == 3 || n == 4; };
  const auto at = [&](std::size_t d) { return static_cast<int>(s[d]); };
  if (s.size() == 4 && is_channels(s[3])) return PictureArray{at(1), at(2), at(3), false};
  if (s.size() == 4 && is_channels(s[1])) return PictureArray{at(2), at(3), at(1), true};
  if (s.size() == 3) return PictureArray{at(1), at(2), 1, false};
  return std::nullopt;
}

image::Image picture_of(const numpy::Array& array, const PictureArray& layout, std::int64_t sample) {
  image::Image picture;
  picture.width = layout.width;
  picture.height = layout.height;
  picture.channels = layout.channels;
  const auto bytes = static_cast<std::size_t>(sample_elements(array));
  const std::uint8_t* from = array.data.data() + static_cast<std::size_t>(sample) * bytes;
  picture.samples.assign(from, from + bytes);
  if (layout.channels_first) {
    const auto channels = static_cast<std::size_t>(layout.channels);
    const std::size_t pixels = bytes / channels;
    for (std::size_t c = 0; c < channels; ++c) {
      for (std::size_t i = 0; i < pixels; ++i) picture.samples[i * channels + c] = from[c * pixels + i];
    }
  }
  return picture;
}

Status check_fit(const numpy::Array& array, const InputSpec& input) {
  REEF_REQUIRE(!array.shape.empty() && array.shape[0] > 0, "it is {} and holds no samples", array.describe());
  const Dims dims = sample_dims(array);
  if (array.type == DataType::kUInt8) {
    if (is_picture_input(input) && picture_array(array)) return ok_status();
    REEF_REQUIRE(sample_elements(array) == input.shape.elements(),
                 "it is {}: neither pictures for nor as many elements as input '{}' {}", array.describe(), input.name,
                 input.shape.to_string());
    return ok_status();
  }
  REEF_REQUIRE(arrangement(dims, dims_of(input)) != Arrangement::kDiffers,
               "it is {}; samples for input '{}' must be {} (channels may come first or last)", array.describe(),
               input.name, input.shape.to_string());
  return ok_status();
}

Status store_array_sample(const numpy::Array& array, std::int64_t sample, const InputSpec& input,
                          const Preprocess& preprocess, std::span<std::byte> target) {
  REEF_RETURN_IF_ERROR(check_fit(array, input));
  const std::int64_t count = sample_elements(array);
  REEF_REQUIRE(sample >= 0 && sample < array.shape[0], "there is no sample {} in {}", sample, array.describe());
  const auto width = static_cast<std::size_t>(ir::bits_per_element(input.type) / 8);
  if (array.type == DataType::kUInt8) {
    const auto layout = picture_array(array);
    if (layout && is_picture_input(input))
      return store_picture(picture_of(array, *layout, sample), preprocess, input, target);
    REEF_REQUIRE(target.size() == static_cast<std::size_t>(count) * width, "input '{}' takes {} bytes", input.name,
                 target.size());
    return store_pixels(
        array.data.span().subspan(static_cast<std::size_t>(sample * count), static_cast<std::size_t>(count)), input,
        preprocess, target);
  }
  REEF_ASSIGN_OR_RETURN(std::vector<double> values, array_values(array, sample * count, count));
  const Dims from = without_ones(sample_dims(array));
  const Arrangement arranged = arrangement(sample_dims(array), dims_of(input));
  if (arranged == Arrangement::kChannelsToEnd) values = transposed(values, static_cast<std::size_t>(from.front()));
  if (arranged == Arrangement::kChannelsToFront)
    values = transposed(values, values.size() / static_cast<std::size_t>(from.back()));
  if (!is_stored_type(array, input)) return store_reals(values, input, target);
  InputSpec stored = input;
  stored.quantization = {};
  return store_reals(values, stored, target);
}

}  // namespace reef::data
