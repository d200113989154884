// SPDX-License-Identifier: Apache-2.0
// reef.h: pictures.
#include "formats/image/image.h"

#include "guard.h"
#include "handles.h"

using namespace reef;
using namespace reef::c_api;

namespace {

constexpr std::int32_t kLargestSide = 1 << 14;

Status check_size(std::int32_t width, std::int32_t height) {
  REEF_REQUIRE(width > 0 && height > 0 && width <= kLargestSide && height <= kLargestSide,
               "a picture cannot be {} x {}; sides are 1 to {}", width, height, kLargestSide);
  return ok_status();
}

}  // namespace

reef_status reef_image_load(const char* path, int32_t channels, int32_t width, int32_t height, reef_image** image) {
  return guarded({{path, "path"}, {image, "image"}}, [&]() -> Status {
    if (width != 0 || height != 0) REEF_RETURN_IF_ERROR(check_size(width, height));
    REEF_ASSIGN_OR_RETURN(image::Image loaded, image::load(path, channels));
    if (width != 0) loaded = image::resize(loaded, width, height);
    *image = new reef_image{std::move(loaded)};
    return ok_status();
  });
}

reef_status reef_image_create(int32_t width, int32_t height, int32_t channels, const uint8_t* samples,
                              reef_image** image) {
  return guarded({{samples, "samples"}, {image, "image"}}, [&]() -> Status {
    REEF_RETURN_IF_ERROR(check_size(width, height));
    REEF_REQUIRE(channels == 1 || channels == 3 || channels == 4, "a picture has 1, 3 or 4 channels, not {}", channels);
    const auto count =
        static_cast<std::size_t>(width) * static_cast<std::size_t>(height) * static_cast<std::size_t>(channels);
    *image = new reef_image{{width, height, channels, {samples, samples + count}}};
    return ok_status();
  });
}

int32_t reef_image_width(const reef_image* image) { return image == nullptr ? 0 : image->image.width; }
int32_t reef_image_height(const reef_image* image) { return image == nullptr ? 0 : image->image.height; }
int32_t reef_image_channels(const reef_image* image) { return image == nullptr ? 0 : image->image.channels; }
uint8_t* reef_image_samples(reef_image* image) { return image == nullptr ? nullptr : image->image.samples.data(); }

reef_status reef_image_resize(const reef_image* image, int32_t width, int32_t height, reef_image** resized) {
  return guarded({{image, "image"}, {resized, "resized"}}, [&]() -> Status {
    REEF_RETURN_IF_ERROR(check_size(width, height));
    *resized = new reef_image{image::resize(image->image, width, height)};
    return ok_status();
  });
}

reef_status reef_image_save(const reef_image* image, const char* path) {
  return guarded({{image, "image"}, {path, "path"}}, [&]() -> Status { return image::save_png(image->image, path); });
}

void reef_image_free(reef_image* image) { delete image; }
