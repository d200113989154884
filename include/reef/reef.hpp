// SPDX-License-Identifier: Apache-2.0
// reef.h for C++17 and later: objects that free themselves, values or errors, typed tensors. Header only: the library's
// binary interface is C's alone, so that a program and the library may come from different compilers.
//
//   auto model = reef::Model::load("model_edgetpu.tflite");
//   if (!model) return fail(model.error().message);
//   auto interpreter = reef::Interpreter::create(*model);      // on a virtual Edge TPU, where the model needs one
//   ... fill interpreter->input(0).data<std::uint8_t>() ...
//   if (auto error = interpreter->invoke()) return fail(error.message);
//   ... read interpreter->output(0).data<std::uint8_t>() ...
//
// Nothing here throws but std::bad_alloc. Objects are moved, not copied. A Tensor is a view: see reef.h for how long.
#ifndef REEF_REEF_HPP_
#define REEF_REEF_HPP_

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reef/reef.h"

namespace reef {

// What went wrong; false where nothing did.
struct Error {
  reef_status code = REEF_OK;
  std::string message;
  explicit operator bool() const { return code != REEF_OK; }
};

namespace detail {
inline Error error_of(reef_status code) { return code == REEF_OK ? Error{} : Error{code, reef_error_message()}; }
template <typename T, void (*Free)(T*)>
struct Freer {
  void operator()(T* handle) const { Free(handle); }
};
}  // namespace detail

// A value, or the reason why there is none.
template <typename T>
class Expected {
 public:
  Expected(T value) : value_(std::move(value)) {}
  Expected(Error error) : error_(std::move(error)) {}

  bool ok() const { return value_.has_value(); }
  explicit operator bool() const { return ok(); }
  const Error& error() const { return error_; }
  // Only after ok(): without a value the program ends, with the reason on standard error.
  T& value() & { return *checked(); }
  const T& value() const& { return *const_cast<Expected*>(this)->checked(); }
  T&& value() && { return std::move(*checked()); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T* operator->() { return checked(); }
  const T* operator->() const { return const_cast<Expected*>(this)->checked(); }

 private:
  T* checked() {
    if (!value_) {
      std::fprintf(stderr, "reef: %s\n", error_.message.c_str());
      std::abort();
    }
    return &*value_;
  }
  std::optional<T> value_;
  Error error_;
};

// A piece of memory as elements of a type.
template <typename T>
struct Span {
  T* first = nullptr;
  std::size_t count = 0;
  T* data() const { return first; }
  std::size_t size() const { return count; }
  T* begin() const { return first; }
  T* end() const { return first + count; }
  T& operator[](std::size_t i) const { return first[i]; }
};

class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(const reef_tensor& tensor) : tensor_(tensor) {}

  const char* name() const { return tensor_.name; }
  reef_type type() const { return static_cast<reef_type>(tensor_.type); }
  Span<const std::int32_t> dims() const { return {tensor_.dims, static_cast<std::size_t>(tensor_.rank)}; }
  std::size_t bytes() const { return tensor_.bytes; }
  // No elements where there is no value, or where the bytes are no whole number of T.
  template <typename T>
  Span<T> data() const {
    if (tensor_.data == nullptr || tensor_.bytes % sizeof(T) != 0) return {};
    return {static_cast<T*>(tensor_.data), tensor_.bytes / sizeof(T)};
  }
  // One scale for all; 0: not quantized, or a scale per channel.
  float scale() const { return tensor_.scale_count == 1 ? tensor_.scales[0] : 0; }
  std::int64_t zero_point() const { return tensor_.zero_point_count >= 1 ? tensor_.zero_points[0] : 0; }
  // The element as a real number: float32, and 8-bit types by their quantization. 0 for others.
  double real(std::size_t i) const {
    const double factor = tensor_.scale_count == 1 ? tensor_.scales[0] : 1;
    const auto zero = static_cast<double>(zero_point());
    switch (tensor_.type) {
      case REEF_FLOAT32:
        return data<float>()[i];
      case REEF_UINT8:
        return (data<std::uint8_t>()[i] - zero) * factor;
      case REEF_INT8:
        return (data<std::int8_t>()[i] - zero) * factor;
      default:
        return 0;
    }
  }
  const reef_tensor& c() const { return tensor_; }

 private:
  reef_tensor tensor_ = {};
};

class Model {
 public:
  static Expected<Model> load(const std::string& path) {
    reef_model* model = nullptr;
    if (const Error error = detail::error_of(reef_model_load(path.c_str(), &model))) return error;
    return Model(model);
  }
  static Expected<Model> read(const void* bytes, std::size_t size) {
    reef_model* model = nullptr;
    if (const Error error = detail::error_of(reef_model_read(bytes, size, &model))) return error;
    return Model(model);
  }
  std::size_t tensor_count() const { return reef_model_tensor_count(c()); }
  Expected<Tensor> tensor(std::size_t i) const {
    reef_tensor tensor;
    if (const Error error = detail::error_of(reef_model_tensor(c(), i, &tensor))) return error;
    return Tensor(tensor);
  }
  std::vector<std::string> ops() const {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < reef_model_op_count(c()); ++i) names.emplace_back(reef_model_op(c(), i));
    return names;
  }
  bool needs_edge_tpu() const { return reef_model_edge_tpu_op_count(c()) > 0; }
  const reef_model* c() const { return handle_.get(); }

 private:
  explicit Model(reef_model* model) : handle_(model) {}
  std::unique_ptr<reef_model, detail::Freer<reef_model, reef_model_free>> handle_;
};

inline std::vector<reef_device> devices() {
  std::vector<reef_device> all;
  for (std::size_t i = 0; i < reef_device_count(); ++i) {
    reef_device device;
    if (reef_device_get(i, &device) == REEF_OK) all.push_back(device);
  }
  return all;
}

struct Options {
  std::string device = {};  // empty: an Edge TPU if the model needs one; "cpu", "virtual", ":0", "usb:1", ...
  int threads = 1;
  bool profile = false;
  bool tflite_2_9 = false;
  bool preserve_all_tensors = false;  // tensor() has the values of all tensors; takes more memory
  double time_limit_seconds = 0;
  bool fused_floats = false;  // float products are added with one rounding: faster on most CPUs, not TFLite's bits
  std::string clock = {};     // of a real device: "max", "high", "medium", "low"; empty: the one that it has, else max
  std::string firmware = {};  // file for sticks that wait for it; empty: REEF_FIRMWARE, else libedgetpu.so.1
};

class Interpreter {
 public:
  // Prepared already; after resize_input, prepare() again.
  static Expected<Interpreter> create(const Model& model, const Options& options = {}) {
    reef_options c_options;
    reef_options_init(&c_options);
    c_options.device = options.device.empty() ? nullptr : options.device.c_str();
    c_options.threads = options.threads;
    c_options.profile = options.profile ? 1 : 0;
    c_options.tflite_2_9 = options.tflite_2_9 ? 1 : 0;
    c_options.preserve_all_tensors = options.preserve_all_tensors ? 1 : 0;
    c_options.time_limit_seconds = options.time_limit_seconds;
    c_options.fused_floats = options.fused_floats ? 1 : 0;
    c_options.clock = options.clock.empty() ? nullptr : options.clock.c_str();
    c_options.firmware = options.firmware.empty() ? nullptr : options.firmware.c_str();
    reef_interpreter* handle = nullptr;
    if (const Error error = detail::error_of(reef_interpreter_create(model.c(), &c_options, &handle))) return error;
    Interpreter interpreter(handle);
    if (const Error error = interpreter.prepare()) return error;
    return interpreter;
  }
  std::size_t input_count() const { return reef_interpreter_input_count(c()); }
  std::size_t output_count() const { return reef_interpreter_output_count(c()); }
  // An empty tensor beyond the end.
  Tensor input(std::size_t i) const {
    reef_tensor tensor = {};
    return reef_interpreter_input(c(), i, &tensor) == REEF_OK ? Tensor(tensor) : Tensor();
  }
  Tensor output(std::size_t i) const {
    reef_tensor tensor = {};
    return reef_interpreter_output(c(), i, &tensor) == REEF_OK ? Tensor(tensor) : Tensor();
  }
  // Any tensor of the model by its number; see Options::preserve_all_tensors.
  Tensor tensor(std::size_t index) const {
    reef_tensor tensor = {};
    return reef_interpreter_tensor(c(), index, &tensor) == REEF_OK ? Tensor(tensor) : Tensor();
  }
  Error resize_input(std::size_t i, const std::vector<std::int32_t>& dims) {
    return detail::error_of(reef_interpreter_resize_input(c(), i, dims.data(), static_cast<std::int32_t>(dims.size())));
  }
  Error prepare() { return detail::error_of(reef_interpreter_prepare(c())); }
  Error invoke() { return detail::error_of(reef_interpreter_invoke(c())); }
  Error reset_variables() { return detail::error_of(reef_interpreter_reset_variables(c())); }

  Expected<reef_device> device() const {
    reef_device device;
    if (const Error error = detail::error_of(reef_interpreter_device(c(), &device))) return error;
    return device;
  }
  // What went wrong with the device and was mended since the last call, a line for each.
  std::string device_notes() {
    char* text = nullptr;
    if (reef_interpreter_device_notes(c(), &text) != REEF_OK) return {};
    const std::string notes = text;
    reef_string_free(text);
    return notes;
  }
  // Valid until the next call.
  std::vector<reef_op_profile> profile() {
    std::vector<reef_op_profile> entries(reef_interpreter_take_profile(c()));
    for (std::size_t i = 0; i < entries.size(); ++i) reef_interpreter_profile(c(), i, &entries[i]);
    return entries;
  }
  reef_interpreter* c() const { return handle_.get(); }

 private:
  explicit Interpreter(reef_interpreter* handle) : handle_(handle) {}
  std::unique_ptr<reef_interpreter, detail::Freer<reef_interpreter, reef_interpreter_free>> handle_;
};

// Outputs of one set of inputs; own their memory.
class Results {
 public:
  explicit Results(reef_results* handle) : handle_(handle) {}
  std::size_t size() const { return reef_results_count(handle_.get()); }
  Tensor operator[](std::size_t i) const {
    reef_tensor tensor = {};
    return reef_results_tensor(handle_.get(), i, &tensor) == REEF_OK ? Tensor(tensor) : Tensor();
  }

 private:
  std::unique_ptr<reef_results, detail::Freer<reef_results, reef_results_free>> handle_;
};

class Pipeline {
 public:
  // Keeps the interpreters.
  static Expected<Pipeline> create(std::vector<Interpreter> segments, std::size_t queue_size = 0) {
    std::vector<reef_interpreter*> handles;
    for (const Interpreter& segment : segments) handles.push_back(segment.c());
    reef_pipeline* handle = nullptr;
    if (const Error error =
            detail::error_of(reef_pipeline_create(handles.data(), handles.size(), queue_size, &handle))) {
      return error;
    }
    return Pipeline(handle, std::move(segments));
  }
  // How many sets may wait to be computed, and results to be popped; 0: any number.
  Error set_queue_sizes(std::size_t inputs, std::size_t outputs) {
    return detail::error_of(reef_pipeline_set_queue_sizes(handle_.get(), inputs, outputs));
  }
  // push and pop may be called from different threads.
  Error push(const std::vector<reef_tensor>& inputs) {
    return detail::error_of(reef_pipeline_push(handle_.get(), inputs.data(), inputs.size()));
  }
  Error close() { return detail::error_of(reef_pipeline_close(handle_.get())); }
  // Nothing: the pipeline is closed, and all was popped.
  Expected<std::optional<Results>> pop() {
    reef_results* results = nullptr;
    if (const Error error = detail::error_of(reef_pipeline_pop(handle_.get(), &results))) return error;
    return results == nullptr ? std::optional<Results>() : std::optional<Results>(Results(results));
  }
  const std::vector<Interpreter>& segments() const { return segments_; }

 private:
  Pipeline(reef_pipeline* handle, std::vector<Interpreter> segments)
      : segments_(std::move(segments)), handle_(handle) {}
  std::vector<Interpreter> segments_;  // outlive the pipeline
  std::unique_ptr<reef_pipeline, detail::Freer<reef_pipeline, reef_pipeline_free>> handle_;
};

class Image {
 public:
  static Expected<Image> load(const std::string& path, int channels = 3, int width = 0, int height = 0) {
    reef_image* image = nullptr;
    if (const Error error = detail::error_of(reef_image_load(path.c_str(), channels, width, height, &image))) {
      return error;
    }
    return Image(image);
  }
  Expected<Image> resized(int width, int height) const {
    reef_image* image = nullptr;
    if (const Error error = detail::error_of(reef_image_resize(handle_.get(), width, height, &image))) return error;
    return Image(image);
  }
  int width() const { return reef_image_width(handle_.get()); }
  int height() const { return reef_image_height(handle_.get()); }
  int channels() const { return reef_image_channels(handle_.get()); }
  Span<std::uint8_t> samples() const {
    return {reef_image_samples(handle_.get()), static_cast<std::size_t>(width()) * static_cast<std::size_t>(height()) *
                                                   static_cast<std::size_t>(channels())};
  }
  Error save(const std::string& path) const { return detail::error_of(reef_image_save(handle_.get(), path.c_str())); }

 private:
  explicit Image(reef_image* image) : handle_(image) {}
  std::unique_ptr<reef_image, detail::Freer<reef_image, reef_image_free>> handle_;
};

// How to compile. `compile`, `convert` and `quantize` are reef.h's structures for everything that is not named here.
struct CompileOptions {
  CompileOptions() {
    reef_compile_options_init(&compile);
    reef_convert_options_init(&convert);
    reef_quantize_options_init(&quantize);
  }
  std::string out_dir;     // folder, or a name that ends with .tflite; empty: the current folder
  std::string data;        // samples for models that are not quantized: a folder of pictures, .npz or .npy; empty: none
  std::string preprocess;  // how pictures become numbers; empty: guessed
  reef_compile_options compile;
  reef_convert_options convert;
  reef_quantize_options quantize;
};

// Compiles models together, .tflite and .onnx files, as `reef compile` does. The value is the report of docs/json.md.
inline Expected<std::string> compile(const std::vector<std::string>& models, const CompileOptions& options = {}) {
  reef_compile_options how = options.compile;
  reef_quantize_options quantize = options.quantize;
  if (!options.out_dir.empty()) how.out_dir = options.out_dir.c_str();
  if (!options.data.empty()) quantize.data = options.data.c_str();
  if (!options.preprocess.empty()) quantize.preprocess = options.preprocess.c_str();
  how.convert = &options.convert;
  how.quantize = &quantize;
  std::vector<const char*> names;
  for (const std::string& model : models) names.push_back(model.c_str());
  names.push_back(nullptr);  // so that data() is never null
  char* json = nullptr;
  const Error error = detail::error_of(reef_compile(names.data(), models.size(), &how, &json));
  std::string report = json == nullptr ? "" : json;
  reef_string_free(json);
  if (error) return error;
  return report;
}

}  // namespace reef

#endif  // REEF_REEF_HPP_
