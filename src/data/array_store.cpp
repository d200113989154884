// SPDX-License-Identifier: Apache-2.0
// Samples in .npz and .npy files. Which array feeds which input is decided once, by names; then every sample is a
// slice.
#include <algorithm>
#include <filesystem>

#include <fmt/ranges.h>

#include "base/file.h"
#include "data/array_sample.h"
#include "data/dataset.h"
#include "data/input_names.h"
#include "data/values.h"
#include "formats/image/image.h"
#include "formats/numpy/npz.h"

namespace reef::data {
namespace {

// In the order in which they are looked for.
constexpr std::string_view kCalibrationNames[] = {"calib", "calibration", "calib_images", "x_calib", "representative",
                                                  "train", "x_train",     "images",       "x",       "inputs",
                                                  "input", "noisy",       "ids",          "data",    "arr_0"};
constexpr std::string_view kEvaluationNames[] = {"images", "x",      "x_test", "test", "ids",  "inputs", "input",
                                                 "noisy",  "lowres", "lr",     "eval", "data", "arr_0"};
constexpr std::string_view kTruthNames[] = {"labels",  "y",      "y_test",  "boxes", "clean", "masks", "mask",
                                            "targets", "target", "highres", "hr",    "truth", "arr_1"};

struct InputArray {
  std::string name;
  numpy::Array array;        // the first samples of it, as many as are asked for
  std::int64_t samples = 0;  // of the whole array

  std::string describe() const {
    numpy::Array whole{array.type, array.shape, {}};
    if (!whole.shape.empty()) whole.shape[0] = samples;
    return whole.describe();
  }
};

InputArray whole_array(std::string name, numpy::Array array) {
  const std::int64_t samples = array.shape.empty() ? 0 : array.shape[0];
  return {std::move(name), std::move(array), samples};
}

// Reads an array of an archive. A packed file of a megabyte may hold a gigabyte, of which --limit needs the first
// samples only.
Result<InputArray> read_array(const numpy::Npz& npz, const std::string& name, const DatasetOptions& options,
                              BudgetedBytes& memory) {
  const bool needs_first_only = options.limit > 0 && !options.shuffle_seed;
  const auto header = npz.header(name);
  if (!header.ok()) return header.status().in(options.path);
  auto array = npz.read_rows(name, needs_first_only ? options.limit : -1, options.budget, memory);
  if (!array.ok()) return array.status().in(options.path);
  return InputArray{name, std::move(*array), header->shape.empty() ? 0 : header->shape[0]};
}

class ArrayStore : public SampleStore {
 public:
  std::string path;
  std::vector<InputArray> inputs;  // one for each input of the model
  std::optional<InputArray> right;
  BudgetedBytes memory;  // of the arrays

  std::int64_t size() const override { return inputs[0].samples; }

  Result<StoredSample> stored(std::int64_t sample, const InputSpec& input) const override {
    const auto index = static_cast<std::size_t>(input.index);
    REEF_REQUIRE(index < inputs.size(), "'{}' has no array for input {}", path, input.index);
    const numpy::Array& array = inputs[index].array;
    REEF_REQUIRE(sample >= 0 && sample < array.shape[0], "there is no sample {} in {}", sample, array.describe());
    const std::size_t bytes = array.data.size() / static_cast<std::size_t>(array.shape[0]);
    StoredSample result{{},
                        {array.type, array.shape, array.data.slice(static_cast<std::size_t>(sample) * bytes, bytes)}};
    result.row.shape[0] = 1;
    return result;
  }

  bool has_truth() const override { return right.has_value(); }

  Result<Truth> truth(std::int64_t sample) const override {
    REEF_REQUIRE(right.has_value(), "'{}' does not say what is right: there is no array of labels", path);
    const numpy::Array& array = right->array;
    Truth result{array.type, {array.shape.begin() + 1, array.shape.end()}, {}};
    const std::int64_t count = array.elements() / array.shape[0];
    auto values = array_values(array, sample * count, count);
    if (!values.ok()) return values.status().in(fmt::format("'{}', array '{}'", path, right->name));
    result.values = std::move(*values);
    // A column of labels is labels.
    if (result.shape == std::vector<std::int64_t>{1}) result.shape.clear();
    return result;
  }

  bool holds_pictures() const override { return picture_array(inputs[0].array).has_value(); }

  std::string describe() const override {
    std::vector<std::string> parts;
    for (const InputArray& input : inputs) parts.push_back(fmt::format("'{}' {}", input.name, input.describe()));
    return fmt::format("array{} {} of {}{}", parts.size() > 1 ? "s" : "", fmt::join(parts, ", "), path,
                       right ? fmt::format(", truth '{}' {}", right->name, right->describe()) : "");
  }

  std::string name_of(std::int64_t sample) const override { return fmt::format("{}[{}]", inputs[0].name, sample); }

  std::string place_of(std::int64_t sample, const InputSpec& input) const override {
    return fmt::format("'{}', array '{}', sample {}", path, inputs[at(input.index)].name, sample);
  }
};

// Every array with its type, for messages that ask the user to choose.
std::string list_of(const numpy::Npz& npz) {
  std::vector<std::string> parts;
  for (const std::string& name : npz.names()) {
    const auto header = npz.header(name);
    parts.push_back(header.ok()
                        ? fmt::format("{} ({} [{}])", name, ir::type_name(header->type), fmt::join(header->shape, ", "))
                        : fmt::format("{} (not readable)", name));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

template <typename Names>
std::string first_present(const numpy::Npz& npz, const Names& candidates) {
  for (const auto& candidate : candidates) {
    for (const std::string& name : npz.names()) {
      if (lower(name) == candidate) return name;
    }
  }
  return "";
}

// Empty: there is none.
std::string usual_array(const numpy::Npz& npz, Use use) {
  const std::string name =
      use == Use::kCalibration ? first_present(npz, kCalibrationNames) : first_present(npz, kEvaluationNames);
  return name.empty() && npz.names().size() == 1 ? npz.names()[0] : name;
}

Result<std::vector<std::string>> input_arrays(const numpy::Npz& npz, const DatasetOptions& options,
                                              const ir::Model* model) {
  const std::size_t count = input_count(model);
  REEF_ASSIGN_OR_RETURN(std::vector<std::string> names, named_inputs(options, model));
  if (!names.empty()) return names;
  for (std::size_t i = 0; i < count; ++i) {
    // A single input's arrays for calibration are told apart by their usual names.
    const bool usual_first = count == 1 && options.use == Use::kCalibration;
    std::string name = usual_first ? usual_array(npz, options.use) : "";
    if (name.empty()) name = first_present(npz, input_names(model, i));
    if (name.empty() && count == 1) name = usual_array(npz, options.use);
    REEF_REQUIRE(!npz.names().empty(),
                 "'{}' is a zip archive without arrays: unpack it, and give the folder with pictures", options.path);
    REEF_REQUIRE(!name.empty(), "'{}' has no array for input '{}'; name one for each input with --array A,B: {}",
                 options.path, model == nullptr ? "0" : input_spec(*model, static_cast<int>(i)).name, list_of(npz));
    names.push_back(name);
  }
  return names;
}

bool is_file(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(path, error);
}

Result<std::optional<InputArray>> truth_array(const numpy::Npz* npz, const DatasetOptions& options,
                                              const std::string& input, BudgetedBytes& memory) {
  std::optional<InputArray> none;
  if (!options.truth.empty() && (npz == nullptr || (!npz->has(options.truth) && is_file(options.truth)))) {
    REEF_ASSIGN_OR_RETURN(numpy::Array array, numpy::load_npy(options.truth));
    return std::optional(whole_array(options.truth, std::move(array)));
  }
  if (npz == nullptr) return none;
  std::string name = options.truth;
  if (name.empty()) name = npz->has(input + "_labels") ? input + "_labels" : first_present(*npz, kTruthNames);
  if (name.empty() || name == input || (options.truth.empty() && options.use == Use::kCalibration)) return none;
  REEF_ASSIGN_OR_RETURN(InputArray array, read_array(*npz, name, options, memory));
  return std::optional(std::move(array));
}

}  // namespace

Result<std::unique_ptr<SampleStore>> open_arrays(const DatasetOptions& options, const ir::Model* model) {
  auto store = std::make_unique<ArrayStore>();
  store->path = options.path;
  REEF_ASSIGN_OR_RETURN(const Bytes file, read_file(options.path, std::uint64_t{1} << 36));
  std::optional<numpy::Npz> npz;
  if (file.size() >= 2 && file.data()[0] == 'P' && file.data()[1] == 'K') {
    auto opened = numpy::Npz::open(file);
    if (!opened.ok()) return opened.status().in(options.path);
    npz = std::move(*opened);
    REEF_ASSIGN_OR_RETURN(const std::vector<std::string> names, input_arrays(*npz, options, model));
    for (const std::string& name : names) {
      REEF_ASSIGN_OR_RETURN(InputArray array, read_array(*npz, name, options, store->memory));
      store->inputs.push_back(std::move(array));
    }
  } else {
    auto array = numpy::read_npy(file);
    if (!array.ok() && !options.path.ends_with(".npy")) {
      const Status picture = image::probe(options.path);
      REEF_REQUIRE(!picture.ok(), "'{}' is one picture: give the folder it is in", options.path);
      REEF_REQUIRE(
          !options.path.ends_with(".yaml") && !options.path.ends_with(".yml"),
          "'{}' describes a data set of Ultralytics: give the folder with its pictures, which it names as 'path' "
          "and 'val'",
          options.path);
      return picture.in(fmt::format(
          "'{}' is no folder of pictures, no .npz, no .npy, no TFRecord file and no tar archive", options.path));
    }
    if (!array.ok()) {
      return array.status().in(fmt::format(
          "'{}' is no folder of pictures, no .npz, no .npy, no TFRecord file and no tar archive", options.path));
    }
    REEF_REQUIRE(input_count(model) == 1, "the model has {} inputs; '{}' holds one array. Give an .npz",
                 input_count(model), options.path);
    store->inputs.push_back(whole_array(std::filesystem::path(options.path).stem().string(), std::move(*array)));
  }
  for (std::size_t i = 0; i < store->inputs.size(); ++i) {
    const InputArray& input = store->inputs[i];
    const std::string place = fmt::format("'{}', array '{}'", options.path, input.name);
    if (model != nullptr)
      REEF_RETURN_IF_ERROR(check_fit(input.array, input_spec(*model, static_cast<int>(i))).in(place));
    REEF_REQUIRE(!input.array.shape.empty() && input.array.shape[0] > 0, "{}: it is {} and holds no samples", place,
                 input.array.describe());
    REEF_REQUIRE(input.samples == store->size(), "'{}': array '{}' has {} samples, '{}' has {}", options.path,
                 input.name, input.samples, store->inputs[0].name, store->size());
  }
  REEF_ASSIGN_OR_RETURN(store->right,
                        truth_array(npz ? &*npz : nullptr, options, store->inputs[0].name, store->memory));
  if (store->right) {
    REEF_REQUIRE(!store->right->array.shape.empty() && store->right->samples == store->size(),
                 "'{}': '{}' is {}, but there are {} samples", options.path, store->right->name,
                 store->right->describe(), store->size());
  }
  return std::unique_ptr<SampleStore>(std::move(store));
}

}  // namespace reef::data
