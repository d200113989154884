// SPDX-License-Identifier: Apache-2.0
#include "data/dataset.h"

#include <chrono>

#include <fmt/ranges.h>

#include "data/array_sample.h"
#include "data/shard_files.h"
#include "data/subset.h"
#include "ir/describe.h"

namespace reef::data {
namespace {

// A folder of pictures feeds one input. The error says in Python how samples for several are written.
Status require_one_input(const ir::Model& model) {
  const ir::Subgraph& graph = model.subgraphs[0];
  if (graph.inputs.size() == 1) return ok_status();
  std::string arrays;
  for (const std::int32_t t : graph.inputs) {
    const ir::Tensor& input = graph.tensors[at(t)];
    std::vector<std::string> sizes = {"N"};
    for (int i = 1; i < input.shape.rank(); ++i) sizes.push_back(fmt::format("{}", input.shape[i]));
    arrays += fmt::format(", '{}': {} of shape ({}{})", ir::describe_name(input.name), ir::type_name(input.type),
                          fmt::join(sizes, ", "), sizes.size() == 1 ? "," : "");
  }
  return invalid_input(
      "the model has {} inputs; a folder of pictures feeds one. Give an .npz with an array of N samples for each: "
      "numpy.savez('samples.npz', **{{{}}})",
      graph.inputs.size(), arrays.substr(2));
}

using Clock = std::chrono::steady_clock;

// Adds the time until its end to a counter.
class Stopwatch {
 public:
  explicit Stopwatch(std::atomic<std::int64_t>& nanoseconds) : nanoseconds_(nanoseconds) {}
  ~Stopwatch() { nanoseconds_ += std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start_).count(); }

 private:
  std::atomic<std::int64_t>& nanoseconds_;
  const Clock::time_point start_ = Clock::now();
};

}  // namespace

Result<std::unique_ptr<SampleStore>> open_store(const DatasetOptions& options, const ir::Model* model) {
  REEF_ASSIGN_OR_RETURN(const SampleFiles found, find_sample_files(options.path));
  switch (found.kind) {
    case SampleFiles::Kind::kTar:
      return open_tars(options, found.files, model);
    case SampleFiles::Kind::kRecords:
      return open_records(options, found.files, model);
    case SampleFiles::Kind::kArrays:
      return open_arrays(options, model);
    case SampleFiles::Kind::kFolder:
      break;
  }
  if (model != nullptr) REEF_RETURN_IF_ERROR(require_one_input(*model));
  return open_folder(options);
}

Result<std::shared_ptr<const Dataset>> Dataset::open(const DatasetOptions& options, const ir::Model& model) {
  REEF_REQUIRE(!model.subgraphs.empty() && !model.subgraphs[0].inputs.empty(), "the model has no inputs to feed");
  REEF_REQUIRE(options.limit >= 0, "--limit must not be negative");
  REEF_REQUIRE(options.shards >= 1 && options.shard >= 0 && options.shard < options.shards,
               "there is no part {} of {}: parts are counted from 0", options.shard, options.shards);
  auto dataset = std::make_shared<Dataset>();
  REEF_ASSIGN_OR_RETURN(dataset->store_, open_store(options, &model));
  auto chosen = choose_preprocess(options.preprocess, model, 0);
  if (!chosen.ok()) return chosen.status();
  dataset->preprocess_ = std::move(*chosen);
  const std::int64_t count = dataset->store_->size();
  REEF_REQUIRE(count > 0, "'{}' holds no samples", options.path);
  std::vector<std::int64_t>& order = dataset->order_;
  order = options.shuffle_seed ? shuffled(count, *options.shuffle_seed) : in_order(count);
  if (options.limit > 0 && options.limit < count) order.resize(static_cast<std::size_t>(options.limit));
  order = every_nth(order, options.shard, options.shards);
  REEF_REQUIRE(!order.empty(), "part {} of {} is empty: '{}' gives {} samples", options.shard, options.shards,
               options.path, count);
  return std::shared_ptr<const Dataset>(std::move(dataset));
}

Status Dataset::read(std::int64_t sample, const InputSpec& input, std::span<std::byte> target) const {
  REEF_REQUIRE(sample >= 0 && sample < size(), "sample {} is asked for, but there are {}", sample, size());
  const std::int64_t number = order_[at(sample)];
  if (input.index == 0) ++samples_read_;
  Result<StoredSample> stored = [&] {
    const Stopwatch watch(nanoseconds_[kReading]);
    return store_->stored(number, input);
  }();
  if (!stored.ok()) return stored.status();
  const std::string name = store_->place_of(number, input);
  if (stored->picture.empty()) {
    const Stopwatch watch(nanoseconds_[kFitting]);
    return store_array_sample(stored->row, 0, input, preprocess_.preprocess, target).in(name);
  }
  // Grey inputs get what the decoder takes for brightness; all else comes as RGB (or with opacity).
  const auto layout = picture_layout(input, preprocess_.preprocess.layout);
  if (!layout.ok()) return layout.status().in(name);
  const Result<image::Image> picture = [&] {
    const Stopwatch watch(nanoseconds_[kDecoding]);
    return image::decode(stored->picture, layout->channels);
  }();
  if (!picture.ok()) return picture.status().in(name);
  const Stopwatch watch(nanoseconds_[kFitting]);
  return store_picture(*picture, preprocess_.preprocess, input, target).in(name);
}

ReadCounters Dataset::counters() const {
  const auto seconds = [&](Part part) { return static_cast<double>(nanoseconds_[part].load()) * 1e-9; };
  return {samples_read_.load(), seconds(kReading), seconds(kDecoding), seconds(kFitting)};
}

Result<Truth> Dataset::truth(std::int64_t sample) const {
  REEF_REQUIRE(sample >= 0 && sample < size(), "sample {} is asked for, but there are {}", sample, size());
  return store_->truth(order_[at(sample)]);
}

Result<std::pair<int, int>> Dataset::picture_size(std::int64_t sample) const {
  REEF_REQUIRE(sample >= 0 && sample < size(), "sample {} is asked for, but there are {}", sample, size());
  const std::int64_t number = order_[at(sample)];
  REEF_ASSIGN_OR_RETURN(const StoredSample stored, store_->stored(number, {}));
  if (!stored.picture.empty()) {
    const auto picture = image::decode(stored.picture, 1);
    if (!picture.ok()) return picture.status().in(store_->place_of(number, {}));
    return std::pair(picture->width, picture->height);
  }
  const auto layout = picture_array(stored.row);
  REEF_REQUIRE(layout.has_value(), "{} is no picture", store_->name_of(number));
  return std::pair(layout->width, layout->height);
}

Result<Placement> Dataset::placement(std::int64_t sample, const InputSpec& input) const {
  if (!store_->holds_pictures() || preprocess_.preprocess.fit == Fit::kStretch) return Placement{};
  REEF_ASSIGN_OR_RETURN(const auto size, picture_size(sample));
  REEF_ASSIGN_OR_RETURN(const PictureLayout layout, picture_layout(input, preprocess_.preprocess.layout));
  return placement_of(preprocess_.preprocess, size.first, size.second, layout.width, layout.height);
}

std::string Dataset::describe() const {
  const auto all = store_->size();
  return fmt::format("{}{} samples: {}", size(), size() < all ? fmt::format(" of {}", all) : "", store_->describe());
}

}  // namespace reef::data
