// SPDX-License-Identifier: Apache-2.0
// Figures against those of plain NumPy code (tools/oracle/make_metric_vectors.py).
#include "evaluate/metric.h"

#include <fstream>
#include <thread>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "evaluate/box_truth.h"
#include "evaluate/boxes.h"

namespace reef::evaluate {
namespace {

using Json = nlohmann::json;

const Json& vectors() {
  static const Json json = Json::parse(std::ifstream(REEF_SOURCE_DIR "/tests/data/metrics.json"));
  return json;
}

std::vector<data::Truth> truths_of(const Json& row) {
  std::vector<data::Truth> truths;
  for (const Json& values : row["truths"]) {
    data::Truth truth{ir::DataType::kInt16, row["truth_shape"].get<std::vector<std::int64_t>>(),
                      values.get<std::vector<double>>()};
    if (row["metric"] == "psnr")
      truth.type = row["options"].contains("pixels") ? ir::DataType::kUInt8 : ir::DataType::kFloat32;
    truths.push_back(std::move(truth));
  }
  return truths;
}

Result<Figure> figure_of(const Json& row, int threads) {
  const std::vector<data::Truth> truths = truths_of(row);
  const std::string name = row["metric"];
  MetricOptions options;
  options.label_offset = row["options"].value("label_offset", 0);
  REEF_ASSIGN_OR_RETURN(options.preprocess, data::parse_preprocess(row["options"].value("preprocess", "none")));
  const int size = row["options"].value("size", 1);
  options.input.shape = ir::Shape{1, size, size, 3};
  std::unique_ptr<Metric> metric = name == "top1"   ? make_top_k(1, options)
                                   : name == "top5" ? make_top_k(5, options)
                                   : name == "psnr" ? make_psnr(options)
                                                    : make_mean_iou(options);
  if (name == "map50") {
    REEF_ASSIGN_OR_RETURN(const BoxForm form, box_form("auto", truths, {size, size}));
    metric = make_map50(options, form);
  }
  const auto count = static_cast<std::int64_t>(truths.size());
  metric->start(count);
  std::vector<Status> statuses(truths.size());
  const auto add = [&](std::int64_t sample) {
    std::vector<TensorValues> outputs;
    for (std::size_t i = 0; i < row["output_shapes"].size(); ++i) {
      outputs.push_back({"out", ir::Shape(row["output_shapes"][i].get<std::vector<std::int32_t>>()),
                         row["outputs"][at(sample)][i].get<std::vector<double>>()});
    }
    const data::Truth& truth = truths[at(sample)];
    statuses[at(sample)] = metric->add(sample, {outputs, truth, {}, {size, size}});
  };
  std::vector<std::thread> workers;
  for (int t = 0; t < threads; ++t) {
    // Backwards, so that the order of arrival is not that of the samples.
    workers.emplace_back([&, t] {
      for (std::int64_t i = count - 1 - t; i >= 0; i -= threads) add(i);
    });
  }
  for (std::thread& worker : workers) worker.join();
  for (const Status& status : statuses) REEF_RETURN_IF_ERROR(status);
  return metric->finish();
}

TEST(Metrics, EqualWhatNumpyGives) {
  ASSERT_GE(vectors()["metrics"].size(), 14u);
  for (const Json& row : vectors()["metrics"]) {
    const auto figure = figure_of(row, 1);
    ASSERT_TRUE(figure.ok()) << row["metric"] << ": " << figure.status().message();
    const double tolerance = row["metric"] == "psnr" ? 1e-3 : 1e-9;  // recorded outputs are rounded
    EXPECT_NEAR(figure->value, row["expected"].get<double>(), tolerance) << row["metric"] << row["output_shapes"];
    const auto again = figure_of(row, 3);
    ASSERT_TRUE(again.ok());
    EXPECT_EQ(again->value, figure->value);
    EXPECT_EQ(again->standard_error, figure->standard_error);
  }
}

TEST(Metrics, StandardErrorIsAboutWhatTheSpreadSays) {
  for (const Json& row : vectors()["metrics"]) {
    const auto figure = figure_of(row, 1);
    ASSERT_TRUE(figure.ok());
    EXPECT_GT(figure->standard_error, 0) << row["metric"];
    EXPECT_LT(figure->standard_error, row["metric"] == "psnr" ? 3 : 0.15) << row["metric"];
  }
  const auto top1 = figure_of(vectors()["metrics"][0], 1);
  EXPECT_NEAR(top1->standard_error, std::sqrt(0.1 * 0.9 / 40), 1e-12);
}

TEST(Metrics, TellFormsOfBoxesApart) {
  const auto form = [](std::vector<double> values, std::pair<int, int> size) {
    const auto rows = static_cast<std::int64_t>(values.size() / 5);
    const data::Truth truth{ir::DataType::kFloat32, {rows, 5}, std::move(values)};
    return box_form("auto", {&truth, 1}, size)->to_string();
  };
  EXPECT_EQ(form({65, 55, 24, 24, 2, 20, 26, 12, 12, 1, -1, -1, -1, -1, -1}, {128, 128}), "cxcywh+class,pixels");
  EXPECT_EQ(form({10, 10, 90, 80, 2, 20, 26, 60, 70, 1}, {128, 128}), "xyxy+class,pixels");
  EXPECT_EQ(form({2, 10, 10, 90, 80, 1, 20, 26, 60, 70}, {128, 128}), "class+xyxy,pixels");
  EXPECT_EQ(form({2, 10, 10, 110, 8, 1, 60, 70, 20, 26}, {128, 128}), "class+xywh,pixels");
  EXPECT_EQ(form({0.5, 0.5, 0.25, 0.25, 3, 0.75, 0.5, 0.5, 0.1, 0}, {128, 128}), "cxcywh+class,fractions");
  const data::Truth wrong{ir::DataType::kFloat32, {2, 4}, std::vector<double>(8, 0)};
  EXPECT_NE(box_form("auto", {&wrong, 1}, {8, 8}).status().message().find("[n, 5]"), std::string::npos);
}

TEST(Metrics, ADetectorsOutputInPartsIsTheSameAsInOne) {
  constexpr std::size_t kBoxes = 9, kChannels = 7;
  TensorValues whole{"out", ir::Shape{1, kBoxes, kChannels}, {}};
  for (std::size_t i = 0; i < kBoxes * kChannels; ++i) {
    whole.values.push_back(static_cast<double>((i * 37) % 101) / 101);  // all different
  }
  const auto columns = [&](std::size_t first, std::size_t last) {
    TensorValues part{"part", ir::Shape{1, kBoxes, static_cast<std::int32_t>(last - first)}, {}};
    for (std::size_t row = 0; row < kBoxes; ++row) {
      for (std::size_t c = first; c < last; ++c) part.values.push_back(whole.values[row * kChannels + c]);
    }
    return part;
  };
  const auto in_one = decode_detections(std::vector{whole}, {});
  const auto in_parts = decode_detections(std::vector{columns(0, 4), columns(4, 5), columns(5, 7)}, {});
  ASSERT_TRUE(in_one.ok() && in_parts.ok());
  EXPECT_GT(in_one->size(), 3u);
  ASSERT_EQ(in_parts->size(), in_one->size());
  for (std::size_t i = 0; i < in_one->size(); ++i) {
    EXPECT_EQ((*in_parts)[i].score, (*in_one)[i].score);
    EXPECT_EQ((*in_parts)[i].label, (*in_one)[i].label);
    EXPECT_EQ((*in_parts)[i].box.x0, (*in_one)[i].box.x0);
  }
}

TEST(Metrics, AWrongLabelIsNamed) {
  const auto metric = make_top_k(1, {});
  metric->start(1);
  const TensorValues output{"scores", ir::Shape{1, 3}, {0, 1, 2}};
  const data::Truth truth{ir::DataType::kInt64, {}, {3}};
  const Status status = metric->add(0, {{&output, 1}, truth, {}, {0, 0}});
  EXPECT_NE(status.message().find("class 3 of output 'scores', which has 3"), std::string::npos);
}

}  // namespace
}  // namespace reef::evaluate
