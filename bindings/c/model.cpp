// SPDX-License-Identifier: Apache-2.0
// reef.h: errors, models.
#include <algorithm>

#include "base/version.h"
#include "compiler/front_end.h"
#include "formats/darwinn/reader.h"
#include "formats/tflite/reader.h"
#include "guard.h"
#include "handles.h"

namespace reef::c_api {
namespace {

thread_local std::string last_message;
constexpr const char* kNoMemory = "the system has no more memory";
thread_local bool is_without_memory = false;  // the last message is kNoMemory

Status hand_over(ir::Model model, std::string name, reef_model** result) {
  REEF_REQUIRE(!model.subgraphs.empty(), "{}: the model has no subgraph", name);
  auto handle = std::make_unique<reef_model>();
  handle->name = std::move(name);
  handle->model = std::make_shared<const ir::Model>(std::move(model));
  *result = handle.release();
  return ok_status();
}

const ir::Signature* signature_of(const reef_model* model, std::size_t i) {
  return model != nullptr && i < model->model->signatures.size() ? &model->model->signatures[i] : nullptr;
}

const char* entry(const std::vector<ir::SignatureTensor>* entries, std::size_t i, std::int32_t* tensor) {
  if (entries == nullptr || i >= entries->size()) return nullptr;
  if (tensor != nullptr) *tensor = (*entries)[i].tensor;
  return (*entries)[i].name.c_str();
}

std::int32_t number_at(const std::vector<std::int32_t>& numbers, std::size_t i) {
  return i < numbers.size() ? numbers[i] : -1;
}

}  // namespace

reef_status report_no_memory() noexcept {
  is_without_memory = true;
  return REEF_RESOURCE_EXHAUSTED;
}

reef_status report_exception(const char* what) noexcept {
  try {
    return report(internal_error("{}", what));
  } catch (...) {
    return report_no_memory();
  }
}

reef_status report(const Status& status) {
  is_without_memory = false;
  try {
    last_message = status.message();
  } catch (...) {  // better this than an old message
    is_without_memory = true;
  }
  switch (status.code()) {
    case StatusCode::kOk:
      return REEF_OK;
    case StatusCode::kInvalidInput:
      return REEF_INVALID_INPUT;
    case StatusCode::kUnsupported:
      return REEF_UNSUPPORTED;
    case StatusCode::kNotFound:
      return REEF_NOT_FOUND;
    case StatusCode::kIoError:
      return REEF_IO_ERROR;
    case StatusCode::kResourceExhausted:
      return REEF_RESOURCE_EXHAUSTED;
    case StatusCode::kDeferred:
    case StatusCode::kInternal:
      break;
  }
  return REEF_INTERNAL;
}

void describe(const ir::Tensor& source, const std::int32_t* dims, std::size_t rank, reef_tensor& tensor) {
  tensor = {};
  tensor.name = source.name.c_str();
  tensor.type = static_cast<std::int32_t>(source.type);
  tensor.rank = static_cast<std::int32_t>(rank);
  tensor.dims = dims;
  tensor.signature = source.shape_signature.size() == rank && rank > 0 ? source.shape_signature.data() : nullptr;
  tensor.scale_count = source.quantization.scale.size();
  tensor.scales = source.quantization.scale.data();
  tensor.zero_point_count = source.quantization.zero_point.size();
  tensor.zero_points = source.quantization.zero_point.data();
  tensor.quantized_dimension = source.quantization.dimension;
  tensor.is_variable = source.is_variable ? 1 : 0;
}

}  // namespace reef::c_api

using namespace reef;
using namespace reef::c_api;

const char* reef_version(void) {
  static const std::string version(reef::reef_version());
  return version.c_str();
}
const char* reef_error_message(void) { return is_without_memory ? kNoMemory : last_message.c_str(); }
void reef_string_free(char* text) { std::free(text); }

reef_status reef_model_load(const char* path, reef_model** model) {
  return guarded({{path, "path"}, {model, "model"}}, [&]() -> Status {
    REEF_ASSIGN_OR_RETURN(compiler::FrontEndResult loaded, compiler::load_any_model(path, {.may_resize = true}));
    return hand_over(std::move(loaded.model), path, model);
  });
}

reef_status reef_model_read(const void* bytes, size_t size, reef_model** model) {
  return guarded({{bytes, "bytes"}, {model, "model"}}, [&]() -> Status {
    REEF_REQUIRE(size <= tflite::kMaxFileBytes, "a model of {} bytes is too large", size);
    const auto* const first = static_cast<const std::uint8_t*>(bytes);
    REEF_ASSIGN_OR_RETURN(compiler::FrontEndResult read,
                          compiler::read_tflite_model(Bytes::copy_of({first, size}), {.may_resize = true}));
    return hand_over(std::move(read.model), "model in memory", model);
  });
}

void reef_model_free(reef_model* model) { delete model; }

size_t reef_model_tensor_count(const reef_model* model) { return model == nullptr ? 0 : model->main().tensors.size(); }

reef_status reef_model_tensor(const reef_model* model, size_t index, reef_tensor* tensor) {
  return guarded({{model, "model"}, {tensor, "tensor"}}, [&]() -> Status {
    const auto& tensors = model->main().tensors;
    REEF_REQUIRE(index < tensors.size(), "there is no tensor {}; the model has {}", index, tensors.size());
    const ir::Tensor& source = tensors[index];
    describe(source, source.shape.dims().data(), source.shape.dims().size(), *tensor);
    tensor->index = static_cast<std::int32_t>(index);
    tensor->is_constant = ir::is_constant(*model->model, source) ? 1 : 0;
    const Bytes& data = ir::constant_data(*model->model, source);
    if (!data.empty()) {
      tensor->data = const_cast<std::uint8_t*>(data.data());
      tensor->bytes = data.size();
    }
    return ok_status();
  });
}

size_t reef_model_input_count(const reef_model* model) { return model == nullptr ? 0 : model->main().inputs.size(); }
size_t reef_model_output_count(const reef_model* model) { return model == nullptr ? 0 : model->main().outputs.size(); }
int32_t reef_model_input(const reef_model* model, size_t i) {
  return model == nullptr ? -1 : number_at(model->main().inputs, i);
}
int32_t reef_model_output(const reef_model* model, size_t i) {
  return model == nullptr ? -1 : number_at(model->main().outputs, i);
}

size_t reef_model_op_count(const reef_model* model) { return model == nullptr ? 0 : model->main().operators.size(); }
const char* reef_model_op(const reef_model* model, size_t i) {
  return i < reef_model_op_count(model) ? model->main().operators[i].type.c_str() : nullptr;
}
int32_t reef_model_op_input(const reef_model* model, size_t op, size_t i) {
  if (op >= reef_model_op_count(model)) return -2;
  const std::vector<std::int32_t>& list = model->main().operators[op].inputs;
  return i < list.size() ? list[i] : -2;
}
int32_t reef_model_op_output(const reef_model* model, size_t op, size_t i) {
  if (op >= reef_model_op_count(model)) return -2;
  const std::vector<std::int32_t>& list = model->main().operators[op].outputs;
  return i < list.size() ? list[i] : -2;
}
size_t reef_model_subgraph_count(const reef_model* model) {
  return model == nullptr ? 0 : model->model->subgraphs.size();
}
size_t reef_model_edge_tpu_op_count(const reef_model* model) {
  if (model == nullptr) return 0;
  std::size_t count = 0;
  for (const ir::Subgraph& graph : model->model->subgraphs) {
    count += static_cast<std::size_t>(
        std::count_if(graph.operators.begin(), graph.operators.end(), darwinn::is_edge_tpu_op));
  }
  return count;
}

size_t reef_model_signature_count(const reef_model* model) {
  return model == nullptr ? 0 : model->model->signatures.size();
}
const char* reef_model_signature_key(const reef_model* model, size_t signature) {
  const ir::Signature* const found = signature_of(model, signature);
  return found == nullptr ? nullptr : found->key.c_str();
}
const char* reef_model_signature_input(const reef_model* model, size_t signature, size_t i, int32_t* tensor) {
  const ir::Signature* const found = signature_of(model, signature);
  return entry(found == nullptr ? nullptr : &found->inputs, i, tensor);
}
const char* reef_model_signature_output(const reef_model* model, size_t signature, size_t i, int32_t* tensor) {
  const ir::Signature* const found = signature_of(model, signature);
  return entry(found == nullptr ? nullptr : &found->outputs, i, tensor);
}
