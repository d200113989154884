// SPDX-License-Identifier: Apache-2.0
// The collection's float models on its data give the figures that were recorded when they were trained, by PyTorch and
// ONNX Runtime.
#include <gtest/gtest.h>

#include "compiler/front_end.h"
#include "evaluate/evaluation.h"
#include "zoo.h"

namespace reef::testing {
namespace {

struct Suite {
  std::string_view model, data, metric;
  double recorded;  // zoo/onnx/metrics_*.json
  double
      tolerance;  // what may be due to another order of additions, or, for boxes, to 100 pictures of the 500 recorded
};
constexpr Suite kSuites[] = {
    {"fashion_cnn", "fashion_eval", "top1", 0.9125, 0.001},
    {"fashion_gru", "fashion_eval", "top1", 0.899, 0.001},
    {"cifar_resnet8", "cifar10_eval", "top1", 0.787, 0.001},
    {"cifar_unet_denoise", "denoise_eval", "psnr", 28.4617, 0.002},
    {"shapes_yolo", "shapes_eval", "map50", 0.9826, 0.015},
    {"text_bert_tiny", "text_eval", "top1", 0.8855, 0.001},
};

TEST(ZooEvaluation, FloatModelsGiveTheRecordedFigures) {
  REEF_SKIP_WITHOUT_ZOO(zoo);
  for (const Suite& suite : kSuites) {
    auto loaded = compiler::load_any_model(fmt::format("{}/onnx/{}.onnx", zoo, suite.model));
    ASSERT_TRUE(loaded.ok()) << loaded.status().message();
    const auto model = std::make_shared<const ir::Model>(std::move(loaded->model));
    data::DatasetOptions options;
    options.path = fmt::format("{}/data/{}.npz", zoo, suite.data);
    options.preprocess = "tf";
    const auto dataset = data::Dataset::open(options, *model);
    ASSERT_TRUE(dataset.ok()) << suite.model << ": " << dataset.status().message();
    evaluate::MetricOptions metric_options;
    metric_options.input = data::input_spec(*model, 0);
    metric_options.preprocess = (*dataset)->preprocess().preprocess;
    const auto metric = evaluate::make_metric(std::string(suite.metric), metric_options, **dataset);
    ASSERT_TRUE(metric.ok()) << metric.status().message();
    evaluate::RunnerOptions run;
    run.threads = 2;
    const auto result = evaluate::evaluate(model, **dataset, **metric, run);
    ASSERT_TRUE(result.ok()) << suite.model << ": " << result.status().message();
    fmt::print("{:<20} {} {:.4f} (recorded {:.4f}), standard error {:.4f}, {} samples, {:.1f} s\n", suite.model,
               suite.metric, result->figure.value, suite.recorded, result->figure.standard_error, result->samples,
               result->run.seconds);
    EXPECT_NEAR(result->figure.value, suite.recorded, suite.tolerance) << suite.model;
  }
}

}  // namespace
}  // namespace reef::testing
