// SPDX-License-Identifier: Apache-2.0
// One sample of a NumPy array into a model's input.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/status.h"
#include "data/preprocess.h"
#include "data/sample_source.h"
#include "formats/image/image.h"
#include "formats/numpy/npy.h"

namespace reef::data {

// Whether samples are pictures: uint8 of [n, height, width, channels], [n, channels, height, width] or [n, height,
// width].
struct PictureArray {
  int height = 0, width = 0, channels = 0;
  bool channels_first = false;
};
std::optional<PictureArray> picture_array(const numpy::Array& array);
image::Image picture_of(const numpy::Array& array, const PictureArray& layout, std::int64_t sample);

// Whether samples of `array` can become this input at all, before any is read.
Status check_fit(const numpy::Array& array, const InputSpec& input);

// uint8 arrays are pixels: resized and preprocessed, or, where the input is no picture but of as many elements, scaled
// one by one. Arrays of the input's own 8- or 16-bit type are stored numbers and copied. All others are real values:
// copied where the shape is the input's but for dimensions of size 1, transposed where it is with channels first
// instead of last or the other way round, then rounded or quantized to the input's type.
Status store_array_sample(const numpy::Array& array, std::int64_t sample, const InputSpec& input,
                          const Preprocess& preprocess, std::span<std::byte> target);

}  // namespace reef::data
