// SPDX-License-Identifier: Apache-2.0
// Samples in TFRecord files of tf.train.Example. Which feature feeds which input is decided once, by names.
//
// A byte string is an encoded picture if it begins as one; else pixels (with "height" and "width" features, or as many
// as the input has elements) or the float32 numbers of a float input. Floats and integers are taken as they are, in
// the input's shape. What is right: a class number or name, or boxes in the form of the TF Object Detection API.
#include <algorithm>
#include <cstring>

#include <fmt/ranges.h>

#include "data/dataset.h"
#include "data/input_names.h"
#include "data/labels.h"
#include "data/shard_files.h"
#include "formats/tfrecord/example.h"
#include "formats/tfrecord/records.h"

namespace reef::data {
namespace {

using tfrecord::Example;
using tfrecord::Feature;

// In the order in which they are looked for.
constexpr std::string_view kInputNames[] = {"image/encoded", "image",    "image_raw", "image/raw", "img",
                                            "picture",       "jpeg",     "png",       "x",         "inputs",
                                            "input",         "features", "data",      "values"};
constexpr std::string_view kRecordStoreTruthNames[] = {
    "image/class/label", "image/label", "label", "class", "labels", "target", "y", "category", "image/class/text"};
constexpr std::string_view kBoxes = "image/object/bbox/", kBoxLabels = "image/object/class/label";

const Feature* find(const Example& example, std::string_view name) {
  const auto found = example.find(name);
  return found == example.end() ? nullptr : &found->second;
}

std::string list_of(const Example& example) {
  std::vector<std::string> parts;
  for (const auto& [name, feature] : example) parts.push_back(fmt::format("{} ({})", name, feature.describe()));
  return fmt::format("{}", fmt::join(parts, ", "));
}

// A single integer of the first of these features; 0: there is none.
std::int64_t integer(const Example& example, std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    const Feature* const feature = find(example, name);
    if (feature != nullptr && feature->integers.size() == 1) return feature->integers[0];
  }
  return 0;
}

template <typename T>
numpy::Array array_of(ir::DataType type, std::vector<std::int64_t> shape, const std::vector<T>& values) {
  std::vector<std::uint8_t> bytes(values.size() * sizeof(T));
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return {type, std::move(shape), Bytes(std::move(bytes))};
}

// The input's shape with its batch dimension, if it has `count` elements; else a row.
std::vector<std::int64_t> shape_for(const InputSpec& input, std::int64_t count) {
  if (input.shape.rank() == 0 || input.shape.elements() != count) return {1, count};
  std::vector<std::int64_t> shape(input.shape.begin(), input.shape.end());
  if (shape[0] != 1) shape.insert(shape.begin(), 1);
  return shape;
}

Result<StoredSample> stored_bytes(const Bytes& bytes, const Example& example, const InputSpec& input) {
  if (begins_as_picture(bytes.span())) return StoredSample{bytes, {}};
  const auto count = static_cast<std::int64_t>(bytes.size());
  const std::int64_t height = integer(example, {"image/height", "height", "rows", "h"}),
                     width = integer(example, {"image/width", "width", "cols", "w"});
  std::int64_t channels = integer(example, {"image/channels", "channels", "depth", "c"});
  constexpr std::int64_t kMostSide = 1 << 16;
  if (height > 0 && width > 0 && height < kMostSide && width < kMostSide) {
    if (channels <= 0 && count % (height * width) == 0) channels = count / (height * width);
    if (channels > 0 && channels <= 4 && height * width * channels == count)
      return StoredSample{{}, {ir::DataType::kUInt8, {1, height, width, channels}, bytes}};
  }
  if (input.shape.rank() > 0 && input.shape.elements() == count)
    return StoredSample{{}, {ir::DataType::kUInt8, shape_for(input, count), bytes}};
  if (input.type == ir::DataType::kFloat32 && input.shape.rank() > 0 && input.shape.elements() * 4 == count)
    return StoredSample{{}, {ir::DataType::kFloat32, shape_for(input, count / 4), bytes}};
  return invalid_input(
      "{} bytes are no encoded picture, and nothing says which shape they have; write \"height\", \"width\" and "
      "\"channels\" beside them, or tf.io.encode_png() them",
      count);
}

Result<StoredSample> stored_feature(const Feature& feature, const Example& example, const InputSpec& input) {
  switch (feature.kind) {
    case Feature::Kind::kBytes:
      REEF_REQUIRE(feature.bytes.size() == 1, "it has {} byte strings; a sample has one", feature.bytes.size());
      return stored_bytes(feature.bytes[0], example, input);
    case Feature::Kind::kFloats:
      return StoredSample{
          {}, array_of(ir::DataType::kFloat32, shape_for(input, std::ssize(feature.floats)), feature.floats)};
    case Feature::Kind::kIntegers:
      return StoredSample{
          {}, array_of(ir::DataType::kInt64, shape_for(input, std::ssize(feature.integers)), feature.integers)};
    case Feature::Kind::kNone:
      break;
  }
  return invalid_input("it is empty");
}

// "image/object/bbox/xmin" and so on, in fractions of the picture: as [n, 5], centre, size and class.
Result<Truth> boxes_of(const Example& example) {
  Truth truth{ir::DataType::kFloat64, {0, 5}, {}};
  const Feature* sides[4] = {};
  constexpr std::string_view kSides[] = {"xmin", "ymin", "xmax", "ymax"};
  const Feature* const labels = find(example, kBoxLabels);
  const std::size_t count = labels == nullptr ? 0 : labels->integers.size();
  for (std::size_t i = 0; i < 4; ++i) {
    sides[i] = find(example, std::string(kBoxes) + std::string(kSides[i]));
    const std::size_t given = sides[i] == nullptr ? 0 : sides[i]->floats.size();
    REEF_REQUIRE(given == count, "it has {} box labels, but {} of '{}{}'", count, given, kBoxes, kSides[i]);
  }
  for (std::size_t k = 0; k < count; ++k) {
    const double x0 = sides[0]->floats[k], y0 = sides[1]->floats[k], x1 = sides[2]->floats[k], y1 = sides[3]->floats[k];
    truth.values.insert(truth.values.end(),
                        {(x0 + x1) / 2, (y0 + y1) / 2, x1 - x0, y1 - y0, static_cast<double>(labels->integers[k])});
    ++truth.shape[0];
  }
  return truth;
}

class RecordStore : public SampleStore {
 public:
  static Result<std::unique_ptr<SampleStore>> open(const DatasetOptions& options, const std::vector<std::string>& files,
                                                   const ir::Model* model) {
    auto store = std::make_unique<RecordStore>();
    store->path_ = options.path;
    for (const std::string& path : files) {
      REEF_ASSIGN_OR_RETURN(const auto file, open_shard(path, options.budget, store->memory_));
      REEF_ASSIGN_OR_RETURN(const auto index, tfrecord::read_index(*file, options.budget));
      for (std::size_t i = 0; i < index.size(); ++i) store->places_.push_back({store->files_.size(), i, index[i]});
      store->files_.push_back(file);
    }
    REEF_REQUIRE(!store->places_.empty(), "'{}' holds no samples: {} without records", options.path,
                 files.size() == 1 ? "a TFRecord file" : "TFRecord files");
    if (!options.labels.empty()) {
      REEF_ASSIGN_OR_RETURN(store->class_names_, load_class_names(options.labels));
    }
    REEF_ASSIGN_OR_RETURN(const Example first, store->example(0));
    REEF_RETURN_IF_ERROR(store->choose_inputs(first, options, model));
    REEF_RETURN_IF_ERROR(store->choose_truth(first, options));
    const InputSpec input = model == nullptr ? InputSpec{} : input_spec(*model, 0);
    REEF_ASSIGN_OR_RETURN(const StoredSample sample, store->stored(0, input));
    store->holds_pictures_ =
        !sample.picture.empty() || (sample.row.type == ir::DataType::kUInt8 && sample.row.shape.size() == 4);
    return std::unique_ptr<SampleStore>(std::move(store));
  }

  std::int64_t size() const override { return std::ssize(places_); }

  Result<StoredSample> stored(std::int64_t sample, const InputSpec& input) const override {
    REEF_ASSIGN_OR_RETURN(const Example example, this->example(sample));
    const std::string& name = features_[at(input.index)];
    const Feature* const feature = find(example, name);
    REEF_REQUIRE(feature != nullptr, "{} has no feature '{}'; it has {}", place_of(sample, input), name,
                 list_of(example));
    auto result = stored_feature(*feature, example, input);
    if (!result.ok()) return result.status().in(fmt::format("{}, feature '{}'", place_of(sample, input), name));
    return result;
  }

  bool has_truth() const override { return !truth_.empty(); }
  Result<Truth> truth(std::int64_t sample) const override {
    REEF_ASSIGN_OR_RETURN(const Example example, this->example(sample));
    REEF_REQUIRE(has_truth(), "'{}' does not say what is right: no feature is called \"label\"; there are {}", path_,
                 list_of(example));
    auto result = truth_of(example);
    if (!result.ok()) return result.status().in(fmt::format("{}, feature '{}'", place_of(sample, {}), truth_));
    return result;
  }

  bool holds_pictures() const override { return holds_pictures_; }
  std::string describe() const override {
    return fmt::format("{}, feature{} {}{}",
                       files_.size() == 1 ? path_ : fmt::format("{} TFRecord files of {}", files_.size(), path_),
                       features_.size() > 1 ? "s" : "", fmt::join(features_, ", "),
                       truth_.empty() ? "" : fmt::format(", labels from {}", truth_));
  }
  std::string name_of(std::int64_t sample) const override {
    const Place& place = places_[at(sample)];
    return files_.size() == 1 ? fmt::format("record {}", place.number)
                              : fmt::format("{}, record {}", files_[place.file]->path(), place.number);
  }
  std::string place_of(std::int64_t sample, const InputSpec& /*input*/) const override {
    const Place& place = places_[at(sample)];
    return fmt::format("'{}', record {}", files_[place.file]->path(), place.number);
  }

  std::vector<FilePiece> pieces_of(std::int64_t sample) const override {
    constexpr std::uint64_t kBefore = 12, kBehind = 4;  // the length with its checksum, the data's checksum
    const Place& place = places_[at(sample)];
    return {{files_[place.file]->path(), "", place.record.at - kBefore, place.record.bytes + kBefore + kBehind}};
  }

 private:
  struct Place {
    std::size_t file = 0, number = 0;
    tfrecord::Record record;
  };

  Result<Example> example(std::int64_t sample) const {
    const Place& place = places_[at(sample)];
    REEF_ASSIGN_OR_RETURN(const Bytes record, tfrecord::read_record(*files_[place.file], place.record));
    auto result = tfrecord::read_example(record);
    if (!result.ok()) return result.status().in(place_of(sample, {}));
    return result;
  }

  Status choose_inputs(const Example& first, const DatasetOptions& options, const ir::Model* model) {
    REEF_ASSIGN_OR_RETURN(features_, named_inputs(options, model));
    const std::size_t count = input_count(model);
    for (std::size_t i = features_.size(); i < count; ++i) {
      std::vector<std::string> names = input_names(model, i);
      if (count == 1) names.insert(names.begin(), std::begin(kInputNames), std::end(kInputNames));
      std::string found;
      for (const std::string& name : names) {
        for (const auto& [given, feature] : first) {
          if (found.empty() && lower(given) == name) found = given;
        }
      }
      if (found.empty() && count == 1 && first.size() == 1) found = first.begin()->first;
      REEF_REQUIRE(!found.empty(), "'{}' has no feature for input {}; name one for each input with --array A,B: {}",
                   path_, model == nullptr ? "0" : fmt::format("'{}'", input_spec(*model, static_cast<int>(i)).name),
                   list_of(first));
      features_.push_back(std::move(found));
    }
    for (const std::string& name : features_)
      REEF_REQUIRE(find(first, name) != nullptr, "'{}' has no feature '{}'; it has {}", path_, name, list_of(first));
    return ok_status();
  }

  Status choose_truth(const Example& first, const DatasetOptions& options) {
    REEF_REQUIRE(options.truth.empty() || find(first, options.truth) != nullptr, "'{}' has no feature '{}'; it has {}",
                 path_, options.truth, list_of(first));
    truth_ = options.truth;
    if (truth_.empty() && find(first, kBoxLabels) != nullptr) truth_ = kBoxLabels;
    for (const std::string_view name : kRecordStoreTruthNames) {
      const bool is_input = std::find(features_.begin(), features_.end(), name) != features_.end();
      if (truth_.empty() && !is_input && find(first, name) != nullptr) truth_ = name;
    }
    return ok_status();
  }

  Result<Truth> truth_of(const Example& example) const {
    if (truth_ == kBoxLabels) return boxes_of(example);
    const Feature* const feature = find(example, truth_);
    REEF_REQUIRE(feature != nullptr, "it is not there; the record has {}", list_of(example));
    if (feature->kind == Feature::Kind::kBytes) {
      REEF_REQUIRE(feature->bytes.size() == 1, "it has {} byte strings; a label is one", feature->bytes.size());
      const Bytes& text = feature->bytes[0];
      return read_truth({reinterpret_cast<const char*>(text.data()), text.size()}, class_names_, "its text");
    }
    Truth truth{ir::DataType::kInt64, {}, {}};
    if (feature->kind == Feature::Kind::kFloats) {
      truth.type = ir::DataType::kFloat32;
      truth.values.assign(feature->floats.begin(), feature->floats.end());
    } else {
      for (const std::int64_t value : feature->integers) truth.values.push_back(static_cast<double>(value));
    }
    REEF_REQUIRE(!truth.values.empty(), "it is empty");
    if (truth.values.size() > 1) truth.shape = {std::ssize(truth.values)};
    return truth;
  }

  std::string path_;
  std::vector<std::shared_ptr<const RandomFile>> files_;
  std::vector<Place> places_;
  std::vector<std::string> features_;  // one for each input
  std::string truth_;                  // feature; empty: none
  std::vector<std::string> class_names_;
  bool holds_pictures_ = false;
  BudgetedBytes memory_;  // of unpacked files
};

}  // namespace

Result<std::unique_ptr<SampleStore>> open_records(const DatasetOptions& options, const std::vector<std::string>& files,
                                                  const ir::Model* model) {
  return RecordStore::open(options, files, model);
}

}  // namespace reef::data
