// SPDX-License-Identifier: Apache-2.0
// reef.h: interpreters.
#include <algorithm>

#include "guard.h"
#include "handles.h"
#include "runtime/devices.h"
#include "runtime/edge_tpu_op.h"

namespace reef::c_api {
namespace {

constexpr std::string_view kCpu = "cpu";
constexpr std::int64_t kDefaultMemory = std::int64_t{4} << 30;

// One thread at a time: a second one is told so.
class Entrance {
 public:
  explicit Entrance(reef_interpreter& interpreter)
      : interpreter_(interpreter), is_open_(!interpreter.is_busy.exchange(true, std::memory_order_acquire)) {}
  ~Entrance() {
    if (is_open_) interpreter_.is_busy.store(false, std::memory_order_release);
  }
  Entrance(const Entrance&) = delete;
  Entrance& operator=(const Entrance&) = delete;
  Status status() const {
    REEF_REQUIRE(is_open_,
                 "the interpreter is in use by another thread or by a pipeline; give each thread its own (the model "
                 "can be shared)");
    return ok_status();
  }

 private:
  reef_interpreter& interpreter_;
  bool is_open_;
};

template <typename Action>
reef_status entered(reef_interpreter* interpreter, const Action& action) noexcept {
  return guarded({{interpreter, "interpreter"}}, [&]() -> Status {
    const Entrance entrance(*interpreter);
    REEF_RETURN_IF_ERROR(entrance.status());
    return action();
  });
}

// What the caller's version of the structure does not have keeps its default.
reef_options known_options(const reef_options* given) {
  reef_options options;
  reef_options_init(&options);
  if (given == nullptr) return options;
  const std::size_t size = std::min(given->struct_size, sizeof(options));
  std::memcpy(static_cast<void*>(&options), given, size);
  return options;
}

Status choose_device(const reef_model& model, const reef_options& options, reef_interpreter& result) {
  const std::string_view wanted = options.device != nullptr ? options.device : "";
  if (wanted == kCpu) {
    if (reef_model_edge_tpu_op_count(&model) == 0) return ok_status();
    return unsupported(
        "{} is compiled for the Edge TPU and device is 'cpu'; leave device out, or name one such as ':0'", model.name);
  }
  if (wanted.empty() && reef_model_edge_tpu_op_count(&model) == 0) return ok_status();
  driver::SessionSettings settings;
  if (options.clock != nullptr) {
    REEF_ASSIGN_OR_RETURN(settings.clock, driver::parse_clock(options.clock));
  }
  if (options.firmware != nullptr) settings.firmware_file = options.firmware;
  REEF_ASSIGN_OR_RETURN(result.device, runtime::open_device(wanted, settings));
  return ok_status();
}

cpu::InterpreterOptions interpreter_options(const reef_options& options, const reef_interpreter& handle) {
  cpu::InterpreterOptions result;
  result.threads = std::max(options.threads, 1);
  result.profile = options.profile != 0;
  result.keeps_all_tensors = options.preserve_all_tensors != 0;
  result.time_limit_seconds = options.time_limit_seconds;
  result.max_memory_bytes = options.max_memory_bytes > 0 ? options.max_memory_bytes : kDefaultMemory;
  result.tflite_release = options.tflite_2_9 != 0 ? ops::TfliteRelease::k2_9 : ops::TfliteRelease::kCurrent;
  result.float_sums = options.fused_floats != 0 ? ops::FloatSums::kFused : ops::FloatSums::kAsTflite;
  if (handle.device != nullptr) result.foreign_ops.push_back(runtime::edge_tpu_op(handle.device));
  return result;
}

// Does the tensor's memory hold its value after invoke, and not by then another tensor's?
bool is_kept(const reef_interpreter& handle, std::int32_t index, const ops::Tensor& now) {
  const ir::Subgraph& graph = handle.model->subgraphs.front();
  const auto has = [&](const auto& list) { return std::find(list.begin(), list.end(), index) != list.end(); };
  return handle.keeps_all_tensors || now.is_variable || has(graph.inputs) || has(graph.outputs);
}

Status describe_tensor(const reef_interpreter& handle, std::int32_t index, reef_tensor* tensor) {
  const ops::Tensor& now = handle.interpreter->tensor(index);
  describe(handle.model->subgraphs.front().tensors[at(index)], now.shape.dims().data(), now.shape.dims().size(),
           *tensor);
  tensor->index = index;
  tensor->is_constant = now.is_constant ? 1 : 0;
  tensor->is_dynamic = handle.interpreter->is_dynamic(index) ? 1 : 0;
  if (now.is_constant || (handle.is_prepared && is_kept(handle, index, now))) {
    tensor->data = now.data;
    tensor->bytes = now.bytes;
  }
  return ok_status();
}

Status describe_operand(const reef_interpreter* handle, bool is_input, std::size_t i, reef_tensor* tensor) {
  REEF_RETURN_IF_ERROR(require(handle, "interpreter"));
  REEF_RETURN_IF_ERROR(require(tensor, "tensor"));
  const ir::Subgraph& graph = handle->model->subgraphs.front();
  const std::vector<std::int32_t>& list = is_input ? graph.inputs : graph.outputs;
  REEF_REQUIRE(i < list.size(), "there is no {} {}; the model has {}", is_input ? "input" : "output", i, list.size());
  return describe_tensor(*handle, list[i], tensor);
}

}  // namespace
}  // namespace reef::c_api

using namespace reef;
using namespace reef::c_api;

void reef_options_init(reef_options* options) {
  if (options == nullptr) return;
  *options = {};
  options->struct_size = sizeof(reef_options);
  options->threads = 1;
}

reef_status reef_interpreter_create(const reef_model* model, const reef_options* options,
                                    reef_interpreter** interpreter) {
  return guarded({{model, "model"}, {interpreter, "interpreter"}}, [&]() -> Status {
    const reef_options known = known_options(options);
    REEF_REQUIRE(known.threads <= 256, "{} threads are too many; at most 256", known.threads);
    auto handle = std::make_unique<reef_interpreter>();
    handle->name = model->name;
    handle->model = model->model;
    handle->keeps_all_tensors = known.preserve_all_tensors != 0;
    REEF_RETURN_IF_ERROR(choose_device(*model, known, *handle));
    auto created = cpu::Interpreter::create(model->model, interpreter_options(known, *handle));
    if (!created.ok()) return created.status().in(model->name);
    handle->interpreter = std::move(created).value();
    *interpreter = handle.release();
    return ok_status();
  });
}

void reef_interpreter_free(reef_interpreter* interpreter) { delete interpreter; }

size_t reef_interpreter_input_count(const reef_interpreter* interpreter) {
  return interpreter == nullptr ? 0 : interpreter->model->subgraphs.front().inputs.size();
}
size_t reef_interpreter_output_count(const reef_interpreter* interpreter) {
  return interpreter == nullptr ? 0 : interpreter->model->subgraphs.front().outputs.size();
}
reef_status reef_interpreter_input(const reef_interpreter* interpreter, size_t i, reef_tensor* tensor) {
  return guarded([&] { return describe_operand(interpreter, true, i, tensor); });
}
reef_status reef_interpreter_output(const reef_interpreter* interpreter, size_t i, reef_tensor* tensor) {
  return guarded([&] { return describe_operand(interpreter, false, i, tensor); });
}
reef_status reef_interpreter_tensor(const reef_interpreter* interpreter, size_t index, reef_tensor* tensor) {
  return guarded({{interpreter, "interpreter"}, {tensor, "tensor"}}, [&]() -> Status {
    const std::size_t count = interpreter->model->subgraphs.front().tensors.size();
    REEF_REQUIRE(index < count, "there is no tensor {}; the model has {}", index, count);
    return describe_tensor(*interpreter, static_cast<std::int32_t>(index), tensor);
  });
}

reef_status reef_interpreter_resize_input(reef_interpreter* interpreter, size_t i, const int32_t* dims, int32_t rank) {
  return entered(interpreter, [&]() -> Status {
    REEF_REQUIRE(rank >= 0 && rank <= 64, "an input cannot have {} dimensions", rank);
    if (rank > 0) REEF_RETURN_IF_ERROR(require(dims, "dims"));
    const std::size_t count = reef_interpreter_input_count(interpreter);
    REEF_REQUIRE(i < count, "there is no input {}; the model has {}", i, count);
    REEF_RETURN_IF_ERROR(interpreter->interpreter->resize_input(
        static_cast<int>(i), ir::Shape(std::vector<std::int32_t>(dims, dims + rank))));
    interpreter->is_prepared = false;
    return ok_status();
  });
}

reef_status reef_interpreter_prepare(reef_interpreter* interpreter) {
  return entered(interpreter, [&]() -> Status {
    interpreter->is_prepared = false;
    REEF_RETURN_IF_ERROR(interpreter->interpreter->prepare().in(interpreter->name));
    interpreter->notes = interpreter->interpreter->notes();
    interpreter->is_prepared = true;
    return ok_status();
  });
}

reef_status reef_interpreter_invoke(reef_interpreter* interpreter) {
  return entered(interpreter, [&]() -> Status {
    REEF_REQUIRE(interpreter->is_prepared, "prepare must be called before invoke, and again after inputs were resized");
    const Status status = interpreter->interpreter->invoke();
    return status.ok() ? status : status.in(interpreter->name);
  });
}

reef_status reef_interpreter_reset_variables(reef_interpreter* interpreter) {
  return entered(interpreter, [&]() -> Status {
    REEF_REQUIRE(interpreter->is_prepared, "prepare must be called before variables are reset");
    interpreter->interpreter->reset_variables();
    return ok_status();
  });
}

reef_status reef_interpreter_device(const reef_interpreter* interpreter, reef_device* device) {
  return guarded({{interpreter, "interpreter"}, {device, "device"}}, [&]() -> Status {
    if (interpreter->device == nullptr) {
      return make_error(StatusCode::kNotFound, "the model has no Edge TPU op: all of it runs on the CPU");
    }
    describe(*interpreter->device, *device);
    return ok_status();
  });
}

reef_status reef_interpreter_device_notes(reef_interpreter* interpreter, char** text) {
  return guarded({{interpreter, "interpreter"}, {text, "text"}}, [&]() -> Status {
    std::string lines;
    if (interpreter->device != nullptr) {
      for (const std::string& note : interpreter->device->take_notes()) lines += note + "\n";
    }
    *text = give_away(lines);
    return ok_status();
  });
}

const char* reef_interpreter_note(const reef_interpreter* interpreter, size_t i) {
  return interpreter != nullptr && i < interpreter->notes.size() ? interpreter->notes[i].c_str() : nullptr;
}

size_t reef_interpreter_take_profile(reef_interpreter* interpreter) {
  std::size_t count = 0;
  entered(interpreter, [&]() -> Status {
    interpreter->profile = interpreter->interpreter->timings();
    count = interpreter->profile.size();
    return ok_status();
  });
  return count;
}

reef_status reef_interpreter_profile(const reef_interpreter* interpreter, size_t i, reef_op_profile* profile) {
  return guarded({{interpreter, "interpreter"}, {profile, "profile"}}, [&]() -> Status {
    REEF_REQUIRE(i < interpreter->profile.size(), "there is no entry {} in the profile; it has {}", i,
                 interpreter->profile.size());
    const cpu::OpTiming& timing = interpreter->profile[i];
    *profile = {};
    profile->op = timing.type.c_str();
    profile->output = timing.output_name.c_str();
    profile->subgraph = timing.subgraph;
    profile->op_index = timing.op_index;
    profile->calls = timing.calls;
    profile->total_ms = timing.total_ms;
    return ok_status();
  });
}

reef_status reef_interpreter_memory(const reef_interpreter* interpreter, int64_t* now, int64_t* peak) {
  return guarded({{interpreter, "interpreter"}}, [&]() -> Status {
    const cpu::MemoryReport report = interpreter->interpreter->memory();
    if (now != nullptr) *now = report.arena_bytes + report.other_bytes;
    if (peak != nullptr) *peak = report.peak_bytes;
    return ok_status();
  });
}
