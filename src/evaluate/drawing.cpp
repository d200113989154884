// SPDX-License-Identifier: Apache-2.0
#include "evaluate/drawing.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <string_view>

#include <fmt/format.h>

namespace reef::evaluate {
namespace {

using Colour = std::array<int, 3>;

// Apart from each other and from water, sky and skin; class 0 of a segmenter is background and stays as it is.
constexpr std::array<Colour, 12> kColours = {{{255, 80, 60},
                                              {40, 160, 255},
                                              {60, 200, 90},
                                              {255, 190, 40},
                                              {190, 90, 255},
                                              {0, 200, 200},
                                              {255, 110, 190},
                                              {150, 200, 40},
                                              {255, 140, 90},
                                              {110, 120, 255},
                                              {200, 150, 90},
                                              {120, 220, 255}}};

Colour colour_of(int label) { return kColours[static_cast<std::size_t>(std::max(label, 0)) % kColours.size()]; }

// Letters of 3 x 5 dots: five rows of three bits, the highest bit left.
struct Letter {
  char letter;
  std::array<int, 5> rows;
};
constexpr Letter kLetters[] = {
    {'A', {2, 5, 7, 5, 5}}, {'B', {6, 5, 6, 5, 6}}, {'C', {3, 4, 4, 4, 3}}, {'D', {6, 5, 5, 5, 6}},
    {'E', {7, 4, 6, 4, 7}}, {'F', {7, 4, 6, 4, 4}}, {'G', {3, 4, 5, 5, 3}}, {'H', {5, 5, 7, 5, 5}},
    {'I', {7, 2, 2, 2, 7}}, {'J', {1, 1, 1, 5, 2}}, {'K', {5, 5, 6, 5, 5}}, {'L', {4, 4, 4, 4, 7}},
    {'M', {5, 7, 7, 5, 5}}, {'N', {6, 5, 5, 5, 5}}, {'O', {2, 5, 5, 5, 2}}, {'P', {6, 5, 6, 4, 4}},
    {'Q', {2, 5, 5, 6, 3}}, {'R', {6, 5, 6, 5, 5}}, {'S', {3, 4, 2, 1, 6}}, {'T', {7, 2, 2, 2, 2}},
    {'U', {5, 5, 5, 5, 7}}, {'V', {5, 5, 5, 5, 2}}, {'W', {5, 5, 7, 7, 5}}, {'X', {5, 5, 2, 5, 5}},
    {'Y', {5, 5, 2, 2, 2}}, {'Z', {7, 1, 2, 4, 7}}, {'0', {7, 5, 5, 5, 7}}, {'1', {2, 6, 2, 2, 7}},
    {'2', {6, 1, 2, 4, 7}}, {'3', {6, 1, 2, 1, 6}}, {'4', {5, 5, 7, 1, 1}}, {'5', {7, 4, 6, 1, 6}},
    {'6', {3, 4, 7, 5, 7}}, {'7', {7, 1, 2, 2, 2}}, {'8', {7, 5, 7, 5, 7}}, {'9', {7, 5, 7, 1, 6}},
    {'.', {0, 0, 0, 0, 2}}, {'-', {0, 0, 7, 0, 0}}, {'_', {0, 0, 0, 0, 7}}, {'/', {1, 1, 2, 4, 4}},
    {'%', {5, 1, 2, 4, 5}}, {'?', {6, 1, 2, 0, 2}},
};

class Canvas {
 public:
  explicit Canvas(image::Image& picture) : picture_(picture) {}
  int width() const { return picture_.width; }
  int height() const { return picture_.height; }

  // `share` of the colour, the rest of what is there.
  void dot(int x, int y, const Colour& colour, double share = 1) {
    if (x < 0 || y < 0 || x >= picture_.width || y >= picture_.height) return;
    std::uint8_t* at =
        picture_.samples.data() +
        3 * (static_cast<std::size_t>(y) * static_cast<std::size_t>(picture_.width) + static_cast<std::size_t>(x));
    for (std::size_t c = 0; c < 3; ++c)
      at[c] = static_cast<std::uint8_t>(std::lround(at[c] * (1 - share) + colour[c] * share));
  }
  void fill(int x0, int y0, int x1, int y1, const Colour& colour) {
    for (int y = y0; y < y1; ++y) {
      for (int x = x0; x < x1; ++x) dot(x, y, colour);
    }
  }
  // `size`: pixels of a letter's dot.
  void text(int x, int y, std::string_view words, int size, const Colour& colour) {
    for (const char c : words) {
      const char upper = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
      const auto* letter =
          std::find_if(std::begin(kLetters), std::end(kLetters), [&](const Letter& l) { return l.letter == upper; });
      if (letter == std::end(kLetters) && c != ' ') letter = std::end(kLetters) - 1;
      for (int row = 0; letter != std::end(kLetters) && row < 5; ++row) {
        for (int column = 0; column < 3; ++column) {
          if ((letter->rows[reef::at(row)] >> (2 - column) & 1) == 0) continue;
          fill(x + column * size, y + row * size, x + (column + 1) * size, y + (row + 1) * size, colour);
        }
      }
      x += 4 * size;
    }
  }

 private:
  image::Image& picture_;
};

int pixel(double fraction, int size) { return static_cast<int>(std::lround(fraction * (size - 1))); }

void draw_box(Canvas& canvas, const Detection& found) {
  const int line = std::max(1, std::min(canvas.width(), canvas.height()) / 200);
  const int x0 = pixel(found.box.x0, canvas.width()), x1 = pixel(found.box.x1, canvas.width());
  const int y0 = pixel(found.box.y0, canvas.height()), y1 = pixel(found.box.y1, canvas.height());
  const Colour colour = colour_of(found.label);
  canvas.fill(x0, y0, x1 + 1, y0 + line, colour);
  canvas.fill(x0, y1 + 1 - line, x1 + 1, y1 + 1, colour);
  canvas.fill(x0, y0, x0 + line, y1 + 1, colour);
  canvas.fill(x1 + 1 - line, y0, x1 + 1, y1 + 1, colour);
}

struct LabelPlace {
  int x = 0, y = 0, wide = 0, high = 0;
  bool overlaps(const LabelPlace& other) const {
    return x < other.x + other.wide && other.x < x + wide && y < other.y + other.high && other.y < y + high;
  }
};

// Above the box, else below it, else inside; in the picture, and where possible not on another label.
LabelPlace label_place(const Canvas& canvas, const Box& box, int wide, int high, const std::vector<LabelPlace>& taken) {
  const int x = std::clamp(pixel(box.x0, canvas.width()), 0, std::max(0, canvas.width() - wide));
  const int y0 = pixel(box.y0, canvas.height()), y1 = pixel(box.y1, canvas.height());
  const LabelPlace inside{x, y0, wide, high};
  for (const int y : {y0 - high, y1 + 1, y0, y1 + 1 - high}) {
    const LabelPlace place{x, y, wide, high};
    const bool is_free = std::none_of(taken.begin(), taken.end(), [&](const auto& t) { return t.overlaps(place); });
    if (y >= 0 && y + high <= canvas.height() && is_free) return place;
  }
  return inside;
}

void draw_label(Canvas& canvas, const Detection& found, const std::string& words, std::vector<LabelPlace>& taken) {
  const int letter = std::max(1, std::min(canvas.width(), canvas.height()) / 160);
  const LabelPlace place =
      label_place(canvas, found.box, static_cast<int>(4 * words.size() + 1) * letter, 7 * letter, taken);
  canvas.fill(place.x, place.y, place.x + place.wide, place.y + place.high, colour_of(found.label));
  canvas.text(place.x + letter, place.y + letter, words, letter, {0, 0, 0});
  taken.push_back(place);
}

void draw_keypoints(Canvas& canvas, const Detection& found) {
  constexpr double kLeastScore = 0.25;
  const int radius = std::max(1, std::min(canvas.width(), canvas.height()) / 120);
  for (const Keypoint& point : found.keypoints) {
    if (point.score < kLeastScore) continue;
    const int x = pixel(point.x, canvas.width()), y = pixel(point.y, canvas.height());
    canvas.fill(x - radius, y - radius, x + radius + 1, y + radius + 1, {0, 0, 0});
    canvas.fill(x - radius + 1, y - radius + 1, x + radius, y + radius, colour_of(found.label));
  }
}

// A map over the model's input, laid onto the picture: which of its places a pixel lies in.
void draw_map(Canvas& canvas, const PlaceMap& map, const data::Placement& p, int label) {
  constexpr double kShare = 0.45;
  if (map.values.empty()) return;
  for (int y = 0; y < canvas.height(); ++y) {
    const double fy = (y + 0.5) / canvas.height() * p.y_scale + p.y_offset;
    const int row = static_cast<int>(std::floor(fy * map.height));
    if (row < 0 || row >= map.height) continue;
    for (int x = 0; x < canvas.width(); ++x) {
      const double fx = (x + 0.5) / canvas.width() * p.x_scale + p.x_offset;
      const int column = static_cast<int>(std::floor(fx * map.width));
      if (column < 0 || column >= map.width) continue;
      const std::int32_t value = map.values[static_cast<std::size_t>(row) * static_cast<std::size_t>(map.width) +
                                            static_cast<std::size_t>(column)];
      if (value > 0) canvas.dot(x, y, colour_of(label >= 0 ? label : value), kShare);
    }
  }
}

}  // namespace

image::Image enlarged(const image::Image& picture, int times) {
  image::Image result{picture.width * times, picture.height * times, picture.channels, {}};
  const auto channels = static_cast<std::size_t>(picture.channels);
  result.samples.reserve(picture.samples.size() * static_cast<std::size_t>(times) * static_cast<std::size_t>(times));
  for (int y = 0; y < result.height; ++y) {
    const auto row = static_cast<std::size_t>(y / times) * static_cast<std::size_t>(picture.width);
    for (int x = 0; x < result.width; ++x) {
      const auto from =
          picture.samples.begin() + static_cast<std::ptrdiff_t>((row + static_cast<std::size_t>(x / times)) * channels);
      result.samples.insert(result.samples.end(), from, from + picture.channels);
    }
  }
  return result;
}

std::string class_name(int label, const std::vector<std::string>& names) {
  const bool has_name = label >= 0 && static_cast<std::size_t>(label) < names.size() && !names[reef::at(label)].empty();
  return has_name ? names[reef::at(label)] : fmt::format("class {}", label);
}

void draw(const Findings& findings, const std::vector<std::string>& names, image::Image& picture) {
  Canvas canvas(picture);
  draw_map(canvas, findings.classes, findings.placement, -1);
  for (const Found& found : findings.things) draw_map(canvas, found.mask, findings.placement, found.what.label);
  for (const Found& found : findings.things) {
    if (found.has_box) draw_box(canvas, found.what);
    draw_keypoints(canvas, found.what);
  }
  // Labels come last, so that no box runs through them; the best ones choose first.
  std::vector<LabelPlace> taken;
  for (const Found& found : findings.things) {
    if (!found.has_box) continue;
    const std::string words = fmt::format("{} {:.2f}", class_name(found.what.label, names), found.what.score);
    draw_label(canvas, found.what, words, taken);
  }
}

}  // namespace reef::evaluate
