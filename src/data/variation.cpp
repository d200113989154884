// SPDX-License-Identifier: Apache-2.0
#include "data/variation.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "data/picture.h"

namespace reef::data {
namespace {

constexpr double kLeastLeft = 0.25;  // of a box's area, or it is dropped

std::uint64_t mixed(std::uint64_t x) {  // SplitMix64's finalizer (Steele, Lea, Flood 2014)
  x += 0x9e3779b97f4a7c15;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

bool are_boxes(const Truth& truth) {
  return truth.type == ir::DataType::kFloat64 && truth.shape.size() == 2 && truth.shape[1] == 5;
}

// new = old * scale + offset, both in fractions of the picture. Boxes are cut at the border.
void move_boxes(Truth& truth, const Placement& by) {
  std::vector<double> kept;
  for (std::size_t i = 0; i + 5 <= truth.values.size(); i += 5) {
    const double* const box = truth.values.data() + i;
    const double cx = box[0] * by.x_scale + by.x_offset, cy = box[1] * by.y_scale + by.y_offset;
    const double w = box[2] * std::abs(by.x_scale), h = box[3] * by.y_scale;
    const double x0 = std::clamp(cx - w / 2, 0.0, 1.0), x1 = std::clamp(cx + w / 2, 0.0, 1.0);
    const double y0 = std::clamp(cy - h / 2, 0.0, 1.0), y1 = std::clamp(cy + h / 2, 0.0, 1.0);
    if ((x1 - x0) * (y1 - y0) < kLeastLeft * w * h || w <= 0 || h <= 0) continue;
    kept.insert(kept.end(), {(x0 + x1) / 2, (y0 + y1) / 2, x1 - x0, y1 - y0, box[4]});
  }
  truth.shape[0] = std::ssize(kept) / 5;
  truth.values = std::move(kept);
}

void move_truth(std::optional<Truth>& truth, const Placement& by) {
  if (truth && are_boxes(*truth)) move_boxes(*truth, by);
}

struct Part {
  int left = 0, top = 0, width = 0, height = 0;
};

// Pixels of a part; where it reaches over the border, the nearest pixel.
image::Image cut_out(const image::Image& picture, const Part& part) {
  image::Image result;
  result.width = part.width;
  result.height = part.height;
  result.channels = picture.channels;
  const auto channels = static_cast<std::size_t>(picture.channels);
  result.samples.resize(static_cast<std::size_t>(part.width) * static_cast<std::size_t>(part.height) * channels);
  std::uint8_t* to = result.samples.data();
  for (int y = 0; y < part.height; ++y) {
    const auto row = static_cast<std::size_t>(std::clamp(part.top + y, 0, picture.height - 1)) *
                     static_cast<std::size_t>(picture.width);
    for (int x = 0; x < part.width; ++x, to += channels) {
      const auto column = static_cast<std::size_t>(std::clamp(part.left + x, 0, picture.width - 1));
      std::memcpy(to, picture.samples.data() + (row + column) * channels, channels);
    }
  }
  return result;
}

// A part of the picture with a share of its area and a form that are drawn, as torchvision's RandomResizedCrop.
Part drawn_part(double least_share, const image::Image& picture, KeyedRandom& random) {
  const double share = random.uniform(least_share, 1), form = std::exp(random.uniform(-1, 1) * std::log(4.0 / 3));
  const double area = share * picture.width * picture.height;
  Part part;
  part.width = std::clamp(static_cast<int>(std::lround(std::sqrt(area * form))), 1, picture.width);
  part.height = std::clamp(static_cast<int>(std::lround(std::sqrt(area / form))), 1, picture.height);
  part.left = static_cast<int>(random.below(picture.width - part.width + 1));
  part.top = static_cast<int>(random.below(picture.height - part.height + 1));
  return part;
}

void take_part(const Part& part, image::Image& picture, std::optional<Truth>& truth) {
  const double width = picture.width, height = picture.height;
  picture = cut_out(picture, part);
  move_truth(truth, {width / part.width, -part.left / double(part.width), height / part.height,
                     -part.top / double(part.height)});
}

void mirror(image::Image& picture, std::optional<Truth>& truth) {
  const auto channels = static_cast<std::ptrdiff_t>(picture.channels);
  for (int y = 0; y < picture.height; ++y) {
    std::uint8_t* const row = picture.samples.data() + static_cast<std::ptrdiff_t>(y) * picture.width * channels;
    for (std::ptrdiff_t left = 0, right = picture.width - 1; left < right; ++left, --right)
      std::swap_ranges(row + left * channels, row + (left + 1) * channels, row + right * channels);
  }
  move_truth(truth, {-1, 1, 1, 0});
}

std::uint8_t to_pixel(double value) {
  return static_cast<std::uint8_t>(std::clamp(std::floor(value + 0.5), 0.0, 255.0));
}

// Numbers are drawn whether they are used or not, so that each depends on nothing but its own range.
void vary_colours(const Variation& how, image::Image& picture, KeyedRandom& random) {
  const double offset = 255 * how.brightness * random.uniform(-1, 1);
  const double contrast = 1 + how.contrast * random.uniform(-1, 1),
               saturation = 1 + how.saturation * random.uniform(-1, 1);
  const auto channels = static_cast<std::size_t>(picture.channels), colours = std::min<std::size_t>(channels, 3);
  for (std::size_t i = 0; i + channels <= picture.samples.size(); i += channels) {
    std::uint8_t* const pixel = picture.samples.data() + i;
    const double grey = colours == 3 ? 0.299 * pixel[0] + 0.587 * pixel[1] + 0.114 * pixel[2] : pixel[0];
    for (std::size_t c = 0; c < colours; ++c) {
      const double coloured = colours == 3 ? grey + (pixel[c] - grey) * saturation : pixel[c];
      pixel[c] = to_pixel((coloured - 127.5) * contrast + 127.5 + offset);
    }
  }
}

}  // namespace

KeyedRandom::KeyedRandom(const VariationKey& key)
    : state_(mixed(mixed(mixed(mixed(key.seed) ^ static_cast<std::uint64_t>(key.epoch)) ^
                         static_cast<std::uint64_t>(key.sample)) ^
                   static_cast<std::uint64_t>(key.step))) {}

std::uint64_t KeyedRandom::next() {
  const std::uint64_t value = mixed(state_);
  state_ += 0x9e3779b97f4a7c15;
  return value;
}

double KeyedRandom::uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }

std::int64_t KeyedRandom::below(std::int64_t count) {
  return static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(std::max<std::int64_t>(count, 1)));
}

// Jöhnk's method (1964): x = u^(1/a), y = v^(1/a) until x + y <= 1, in logarithms so that small alphas do not
// underflow. Quick for alpha <= 1, which mixup uses; beyond, the number of turns grows, and a limit gives the mean.
double KeyedRandom::beta(double alpha) {
  for (int turn = 0; turn < 10000; ++turn) {
    const double x = std::log(1 - uniform()) / alpha, y = std::log(1 - uniform()) / alpha;
    const double larger = std::max(x, y), sum = larger + std::log(std::exp(x - larger) + std::exp(y - larger));
    if (sum <= 0) return std::exp(x - sum);
  }
  return 0.5;
}

Status check(const Variation& how) {
  REEF_REQUIRE(how.crop > 0 && how.crop <= 1, "crop: a picture's share between 0 and 1 stays, not {}", how.crop);
  REEF_REQUIRE(how.shift >= 0 && how.shift < 1, "shift: by a share of 0 to 1 of the picture's sides, not {}",
               how.shift);
  REEF_REQUIRE(how.flip >= 0 && how.flip <= 1, "flip: a probability between 0 and 1, not {}", how.flip);
  for (const double value : {how.brightness, how.contrast, how.saturation})
    REEF_REQUIRE(value >= 0 && value <= 1, "brightness, contrast and saturation vary by 0 to 1, not by {}", value);
  return ok_status();
}

Status vary(const Variation& how, const VariationKey& key, image::Image& picture, std::optional<Truth>& truth) {
  REEF_REQUIRE(picture.width > 0 && picture.height > 0, "there is no picture to vary");
  const bool moves = how.crop < 1 || how.shift > 0 || how.flip > 0;
  REEF_REQUIRE(!moves || !truth || truth->values.size() <= 1 || are_boxes(*truth) || truth->shape.size() == 1,
               "what is right for it ({} numbers) cannot move along with a crop, shift or flip", truth->values.size());
  KeyedRandom random(key);
  if (how.crop < 1) take_part(drawn_part(how.crop, picture, random), picture, truth);
  if (how.shift > 0) {
    const auto reach_x = static_cast<std::int64_t>(how.shift * picture.width),
               reach_y = static_cast<std::int64_t>(how.shift * picture.height);
    const Part part{static_cast<int>(random.below(2 * reach_x + 1) - reach_x),
                    static_cast<int>(random.below(2 * reach_y + 1) - reach_y), picture.width, picture.height};
    take_part(part, picture, truth);
  }
  if (how.flip > 0 && random.uniform() < how.flip) mirror(picture, truth);
  if (how.brightness > 0 || how.contrast > 0 || how.saturation > 0) vary_colours(how, picture, random);
  return ok_status();
}

Status resize(const Resize& how, image::Image& picture, std::optional<Truth>& truth) {
  REEF_REQUIRE(picture.width > 0 && picture.height > 0, "there is no picture to resize");
  const Preprocess preprocess{.fit = how.fit, .crop = how.crop, .pad = how.pad};
  if (how.fit != Fit::kStretch)
    move_truth(truth, placement_of(preprocess, picture.width, picture.height, how.width, how.height));
  picture = fit_picture(picture, preprocess, how.width, how.height);
  return ok_status();
}

}  // namespace reef::data
