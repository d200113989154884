// SPDX-License-Identifier: Apache-2.0
#include "compiler/learn_data.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "base/sha256.h"
#include "data/labels.h"
#include "evaluate/sample_runner.h"
#include "formats/numpy/npz.h"
#include "learn/head_runner.h"

namespace reef::compiler {
namespace {

// Reads from another source; what cannot be read is noted and becomes zeros, so that the others go on.
class WatchedSource : public data::SampleSource {
 public:
  explicit WatchedSource(const data::Dataset& source)
      : source_(source),
        errors_(static_cast<std::size_t>(source.size())),
        digests_(static_cast<std::size_t>(source.size())) {}

  std::int64_t size() const override { return source_.size(); }
  // Each sample is read by one thread only.
  Status read(std::int64_t sample, const data::InputSpec& input, std::span<std::byte> target) const override {
    const Status status = source_.read(sample, input, target);
    const auto at = static_cast<std::size_t>(sample);
    if (!status.ok()) {
      errors_[at] = status.message();
      std::memset(target.data(), 0, target.size());
      return ok_status();
    }
    digests_[at] += sha256_hex({reinterpret_cast<const std::uint8_t*>(target.data()), target.size()});
    return ok_status();
  }
  const std::string& error(std::size_t sample) const { return errors_[sample]; }
  const std::string& digest(std::size_t sample) const { return digests_[sample]; }

 private:
  const data::Dataset& source_;
  mutable std::vector<std::string> errors_, digests_;
};

// The width of a picture's row is the last dimension but one: [1, height, width, channels].
bool is_picture(const data::InputSpec& input) {
  const auto& dims = input.shape.dims();
  return dims.size() == 4 && dims[1] > 1 && dims[2] > 1 && (dims[3] == 1 || dims[3] == 3 || dims[3] == 4);
}

// The same samples, each picture left to right.
class MirroredSource : public data::SampleSource {
 public:
  explicit MirroredSource(const data::SampleSource& source) : source_(source) {}
  std::int64_t size() const override { return source_.size(); }
  Status read(std::int64_t sample, const data::InputSpec& input, std::span<std::byte> target) const override {
    if (!source_.read(sample, input, target).ok()) {
      std::memset(target.data(), 0, target.size());  // WatchedSource has told why
      return ok_status();
    }
    const auto width = static_cast<std::size_t>(input.shape.dims()[2]);
    const std::size_t row = target.size() / static_cast<std::size_t>(input.shape.dims()[1]), pixel = row / width;
    for (std::size_t start = 0; start < target.size(); start += row) {
      for (std::size_t left = 0, right = width - 1; left < right; ++left, --right) {
        const auto a = target.subspan(start + left * pixel, pixel), b = target.subspan(start + right * pixel, pixel);
        std::swap_ranges(a.begin(), a.end(), b.begin());
      }
    }
    return ok_status();
  }

 private:
  const data::SampleSource& source_;
};

Result<std::int64_t> class_number(const data::Dataset& dataset, std::int64_t sample) {
  REEF_ASSIGN_OR_RETURN(const data::Truth truth, dataset.truth(sample));
  const bool is_number = truth.values.size() == 1 && truth.values[0] >= 0 && truth.values[0] < 1e9 &&
                         truth.values[0] == std::floor(truth.values[0]);
  REEF_REQUIRE(is_number, "{}: its label is not the number of a class", dataset.name_of(sample));
  return static_cast<std::int64_t>(truth.values[0]);
}

// The data's numbers of classes with their names.
Result<std::map<std::int64_t, std::string>> names_of_classes(const data::DatasetOptions& options,
                                                             const data::Dataset& dataset,
                                                             const std::vector<std::int64_t>& numbers) {
  std::vector<std::string> listed;
  if (!options.labels.empty()) {
    REEF_ASSIGN_OR_RETURN(listed, data::load_class_names(options.labels));
  }
  const std::map<std::int64_t, std::string> own = dataset.class_names();  // of the data themselves
  std::map<std::int64_t, std::string> names;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    std::string& name = names[numbers[i]];
    if (!name.empty()) continue;
    if (const auto found = own.find(numbers[i]); found != own.end()) name = found->second;
    if (name.empty() && static_cast<std::size_t>(numbers[i]) < listed.size()) name = listed[reef::at(numbers[i])];
    if (name.empty()) name = std::to_string(numbers[i]);
  }
  return names;
}

struct ArrayPair {
  const char* samples;
  const char* labels;
};
// The first pair that the .npz has; false: none.
bool take_arrays(std::span<const ArrayPair> pairs, data::DatasetOptions& options) {
  const auto npz = numpy::Npz::load(options.path);
  if (!npz.ok()) return false;
  for (const ArrayPair& pair : pairs) {
    if (!npz->has(pair.samples) || !npz->has(pair.labels)) continue;
    options.arrays = pair.samples;
    options.truth = pair.labels;
    return true;
  }
  return false;
}

// Why a sample is not to be learned from; empty: nothing speaks against it.
std::vector<std::string> reasons_against(const LabelledData& data, const WatchedSource& source,
                                         const EmbeddedData* seen) {
  const std::size_t count = data.labels.size();
  std::vector<std::string> reasons(count);
  std::map<std::string, std::vector<std::size_t>> copies;
  std::map<std::string, std::string> earlier;
  if (seen != nullptr) {
    for (std::size_t i = 0; i < seen->names.size(); ++i) earlier.emplace(seen->digests[i], seen->names[i]);
  }
  const auto name = [&](std::size_t i) { return data.dataset->name_of(static_cast<std::int64_t>(i)); };
  for (std::size_t i = 0; i < count; ++i) {
    if (!source.error(i).empty()) {
      reasons[i] = "cannot be read: " + source.error(i);
    } else if (const auto found = earlier.find(source.digest(i)); found != earlier.end()) {
      reasons[i] = "is the picture '" + found->second + "', which was learned from";
    } else {
      copies[source.digest(i)].push_back(i);
    }
  }
  for (const auto& [digest, samples] : copies) {
    const std::size_t first = samples[0];
    const auto other = std::find_if(samples.begin(), samples.end(),
                                    [&](std::size_t i) { return data.labels[i] != data.labels[first]; });
    for (const std::size_t i : samples) {
      if (other != samples.end()) {
        const std::size_t twin = data.labels[i] != data.labels[first] ? first : *other;
        reasons[i] = fmt::format("is the same picture as '{}' of another class", name(twin));
      } else if (i != first) {
        reasons[i] = fmt::format("is the same picture as '{}'", name(first));
      }
    }
  }
  return reasons;
}

}  // namespace

Result<LabelledData> open_labelled(const data::DatasetOptions& options, const ir::Model& model,
                                   const std::vector<std::string>* known) {
  LabelledData result;
  REEF_ASSIGN_OR_RETURN(result.dataset, data::Dataset::open(options, model));
  const data::Dataset& dataset = *result.dataset;
  REEF_REQUIRE(dataset.has_truth(),
               "'{}' does not say what its samples show: put pictures into a sub-folder for each class, or name an "
               "array or file of labels with --truth",
               options.path);
  std::vector<std::int64_t> numbers;
  for (std::int64_t i = 0; i < dataset.size(); ++i) {
    REEF_ASSIGN_OR_RETURN(const std::int64_t number, class_number(dataset, i));
    numbers.push_back(number);
  }
  REEF_ASSIGN_OR_RETURN(const auto names, names_of_classes(options, dataset, numbers));
  if (known != nullptr) result.class_names = *known;
  std::map<std::int64_t, std::int32_t> places;
  for (const auto& [number, name] : names) {
    auto found = std::find(result.class_names.begin(), result.class_names.end(), name);
    REEF_REQUIRE(known == nullptr || found != result.class_names.end(), "'{}' has class '{}', which was not learned",
                 options.path, name);
    REEF_REQUIRE(known != nullptr || found == result.class_names.end(), "two classes are called '{}'", name);
    if (found == result.class_names.end()) found = result.class_names.insert(found, name);
    places[number] = static_cast<std::int32_t>(found - result.class_names.begin());
  }
  for (const std::int64_t number : numbers) result.labels.push_back(places[number]);
  return result;
}

data::DatasetOptions train_arrays(const data::DatasetOptions& options) {
  data::DatasetOptions result = options;
  result.use = data::Use::kEvaluation;  // what is right must be known
  static constexpr ArrayPair kPairs[] = {{"train", "train_labels"}, {"x_train", "y_train"}};
  if (options.arrays.empty() && options.truth.empty()) take_arrays(kPairs, result);
  return result;
}

std::optional<data::DatasetOptions> test_arrays_beside(const data::DatasetOptions& options) {
  data::DatasetOptions result = options;
  static constexpr ArrayPair kPairs[] = {{"test", "test_labels"}, {"x_test", "y_test"}};
  const bool is_train = options.arrays.empty() || options.arrays == "train" || options.arrays == "x_train";
  if (!is_train || !take_arrays(kPairs, result)) return std::nullopt;
  result.use = data::Use::kEvaluation;
  result.limit = 0;
  return result;
}

Result<EmbeddedData> embed(const std::shared_ptr<const ir::Model>& extractor, const LabelledData& data,
                           const EmbedOptions& options, const EmbeddedData* seen) {
  const ir::Subgraph& graph = extractor->subgraphs[0];
  const ir::Tensor& output = graph.tensors[reef::at(graph.outputs[0])];
  const WatchedSource source(*data.dataset);
  evaluate::RunnerOptions how;
  how.threads = options.threads;
  how.place = options.place;
  how.budget = options.budget;
  EmbeddedData result;
  const auto views = [&](const data::SampleSource& pictures, std::vector<std::vector<float>>& rows) -> Status {
    rows.resize(data.labels.size());
    REEF_ASSIGN_OR_RETURN(
        const evaluate::RunnerReport report,
        evaluate::run_samples(extractor, pictures, how, [&](std::int64_t sample, cpu::Interpreter& done) {
          const ops::Tensor& tensor = done.output(0);
          auto values = learn::real_values(output, {tensor.data, tensor.bytes});
          if (values.ok()) rows[reef::at(sample)] = std::move(*values);
          return values.status();
        }));
    result.seconds += report.seconds;
    result.devices = report.devices;
    return ok_status();
  };
  const bool is_mirrored =
      options.is_mirrored && graph.inputs.size() == 1 && is_picture(data::input_spec(*extractor, 0));
  const std::int64_t count = data.dataset->size();
  std::int64_t before = 0;  // views of the first round; a picture is done after both
  how.progress = [&](std::int64_t done, std::int64_t) {
    if (options.progress) options.progress((before + done) / (is_mirrored ? 2 : 1), count);
  };
  std::vector<std::vector<float>> rows, mirrored;
  REEF_RETURN_IF_ERROR(views(source, rows));
  if (is_mirrored) {
    before = count;
    REEF_RETURN_IF_ERROR(views(MirroredSource(*data.dataset), mirrored));
  }
  result.embeddings.dimension = output.shape.last();
  const std::vector<std::string> reasons = reasons_against(data, source, seen);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::string name = data.dataset->name_of(static_cast<std::int64_t>(i));
    std::string reason = reasons[i];
    const bool is_zero = std::all_of(rows[i].begin(), rows[i].end(), [](float value) { return value == 0; });
    if (reason.empty() && is_zero) reason = "has an embedding of zeros: the extractor sees nothing in it";
    if (!reason.empty()) {
      result.rejected.push_back({std::move(name), std::move(reason)});
      continue;
    }
    result.embeddings.add(rows[i], data.labels[i]);
    if (is_mirrored) {
      std::vector<float>& views_of_all = result.embeddings.mirrored;
      views_of_all.insert(views_of_all.end(), mirrored[i].begin(), mirrored[i].end());
    }
    result.names.push_back(std::move(name));
    result.digests.push_back(source.digest(i));
  }
  return result;
}

}  // namespace reef::compiler
