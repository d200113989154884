// SPDX-License-Identifier: Apache-2.0
// Every form of the YOLO family's outputs, built from known boxes: what is decoded must be those boxes.
#include "evaluate/yolo.h"

#include <cmath>

#include <gtest/gtest.h>

#include "evaluate/findings.h"

namespace reef::evaluate {
namespace {

constexpr int kSize = 64;                      // of the picture
constexpr int kCells = 8 * 8 + 4 * 4 + 2 * 2;  // strides 8, 16, 32
constexpr int kClasses = 3;

// Two things: class 2 in the upper left quarter, class 0 below on the right; in fractions.
struct Thing {
  double cx, cy, w, h;
  int label;
  double score;
};
constexpr Thing kThings[] = {{0.25, 0.25, 0.2, 0.3, 2, 0.9}, {0.7, 0.6, 0.3, 0.2, 0, 0.7}};
constexpr int kPlaces[] = {9, 70};  // rows of the output that hold them

DetectorOptions options() {
  DetectorOptions result;
  result.score_threshold = 0.25;
  result.input_width = result.input_height = kSize;
  return result;
}

// Rows of `channels` numbers, filled by `fill(thing, row)`.
template <typename Fill>
std::vector<double> rows(int count, int channels, const Fill& fill) {
  std::vector<double> values(static_cast<std::size_t>(count * channels), 0.0);
  for (std::size_t i = 0; i < std::size(kThings); ++i) fill(kThings[i], values.data() + kPlaces[i] * channels);
  return values;
}

std::vector<double> transposed(const std::vector<double>& values, int count, int channels) {
  std::vector<double> result(values.size());
  for (int r = 0; r < count; ++r) {
    for (int c = 0; c < channels; ++c) {
      result[at(c * count + r)] = values[at(r * channels + c)];
    }
  }
  return result;
}

void put_box(const Thing& thing, double factor, double* row) {
  row[0] = thing.cx * factor;
  row[1] = thing.cy * factor;
  row[2] = thing.w * factor;
  row[3] = thing.h * factor;
}

void expect_things(const Result<std::vector<Detection>>& found, double tolerance = 1e-9) {
  ASSERT_TRUE(found.ok()) << found.status().message();
  ASSERT_EQ(found->size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    const Detection& box = (*found)[i];
    EXPECT_EQ(box.label, kThings[i].label);
    EXPECT_NEAR(box.score, kThings[i].score, 1e-6);
    EXPECT_NEAR(box.box.x0, kThings[i].cx - kThings[i].w / 2, tolerance);
    EXPECT_NEAR(box.box.y1, kThings[i].cy + kThings[i].h / 2, tolerance);
  }
}

TensorValues tensor(ir::Shape shape, std::vector<double> values) {
  return {"out", std::move(shape), std::move(values)};
}

TEST(Yolo, ClassesBehindBoxes) {
  for (const double factor : {1.0, static_cast<double>(kSize)}) {  // fractions, pixels
    // Cells without a thing have boxes as well.
    auto values =
        rows(kCells, 4 + kClasses, [&](const Thing& thing, double* row) { row[4 + thing.label] = thing.score; });
    for (int r = 0; r < kCells; ++r) put_box({0.5, 0.5, 0.1, 0.1, 0, 0}, factor, values.data() + r * (4 + kClasses));
    for (std::size_t i = 0; i < 2; ++i) put_box(kThings[i], factor, values.data() + kPlaces[i] * (4 + kClasses));
    const TensorValues whole = tensor({1, 4 + kClasses, kCells}, transposed(values, kCells, 4 + kClasses));
    expect_things(decode_detections(std::vector{whole}, options()));
  }
}

TEST(Yolo, ObjectnessBeforeClasses) {
  const auto values = rows(3 * kCells, 5 + kClasses, [](const Thing& thing, double* row) {
    put_box(thing, 1, row);
    row[4] = thing.score;
    row[5 + thing.label] = 1;
  });
  expect_things(decode_detections(std::vector{tensor({1, 3 * kCells, 5 + kClasses}, values)}, options()));
}

TEST(Yolo, PartsWithScalesOfTheirOwn) {
  const auto boxes = rows(kCells, 4, [](const Thing& thing, double* row) { put_box(thing, 1, row); });
  const auto scores = rows(kCells, kClasses, [](const Thing& thing, double* row) { row[thing.label] = thing.score; });
  const std::vector parts = {tensor({1, 4, kCells}, transposed(boxes, kCells, 4)),
                             tensor({1, kClasses, kCells}, transposed(scores, kCells, kClasses))};
  EXPECT_TRUE(are_yolo_parts(parts));
  expect_things(decode_detections(parts, options()));
}

// Boxes and scores then have one shape, and only their longer axis tells how they are laid out.
TEST(Yolo, PartsOfFourClasses) {
  constexpr int kFour = 4;
  const auto boxes = rows(kCells, 4, [](const Thing& thing, double* row) { put_box(thing, 1, row); });
  const auto scores = rows(kCells, kFour, [](const Thing& thing, double* row) { row[thing.label] = thing.score; });
  expect_things(decode_detections(std::vector{tensor({1, 4, kCells}, transposed(boxes, kCells, 4)),
                                              tensor({1, kFour, kCells}, transposed(scores, kCells, kFour))},
                                  options()));
  DetectorOptions rows_first = options();
  rows_first.kind = "yolo8";
  expect_things(
      decode_detections(std::vector{tensor({1, kCells, 4}, boxes), tensor({1, kCells, kFour}, scores)}, rows_first));
}

TEST(Yolo, FinalBoxes) {
  for (const double factor : {1.0, static_cast<double>(kSize)}) {
    std::vector<double> values(300 * 6, 0.0);
    for (std::size_t i = 0; i < 2; ++i) {
      const Thing& thing = kThings[i];
      const double row[] = {(thing.cx - thing.w / 2) * factor,
                            (thing.cy - thing.h / 2) * factor,
                            (thing.cx + thing.w / 2) * factor,
                            (thing.cy + thing.h / 2) * factor,
                            thing.score,
                            static_cast<double>(thing.label)};
      std::copy(std::begin(row), std::end(row), values.begin() + static_cast<std::ptrdiff_t>(6 * i));
    }
    expect_things(decode_detections(std::vector{tensor({1, 300, 6}, values)}, options()));
  }
}

// One class of YOLOv5 has six numbers a row, too: the number of rows tells.
TEST(Yolo, OneClassWithObjectnessIsNotFinal) {
  const auto values = rows(3 * kCells, 6, [](const Thing& thing, double* row) {
    put_box(thing, 1, row);
    row[4] = thing.score;
    row[5] = 1;
  });
  const auto found = decode_detections(std::vector{tensor({1, 3 * kCells, 6}, values)}, options());
  ASSERT_TRUE(found.ok());
  ASSERT_EQ(found->size(), 2u);
  EXPECT_EQ((*found)[0].label, 0);
  EXPECT_NEAR((*found)[0].box.x0, 0.15, 1e-9);
}

TEST(Yolo, MasksArePrototypesWeightedInsideTheBox) {
  constexpr int kMasks = 4, kSide = 16, kChannels = 4 + kClasses + kMasks;
  const auto values = rows(kCells, kChannels, [](const Thing& thing, double* row) {
    put_box(thing, 1, row);
    row[4 + thing.label] = thing.score;
    row[4 + kClasses] = 1;  // the first prototype
  });
  // The first prototype is positive in the left half, and nothing else is anywhere.
  std::vector<double> prototype(kSide * kSide * kMasks, -1.0);
  for (int y = 0; y < kSide; ++y) {
    for (int x = 0; x < kSide / 2; ++x) prototype[at((y * kSide + x) * kMasks)] = 1;
  }
  const std::vector outputs = {tensor({1, kChannels, kCells}, transposed(values, kCells, kChannels)),
                               tensor({1, kSide, kSide, kMasks}, prototype)};
  FindingOptions how;
  how.input = {kSize, kSize};
  const auto found = findings_of({TaskKind::kDetector, "yolo"}, outputs, how);
  ASSERT_TRUE(found.ok()) << found.status().message();
  ASSERT_EQ(found->things.size(), 2u);
  const auto places = [&](std::size_t i) {
    return std::count(found->things[i].mask.values.begin(), found->things[i].mask.values.end(), 1);
  };
  EXPECT_GT(places(0), 0);  // lies in the left half
  EXPECT_EQ(places(1), 0);  // lies in the right half
  EXPECT_EQ(found->things[0].what.label, 2);
}

TEST(Yolo, KeypointsAreToldByNumbersThatAreNoProbabilities) {
  constexpr int kPoints = 5, kChannels = 5 + 3 * kPoints;
  const auto values = rows(kCells, kChannels, [](const Thing& thing, double* row) {
    put_box(thing, kSize, row);
    row[4] = thing.score;
    for (int k = 0; k < kPoints; ++k) {
      row[5 + 3 * k] = 10 + k;
      row[6 + 3 * k] = 20 + k;
      row[7 + 3 * k] = 0.5;
    }
  });
  auto with_boxes = values;
  for (int r = 0; r < kCells; ++r) {
    if (r != kPlaces[0] && r != kPlaces[1])
      put_box({0.5, 0.5, 0.1, 0.1, 0, 0}, kSize, with_boxes.data() + r * kChannels);
  }
  const auto found = decode_detections(
      std::vector{tensor({1, kChannels, kCells}, transposed(with_boxes, kCells, kChannels))}, options());
  ASSERT_TRUE(found.ok());
  ASSERT_EQ(found->size(), 2u);
  ASSERT_EQ((*found)[0].keypoints.size(), 5u);
  EXPECT_NEAR((*found)[0].keypoints[2].x, 12.0 / kSize, 1e-9);
  EXPECT_NEAR((*found)[0].keypoints[2].y, 22.0 / kSize, 1e-9);
  EXPECT_NEAR((*found)[0].keypoints[2].score, 0.5, 1e-9);
}

// A head of stride s: distances to the four sides as one bin each, so that they are whole strides.
TEST(Yolo, RawHeads) {
  std::vector<TensorValues> whole, apart;
  for (const int side : {8, 4, 2}) {
    std::vector<double> boxes(static_cast<std::size_t>(side * side * 64), 0.0);
    std::vector<double> scores(static_cast<std::size_t>(side * side * kClasses), -12.0);
    if (side == 8) {
      const int cell = 3 * side + 2;  // centre at 2.5, 3.5 strides
      for (int edge = 0; edge < 4; ++edge) boxes[at(cell * 64 + edge * 16 + 1 + edge % 2)] = 50;
      scores[at(cell * kClasses + 1)] = 2;
    }
    std::vector<double> both;
    for (int cell = 0; cell < side * side; ++cell) {
      both.insert(both.end(), boxes.begin() + cell * 64, boxes.begin() + (cell + 1) * 64);
      both.insert(both.end(), scores.begin() + cell * kClasses, scores.begin() + (cell + 1) * kClasses);
    }
    whole.push_back(tensor({1, side, side, 64 + kClasses}, both));
    apart.push_back(tensor({1, side, side, 64}, boxes));
    apart.push_back(tensor({1, side, side, kClasses}, scores));
  }
  for (const auto& outputs : {whole, apart}) {
    const auto found = decode_detections(outputs, options());
    ASSERT_TRUE(found.ok()) << found.status().message();
    ASSERT_EQ(found->size(), 1u);
    EXPECT_EQ((*found)[0].label, 1);
    EXPECT_NEAR((*found)[0].score, 1 / (1 + std::exp(-2.0)), 1e-9);
    EXPECT_NEAR((*found)[0].box.x0, (2.5 - 1) / 8, 1e-6);
    EXPECT_NEAR((*found)[0].box.y0, (3.5 - 2) / 8, 1e-6);
    EXPECT_NEAR((*found)[0].box.x1, (2.5 + 1) / 8, 1e-6);
    EXPECT_NEAR((*found)[0].box.y1, (3.5 + 2) / 8, 1e-6);
  }
}

TEST(Yolo, NumbersOfBoxes) {
  EXPECT_TRUE(is_number_of_boxes(8400, 640, 640));   // v8
  EXPECT_TRUE(is_number_of_boxes(25200, 640, 640));  // v5
  EXPECT_TRUE(is_number_of_boxes(2100, 320, 320));   // v8 at 320
  EXPECT_TRUE(is_number_of_boxes(256, 128, 128));    // one stride
  EXPECT_FALSE(is_number_of_boxes(300, 640, 640));
  EXPECT_FALSE(is_number_of_boxes(1000, 224, 224));
}

// Boxes in a letterboxed input, back in the picture.
TEST(Findings, BoxesAreInFractionsOfThePicture) {
  const auto values = rows(3 * kCells, 5 + kClasses, [](const Thing& thing, double* row) {
    put_box(thing, 1, row);
    row[4] = thing.score;
    row[5 + thing.label] = 1;
  });
  FindingOptions how;
  how.input = {kSize, kSize};
  how.placement = {1, 0, 0.5, 0.25};  // a picture twice as wide as high
  const auto found =
      findings_of({TaskKind::kDetector, "yolo"}, std::vector{tensor({1, 3 * kCells, 5 + kClasses}, values)}, how);
  ASSERT_TRUE(found.ok());
  ASSERT_EQ(found->things.size(), 2u);
  EXPECT_NEAR(found->things[1].what.box.x0, 0.55, 1e-9);
  EXPECT_NEAR(found->things[1].what.box.y0, (0.5 - 0.25) / 0.5, 1e-9);
  EXPECT_NEAR(found->things[1].what.box.y1, (0.7 - 0.25) / 0.5, 1e-9);
  EXPECT_NEAR(found->things[0].what.box.y0, 0, 1e-9);  // begins above the picture
}

TEST(Findings, SegmentsByScoreProbabilityAndNumber) {
  std::vector<double> scores(8 * 8 * 3, 0.0), probability(8 * 8, 0.1), numbers(8 * 8, 0.0);
  for (std::size_t i = 0; i < 16; ++i) {
    scores[3 * i + 2] = 1;
    probability[i] = 0.9;
    numbers[i] = 2;
  }
  const Task task{TaskKind::kSegmenter, ""};
  for (const auto& [output, label] : {std::pair{tensor({1, 8, 8, 3}, scores), 2},
                                      {tensor({1, 8, 8, 1}, probability), 1},
                                      {tensor({1, 8, 8}, numbers), 2}}) {
    const auto found = findings_of(task, std::vector{output}, {});
    ASSERT_TRUE(found.ok());
    ASSERT_EQ(found->segments.size(), 2u);
    EXPECT_EQ(found->segments[0].label, 0);
    EXPECT_EQ(found->segments[1].label, label);
    EXPECT_NEAR(found->segments[1].share, 0.25, 1e-9);
  }
}

TEST(Findings, PosesOfMovenetAndPosenet) {
  std::vector<double> movenet;
  for (int k = 0; k < 17; ++k) movenet.insert(movenet.end(), {0.01 * k, 0.02 * k, 0.8});
  FindingOptions how;
  how.input = {200, 100};
  auto found = findings_of({TaskKind::kPose, "movenet"}, std::vector{tensor({1, 1, 17, 3}, movenet)}, how);
  ASSERT_TRUE(found.ok());
  ASSERT_EQ(found->things.size(), 1u);
  EXPECT_NEAR(found->things[0].what.keypoints[10].x, 0.2, 1e-9);
  EXPECT_NEAR(found->things[0].what.keypoints[10].y, 0.1, 1e-9);
  std::vector<double> places, scores(2 * 17, 0.9);
  for (int k = 0; k < 2 * 17; ++k) places.insert(places.end(), {50.0, 20.0});
  const std::vector outputs = {tensor({1, 2, 17, 2}, places), tensor({1, 2, 17}, scores), tensor({1, 2}, {0.9, 0.1}),
                               tensor({1}, {2.0})};
  found = findings_of({TaskKind::kPose, "posenet"}, outputs, how);
  ASSERT_TRUE(found.ok()) << found.status().message();
  ASSERT_EQ(found->things.size(), 1u);
  EXPECT_NEAR(found->things[0].what.keypoints[0].x, 0.1, 1e-9);
  EXPECT_NEAR(found->things[0].what.keypoints[0].y, 0.5, 1e-9);
}

// Foreign outputs: nothing is read beyond what is there.
TEST(Findings, OddShapesAreErrorsOrNothing) {
  for (const ir::Shape& shape : {ir::Shape{1, 4, 4}, {1, 1, 1}, {1, 5, 1}, {1, 0, 9}, {7}, {1, 2, 2, 2, 2}}) {
    std::size_t count = 1;
    for (const auto n : shape) count *= static_cast<std::size_t>(n);
    const std::vector outputs = {tensor(shape, std::vector<double>(count, 0.5))};
    for (const Task& task :
         {Task{TaskKind::kDetector, "yolo"}, Task{TaskKind::kDetector, "ssd"}, Task{TaskKind::kSegmenter, ""},
          Task{TaskKind::kPose, "movenet"}, Task{TaskKind::kPose, "posenet"}}) {
      (void)findings_of(task, outputs, {});
      (void)findings_of(task, std::vector{outputs[0], outputs[0], outputs[0]}, {});
    }
  }
}

}  // namespace
}  // namespace reef::evaluate
