// SPDX-License-Identifier: Apache-2.0
#include "evaluate/box_truth.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace reef::evaluate {
namespace {

using Row = std::span<const double>;  // five numbers

std::vector<Row> rows_of(const data::Truth& truth) {
  std::vector<Row> rows;
  for (std::size_t at = 0; at + 5 <= truth.values.size(); at += 5) rows.push_back(Row(truth.values).subspan(at, 5));
  return rows;
}

double class_of(Row row, const BoxForm& form) { return row[form.class_is_first ? 0 : 4]; }
Row numbers_of(Row row, const BoxForm& form) { return row.subspan(form.class_is_first ? 1 : 0, 4); }

// The class is the column, first or last, that holds the smaller whole numbers.
bool class_is_first(const std::vector<Row>& rows) {
  double first = -1, last = -1;
  bool first_is_whole = true, last_is_whole = true;
  for (const Row row : rows) {
    first = std::max(first, row[0]);
    last = std::max(last, row[4]);
    first_is_whole = first_is_whole && row[0] == std::floor(row[0]);
    last_is_whole = last_is_whole && row[4] == std::floor(row[4]);
  }
  return first_is_whole && (!last_is_whole || first < last);
}

BoxForm::Corners told_corners(const std::vector<Row>& rows, const BoxForm& form, double width, double height) {
  const auto all = [&](const std::function<bool(Row)>& holds) {
    return std::all_of(rows.begin(), rows.end(), [&](Row row) { return holds(numbers_of(row, form)); });
  };
  constexpr double kSlack = 1.02;  // rounding puts boxes a little outside
  if (all([](Row n) { return n[2] > n[0] && n[3] > n[1]; })) return BoxForm::Corners::kCorners;
  if (all([&](Row n) {
        return n[0] + n[2] / 2 <= width * kSlack && n[1] + n[3] / 2 <= height * kSlack &&
               n[0] - n[2] / 2 >= width * (1 - kSlack) && n[1] - n[3] / 2 >= height * (1 - kSlack);
      }))
    return BoxForm::Corners::kCentre;
  return BoxForm::Corners::kFromCorner;
}

constexpr std::pair<std::string_view, BoxForm::Corners> kCornerNames[] = {
    {"cxcywh", BoxForm::Corners::kCentre},
    {"xywh", BoxForm::Corners::kFromCorner},
    {"xyxy", BoxForm::Corners::kCorners},
    {"yxyx", BoxForm::Corners::kYxCorners},
};

}  // namespace

std::string BoxForm::to_string() const {
  std::string_view name;
  for (const auto& known : kCornerNames) name = known.second == corners ? known.first : name;
  return fmt::format("{}{}{},{}", class_is_first ? "class+" : "", name, class_is_first ? "" : "+class",
                     are_fractions ? "fractions" : "pixels");
}

Result<BoxForm> box_form(std::string_view text, std::span<const data::Truth> truths, std::pair<int, int> picture_size) {
  std::vector<Row> rows;
  BoxForm form;
  for (const data::Truth& truth : truths) {
    REEF_REQUIRE(truth.shape.size() == 2 && truth.shape[1] == 5,
                 "the truth is not boxes: a sample's must be [n, 5], four numbers of a box and its class");
    for (const Row row : rows_of(truth)) {
      // Things that are not there are marked by -1, in the class or everywhere.
      if (row[0] >= 0 && row[4] >= 0) rows.push_back(row);
    }
  }
  form.class_is_first = class_is_first(rows);
  double largest = 0;
  for (const Row row : rows) {
    for (const double value : numbers_of(row, form)) largest = std::max(largest, value);
  }
  form.are_fractions = largest <= 1.5;
  std::string_view left = text == "auto" ? "" : text;
  const auto take = [&](std::string_view word, bool at_end) {
    if (!(at_end ? left.ends_with(word) : left.starts_with(word))) return false;
    at_end ? left.remove_suffix(word.size()) : left.remove_prefix(word.size());
    return true;
  };
  if (take(",pixels", true)) form.are_fractions = false;
  if (take(",fractions", true)) form.are_fractions = true;
  if (take("class+", false)) form.class_is_first = true;
  if (take("+class", true)) form.class_is_first = false;
  form.corners = told_corners(rows, form, form.are_fractions ? 1 : picture_size.first,
                              form.are_fractions ? 1 : picture_size.second);
  if (left.empty()) return form;
  for (const auto& [name, corners] : kCornerNames) {
    if (name != left) continue;
    form.corners = corners;
    return form;
  }
  return invalid_input(
      "'{}' is no form of boxes: cxcywh, xywh, xyxy or yxyx, with class+ before or +class after it, then "
      ",pixels or ,fractions",
      text);
}

Result<std::vector<LabelledBox>> boxes_of(const data::Truth& truth, const BoxForm& form,
                                          std::pair<int, int> picture_size) {
  REEF_REQUIRE(truth.shape.size() == 2 && truth.shape[1] == 5, "its truth is not boxes [n, 5]");
  const double wide = form.are_fractions ? 1 : picture_size.first, high = form.are_fractions ? 1 : picture_size.second;
  REEF_REQUIRE(wide > 0 && high > 0, "its boxes are in pixels, but its picture has no known size");
  std::vector<LabelledBox> boxes;
  for (const Row row : rows_of(truth)) {
    if (class_of(row, form) < 0) continue;
    const Row n = numbers_of(row, form);
    Box box;
    switch (form.corners) {
      case BoxForm::Corners::kCentre:
        box = {n[0] - n[2] / 2, n[1] - n[3] / 2, n[0] + n[2] / 2, n[1] + n[3] / 2};
        break;
      case BoxForm::Corners::kFromCorner:
        box = {n[0], n[1], n[0] + n[2], n[1] + n[3]};
        break;
      case BoxForm::Corners::kCorners:
        box = {n[0], n[1], n[2], n[3]};
        break;
      case BoxForm::Corners::kYxCorners:
        box = {n[1], n[0], n[3], n[2]};
        break;
    }
    boxes.push_back(
        {{box.x0 / wide, box.y0 / high, box.x1 / wide, box.y1 / high}, static_cast<int>(class_of(row, form))});
  }
  return boxes;
}

}  // namespace reef::evaluate
