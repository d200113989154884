// SPDX-License-Identifier: Apache-2.0
// Parts of a calibration, in any division and any order, give the bits of a calibration in one piece.
#include "quantize/calibration_part.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include <gtest/gtest.h>

namespace reef::quantize {
namespace {

// Samples of very different sizes, so that histograms grow and sums round; every fifth repeats the one before.
class Samples : public data::SampleSource {
 public:
  std::int64_t size() const override { return 40; }
  Status read(std::int64_t sample, const data::InputSpec& input, std::span<std::byte> target) const override {
    std::mt19937 random(static_cast<unsigned>(sample % 5 == 4 ? sample - 1 : sample));
    std::vector<float> values(target.size() / sizeof(float));
    const float scale = std::ldexp(1.0f, static_cast<int>(random() % 20) - 10);
    for (float& value : values) value = scale * (static_cast<float>(random() % 2001) / 1000 - 1);
    std::memcpy(target.data(), values.data(), target.size());
    (void)input;
    return ok_status();
  }
};

// y = RELU(x * w + b), z = y + x: a layer, and a stream whose channels are observed.
std::shared_ptr<const ir::Model> network() {
  ir::Model model;
  model.buffers.emplace_back();
  std::vector<std::uint8_t> bytes(36 * sizeof(float));
  std::mt19937 random(3);
  for (std::size_t i = 0; i < 36; ++i) {
    const float value = static_cast<float>(random() % 2001) / 1000 - 1;
    std::memcpy(bytes.data() + i * sizeof(float), &value, sizeof value);
  }
  ir::Subgraph graph;
  const auto tensor = [&](const char* name, ir::Shape shape) {
    ir::Tensor t;
    t.name = name;
    t.type = ir::DataType::kFloat32;
    t.shape = std::move(shape);
    graph.tensors.push_back(std::move(t));
  };
  tensor("x", ir::Shape({1, 6}));
  tensor("w", ir::Shape({6, 6}));
  tensor("y", ir::Shape({1, 6}));
  tensor("z", ir::Shape({1, 6}));
  graph.inputs = {0};
  graph.outputs = {3};
  ir::Operator layer;
  layer.type = "FULLY_CONNECTED";
  layer.inputs = {0, 1, -1};
  layer.outputs = {2};
  ir::Operator sum;
  sum.type = "ADD";
  sum.inputs = {2, 0};
  sum.outputs = {3};
  graph.operators = {layer, sum};
  model.subgraphs = {std::move(graph)};
  ir::Tensor& weights = model.subgraphs[0].tensors[1];
  model.buffers.emplace_back();
  weights.buffer = 1;
  model.buffers[1].data = Bytes(std::move(bytes));
  return std::make_shared<const ir::Model>(std::move(model));
}

template <typename T>
void expect_same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  ASSERT_EQ(a.size(), b.size());
  EXPECT_TRUE(a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

void expect_equal(const Calibration& a, const Calibration& b) {
  EXPECT_EQ(a.samples, b.samples);
  EXPECT_EQ(a.repeated_samples, b.repeated_samples);
  ASSERT_EQ(a.tensors.size(), b.tensors.size());
  for (std::size_t t = 0; t < a.tensors.size(); ++t) {
    const TensorStatistics &x = a.tensors[t], &y = b.tensors[t];
    expect_same_bits<double>({x.average_min, x.average_max}, {y.average_min, y.average_max});
    expect_same_bits<float>({x.min, x.max}, {y.min, y.max});
    EXPECT_EQ(x.values, y.values);
    expect_same_bits(x.channels.sum, y.channels.sum);
    expect_same_bits(x.channels.min, y.channels.min);
    EXPECT_EQ(x.channels.count, y.channels.count);
    EXPECT_EQ(x.histogram.zeros(), y.histogram.zeros());
    EXPECT_EQ(x.histogram.limit(), y.histogram.limit());
    expect_same_bits<std::uint64_t>({x.histogram.counts().begin(), x.histogram.counts().end()},
                                    {y.histogram.counts().begin(), y.histogram.counts().end()});
  }
}

class Parts : public ::testing::Test {
 protected:
  Parts() : model_(network()) {
    for (std::int64_t i = 0; i < 40; i += 1) {
      if (i % 7 != 0) samples_.push_back(i);  // as if some were held back
    }
  }

  // Through bytes, as between processes.
  CalibrationPart part(std::int64_t begin, std::int64_t end) const {
    std::vector<std::int64_t> positions;
    for (std::int64_t i = begin; i < end; ++i) positions.push_back(i);
    auto made = calibrate_part(model_, source_, samples_, positions, {.threads = 2, .progress = {}});
    EXPECT_TRUE(made.ok()) << made.status().message();
    auto again = read_part(to_bytes(*made));
    EXPECT_TRUE(again.ok()) << again.status().message();
    return std::move(again).value();
  }

  std::shared_ptr<const ir::Model> model_;
  Samples source_;
  std::vector<std::int64_t> samples_;
};

TEST_F(Parts, InAnyDivisionAndOrderAreTheWhole) {
  const auto whole = calibrate(model_, source_, samples_, {.threads = 1, .progress = {}});
  ASSERT_TRUE(whole.ok()) << whole.status().message();
  EXPECT_GT(whole->repeated_samples, 0);
  EXPECT_FALSE(whole->tensors[0].channels.sum.empty());
  const auto all = std::ssize(samples_);
  for (const std::int64_t count : {std::int64_t{1}, std::int64_t{2}, std::int64_t{5}, all}) {
    std::vector<CalibrationPart> parts;
    for (std::int64_t i = 0; i < count; ++i) parts.push_back(part(all * i / count, all * (i + 1) / count));
    std::mt19937 random(static_cast<unsigned>(count));
    std::shuffle(parts.begin(), parts.end(), random);
    const auto merged = merge_parts(*model_, samples_, parts);
    ASSERT_TRUE(merged.ok()) << merged.status().message();
    expect_equal(*merged, *whole);
  }
}

TEST_F(Parts, ThatDoNotBelongTogetherAreRefused) {
  const auto all = std::ssize(samples_);
  const auto expect = [&](const std::vector<CalibrationPart>& parts, const char* words) {
    const auto merged = merge_parts(*model_, samples_, parts);
    ASSERT_FALSE(merged.ok());
    EXPECT_NE(merged.status().message().find(words), std::string::npos) << merged.status().message();
  };
  expect({part(0, 10)}, "in none of the parts");
  expect({part(0, 10), part(9, all)}, "in two parts");
  CalibrationPart other = part(0, all);
  other.subject[0] = other.subject[0] == 'a' ? 'b' : 'a';
  expect({other}, "another model");
}

TEST_F(Parts, DamagedBytesAreRefusedAndNeverRead) {
  const std::vector<std::uint8_t> good = to_bytes(part(0, 3));
  ASSERT_TRUE(read_part(good).ok());
  for (std::size_t size = 0; size < good.size(); size += 97) {
    EXPECT_FALSE(read_part(std::span(good).first(size)).ok()) << size;
  }
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i) {
    std::vector<std::uint8_t> bad = good;
    bad[random() % bad.size()] = static_cast<std::uint8_t>(random());
    const auto read = read_part(bad);
    if (read.ok()) (void)merge_parts(*model_, samples_, {*read});
  }
}

}  // namespace
}  // namespace reef::quantize
