// SPDX-License-Identifier: Apache-2.0
// PSNR of pictures that a model makes: 10 log10(255^2 / mean squared error), the mean over all pixels of all samples.
//
// The truth is 8-bit pixels; the output is turned back into pixels by undoing the preprocessing of the input, and
// limited to 0 to 255, not rounded. A truth in floats is compared with the output as it is, for a peak of 1.
#include <algorithm>
#include <cmath>

#include "evaluate/kept_numbers.h"
#include "evaluate/metric.h"

namespace reef::evaluate {
namespace {

class Psnr : public Metric {
 public:
  explicit Psnr(const MetricOptions& options) : options_(options) {}

  void start(std::int64_t samples) override { errors_.assign(static_cast<std::size_t>(samples), {}); }

  Status add(std::int64_t sample, const Answer& answer) override {
    const auto number = static_cast<std::size_t>(options_.output);
    REEF_REQUIRE(number < answer.outputs.size(), "the model has no output {}", options_.output);
    const TensorValues& output = answer.outputs[number];
    const data::Truth& truth = answer.truth;
    REEF_REQUIRE(!truth.values.empty() && truth.values.size() == output.values.size(),
                 "its truth has {} values, output '{}' {} has {}", truth.values.size(), output.name,
                 output.shape.to_string(), output.values.size());
    REEF_ASSIGN_OR_RETURN(const Order order, order_of(truth.shape, output.shape));
    const bool are_pixels = truth.type == ir::DataType::kUInt8;
    Error& error = errors_[at(sample)];
    for (std::size_t i = 0; i < truth.values.size(); ++i) {
      const std::size_t channel = order.truth_channel(i);
      const double value = output.values[order.output_index(i)];
      const double difference = (are_pixels ? pixel_of(value, static_cast<int>(channel)) : value) - truth.values[i];
      error.squares += difference * difference;
    }
    error.count = static_cast<double>(truth.values.size());
    error.peak = are_pixels ? 255 : 1;
    return ok_status();
  }

  Result<Figure> finish() const override {
    double squares = 0, count = 0;
    std::vector<double> means;
    for (const Error& error : errors_) {
      squares += error.squares;
      count += error.count;
      means.push_back(error.squares / error.count);
    }
    const double mean = squares / count;
    REEF_REQUIRE(mean > 0, "every picture is equal to its truth: PSNR is infinite");
    double spread = 0;
    for (const double value : means) spread += (value - mean) * (value - mean);
    const double samples = static_cast<double>(means.size());
    const double error_of_mean = samples > 1 ? std::sqrt(spread / (samples - 1) / samples) : 0;
    Figure figure{"psnr", decibels(errors_[0].peak, mean), 0, "dB", {}};
    figure.standard_error = 10 / std::log(10.0) * error_of_mean / mean;
    double sum = 0;
    for (const double value : means) sum += decibels(errors_[0].peak, std::max(value, 1e-12));
    figure.details = {{"mean_squared_error", mean}, {"mean_of_samples_psnr", sum / samples}};
    return figure;
  }

  nlohmann::json kept(std::int64_t sample) const override {
    const Error& error = errors_[at(sample)];
    return {exact(error.squares), exact(error.count), exact(error.peak)};
  }

  Status restore(std::int64_t sample, const nlohmann::json& kept) override {
    REEF_ASSIGN_OR_RETURN(const std::vector<double> row, exact_row(kept, 3));
    errors_[at(sample)] = {row[0], row[1], row[2]};
    return ok_status();
  }

 private:
  struct Error {
    double squares = 0, count = 0, peak = 255;
  };

  // Where an element of the truth lies in the output: both channels last, or one of them first.
  struct Order {
    std::size_t channels = 1, pixels = 1;
    bool truth_is_last = true, output_is_last = true;
    std::size_t truth_channel(std::size_t i) const { return truth_is_last ? i % channels : i / pixels; }
    std::size_t output_index(std::size_t i) const {
      const std::size_t channel = truth_channel(i), pixel = truth_is_last ? i / channels : i % pixels;
      return output_is_last ? pixel * channels + channel : channel * pixels + pixel;
    }
  };

  static bool is_channels(std::int64_t n) { return n == 1 || n == 3 || n == 4; }

  static Result<Order> order_of(const std::vector<std::int64_t>& truth, const ir::Shape& output) {
    std::vector<std::int64_t> out(output.begin(), output.end());
    while (out.size() > truth.size() && out[0] == 1) out.erase(out.begin());
    Order order;
    if (truth.size() != 3 || out.size() != 3) {
      for (const std::int64_t size : truth) order.pixels *= static_cast<std::size_t>(size);
      return order;
    }
    order.truth_is_last = is_channels(truth[2]);
    order.output_is_last = is_channels(out[2]);
    order.channels = static_cast<std::size_t>(order.truth_is_last ? truth[2] : truth[0]);
    REEF_REQUIRE(static_cast<std::size_t>(order.output_is_last ? out[2] : out[0]) == order.channels,
                 "the output is {}, the truth has {} channels", output.to_string(), order.channels);
    order.pixels = static_cast<std::size_t>(truth[0] * truth[1] * truth[2]) / order.channels;
    return order;
  }

  double pixel_of(double value, int channel) const {
    const data::PixelMap map = data::pixel_map(options_.preprocess, options_.input, channel);
    return std::clamp((value - map.offset) / map.factor, 0.0, 255.0);
  }

  static double decibels(double peak, double mean_square) { return 10 * std::log10(peak * peak / mean_square); }

  MetricOptions options_;
  std::vector<Error> errors_;
};

}  // namespace

std::unique_ptr<Metric> make_psnr(const MetricOptions& options) { return std::make_unique<Psnr>(options); }

}  // namespace reef::evaluate
