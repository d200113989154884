// SPDX-License-Identifier: Apache-2.0
#include "quantize/calibration_part.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "base/sha256.h"

namespace reef::quantize {
namespace {

constexpr std::string_view kMagic = "reefcal1";
constexpr std::size_t kHashLength = 64;

class Writer {
 public:
  template <typename T>
  void number(T value) {
    static_assert(std::is_trivially_copyable_v<T>);
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(&value);
    bytes_.insert(bytes_.end(), bytes, bytes + sizeof(T));
  }
  void text(std::string_view value) { bytes_.insert(bytes_.end(), value.begin(), value.end()); }
  template <typename T>
  void row(std::span<const T> values) {
    number(static_cast<std::uint64_t>(values.size()));
    for (const T value : values) number(value);
  }
  std::vector<std::uint8_t> take() { return std::move(bytes_); }

 private:
  std::vector<std::uint8_t> bytes_;
};

// Bytes that end too early leave `ok` false and give zeros.
class Reader {
 public:
  explicit Reader(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

  template <typename T>
  T number() {
    T value{};
    if (bytes_.size() < sizeof(T)) {
      fail();
      return value;
    }
    std::memcpy(&value, bytes_.data(), sizeof(T));
    bytes_ = bytes_.subspan(sizeof(T));
    return value;
  }
  std::string text(std::size_t size) {
    if (bytes_.size() < size) {
      fail();
      return "";
    }
    std::string value(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(size));
    bytes_ = bytes_.subspan(size);
    return value;
  }
  // A number of things of which each takes at least `bytes_each`.
  std::size_t count(std::size_t bytes_each) {
    const auto value = number<std::uint64_t>();
    if (value > bytes_.size() / bytes_each) {
      fail();
      return 0;
    }
    return static_cast<std::size_t>(value);
  }
  template <typename T>
  std::vector<T> row() {
    std::vector<T> values(count(sizeof(T)));
    for (T& value : values) value = number<T>();
    return values;
  }
  bool ok() const { return ok_; }
  bool at_end() const { return bytes_.empty(); }

 private:
  void fail() {
    ok_ = false;
    bytes_ = {};
  }
  std::span<const std::uint8_t> bytes_;
  bool ok_ = true;
};

void write(Writer& out, const SampleStatistics& tensor) {
  out.number(tensor.min);
  out.number(tensor.max);
  for (const std::uint64_t value :
       {tensor.values, tensor.not_finite, tensor.infinite, tensor.masked, tensor.channels.count})
    out.number(value);
  out.row<float>(tensor.channels.min);
  out.row<float>(tensor.channels.max);
  out.row<double>(tensor.channels.sum);
}

SampleStatistics read_statistics(Reader& in) {
  SampleStatistics tensor;
  tensor.seen = true;
  tensor.min = in.number<float>();
  tensor.max = in.number<float>();
  for (std::uint64_t* const value :
       {&tensor.values, &tensor.not_finite, &tensor.infinite, &tensor.masked, &tensor.channels.count})
    *value = in.number<std::uint64_t>();
  tensor.channels.min = in.row<float>();
  tensor.channels.max = in.row<float>();
  tensor.channels.sum = in.row<double>();
  return tensor;
}

bool is_sound(const SampleStatistics& tensor) {
  const ChannelStatistics& channels = tensor.channels;
  return channels.min.size() == channels.sum.size() && channels.max.size() == channels.sum.size();
}

}  // namespace

std::string calibration_subject(const ir::Model& model, std::span<const std::int64_t> samples) {
  Writer out;
  const ir::Subgraph& graph = model.subgraphs[0];
  for (const ir::Operator& op : graph.operators) {
    out.text(op.type);
    out.row<std::int32_t>(op.inputs);
    out.row<std::int32_t>(op.outputs);
  }
  for (const ir::Tensor& tensor : graph.tensors) {
    out.text(tensor.name);
    out.row<std::int32_t>({tensor.shape.begin(), tensor.shape.end()});
    const auto& data = constant_data(model, tensor);
    out.number(static_cast<std::uint64_t>(data.size()));
    if (!data.empty()) out.text({reinterpret_cast<const char*>(data.data()), data.size()});
  }
  out.row<std::int64_t>(samples);
  return sha256_hex(out.take());
}

Result<CalibrationPart> calibrate_part(const std::shared_ptr<const ir::Model>& model, const data::SampleSource& source,
                                       std::span<const std::int64_t> samples, std::span<const std::int64_t> positions,
                                       const RunOptions& options) {
  CalibrationPart part;
  part.subject = calibration_subject(*model, samples);
  part.histograms.resize(model->subgraphs[0].tensors.size());
  if (positions.empty()) return part;
  std::vector<std::int64_t> some;
  for (const std::int64_t position : positions) some.push_back(samples[at(position)]);
  const auto use = [&](std::int64_t number, const std::vector<std::vector<std::byte>>& inputs,
                       std::vector<SampleStatistics>& tensors) {
    std::vector<std::uint8_t> all;
    for (const std::vector<std::byte>& input : inputs) {
      const auto* const bytes = reinterpret_cast<const std::uint8_t*>(input.data());
      all.insert(all.end(), bytes, bytes + input.size());
    }
    part.samples.push_back({positions[at(number)], sha256_hex(all), tensors});
  };
  REEF_ASSIGN_OR_RETURN(part.histograms, observe_samples(model, source, some, options, use));
  return part;
}

Result<Calibration> merge_parts(const ir::Model& model, std::span<const std::int64_t> samples,
                                const std::vector<CalibrationPart>& parts) {
  const std::string subject = calibration_subject(model, samples);
  const std::size_t tensors = model.subgraphs[0].tensors.size();
  Calibration result;
  result.tensors.resize(tensors);
  std::vector<const CalibrationPart::Sample*> in_order(samples.size(), nullptr);
  for (const CalibrationPart& part : parts) {
    REEF_REQUIRE(part.subject == subject && part.histograms.size() == tensors,
                 "a part of the calibration was made of another model, other samples or other options");
    for (const CalibrationPart::Sample& sample : part.samples) {
      REEF_REQUIRE(
          sample.position >= 0 && sample.position < std::ssize(in_order) && sample.statistics.size() == tensors,
          "a part of the calibration has a sample that is none of these");
      const CalibrationPart::Sample*& place = in_order[at(sample.position)];
      REEF_REQUIRE(place == nullptr, "sample {} of the calibration is in two parts", sample.position);
      place = &sample;
    }
    for (std::size_t t = 0; t < tensors; ++t) result.tensors[t].histogram.merge(part.histograms[t]);
  }
  const std::string* previous = nullptr;
  for (std::size_t i = 0; i < in_order.size(); ++i) {
    REEF_REQUIRE(in_order[i] != nullptr, "sample {} of the calibration is in none of the parts", i);
    for (std::size_t t = 0; t < tensors; ++t) result.tensors[t].merge_sample(in_order[i]->statistics[t]);
    if (previous != nullptr && *previous == in_order[i]->inputs) ++result.repeated_samples;
    previous = &in_order[i]->inputs;
    ++result.samples;
  }
  return result;
}

std::vector<std::uint8_t> to_bytes(const CalibrationPart& part) {
  Writer out;
  out.text(kMagic);
  out.text(part.subject);
  out.number(static_cast<std::uint64_t>(part.histograms.size()));
  for (const Histogram& histogram : part.histograms) {
    out.number(histogram.zeros());
    out.number(static_cast<std::int32_t>(histogram.exponent()));
    out.row<std::uint64_t>(histogram.counts());
  }
  out.number(static_cast<std::uint64_t>(part.samples.size()));
  for (const CalibrationPart::Sample& sample : part.samples) {
    out.number(sample.position);
    out.text(sample.inputs);
    for (const SampleStatistics& tensor : sample.statistics) {
      out.number(static_cast<std::uint8_t>(tensor.seen ? 1 : 0));
      if (tensor.seen) write(out, tensor);
    }
  }
  return out.take();
}

Result<CalibrationPart> read_part(std::span<const std::uint8_t> bytes) {
  Reader in(bytes);
  REEF_REQUIRE(in.text(kMagic.size()) == kMagic,
               "it is no part of a calibration (reef quantize --partial writes them)");
  CalibrationPart part;
  part.subject = in.text(kHashLength);
  part.histograms.resize(in.count(sizeof(std::uint64_t) + sizeof(std::int32_t)));
  bool is_good = true;
  for (Histogram& histogram : part.histograms) {
    const auto zeros = in.number<std::uint64_t>();
    const auto exponent = in.number<std::int32_t>();
    is_good = histogram.restore(zeros, exponent, in.row<std::uint64_t>()) && is_good;
  }
  part.samples.resize(in.count(kHashLength));
  for (CalibrationPart::Sample& sample : part.samples) {
    sample.position = in.number<std::int64_t>();
    sample.inputs = in.text(kHashLength);
    for (std::size_t t = 0; t < part.histograms.size() && in.ok(); ++t) {
      sample.statistics.push_back(in.number<std::uint8_t>() != 0 ? read_statistics(in) : SampleStatistics());
      is_good = is_good && is_sound(sample.statistics.back());
    }
  }
  REEF_REQUIRE(in.ok() && in.at_end() && is_good, "the part of a calibration is damaged");
  return part;
}

}  // namespace reef::quantize
