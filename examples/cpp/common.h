// SPDX-License-Identifier: Apache-2.0
// What the examples share: ending with a message, labels, rectangles in pictures.
#pragma once

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "reef/reef.hpp"

[[noreturn]] inline void fail(const std::string& message) {
  std::fprintf(stderr, "%s\n", message.c_str());
  std::exit(1);
}

template <typename T>
T must(reef::Expected<T> result) {
  if (!result) fail(result.error().message);
  return std::move(result).value();
}
inline void must(const reef::Error& error) {
  if (error) fail(error.message);
}

inline std::vector<std::string> read_labels(const std::string& path) {
  std::ifstream file(path);
  if (!file) fail("cannot open " + path);
  std::vector<std::string> labels;
  for (std::string line; std::getline(file, line);) labels.push_back(line);
  return labels;
}

inline std::string label(const std::vector<std::string>& labels, std::size_t i) {
  return i < labels.size() ? labels[i] : "class " + std::to_string(i);
}

// Puts a picture into the first input, resized to its height and width.
inline void fill_input(const reef::Interpreter& interpreter, const std::string& picture) {
  const reef::Tensor input = interpreter.input(0);
  if (input.dims().size() != 4 || input.type() != REEF_UINT8) fail("the model does not take a picture of bytes");
  const reef::Image image = must(reef::Image::load(picture, input.dims()[3], input.dims()[2], input.dims()[1]));
  std::copy(image.samples().begin(), image.samples().end(), input.data<std::uint8_t>().begin());
}

using Colour = std::array<std::uint8_t, 3>;
inline Colour colour_of(std::size_t i) {
  static constexpr Colour kColours[] = {{0, 0, 0},      {255, 89, 94},  {255, 202, 58}, {138, 201, 38}, {25, 130, 196},
                                        {190, 90, 220}, {255, 146, 76}, {46, 196, 182}, {255, 255, 255}};
  return kColours[i % (sizeof(kColours) / sizeof(kColours[0]))];
}

// The frame of a rectangle, two pixels wide, in an RGB picture.
inline void draw_frame(const reef::Image& image, int left, int top, int right, int bottom, const Colour& colour) {
  const auto samples = image.samples();
  for (int y = std::max(top, 0); y < std::min(bottom, image.height()); ++y) {
    for (int x = std::max(left, 0); x < std::min(right, image.width()); ++x) {
      const bool is_inside = x >= left + 2 && x < right - 2 && y >= top + 2 && y < bottom - 2;
      if (is_inside) continue;
      for (int c = 0; c < 3; ++c) {
        samples[static_cast<std::size_t>((y * image.width() + x) * 3 + c)] = colour[static_cast<std::size_t>(c)];
      }
    }
  }
}
