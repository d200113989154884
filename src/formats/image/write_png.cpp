// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "base/file.h"
#include "formats/image/image.h"

#define STB_IMAGE_WRITE_IMPLEMENTATION
#define STB_IMAGE_WRITE_STATIC
#define STBI_WRITE_NO_STDIO
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#include <stb_image_write.h>
#pragma GCC diagnostic pop

namespace reef::image {

Result<std::vector<std::uint8_t>> encode_png(const Image& image) {
  const bool is_sound =
      image.width > 0 && image.height > 0 && (image.channels == 1 || image.channels == 3 || image.channels == 4) &&
      image.samples.size() == static_cast<std::size_t>(image.width) * static_cast<std::size_t>(image.height) *
                                  static_cast<std::size_t>(image.channels);
  REEF_REQUIRE(is_sound, "a picture of {} x {} with {} channels cannot be written", image.width, image.height,
               image.channels);
  std::vector<std::uint8_t> file;
  const auto append = [](void* target, void* data, int size) {
    const auto* const bytes = static_cast<const std::uint8_t*>(data);
    auto& all = *static_cast<std::vector<std::uint8_t>*>(target);
    all.insert(all.end(), bytes, bytes + size);
  };
  const int row_bytes = image.width * image.channels;
  const int done =
      stbi_write_png_to_func(append, &file, image.width, image.height, image.channels, image.samples.data(), row_bytes);
  REEF_REQUIRE(done != 0, "a picture of {} x {} cannot be encoded", image.width, image.height);
  return file;
}

Status save_png(const Image& image, const std::string& path) {
  REEF_ASSIGN_OR_RETURN(const std::vector<std::uint8_t> file, encode_png(image));
  return write_file(path, file);
}

}  // namespace reef::image
