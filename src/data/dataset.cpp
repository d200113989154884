// SPDX-License-Identifier: Apache-2.0
#include "data/dataset.h"

#include <filesystem>
#include <numeric>

#include <fmt/ranges.h>

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
    const ir::Tensor& input = graph.tensors[static_cast<std::size_t>(t)];
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

}  // namespace

Result<std::shared_ptr<const Dataset>> Dataset::open(const DatasetOptions& options, const ir::Model& model) {
  REEF_REQUIRE(!model.subgraphs.empty() && !model.subgraphs[0].inputs.empty(), "the model has no inputs to feed");
  auto dataset = std::make_shared<Dataset>();
  std::error_code error;
  if (std::filesystem::is_directory(options.path, error)) {
    REEF_RETURN_IF_ERROR(require_one_input(model));
    REEF_ASSIGN_OR_RETURN(dataset->store_, open_folder(options));
  } else {
    REEF_ASSIGN_OR_RETURN(dataset->store_, open_arrays(options, model));
  }
  auto chosen = choose_preprocess(options.preprocess, model, 0);
  if (!chosen.ok()) return chosen.status();
  dataset->preprocess_ = std::move(*chosen);
  const std::int64_t count = dataset->store_->size();
  REEF_REQUIRE(count > 0, "'{}' holds no samples", options.path);
  REEF_REQUIRE(options.limit >= 0, "--limit must not be negative");
  dataset->order_ = options.shuffle_seed ? shuffled(count, *options.shuffle_seed) : in_order(count);
  if (options.limit > 0 && options.limit < count) dataset->order_.resize(static_cast<std::size_t>(options.limit));
  return std::shared_ptr<const Dataset>(std::move(dataset));
}

Status Dataset::read(std::int64_t sample, const InputSpec& input, std::span<std::byte> target) const {
  REEF_REQUIRE(sample >= 0 && sample < size(), "sample {} is asked for, but there are {}", sample, size());
  return store_->read(order_[static_cast<std::size_t>(sample)], input, preprocess_.preprocess, target);
}

Result<Truth> Dataset::truth(std::int64_t sample) const {
  REEF_REQUIRE(sample >= 0 && sample < size(), "sample {} is asked for, but there are {}", sample, size());
  return store_->truth(order_[static_cast<std::size_t>(sample)]);
}

Result<std::pair<int, int>> Dataset::picture_size(std::int64_t sample) const {
  REEF_REQUIRE(sample >= 0 && sample < size(), "sample {} is asked for, but there are {}", sample, size());
  return store_->picture_size(order_[static_cast<std::size_t>(sample)]);
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
