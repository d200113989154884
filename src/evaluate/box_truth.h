// SPDX-License-Identifier: Apache-2.0
// How data say where things are: a row of five numbers for each thing, four of a box and its class, in one of many
// conventions. The convention is given, or told from the numbers of all samples.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "data/dataset.h"
#include "evaluate/boxes.h"

namespace reef::evaluate {

struct BoxForm {
  enum class Corners {
    kCentre,      // cx, cy, w, h
    kFromCorner,  // x0, y0, w, h
    kCorners,     // x0, y0, x1, y1
    kYxCorners,   // y0, x0, y1, x1
  } corners = Corners::kCentre;
  bool class_is_first = false;
  bool are_fractions = false;  // of the picture; else pixels

  std::string to_string() const;  // "cxcywh+class,pixels"
};

// "cxcywh", "xywh", "xyxy" or "yxyx"; "class+" before or "+class" after it; ",pixels" or ",fractions". What is not said
// is told from the numbers.
Result<BoxForm> box_form(std::string_view text, std::span<const data::Truth> truths, std::pair<int, int> picture_size);

struct LabelledBox {
  Box box;  // in fractions of the picture
  int label = 0;
};
// Rows whose class is negative are no things.
Result<std::vector<LabelledBox>> boxes_of(const data::Truth& truth, const BoxForm& form,
                                          std::pair<int, int> picture_size);

}  // namespace reef::evaluate
