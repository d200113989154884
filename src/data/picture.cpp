// SPDX-License-Identifier: Apache-2.0
#include "data/picture.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "data/values.h"

namespace reef::data {
namespace {

struct Size {
  int width = 0, height = 0;
};

// Size before the cut or the border, and where its upper left corner lies in the input.
struct Fitted {
  Size size;
  int left = 0, top = 0;  // negative: cut off
};

// As torchvision's Resize and CenterCrop: the longer side is rounded down, the corner to the nearest.
Fitted fit_crop(double crop, Size picture, Size input) {
  const double wide = std::round(input.width / crop), high = std::round(input.height / crop);
  const double by_width = wide / picture.width, by_height = high / picture.height;
  Fitted fitted;
  fitted.size =
      by_width >= by_height
          ? Size{static_cast<int>(wide), static_cast<int>(std::max(high, std::floor(by_width * picture.height)))}
          : Size{static_cast<int>(std::max(wide, std::floor(by_height * picture.width))), static_cast<int>(high)};
  fitted.left = -static_cast<int>(std::nearbyint((fitted.size.width - input.width) / 2.0));
  fitted.top = -static_cast<int>(std::nearbyint((fitted.size.height - input.height) / 2.0));
  return fitted;
}

Fitted fit_letterbox(Size picture, Size input) {
  const double by =
      std::min(static_cast<double>(input.width) / picture.width, static_cast<double>(input.height) / picture.height);
  Fitted fitted;
  fitted.size.width = std::clamp(static_cast<int>(std::lround(picture.width * by)), 1, input.width);
  fitted.size.height = std::clamp(static_cast<int>(std::lround(picture.height * by)), 1, input.height);
  fitted.left = (input.width - fitted.size.width) / 2;
  fitted.top = (input.height - fitted.size.height) / 2;
  return fitted;
}

Fitted fit(const Preprocess& preprocess, Size picture, Size input) {
  switch (preprocess.fit) {
    case Fit::kCrop:
      return fit_crop(preprocess.crop, picture, input);
    case Fit::kLetterbox:
      return fit_letterbox(picture, input);
    case Fit::kStretch:
      break;
  }
  return {input, 0, 0};
}

image::Image fitted_picture(const image::Image& picture, const Preprocess& preprocess, Size input) {
  const Fitted place = fit(preprocess, {picture.width, picture.height}, input);
  image::Image resized = image::resize(picture, place.size.width, place.size.height);
  if (resized.width == input.width && resized.height == input.height) return resized;
  image::Image result;
  result.width = input.width;
  result.height = input.height;
  result.channels = picture.channels;
  const auto channels = static_cast<std::size_t>(picture.channels);
  result.samples.assign(static_cast<std::size_t>(input.width) * static_cast<std::size_t>(input.height) * channels,
                        static_cast<std::uint8_t>(std::lround(preprocess.pad)));
  const int first = std::max(0, place.left), end = std::min(input.width, place.left + resized.width);
  for (int y = std::max(0, place.top); y < std::min(input.height, place.top + resized.height); ++y) {
    const auto to =
        (static_cast<std::size_t>(y) * static_cast<std::size_t>(input.width) + static_cast<std::size_t>(first));
    const auto from = static_cast<std::size_t>(y - place.top) * static_cast<std::size_t>(resized.width) +
                      static_cast<std::size_t>(first - place.left);
    std::memcpy(result.samples.data() + to * channels, resized.samples.data() + from * channels,
                static_cast<std::size_t>(end - first) * channels);
  }
  return result;
}

// ITU-R BT.601, as Pillow computes its mode L.
std::uint8_t brightness(const std::uint8_t* rgb) {
  return static_cast<std::uint8_t>((rgb[0] * 19595 + rgb[1] * 38470 + rgb[2] * 7471 + 0x8000) >> 16);
}

// With `channels` channels, in the order asked for. A grey picture is repeated; opacity that is missing is full.
image::Image coloured(const image::Image& picture, int channels, Colours colours) {
  if (picture.channels == channels && colours == Colours::kRgb) return picture;
  image::Image result = picture;
  result.channels = channels;
  const auto from = static_cast<std::size_t>(picture.channels), to = static_cast<std::size_t>(channels);
  const std::size_t pixels = picture.samples.size() / from;
  result.samples.resize(pixels * to);
  for (std::size_t i = 0; i < pixels; ++i) {
    const std::uint8_t* in = picture.samples.data() + i * from;
    std::uint8_t* out = result.samples.data() + i * to;
    const bool is_grey = channels == 1 || colours == Colours::kGrey || from < 3;
    for (std::size_t c = 0; c < std::min<std::size_t>(to, 3); ++c)
      out[c] = is_grey ? (from < 3 ? in[0] : brightness(in)) : in[c];
    if (to == 4) out[3] = from == 4 ? in[3] : 255;
    if (colours == Colours::kBgr && to >= 3) std::swap(out[0], out[2]);
  }
  return result;
}

// The bytes that pixel p of a channel becomes.
using PixelBytes = std::array<std::array<std::byte, 8>, 256>;

Result<PixelBytes> pixel_bytes(const Preprocess& preprocess, const InputSpec& input, int channel) {
  PixelBytes table{};
  const auto width = static_cast<std::size_t>(ir::bits_per_element(input.type) / 8);
  REEF_REQUIRE(!preprocess.pixels_are_codes || ir::is_integer_8(input.type),
               "preprocessing 'codes' needs an 8-bit input, but '{}' is {}", input.name, ir::type_name(input.type));
  const auto of_channel = [&](const std::vector<double>& list) {
    return list[list.size() == 1 ? 0 : static_cast<std::size_t>(channel)];
  };
  const double mean = of_channel(preprocess.mean), std = of_channel(preprocess.std);
  for (std::size_t pixel = 0; pixel < table.size(); ++pixel) {
    if (preprocess.pixels_are_codes) {
      table[pixel][0] = static_cast<std::byte>(input.type == ir::DataType::kInt8 ? pixel ^ 0x80 : pixel);
      continue;
    }
    const double value = (static_cast<double>(pixel) * preprocess.scale - mean) / std;
    REEF_RETURN_IF_ERROR(store_reals({&value, 1}, input, std::span(table[pixel]).first(width)));
  }
  return table;
}

}  // namespace

Result<PictureLayout> picture_layout(const InputSpec& input, Layout layout) {
  const ir::Shape& s = input.shape;
  const auto is_channels = [](std::int32_t n) { return n == 1 || n == 3 || n == 4; };
  const bool is_batch = s.rank() == 4 && s[0] == 1;
  PictureLayout result;
  if (is_batch && is_channels(s[3]) && layout != Layout::kNchw) {
    result = {s[1], s[2], s[3], false};
  } else if (is_batch && is_channels(s[1]) && layout != Layout::kNhwc) {
    result = {s[2], s[3], s[1], true};
  } else if (s.rank() == 3 && is_channels(s[2]) && layout != Layout::kNchw) {
    result = {s[0], s[1], s[2], false};
  } else if (s.rank() == 3 && s[0] == 1) {
    result = {s[1], s[2], 1, false};
  } else if (s.rank() == 4 && s[0] > 1 && (is_channels(s[1]) || is_channels(s[3]))) {
    return invalid_input(
        "input '{0}' has shape {1}: it takes {2} pictures at a time, and Reef feeds one. --input-shape {0}:1,... with "
        "the "
        "other sizes as in the file makes it one; otherwise export the model with a batch of 1",
        input.name, s.to_string(), s[0]);
  } else {
    return invalid_input(
        "input '{}' has shape {}; a picture needs [1, height, width, channels] or [1, channels, height, width] with 1, "
        "3 or 4 channels. Give numbers of this shape in an .npz or .npy file instead",
        input.name, s.to_string());
  }
  REEF_REQUIRE(result.height > 0 && result.width > 0, "input '{}' has no pixels", input.name);
  return result;
}

Placement placement_of(const Preprocess& preprocess, int picture_width, int picture_height, int width, int height) {
  const Fitted place = fit(preprocess, {picture_width, picture_height}, {width, height});
  return {static_cast<double>(place.size.width) / width, static_cast<double>(place.left) / width,
          static_cast<double>(place.size.height) / height, static_cast<double>(place.top) / height};
}

image::Image fit_picture(const image::Image& picture, const Preprocess& preprocess, int width, int height) {
  return fitted_picture(picture, preprocess, {width, height});
}

Status store_picture(const image::Image& picture, const Preprocess& preprocess, const InputSpec& input,
                     std::span<std::byte> target) {
  REEF_ASSIGN_OR_RETURN(const PictureLayout layout, picture_layout(input, preprocess.layout));
  REEF_REQUIRE(picture.width > 0 && picture.height > 0, "the picture has no pixels");
  for (const std::vector<double>* list : {&preprocess.mean, &preprocess.std}) {
    REEF_REQUIRE(list->size() == 1 || list->size() == static_cast<std::size_t>(layout.channels),
                 "preprocessing is given for {} channels, but input '{}' has {}", list->size(), input.name,
                 layout.channels);
  }
  const image::Image ready =
      coloured(fitted_picture(picture, preprocess, {layout.width, layout.height}), layout.channels, preprocess.colours);
  const auto channels = static_cast<std::size_t>(layout.channels);
  const std::size_t pixels = ready.samples.size() / channels;
  const auto width = static_cast<std::size_t>(ir::bits_per_element(input.type) / 8);
  REEF_REQUIRE(width > 0 && target.size() == ready.samples.size() * width,
               "input '{}' takes {} bytes, a picture of it {}", input.name, target.size(),
               ready.samples.size() * width);
  for (std::size_t c = 0; c < channels; ++c) {
    REEF_ASSIGN_OR_RETURN(const PixelBytes table, pixel_bytes(preprocess, input, static_cast<int>(c)));
    for (std::size_t i = 0; i < pixels; ++i) {
      const std::size_t to = layout.channels_first ? c * pixels + i : i * channels + c;
      std::memcpy(target.data() + to * width, table[ready.samples[i * channels + c]].data(), width);
    }
  }
  return ok_status();
}

}  // namespace reef::data
