// SPDX-License-Identifier: Apache-2.0
// Raw heads in every layout, built from known boxes by the inverse of the published formulas: what is decoded must be
// those boxes. (Compared with YOLOv5's own code outside of the repository; docs/evaluate.md.)
#include "evaluate/yolo_heads.h"

#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "data/model_card.h"
#include "evaluate/task.h"
#include "evaluate/yolo.h"

namespace reef::evaluate {
namespace {

constexpr int kWidth = 128, kHeight = 96, kClasses = 3, kNumbers = 5 + kClasses;
constexpr int kStrides[] = {8, 16, 32};
constexpr double kUsual[3][3][2] = {
    {{10, 13}, {16, 30}, {33, 23}}, {{30, 61}, {62, 45}, {59, 119}}, {{116, 90}, {156, 198}, {373, 326}}};

DetectorOptions options() {
  DetectorOptions result;
  result.score_threshold = 0.25;
  result.input_width = kWidth;
  result.input_height = kHeight;
  return result;
}

struct Thing {
  int stride, anchor, x, y;  // which numbers hold it
  double cx, cy, w, h;       // in pixels
  int label;
};
constexpr Thing kThings[] = {{0, 1, 5, 3, 44.5, 27, 20, 35, 2}, {2, 0, 2, 1, 83, 50, 90, 70, 0}};

double logit(double p) { return std::log(p / (1 - p)); }

// Numbers of all anchors, [stride][anchor][y][x][number], as the last convolution leaves them.
using Numbers = std::vector<std::vector<double>>;
Numbers anchor_numbers(bool are_logits) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> noise(0.2, 0.8);
  Numbers numbers;
  for (int s = 0; s < 3; ++s) {
    const int w = kWidth / kStrides[s], h = kHeight / kStrides[s];
    auto& values = numbers.emplace_back(static_cast<std::size_t>(3 * w * h * kNumbers));
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = i % kNumbers < 4 ? noise(random) : 0.01;  // a box anywhere, and hardly an object
    }
    for (const Thing& thing : kThings) {
      if (thing.stride != s) continue;
      double* at = values.data() + ((thing.anchor * h + thing.y) * w + thing.x) * kNumbers;
      at[0] = (thing.cx / kStrides[s] - thing.x + 0.5) / 2;
      at[1] = (thing.cy / kStrides[s] - thing.y + 0.5) / 2;
      at[2] = std::sqrt(thing.w / kUsual[s][thing.anchor][0]) / 2;
      at[3] = std::sqrt(thing.h / kUsual[s][thing.anchor][1]) / 2;
      at[4] = 0.9;
      at[5 + thing.label] = 0.8;
    }
    for (double& value : values) value = are_logits ? logit(value) : value;
  }
  return numbers;
}

// [3, h, w, c] in another order of axes: "hwac" and so on.
TensorValues in_order(const std::vector<double>& values, int stride, const std::string& axes, std::vector<int> shape) {
  const int w = kWidth / kStrides[stride], h = kHeight / kStrides[stride];
  const std::map<char, int> sizes = {{'a', 3}, {'h', h}, {'w', w}, {'c', kNumbers}};
  TensorValues result{"out", {}, std::vector<double>(values.size())};
  shape.insert(shape.begin(), 1);
  result.shape = ir::Shape(std::vector<std::int32_t>(shape.begin(), shape.end()));
  std::size_t from = 0;
  for (int a = 0; a < 3; ++a) {
    for (int y = 0; y < h; ++y) {
      for (int x = 0; x < w; ++x) {
        for (int c = 0; c < kNumbers; ++c) {
          const std::map<char, int> at = {{'a', a}, {'h', y}, {'w', x}, {'c', c}};
          int to = 0;
          for (const char axis : axes) to = to * sizes.at(axis) + at.at(axis);
          result.values[reef::at(to)] = values[from++];
        }
      }
    }
  }
  return result;
}

void expect_things(const std::vector<TensorValues>& outputs, const DetectorOptions& how, const std::string& form) {
  SCOPED_TRACE(form);
  const auto found = decode_detections(outputs, how);
  ASSERT_TRUE(found.ok()) << found.status().message();
  ASSERT_EQ(found->size(), 2u);
  for (const Detection& box : *found) {
    const Thing& thing = box.label == kThings[0].label ? kThings[0] : kThings[1];
    EXPECT_EQ(box.label, thing.label);
    EXPECT_NEAR(box.score, 0.72, 1e-9);
    EXPECT_NEAR(box.box.x0 * kWidth, thing.cx - thing.w / 2, 1e-6);
    EXPECT_NEAR(box.box.y0 * kHeight, thing.cy - thing.h / 2, 1e-6);
    EXPECT_NEAR(box.box.x1 * kWidth, thing.cx + thing.w / 2, 1e-6);
    EXPECT_NEAR(box.box.y1 * kHeight, thing.cy + thing.h / 2, 1e-6);
  }
}

Task task_of_outputs(const std::vector<TensorValues>& outputs, const data::ModelCard& card = {}) {
  ir::Model model;
  model.subgraphs.emplace_back();
  std::vector<ir::Shape> shapes;
  for (const TensorValues& output : outputs) shapes.push_back(output.shape);
  return task_of(model, shapes, {kWidth, kHeight}, card);
}

TEST(YoloHeads, AnchorsInEveryLayout) {
  for (const bool are_logits : {true, false}) {
    const Numbers numbers = anchor_numbers(are_logits);
    for (const std::string axes : {"ahwc", "hwac", "achw", "hw(ac)", "(ac)hw", "(hw)ac", "a(hw)c"}) {
      std::vector<TensorValues> outputs;
      for (int s = 2; s >= 0; --s) {  // the order of outputs does not matter
        const int w = kWidth / kStrides[s], h = kHeight / kStrides[s], ac = 3 * kNumbers;
        const std::map<std::string, std::vector<int>> shapes = {
            {"ahwc", {3, h, w, kNumbers}},   {"hwac", {h, w, 3, kNumbers}}, {"achw", {3, kNumbers, h, w}},
            {"hw(ac)", {h, w, ac}},          {"(ac)hw", {ac, h, w}},        {"(hw)ac", {h * w, 3, kNumbers}},
            {"a(hw)c", {3, h * w, kNumbers}}};
        std::string plain = axes;
        std::erase_if(plain, [](char c) { return c == '(' || c == ')'; });
        outputs.push_back(in_order(numbers[reef::at(s)], s, plain, shapes.at(axes)));
      }
      DetectorOptions how = options();
      how.classes = kClasses;  // 24 channels could be anything
      expect_things(outputs, how, axes);
      how.anchors = "yolov5";
      expect_things(outputs, how, axes + " with anchors");
      data::ModelCard card;
      card.names = {"a", "b", "c"};
      EXPECT_EQ(task_of_outputs(outputs, card).kind, TaskKind::kDetector) << axes;
    }
  }
}

TEST(YoloHeads, AnchorsInOneOutput) {
  for (const bool are_logits : {true, false}) {
    const Numbers numbers = anchor_numbers(are_logits);
    TensorValues rows{"out", {}, {}};
    for (const auto& values : numbers) rows.values.insert(rows.values.end(), values.begin(), values.end());
    rows.shape = ir::Shape{1, static_cast<std::int32_t>(rows.values.size() / kNumbers), kNumbers};
    expect_things({rows}, options(), are_logits ? "logits" : "probabilities");
    EXPECT_EQ(task_of_outputs({rows}).kind, TaskKind::kDetector);
    const auto raw = decode_raw_heads(std::vector{rows}, options());
    ASSERT_TRUE(raw.ok() && raw->has_value());
    EXPECT_TRUE((*raw)->has_assumed_anchors);
  }
}

// The same rows once they are decoded, in pixels or fractions, anchors of a cell apart or side by side: nothing is
// decoded twice.
TEST(YoloHeads, DecodedRowsAreLeftAlone) {
  const Numbers numbers = anchor_numbers(false);
  for (const bool are_pixels : {true, false}) {
    for (const bool anchors_inside : {true, false}) {
      TensorValues rows{"out", {}, {}};
      for (int s = 0; s < 3; ++s) {
        const int w = kWidth / kStrides[s], h = kHeight / kStrides[s];
        auto values = numbers[reef::at(s)];
        for (int i = 0; i < 3 * w * h; ++i) {
          double* at = values.data() + i * kNumbers;
          const int a = i / (w * h), x = i % w, y = i / w % h;
          at[0] = (2 * at[0] - 0.5 + x) * kStrides[s] / (are_pixels ? 1 : kWidth);
          at[1] = (2 * at[1] - 0.5 + y) * kStrides[s] / (are_pixels ? 1 : kHeight);
          at[2] = std::pow(2 * at[2], 2) * kUsual[s][a][0] / (are_pixels ? 1 : kWidth);
          at[3] = std::pow(2 * at[3], 2) * kUsual[s][a][1] / (are_pixels ? 1 : kHeight);
        }
        if (anchors_inside) values = in_order(values, s, "hwac", {}).values;
        rows.values.insert(rows.values.end(), values.begin(), values.end());
      }
      rows.shape = ir::Shape{1, static_cast<std::int32_t>(rows.values.size() / kNumbers), kNumbers};
      const auto raw = decode_raw_heads(std::vector{rows}, options());
      ASSERT_TRUE(raw.ok());
      EXPECT_FALSE(raw->has_value());
      expect_things({rows}, options(), "decoded");
    }
  }
}

TEST(YoloHeads, OtherAnchors) {
  EXPECT_EQ(parse_anchors("yolov7")->at(1).at(2), (std::pair{72.0, 146.0}));
  EXPECT_EQ(parse_anchors("1,2,3,4/5,6,7.5,8")->at(1).at(1), (std::pair{7.5, 8.0}));
  for (const char* text :
       {"", "yolov8", "1", "1,2,3", "1,2/3,4,5,6", "1,2/", "/", "1,,2", "0,1", "-1,2", "nan,1", "1,2 "}) {
    EXPECT_FALSE(parse_anchors(text).ok()) << text;
  }
  const Numbers numbers = anchor_numbers(true);
  std::vector<TensorValues> outputs;
  for (int s = 0; s < 3; ++s) {
    const int w = kWidth / kStrides[s], h = kHeight / kStrides[s];
    outputs.push_back(in_order(numbers[reef::at(s)], s, "ahwc", {3, h, w, kNumbers}));
  }
  DetectorOptions how = options();
  how.anchors = "20,26,32,60,66,46/1,1,1,1,1,1/232,180,1,1,1,1";
  const auto found = decode_detections(outputs, how);
  ASSERT_TRUE(found.ok()) << found.status().message();
  ASSERT_EQ(found->size(), 2u);
  for (const Detection& box : *found) {  // anchors twice as large, boxes twice as large
    const Thing& thing = box.label == kThings[0].label ? kThings[0] : kThings[1];
    EXPECT_NEAR((box.box.x1 - box.box.x0) * kWidth, 2 * thing.w, 1e-6);
    EXPECT_NEAR((box.box.y1 - box.box.y0) * kHeight, 2 * thing.h, 1e-6);
  }
  how.anchors = "10,13,16,30,33,23/30,61,62,45,59,119";
  EXPECT_FALSE(decode_detections(outputs, how).ok());  // two groups for three strides
}

// Distributions and scores as rows of all cells, which is the form that Frigate's Edge TPU detector wants.
TEST(YoloHeads, DistributionsAsRows) {
  const int w = kWidth / 8, cells = (kWidth / 8) * (kHeight / 8) + (kWidth / 16) * (kHeight / 16) + 4 * 3;
  std::vector<double> boxes(static_cast<std::size_t>(cells * 64), 0.0);
  std::vector<double> scores(static_cast<std::size_t>(cells * kClasses), -8.0), best(static_cast<std::size_t>(cells));
  const int cell = 3 * w + 2;
  for (int edge = 0; edge < 4; ++edge) boxes[reef::at(cell * 64 + edge * 16 + 1 + edge % 2)] = 50;
  scores[reef::at(cell * kClasses + 1)] = 2;
  const TensorValues box_rows{"boxes", {1, cells, 64}, boxes}, score_rows{"scores", {1, cells, kClasses}, scores};
  const TensorValues best_rows{"best", {1, cells, 1}, best};
  for (const auto& outputs : {std::vector{box_rows, score_rows}, std::vector{score_rows, box_rows},
                              std::vector{score_rows, best_rows, box_rows}}) {
    EXPECT_EQ(task_of_outputs(outputs).kind, TaskKind::kDetector);
    const auto found = decode_detections(outputs, options());
    ASSERT_TRUE(found.ok()) << found.status().message();
    ASSERT_EQ(found->size(), 1u);
    EXPECT_EQ((*found)[0].label, 1);
    EXPECT_NEAR((*found)[0].box.x0 * kWidth, (2.5 - 1) * 8, 1e-4);
    EXPECT_NEAR((*found)[0].box.y1 * kHeight, (3.5 + 2) * 8, 1e-4);
  }
}

// Four classes: their scores have as many numbers as a decoded box.
TEST(YoloHeads, FourClassesAreNoBoxes) {
  constexpr int kCells = 16 * 12 + 8 * 6 + 4 * 3;
  std::vector<double> bins(kCells * 64, -1.0), scores(kCells * 4, -8.0);
  scores[4 * 100 + 2] = 3;
  const auto raw = decode_detections(
      std::vector{TensorValues{"a", {1, kCells, 64}, bins}, TensorValues{"b", {1, kCells, 4}, scores}}, options());
  ASSERT_TRUE(raw.ok()) << raw.status().message();
  ASSERT_EQ(raw->size(), 1u);
  EXPECT_EQ((*raw)[0].label, 2);
  // 64 classes and boxes.
  DetectorOptions how = options();
  how.classes = 64;
  std::vector<double> shares(kCells * 64, 0.0), boxes(kCells * 4, 0.5);
  shares[64 * 100 + 7] = 0.9;
  const auto decoded = decode_detections(
      std::vector{TensorValues{"a", {1, kCells, 4}, boxes}, TensorValues{"b", {1, kCells, 64}, shares}}, how);
  ASSERT_TRUE(decoded.ok()) << decoded.status().message();
  ASSERT_EQ(decoded->size(), 1u);
}

// Features of a backbone, three maps of the same depth, are no detector.
TEST(YoloHeads, FeaturesAreNoHeads) {
  std::vector<TensorValues> outputs;
  for (const int stride : kStrides) {
    outputs.push_back({"features", {1, kHeight / stride, kWidth / stride, 48}, {}});
  }
  EXPECT_EQ(task_of_outputs(outputs).kind, TaskKind::kNumbers);
}

}  // namespace
}  // namespace reef::evaluate
