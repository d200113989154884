// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "formats/tflite/reader.h"
#include "quantize/session.h"
#include "random_samples.h"

namespace reef::quantize {
namespace {

// The quantized model keeps float inputs.
QuantizeOptions float_io() {
  QuantizeOptions options;
  options.input_type = options.output_type = IoType::kFloat32;
  return options;
}

State with_ranges(State state, RangeMethod method, double percentile, const QuantizeOptions& options) {
  std::fill(state.requests.begin(), state.requests.end(), RangeRequest{method, percentile});
  state.refresh(options);
  return state;
}

// A session on the shipped network whose start has the ranges of `start`, and which then took those of `taken`.
struct Trial {
  Trial(std::int64_t samples, RangeMethod start, RangeMethod taken) : source(samples, 0, 1), session(source, options) {
    auto model = tflite::load_model(REEF_SOURCE_DIR "/models/reef_creatures_float.tflite");
    EXPECT_TRUE(model.ok());
    EXPECT_TRUE(session.split_samples().ok());
    State state;
    state.model = state.float_model = std::make_shared<const ir::Model>(std::move(model).value());
    auto seen = session.observe(state.model, "");
    EXPECT_TRUE(seen.ok());
    state.calibration = std::move(seen).value();
    state.requests.resize(state.model->subgraphs[0].tensors.size());
    EXPECT_TRUE(session.take_reference(state.model).ok());
    EXPECT_TRUE(session.start(with_ranges(state, start, 60, options), "start").ok());
    State other = with_ranges(state, taken, 60, options);
    const auto error = session.measure(other);
    EXPECT_TRUE(error.ok());
    session.take(std::move(other), "taken", *error);
    EXPECT_TRUE(session.go_back_if_worse().ok());
  }
  RangeMethod method() const { return session.best().requests[0].method; }

  QuantizeOptions options = float_io();
  testing::RandomSamples source;
  Session session;
};

// 3 samples cannot be dealt, of 8 none is held back, of 20 some are, of 170 enough.
TEST(Confirm, AChoiceThatIsWorseIsTakenBack) {
  for (const int samples : {3, 8, 20, 170}) {
    const Trial run(samples, RangeMethod::kMinMax, RangeMethod::kPercentile);
    EXPECT_EQ(run.method(), RangeMethod::kMinMax) << samples;
  }
}

TEST(Confirm, AChoiceThatIsBetterStays) {
  for (const int samples : {3, 8, 20, 170}) {
    const Trial run(samples, RangeMethod::kPercentile, RangeMethod::kMinMax);
    EXPECT_EQ(run.method(), RangeMethod::kMinMax) << samples;
  }
}

// One sample is four times as loud as the others. Ranges that had seen it would not be too narrow for it.
class OneIsLoud : public testing::RandomSamples {
 public:
  static constexpr std::int64_t kLoud = 5;
  explicit OneIsLoud(std::int64_t count) : RandomSamples(count, 0, 1) {}
  Status read(std::int64_t sample, const data::InputSpec& input, std::span<std::byte> target) const override {
    REEF_RETURN_IF_ERROR(RandomSamples::read(sample, input, target));
    std::vector<float> values(target.size() / sizeof(float));
    std::memcpy(values.data(), target.data(), target.size());
    for (float& value : values) value *= sample == kLoud ? 4 : 1;
    std::memcpy(target.data(), values.data(), target.size());
    return ok_status();
  }
};

TEST(Dealing, FewSamplesAreMeasuredWithRangesThatHaveNotSeenThem) {
  auto loaded = tflite::load_model(REEF_SOURCE_DIR "/models/reef_creatures_float.tflite");
  ASSERT_TRUE(loaded.ok());
  const auto model = std::make_shared<const ir::Model>(std::move(loaded).value());
  const QuantizeOptions options = float_io();
  const OneIsLoud source(8);
  Session session(source, options);
  ASSERT_TRUE(session.split_samples().ok());
  session.measure_with_more(*model);
  EXPECT_TRUE(session.deals());
  EXPECT_EQ(session.measured().size(), 8u);
  State state;
  state.model = state.float_model = model;
  auto seen = session.observe(model, "");
  ASSERT_TRUE(seen.ok());
  state.calibration = std::move(seen).value();
  state.requests.resize(model->subgraphs[0].tensors.size());
  state.refresh(options);
  ASSERT_TRUE(session.take_reference(model).ok());
  const auto narrow = session.measure(state);
  for (RangeRequest& request : state.requests) request.room = 3;
  state.refresh(options);
  const auto wide = session.measure(state);
  ASSERT_TRUE(narrow.ok() && wide.ok());
  int limited = 0;
  for (const ir::Operator& op : model->subgraphs[0].operators) {
    if (op.attributes.get_enum("fused_activation_function", "NONE") != "RELU6") continue;
    EXPECT_LE(state.plan.ranges[at(op.outputs[0])].max, 6) << "room beyond what a value can be";
    ++limited;
  }
  EXPECT_GT(limited, 0);
  // Position in measured(), which is 0 to 7 here.
  EXPECT_LT(wide->noise[0][OneIsLoud::kLoud], narrow->noise[0][OneIsLoud::kLoud] / 4);
  EXPECT_GT(wide->noise[0][0], narrow->noise[0][0]);
}

TEST(Dealing, ManySamplesAreNotDealt) {
  auto model = tflite::load_model(REEF_SOURCE_DIR "/models/reef_creatures_float.tflite");
  ASSERT_TRUE(model.ok());
  const QuantizeOptions options = float_io();
  const testing::RandomSamples source(400, 0, 1);
  Session session(source, options);
  ASSERT_TRUE(session.split_samples().ok());
  session.measure_with_more(*model);
  EXPECT_FALSE(session.deals());
}

// What the session does beside that is the same on any number of threads, and the best has the ranges of all samples.
TEST(Confirm, RangesOfPartsAreOnlyForComparing) {
  Trial run(8, RangeMethod::kPercentile, RangeMethod::kMinMax);
  const auto all = run.session.observe(run.session.best().float_model, "");
  ASSERT_TRUE(all.ok());
  for (std::size_t t = 0; t < (*all)->tensors.size(); ++t) {
    if (!(*all)->tensors[t].seen()) continue;
    EXPECT_EQ((*all)->tensors[t].max, run.session.best().calibration->tensors[t].max) << t;
  }
}

}  // namespace
}  // namespace reef::quantize
