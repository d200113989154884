// SPDX-License-Identifier: Apache-2.0
// Mean IoU of segmentations: for every class the pixels that truth and model both give it, as a share of those that
// either gives it, over all samples; then the mean over classes that occur in either. Pixels whose truth is the ignored
// label (255) do not count. A smaller or larger output is read at the place of each pixel of the mask.
#include <cmath>
#include <map>

#include "data/subset.h"
#include "evaluate/kept_numbers.h"
#include "evaluate/metric.h"

namespace reef::evaluate {
namespace {

// The class that an output gives each of its pixels.
struct ClassMap {
  std::int64_t height = 0, width = 0;
  std::vector<std::int64_t> classes;
};

Result<ClassMap> class_map(const TensorValues& output, std::int64_t mask_height, std::int64_t mask_width) {
  std::vector<std::int64_t> dims(output.shape.begin(), output.shape.end());
  while (dims.size() > 2 && dims[0] == 1) dims.erase(dims.begin());
  if (dims.size() == 3 && dims[2] == 1) dims.pop_back();
  ClassMap map;
  if (dims.size() == 2) {
    map = {dims[0], dims[1], {}};
    for (const double value : output.values) map.classes.push_back(static_cast<std::int64_t>(std::llround(value)));
    return map;
  }
  REEF_REQUIRE(
      dims.size() == 3 && !output.values.empty(),
      "output '{}' is {}; a segmentation needs [1, height, width, classes], [1, classes, height, width] or class "
      "numbers [1, height, width]",
      output.name, output.shape.to_string());
  // Channels are first where that fits the mask's aspect ratio and channels last does not.
  const auto fits = [&](std::int64_t h, std::int64_t w) { return h * mask_width == w * mask_height; };
  const bool is_first = fits(dims[1], dims[2]) && !fits(dims[0], dims[1]);
  const std::int64_t channels = is_first ? dims[0] : dims[2];
  map = {is_first ? dims[1] : dims[0], is_first ? dims[2] : dims[1], {}};
  const std::int64_t pixels = map.height * map.width;
  for (std::int64_t i = 0; i < pixels; ++i) {
    const auto value = [&](std::int64_t c) { return output.values[at(is_first ? c * pixels + i : i * channels + c)]; };
    std::int64_t best = 0;
    for (std::int64_t c = 1; c < channels; ++c) best = value(c) > value(best) ? c : best;
    map.classes.push_back(best);
  }
  return map;
}

class MeanIou : public Metric {
 public:
  explicit MeanIou(const MetricOptions& options) : options_(options) {}

  void start(std::int64_t samples) override { counts_.assign(static_cast<std::size_t>(samples), {}); }

  Status add(std::int64_t sample, const Answer& answer) override {
    const auto number = static_cast<std::size_t>(options_.output);
    REEF_REQUIRE(number < answer.outputs.size(), "the model has no output {}", options_.output);
    std::vector<std::int64_t> mask = answer.truth.shape;
    while (mask.size() > 2 && mask[0] == 1) mask.erase(mask.begin());
    if (mask.size() == 3 && mask[2] == 1) mask.pop_back();
    REEF_REQUIRE(mask.size() == 2 && mask[0] > 0 && mask[1] > 0, "its truth is no mask [height, width]");
    REEF_ASSIGN_OR_RETURN(const ClassMap map, class_map(answer.outputs[number], mask[0], mask[1]));
    Counts& counts = counts_[at(sample)];
    for (std::int64_t y = 0; y < mask[0]; ++y) {
      for (std::int64_t x = 0; x < mask[1]; ++x) {
        const auto label = static_cast<std::int64_t>(answer.truth.values[at(y * mask[1] + x)]);
        if (label == options_.ignored_label || label < 0) continue;
        const std::int64_t row = (2 * y + 1) * map.height / (2 * mask[0]),
                           column = (2 * x + 1) * map.width / (2 * mask[1]);
        ++counts[{label + options_.label_offset, map.classes[at(row * map.width + column)]}];
      }
    }
    return ok_status();
  }

  Result<Figure> finish() const override {
    std::map<std::int64_t, double> by_class;
    const auto all = data::in_order(static_cast<std::int64_t>(counts_.size()));
    Figure figure{"miou", mean_of(all, &by_class), 0, "", {}};
    REEF_REQUIRE(!by_class.empty(), "no pixel of any mask counts");
    figure.standard_error =
        bootstrap_error(static_cast<std::int64_t>(counts_.size()),
                        [&](std::span<const std::int64_t> drawn) { return mean_of(drawn, nullptr); });
    for (const auto& [label, value] : by_class) figure.details.emplace_back(fmt::format("class {}", label), value);
    return figure;
  }

  nlohmann::json kept(std::int64_t sample) const override {
    nlohmann::json rows = nlohmann::json::array();
    for (const auto& [pair, pixels] : counts_[at(sample)]) rows.push_back({pair.first, pair.second, pixels});
    return rows;
  }

  Status restore(std::int64_t sample, const nlohmann::json& kept) override {
    REEF_REQUIRE(kept.is_array(), "'{}' is no list of counts", kept.dump());
    Counts& counts = counts_[at(sample)];
    counts.clear();
    for (const nlohmann::json& row : kept) {
      REEF_REQUIRE(row.is_array() && row.size() == 3 && row[0].is_number_integer() && row[1].is_number_integer() &&
                       row[2].is_number_integer(),
                   "'{}' is no count of pixels", row.dump());
      counts[{row[0].get<std::int64_t>(), row[1].get<std::int64_t>()}] = row[2].get<std::int64_t>();
    }
    return ok_status();
  }

 private:
  using Counts = std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t>;  // (truth, model) -> pixels

  double mean_of(std::span<const std::int64_t> samples, std::map<std::int64_t, double>* by_class) const {
    std::map<std::int64_t, std::pair<double, double>> shares;  // class -> both, either
    for (const std::int64_t sample : samples) {
      for (const auto& [pair, pixels] : counts_[at(sample)]) {
        const auto count = static_cast<double>(pixels);
        shares[pair.first].second += count;
        if (pair.first == pair.second) {
          shares[pair.first].first += count;
        } else {
          shares[pair.second].second += count;
        }
      }
    }
    double sum = 0;
    for (const auto& [label, share] : shares) {
      sum += share.first / share.second;
      if (by_class != nullptr) (*by_class)[label] = share.first / share.second;
    }
    return shares.empty() ? 0 : sum / static_cast<double>(shares.size());
  }

  MetricOptions options_;
  std::vector<Counts> counts_;
};

}  // namespace

std::unique_ptr<Metric> make_mean_iou(const MetricOptions& options) { return std::make_unique<MeanIou>(options); }

}  // namespace reef::evaluate
