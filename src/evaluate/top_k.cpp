// SPDX-License-Identifier: Apache-2.0
// Top-k: the share of samples whose class is among the k highest values. Of equal values the one with the lower number
// is higher, as in NumPy's argmax; 8-bit outputs often have equal ones.
#include <algorithm>
#include <cmath>

#include "evaluate/kept_numbers.h"
#include "evaluate/metric.h"

namespace reef::evaluate {
namespace {

class TopK : public Metric {
 public:
  TopK(int k, const MetricOptions& options) : k_(k), options_(options) {}

  void start(std::int64_t samples) override { is_right_.assign(static_cast<std::size_t>(samples), 0); }

  Status add(std::int64_t sample, const Answer& answer) override {
    const auto output = static_cast<std::size_t>(options_.output);
    REEF_REQUIRE(output < answer.outputs.size(), "the model has no output {}", options_.output);
    const std::vector<double>& values = answer.outputs[output].values;
    REEF_ASSIGN_OR_RETURN(const std::int64_t label, label_of(answer.truth, values.size()));
    REEF_REQUIRE(
        label >= 0 && label < static_cast<std::int64_t>(values.size()),
        "its label is class {} of output '{}', which has {} values (--label-offset moves labels, --output takes "
        "another output)",
        label, answer.outputs[output].name, values.size());
    const auto right = static_cast<std::size_t>(label);
    int above = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (values[i] > values[right] || (values[i] == values[right] && i < right)) ++above;
    }
    is_right_[at(sample)] = above < k_ && !std::isnan(values[right]) ? 1 : 0;
    return ok_status();
  }

  Result<Figure> finish() const override {
    const auto count = static_cast<double>(is_right_.size());
    const auto right = static_cast<double>(std::count(is_right_.begin(), is_right_.end(), 1));
    Figure figure{k_ == 1 ? "top1" : fmt::format("top{}", k_), right / count, 0, "", {{"right", right}}};
    figure.standard_error = std::sqrt(figure.value * (1 - figure.value) / count);
    return figure;
  }

  nlohmann::json kept(std::int64_t sample) const override { return static_cast<int>(is_right_[at(sample)]); }

  Status restore(std::int64_t sample, const nlohmann::json& kept) override {
    REEF_REQUIRE(kept == 0 || kept == 1, "'{}' is neither 0 nor 1", kept.dump());
    is_right_[at(sample)] = kept == 1 ? 1 : 0;
    return ok_status();
  }

 private:
  Result<std::int64_t> label_of(const data::Truth& truth, std::size_t classes) const {
    if (truth.shape.empty() && truth.values.size() == 1)
      return static_cast<std::int64_t>(truth.values[0]) + options_.label_offset;
    REEF_REQUIRE(truth.values.size() == classes,
                 "its truth has {} values; one class number is needed, or one value for "
                 "each of {} classes",
                 truth.values.size(), classes);
    return std::max_element(truth.values.begin(), truth.values.end()) - truth.values.begin();
  }

  int k_;
  MetricOptions options_;
  std::vector<char> is_right_;  // not bool: threads write neighbours
};

}  // namespace

std::unique_ptr<Metric> make_top_k(int k, const MetricOptions& options) { return std::make_unique<TopK>(k, options); }

}  // namespace reef::evaluate
