// SPDX-License-Identifier: Apache-2.0
// How a JPEG must be turned to stand upright. Phones and cameras store pictures as the sensor saw them, and say beside
// them how the camera was held (Exif's tag Orientation).
#pragma once

#include <cstdint>
#include <span>

#include "formats/image/image.h"

namespace reef::image {

// Exif's number from 1 (upright) to 8; 1 where the file says nothing or nothing sensible. Any bytes may be given.
int orientation_of(std::span<const std::uint8_t> file);

// The picture turned and mirrored as `orientation` says.
Image upright(Image image, int orientation);

}  // namespace reef::image
