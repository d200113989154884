// SPDX-License-Identifier: Apache-2.0
// reef.h: data pipelines. A recipe in JSON becomes a data::Flow; samples may come from the caller, and steps may call
// it.
#include <cstring>

#include <nlohmann/json.hpp>

#include "data/array_sample.h"
#include "data/flow.h"
#include "guard.h"
#include "handles.h"

using namespace reef;
using namespace reef::c_api;
using Json = nlohmann::ordered_json;

struct reef_flow {
  std::unique_ptr<data::Flow> flow;
};

struct reef_flow_run {
  std::unique_ptr<data::FlowRun> run;
};

// Sizes as reef_tensor shows them.
struct Dims {
  std::vector<std::int32_t> values;
};

struct reef_batch {
  data::Batch batch;
  Dims dims;
  std::vector<Dims> truth_dims;
};

struct reef_sample {
  data::FlowSample* sample = nullptr;
  mutable Dims dims;
  std::string message = "the caller's function failed";
};

namespace {

Dims dims_of(std::span<const std::int64_t> shape) {
  Dims dims;
  for (const std::int64_t size : shape) dims.values.push_back(static_cast<std::int32_t>(size));
  return dims;
}

void show(ir::DataType type, const Dims& dims, const void* data, std::size_t bytes, reef_tensor& tensor) {
  tensor = {};
  tensor.name = "";
  tensor.index = -1;
  tensor.type = static_cast<std::int32_t>(type);
  tensor.rank = static_cast<std::int32_t>(dims.values.size());
  tensor.dims = dims.values.data();
  tensor.data = const_cast<void*>(data);
  tensor.bytes = bytes;
}

// Calls back into the caller's program.
struct Caller {
  reef_flow_call call = nullptr;
  void* user = nullptr;

  Status operator()(std::int32_t step, data::FlowSample& sample) const {
    reef_sample handle{&sample, {}, "the caller's function failed"};
    if (call(user, step, sample.number, &handle) == 0) return ok_status();
    return invalid_input("{}", handle.message);
  }
};

// Samples that the caller's program has.
class CallersStore final : public data::SampleGiver {
 public:
  CallersStore(std::int64_t count, Caller caller, bool has_truth)
      : count_(count), caller_(caller), has_truth_(has_truth) {}

  std::int64_t size() const override { return count_; }
  Result<data::StoredSample> stored(std::int64_t sample, const data::InputSpec& /*input*/) const override {
    REEF_ASSIGN_OR_RETURN(data::FlowSample given, ask(sample));
    if (given.picture.width == 0) return data::StoredSample{given.file, given.values};
    const image::Image& picture = given.picture;
    return data::StoredSample{{},
                              {ir::DataType::kUInt8,
                               {1, picture.height, picture.width, picture.channels},
                               Bytes(std::move(given.picture.samples))}};
  }
  bool has_truth() const override { return has_truth_; }
  Result<data::Truth> truth(std::int64_t sample) const override {
    REEF_ASSIGN_OR_RETURN(const data::FlowSample given, ask(sample));
    REEF_REQUIRE(given.truth.has_value(), "it has no label");
    return *given.truth;
  }
  bool holds_pictures() const override { return true; }
  std::string describe() const override { return fmt::format("{} samples of the program", count_); }
  std::string name_of(std::int64_t sample) const override { return fmt::format("sample {}", sample); }
  Result<data::FlowSample> give(std::int64_t number) const override { return ask(number); }

 private:
  Result<data::FlowSample> ask(std::int64_t number) const {
    data::FlowSample sample;
    sample.number = number;
    REEF_RETURN_IF_ERROR(caller_(-1, sample));
    return sample;
  }

  const std::int64_t count_;
  const Caller caller_;
  const bool has_truth_;
};

data::Variation variation_of(const Json& step) {
  data::Variation how;
  how.crop = step.value("crop", 1.0);
  how.shift = step.value("shift", 0.0);
  how.flip = step.value("flip", 0.0);
  how.brightness = step.value("brightness", 0.0);
  how.contrast = step.value("contrast", 0.0);
  how.saturation = step.value("saturation", 0.0);
  return how;
}

Result<data::Resize> resize_of(const Json& step) {
  data::Resize how{step.at("width").get<int>(), step.at("height").get<int>()};
  const std::string fit = step.value("fit", "stretch");
  REEF_REQUIRE(fit == "stretch" || fit == "crop" || fit == "letterbox", "fit '{}' is stretch, crop or letterbox", fit);
  how.fit = fit == "crop" ? data::Fit::kCrop : fit == "letterbox" ? data::Fit::kLetterbox : data::Fit::kStretch;
  how.crop = step.value("crop", 1.0);
  how.pad = step.value("pad", 114.0);
  return how;
}

Status add_step(const Json& step, const Caller& caller, data::Flow& flow) {
  const std::string name = step.at("step").get<std::string>();
  if (name == "shuffle") {
    flow.shuffle(step.value("seed", std::uint64_t{0}));
  } else if (name == "shard") {
    flow.shard(step.at("index").get<std::int64_t>(), step.at("count").get<std::int64_t>());
  } else if (name == "take") {
    flow.take(step.at("count").get<std::int64_t>());
  } else if (name == "skip") {
    flow.skip(step.at("count").get<std::int64_t>());
  } else if (name == "decode") {
    flow.decode(step.value("channels", 3));
  } else if (name == "resize") {
    REEF_ASSIGN_OR_RETURN(const data::Resize how, resize_of(step));
    flow.resize(how);
  } else if (name == "vary") {
    flow.vary(variation_of(step));
  } else if (name == "cache") {
    flow.cache(step.value("bytes", std::int64_t{1} << 32));
  } else if (name == "call") {
    REEF_REQUIRE(caller.call != nullptr, "a step calls the program, but there is no function to call");
    const auto id = step.at("id").get<std::int32_t>();
    flow.map(step.value("name", "call"), [caller, id](data::FlowSample& sample) { return caller(id, sample); });
  } else if (name == "batch") {
    flow.batch(step.at("size").get<std::int64_t>(), step.value("drop_last", false));
  } else if (name == "mixup") {
    flow.mixup(step.at("alpha").get<double>());
  } else {
    return invalid_input("there is no step '{}' in a data pipeline", name);
  }
  return ok_status();
}

Result<std::shared_ptr<const data::SampleStore>> store_of(const Json& source, const Caller& caller) {
  if (source.contains("count")) {
    REEF_REQUIRE(caller.call != nullptr, "samples come from the program, but there is no function to call");
    const auto count = source.at("count").get<std::int64_t>();
    REEF_REQUIRE(count >= 0, "a source has {} samples", count);
    return std::shared_ptr<const data::SampleStore>(
        std::make_shared<CallersStore>(count, caller, source.value("has_truth", false)));
  }
  data::DatasetOptions options;
  options.path = source.at("path").get<std::string>();
  options.arrays = source.value("array", "");
  options.truth = source.value("truth", "");
  options.labels = source.value("labels", "");
  REEF_ASSIGN_OR_RETURN(auto store, data::open_store(options, nullptr));
  return std::shared_ptr<const data::SampleStore>(std::move(store));
}

Status create(const char* recipe, const Caller& caller, reef_flow& result) {
  const Json json = Json::parse(recipe);
  REEF_ASSIGN_OR_RETURN(auto store, store_of(json.at("data"), caller));
  result.flow = std::make_unique<data::Flow>(std::move(store));
  for (const Json& step : json.at("steps")) REEF_RETURN_IF_ERROR(add_step(step, caller, *result.flow));
  if (const int threads = json.value("threads", 0); threads > 0) result.flow->threads(threads);
  result.flow->ahead(json.value("ahead", std::int64_t{0}));
  result.flow->variation_seed(json.value("seed", std::uint64_t{0}));
  return ok_status();
}

}  // namespace

reef_status reef_flow_create(const char* recipe, reef_flow_call call, void* user, reef_flow** flow) {
  return guarded({{recipe, "recipe"}, {flow, "flow"}}, [&]() -> Status {
    auto made = std::make_unique<reef_flow>();
    try {
      REEF_RETURN_IF_ERROR(create(recipe, {call, user}, *made));
    } catch (const Json::exception& error) {
      return invalid_input("the pipeline's recipe is wrong: {}", error.what());
    }
    *flow = made.release();
    return ok_status();
  });
}

void reef_flow_free(reef_flow* flow) { delete flow; }

int64_t reef_flow_size(const reef_flow* flow) { return flow == nullptr ? 0 : flow->flow->size(); }

reef_status reef_flow_order(const reef_flow* flow, int64_t epoch, int64_t* numbers) {
  return guarded({{flow, "flow"}, {numbers, "numbers"}}, [&]() -> Status {
    const std::vector<std::int64_t> order = flow->flow->order(epoch);
    std::copy(order.begin(), order.end(), numbers);
    return ok_status();
  });
}

reef_status reef_flow_describe(const reef_flow* flow, char** json) {
  return guarded({{flow, "flow"}, {json, "json"}}, [&]() -> Status {
    Json names = Json::object();
    for (const auto& [number, name] : flow->flow->store().class_names()) names[std::to_string(number)] = name;
    const Json all = {{"description", flow->flow->store().describe()}, {"class_names", std::move(names)}};
    *json = give_away(all.dump(-1, ' ', false, Json::error_handler_t::replace));
    return ok_status();
  });
}

reef_status reef_flow_name(const reef_flow* flow, int64_t number, char** name) {
  return guarded({{flow, "flow"}, {name, "name"}}, [&]() -> Status {
    const data::SampleStore& store = flow->flow->store();
    REEF_REQUIRE(number >= 0 && number < store.size(), "there is no sample {} among {}", number, store.size());
    *name = give_away(store.name_of(number));
    return ok_status();
  });
}

reef_status reef_flow_start(const reef_flow* flow, int64_t epoch, reef_flow_run** run) {
  return guarded({{flow, "flow"}, {run, "run"}}, [&]() -> Status {
    REEF_ASSIGN_OR_RETURN(auto started, flow->flow->start(epoch));
    *run = new reef_flow_run{std::move(started)};
    return ok_status();
  });
}

void reef_flow_run_free(reef_flow_run* run) { delete run; }

reef_status reef_flow_run_next(reef_flow_run* run, reef_batch** batch) {
  return guarded({{run, "run"}, {batch, "batch"}}, [&]() -> Status {
    *batch = nullptr;
    REEF_ASSIGN_OR_RETURN(std::optional<data::Batch> next, run->run->next());
    if (!next) return ok_status();
    auto made = std::make_unique<reef_batch>();
    made->batch = std::move(*next);
    made->dims = dims_of(made->batch.samples.shape);
    for (const auto& truth : made->batch.truths) made->truth_dims.push_back(truth ? dims_of(truth->shape) : Dims{});
    *batch = made.release();
    return ok_status();
  });
}

reef_status reef_flow_run_counters(const reef_flow_run* run, char** json) {
  return guarded({{run, "run"}, {json, "json"}}, [&]() -> Status {
    Json stages = Json::array();
    for (const data::StageCounters& stage : run->run->counters()) {
      stages.push_back({{"name", stage.name},
                        {"items", stage.items},
                        {"busy_s", stage.busy},
                        {"waited_for_input_s", stage.waited_for_input},
                        {"waited_for_room_s", stage.waited_for_room},
                        {"waited_for_thread_s", stage.waited_for_thread}});
    }
    const Json all = {{"stages", std::move(stages)}, {"idle_with_work_s", run->run->idle_with_work()}};
    *json = give_away(all.dump());
    return ok_status();
  });
}

void reef_batch_free(reef_batch* batch) { delete batch; }

size_t reef_batch_count(const reef_batch* batch) { return batch == nullptr ? 0 : batch->batch.numbers.size(); }

reef_status reef_batch_samples(const reef_batch* batch, reef_tensor* tensor) {
  return guarded({{batch, "batch"}, {tensor, "tensor"}}, [&]() -> Status {
    const numpy::Array& samples = batch->batch.samples;
    show(samples.type, batch->dims, samples.data.data(), samples.data.size(), *tensor);
    return ok_status();
  });
}

const int64_t* reef_batch_numbers(const reef_batch* batch) {
  return batch == nullptr ? nullptr : batch->batch.numbers.data();
}

reef_status reef_batch_truth(const reef_batch* batch, size_t row, reef_tensor* tensor) {
  return guarded({{batch, "batch"}, {tensor, "tensor"}}, [&]() -> Status {
    REEF_REQUIRE(row < batch->batch.truths.size(), "there is no row {} in a batch of {}", row,
                 batch->batch.truths.size());
    const std::optional<data::Truth>& truth = batch->batch.truths[row];
    show(ir::DataType::kFloat64, batch->truth_dims[row], truth ? truth->values.data() : nullptr,
         truth ? truth->values.size() * sizeof(double) : 0, *tensor);
    return ok_status();
  });
}

const int64_t* reef_batch_mixed_with(const reef_batch* batch, double* share) {
  if (share != nullptr) *share = batch == nullptr ? 1 : batch->batch.share;
  return batch == nullptr || batch->batch.mixed_with.empty() ? nullptr : batch->batch.mixed_with.data();
}

reef_status reef_sample_get(const reef_sample* sample, reef_tensor* tensor) {
  return guarded({{sample, "sample"}, {tensor, "tensor"}}, [&]() -> Status {
    const data::FlowSample& own = *sample->sample;
    if (own.picture.width > 0) {
      sample->dims = {{own.picture.height, own.picture.width, own.picture.channels}};
      show(ir::DataType::kUInt8, sample->dims, own.picture.samples.data(), own.picture.samples.size(), *tensor);
    } else if (!own.file.empty()) {
      sample->dims = {{static_cast<std::int32_t>(own.file.size())}};
      show(ir::DataType::kUInt8, sample->dims, own.file.data(), own.file.size(), *tensor);
    } else {
      sample->dims = dims_of(std::span(own.values.shape).subspan(own.values.shape.empty() ? 0 : 1));
      show(own.values.type, sample->dims, own.values.data.data(), own.values.data.size(), *tensor);
    }
    return ok_status();
  });
}

reef_status reef_sample_set(reef_sample* sample, const reef_tensor* tensor) {
  return guarded({{sample, "sample"}, {tensor, "tensor"}}, [&]() -> Status {
    const auto type = static_cast<ir::DataType>(tensor->type);
    const std::vector<std::int64_t> dims(tensor->dims, tensor->dims + tensor->rank);
    std::int64_t count = 1;
    for (const std::int64_t size : dims) {
      REEF_REQUIRE(size >= 0 && size <= (std::int64_t{1} << 31), "a sample cannot have a side of {}", size);
      count *= size;
      REEF_REQUIRE(count <= (std::int64_t{1} << 36), "a sample of so many numbers is too large");
    }
    REEF_REQUIRE(ir::bits_per_element(type) % 8 == 0 && ir::bits_per_element(type) > 0 &&
                     static_cast<std::size_t>(count * ir::bits_per_element(type) / 8) == tensor->bytes,
                 "the sample's shape does not fit its {} bytes", tensor->bytes);
    const auto* const bytes = static_cast<const std::uint8_t*>(tensor->data);
    data::FlowSample& own = *sample->sample;
    own.file = {};
    own.picture = {};
    own.values = {type, dims, Bytes(std::vector<std::uint8_t>(bytes, bytes + tensor->bytes))};
    own.values.shape.insert(own.values.shape.begin(), 1);
    const auto picture = dims.size() == 3 ? data::picture_array(own.values) : std::nullopt;
    if (picture && !picture->channels_first) {
      own.picture = data::picture_of(own.values, *picture, 0);
      own.values = {};
    }
    return ok_status();
  });
}

reef_status reef_sample_set_truth(reef_sample* sample, const double* values, const int64_t* shape, size_t rank) {
  return guarded({{sample, "sample"}, {values, "values"}}, [&]() -> Status {
    data::Truth truth{rank == 0 ? ir::DataType::kInt64 : ir::DataType::kFloat64, {}, {}};
    std::int64_t count = 1;
    for (std::size_t i = 0; i < rank; ++i) {
      REEF_REQUIRE(shape[i] >= 0 && shape[i] <= (1 << 24) && count <= (1 << 24), "the label is too large");
      truth.shape.push_back(shape[i]);
      count *= shape[i];
    }
    truth.values.assign(values, values + count);
    sample->sample->truth = std::move(truth);
    return ok_status();
  });
}

void reef_sample_fail(reef_sample* sample, const char* message) {
  if (sample != nullptr && message != nullptr) sample->message = message;
}

reef_status reef_vary(uint8_t* pixels, int32_t height, int32_t width, int32_t channels, const char* how, uint64_t seed,
                      int64_t epoch, int64_t number, double* boxes, size_t* box_count) {
  return guarded({{pixels, "pixels"}, {how, "how"}}, [&]() -> Status {
    constexpr std::int32_t kLargestSide = 1 << 14;
    REEF_REQUIRE(width > 0 && height > 0 && width <= kLargestSide && height <= kLargestSide &&
                     (channels == 1 || channels == 3 || channels == 4),
                 "{} x {} with {} channels is no picture", width, height, channels);
    const Json json = Json::parse(how, nullptr, false);
    REEF_REQUIRE(json.is_object(), "how to vary is a JSON object");
    const data::Variation variation = variation_of(json);
    REEF_RETURN_IF_ERROR(data::check(variation));
    const std::size_t bytes =
        static_cast<std::size_t>(width) * static_cast<std::size_t>(height) * static_cast<std::size_t>(channels);
    image::Image picture{width, height, channels, {pixels, pixels + bytes}};
    std::optional<data::Truth> truth;
    if (boxes != nullptr && box_count != nullptr) {
      truth = data::Truth{ir::DataType::kFloat64, {static_cast<std::int64_t>(*box_count), 5}, {}};
      truth->values.assign(boxes, boxes + 5 * *box_count);
    }
    REEF_RETURN_IF_ERROR(data::vary(variation, {seed, epoch, number, 0}, picture, truth));
    REEF_RETURN_IF_ERROR(data::resize({width, height}, picture, truth));  // as large as it was, after a crop
    std::memcpy(pixels, picture.samples.data(), bytes);
    if (truth) {
      *box_count = truth->values.size() / 5;
      std::copy(truth->values.begin(), truth->values.end(), boxes);
    }
    return ok_status();
  });
}
