// SPDX-License-Identifier: Apache-2.0
// A decoded picture into a model's input: fitted, coloured, scaled, in the input's layout and type.
#pragma once

#include <span>

#include "base/status.h"
#include "data/preprocess.h"
#include "data/sample_source.h"
#include "formats/image/image.h"

namespace reef::data {

struct PictureLayout {
  int height = 0, width = 0, channels = 0;
  bool channels_first = false;
};

// How an input of this shape holds a picture: [1, height, width, channels], [1, channels, height, width] with 1, 3 or 4
// channels, [height, width, channels] or [1, height, width]. An error for other shapes, naming the input.
Result<PictureLayout> picture_layout(const InputSpec& input, Layout layout = Layout::kByShape);

// Where a point of the picture comes to lie, both as fractions of width and height: input = picture * scale + offset.
struct Placement {
  double x_scale = 1, x_offset = 0, y_scale = 1, y_offset = 0;
};
Placement placement_of(const Preprocess& preprocess, int picture_width, int picture_height, int width, int height);

// At a size, as preprocess.fit has it.
image::Image fit_picture(const image::Image& picture, const Preprocess& preprocess, int width, int height);

// `target` has exactly the input's bytes.
Status store_picture(const image::Image& picture, const Preprocess& preprocess, const InputSpec& input,
                     std::span<std::byte> target);

}  // namespace reef::data
