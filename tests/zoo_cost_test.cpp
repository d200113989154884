// SPDX-License-Identifier: Apache-2.0
// Predicted time and memory against what compiled files show: the virtual device's simulated time, which rests on the
// instructions and not on shapes, and the lines that the parameter-caching programs fill.
//
// The constants of the prediction were read off these very files: this says how well few formulas describe them, not
// how well they predict the unseen. That is published_latency_test.cpp's question.
#include <algorithm>
#include <cmath>
#include <memory>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "execute/device/device.h"
#include "execute/device/timeline.h"
#include "formats/darwinn/cached_parameters.h"
#include "formats/tflite/reader.h"
#include "partition/cost.h"
#include "retarget/alignment.h"
#include "zoo.h"
#include "zoo_pairs.h"

namespace reef::testing {
namespace {

struct Compared {
  Pair pair;
  ir::Model source;
  retarget::Alignment part;
  darwinn::Package package;
};

Result<std::unique_ptr<Compared>> open(const Pair& pair) {
  auto result = std::make_unique<Compared>();
  result->pair = pair;
  REEF_ASSIGN_OR_RETURN(result->source, tflite::load_model(pair.source));
  REEF_ASSIGN_OR_RETURN(const ir::Model compiled, tflite::load_model(pair.compiled));
  REEF_ASSIGN_OR_RETURN(result->part, retarget::align(compiled, result->source));
  REEF_ASSIGN_OR_RETURN(result->package, package_of(pair.compiled));
  return result;
}

partition::PartCost predict(const Compared& one, const chip::LinkProfile* link) {
  partition::CostOptions options;
  options.link = link;
  const partition::CostModel costs(one.source, options);
  return costs.part(one.part.chip_ops, one.part.inputs, one.part.outputs);
}

Result<double> simulated_ms(const Compared& one, const chip::LinkProfile* link) {
  REEF_ASSIGN_OR_RETURN(const auto loaded, device::LoadedPackage::load(one.package));
  device::TimelineOptions options;
  options.timing.link = link;
  device::Timeline timeline(options);
  device::Device device;
  device.set_observer(&timeline);
  device.set_queue_depths(device::kShallowQueues);
  std::vector<std::vector<std::uint8_t>> inputs;
  for (const darwinn::Layer& layer : loaded->inputs()) {
    inputs.emplace_back(static_cast<std::size_t>(device::tensor_bytes(layer)));
  }
  REEF_RETURN_IF_ERROR(device.run(loaded, {inputs.begin(), inputs.end()}).status());
  double ms = 0;
  for (const device::ProgramRecord& record : timeline.take_records()) {
    if (record.program->type != darwinn::ExecutableType::kParameterCaching) ms += record.time.ms();
  }
  return ms;
}

// 500 additions of 3 channels, in which a compiler of the first generation took 16 steps where its successors take 4.
bool is_odd_one(const Pair& pair) { return pair.name.starts_with("op_model_mat_Add/"); }

TEST(ZooCost, PredictedTimeIsNearTheSimulatedOne) {
  REEF_SKIP_WITHOUT_ZOO(zoo);
  const chip::LinkProfile* link = chip::find_link("usb3");
  struct Errors {
    double sum = 0, worst = 0;
    int count = 0;
    double mean() const { return count > 0 ? sum / count : 0; }
  } recent, old;
  fmt::print("{:<58} {:>9} {:>9} {:>7}\n", "compiled file", "simulated", "predicted", "error");
  for (const Pair& pair : pairs_of(zoo)) {
    if (is_odd_one(pair)) continue;  // also takes long to simulate
    const auto one = open(pair);
    ASSERT_TRUE(one.ok()) << pair.name << ": " << one.status().message();
    const auto simulated = simulated_ms(**one, link);
    ASSERT_TRUE(simulated.ok()) << pair.name << ": " << simulated.status().message();
    const double predicted = predict(**one, link).total() / 1e3;
    const double error = predicted / *simulated - 1;
    fmt::print("{:<58} {:>9.3f} {:>9.3f} {:>+6.1f}%\n", pair.name.substr(0, 58), *simulated, predicted, 100 * error);
    Errors& errors = pair.generation >= 14 ? recent : old;
    errors.sum += std::abs(error);
    errors.worst = std::max(errors.worst, std::abs(error));
    ++errors.count;
  }
  fmt::print(
      "mean error: compilers from version 14 on {:.1f} % of {} files (worst {:.1f} %), older {:.1f} % of {} "
      "(worst {:.1f} %)\n",
      100 * recent.mean(), recent.count, 100 * recent.worst, 100 * old.mean(), old.count, 100 * old.worst);
  EXPECT_GT(recent.count, 25);
  EXPECT_LT(recent.mean(), 0.03);
  EXPECT_LT(recent.worst, 0.10);
  EXPECT_LT(old.mean(), 0.06);  // their softmax takes 120 KB of instructions less than today's
}

// Lines that a parameter-caching program fills, in bytes: what a compiler's log calls memory used for caching.
Result<std::int64_t> lines_filled(const darwinn::Package& package) {
  for (const darwinn::Executable& executable : package.executables) {
    if (executable.type != darwinn::ExecutableType::kParameterCaching) continue;
    REEF_ASSIGN_OR_RETURN(const auto pieces, darwinn::find_cached_pieces(executable));
    std::int64_t lines = 0;
    for (const darwinn::CachedPiece& piece : pieces) lines += piece.lines;
    return lines * chip::kWideLineBytes;
  }
  return 0;
}

std::int64_t streamed(const darwinn::Package& package) {
  std::int64_t bytes = 0;
  for (const darwinn::Executable& executable : package.executables) {
    if (executable.type == darwinn::ExecutableType::kParameterCaching) continue;
    bytes += static_cast<std::int64_t>(executable.parameters.size());
  }
  return bytes;
}

TEST(ZooCost, ParameterMemoryIsThatOfCompiledFiles) {
  REEF_SKIP_WITHOUT_ZOO(zoo);
  int files = 0, exact = 0, streamed_exactly = 0;
  for (const Pair& pair : pairs_of(zoo)) {
    if (pair.generation < 14) continue;  // the older ones compute softmax without parameters
    const auto one = open(pair);
    ASSERT_TRUE(one.ok()) << pair.name;
    const auto filled = lines_filled((*one)->package);
    ASSERT_TRUE(filled.ok()) << pair.name << ": " << filled.status().message();
    const partition::PartCost cost = predict(**one, nullptr);
    ++files;
    exact += cost.cache_used == *filled ? 1 : 0;
    streamed_exactly += cost.streamed_bytes == streamed((*one)->package) ? 1 : 0;
    if (cost.cache_used != *filled || cost.streamed_bytes != streamed((*one)->package)) {
      fmt::print("{}: cached {} predicted, {} filled; streamed {} predicted, {} sent\n", pair.name, cost.cache_used,
                 *filled, cost.streamed_bytes, streamed((*one)->package));
    }
  }
  fmt::print("memory used for parameters predicted exactly for {} of {} files, bytes streamed for {}\n", exact, files,
             streamed_exactly);
  EXPECT_GE(exact * 100, files * 60);
  EXPECT_GE(streamed_exactly * 100, files * 90);
}

// Values that others measured with these very binaries; see bench/simulated_latency.py.
TEST(ZooCost, PredictedTimeIsNearThePublishedOne) {
  REEF_SKIP_WITHOUT_ZOO(zoo);
  struct Row {
    std::string_view file, link;
    double ms;
  };
  constexpr std::string_view kExtractor = "mobilenet_v1_1.0_224_quant_embedding_extractor/v15_edgetpu";
  constexpr std::string_view kMobileNet2 = "mobilenet_v2_1.0_224_quant/v2_edgetpu";
  constexpr std::string_view kConvolutions = "op_model_conv_128x128x3x32x7x10/v1_edgetpu";
  const Row rows[] = {
      {"mobilenet_v1_0.25_128_quant/v15_edgetpu", "usb3", 0.9},
      {kExtractor, "usb3", 2.2},
      {kExtractor, "usb3-jetson", 2.41},
      {kExtractor, "usb2", 8.49},
      {kExtractor, "pcie-devboard", 2.22},
      {kExtractor, "usb3-rpi4", 4.2},
      {kMobileNet2, "usb3", 2.3},
      {kMobileNet2, "usb3-jetson", 2.53},
      {kMobileNet2, "usb2", 9.97},
      {kMobileNet2, "pcie-devboard", 2.56},
      {kMobileNet2, "usb3-rpi4", 4.55},
      {"posenet_353_481/v15_edgetpu", "usb3", 5.8},
      {"posenet_481_641/v15_edgetpu", "usb3", 10.3},
      {kConvolutions, "usb3-jetson", 7.82},
      {kConvolutions, "usb2", 8.54},
      {"dense_256/v16_edgetpu", "usb3", 0.28},
      {"dense_1024/v16_edgetpu", "usb3", 0.29},
      {"op_model_stride_128x128x3/v1_edgetpu", "usb3-jetson", 0.412},
      {"op_model_stride_256x256x3/v1_edgetpu", "usb3-jetson", 0.924},
      {"op_model_padding_stride_256x256x3/v1_edgetpu", "usb3-jetson", 0.307},
  };
  double sum = 0;
  int count = 0;
  for (const Pair& pair : pairs_of(zoo)) {
    for (const Row& row : rows) {
      if (pair.name != row.file) continue;
      const auto one = open(pair);
      ASSERT_TRUE(one.ok()) << pair.name;
      const double predicted = predict(**one, chip::find_link(row.link)).total() / 1e3;
      const double error = predicted / row.ms - 1;
      fmt::print("{:<62} {:<14} published {:>7.3f} predicted {:>7.3f} {:>+6.1f}%\n", pair.name, row.link, row.ms,
                 predicted, 100 * error);
      sum += std::abs(error);
      ++count;
    }
  }
  fmt::print("mean error {:.1f} % of {} rows\n", 100 * sum / count, count);
  EXPECT_EQ(count, static_cast<int>(std::size(rows)));
  EXPECT_LT(sum / count, 0.09);  // most of it: MobileNet v2, compiled with an old compiler's short softmax
}

TEST(ZooCost, AnyModelOfTheCollectionHasACost) {
  REEF_SKIP_WITHOUT_ZOO(zoo);
  int models = 0;
  for (const std::string& path : tflite_files(zoo)) {
    const auto model = tflite::load_model(path);
    if (!model.ok()) continue;
    const partition::CostModel costs(*model, {});
    std::vector<std::int32_t> ops;
    for (std::size_t i = 0; i < model->subgraphs[0].operators.size(); ++i) {
      ops.push_back(static_cast<std::int32_t>(i));
      const partition::OpCost& cost = costs.op(ops.back());
      EXPECT_TRUE(std::isfinite(cost.chip) && cost.chip >= 0) << path << " op " << i;
      EXPECT_TRUE(std::isfinite(cost.cpu) && cost.cpu > 0) << path << " op " << i;
    }
    const partition::PartCost part = costs.part(ops, model->subgraphs[0].inputs, model->subgraphs[0].outputs);
    EXPECT_TRUE(std::isfinite(part.total()) && part.total() > 0) << path;
    EXPECT_GE(part.cache_capacity, part.cache_used) << path;
    ++models;
  }
  EXPECT_GT(models, 100);
}

}  // namespace
}  // namespace reef::testing
