// SPDX-License-Identifier: Apache-2.0
#include "partition.h"

#include <algorithm>
#include <cstdio>
#include <set>

#include "base/printable.h"

namespace reef::delegate {
namespace {

using tflite_abi::Context;
using tflite_abi::IntArray;
using tflite_abi::Tensor;

std::vector<int> numbers(const IntArray* array) {
  return array == nullptr ? std::vector<int>() : std::vector<int>(array->data, array->data + array->size);
}

bool exists(const Context* context, int tensor) {
  return tensor >= 0 && static_cast<std::size_t>(tensor) < context->tensors_size;
}

std::size_t bytes_of(const Context* context, int tensor) { return tensor < 0 ? 0 : context->tensors[tensor].bytes; }

runtime::CallTensor call_tensor(const Context* context, int tensor) {
  if (tensor < 0) return {"", 0, false, false};
  const Tensor& source = context->tensors[tensor];
  return {source.name != nullptr ? source.name : "", static_cast<std::int64_t>(source.bytes), source.is_variable, true};
}

}  // namespace

Status Partition::read(Context* context, const tflite_abi::DelegateParams& params) {
  std::set<int> known;  // to others than these ops
  for (const IntArray* const list : {params.input_tensors, params.output_tensors}) {
    for (const int tensor : numbers(list)) known.insert(tensor);
  }
  for (const int index : numbers(params.nodes_to_replace)) {
    tflite_abi::Node* node = nullptr;
    tflite_abi::Registration* registration = nullptr;
    REEF_REQUIRE(context->GetNodeAndRegistration(context, index, &node, &registration) == tflite_abi::kOk,
                 "TFLite does not give node {} away", index);
    Op& op = ops_.emplace_back();
    REEF_REQUIRE(node->custom_initial_data != nullptr && node->custom_initial_data_size > 0,
                 "node {} (edgetpu-custom-op) has no options: the file is no compiled model", index);
    const auto* const first = static_cast<const std::uint8_t*>(node->custom_initial_data);
    op.options = Bytes::copy_of({first, static_cast<std::size_t>(node->custom_initial_data_size)});
    op.inputs = numbers(node->inputs);
    op.outputs = numbers(node->outputs);
    for (const int tensor : op.inputs) {
      REEF_REQUIRE(tensor == -1 || exists(context, tensor), "node {} reads tensor {}, which is not there", index,
                   tensor);
    }
    for (const int tensor : op.outputs) {
      REEF_REQUIRE(exists(context, tensor), "node {} writes tensor {}, which is not there", index, tensor);
      if (!known.contains(tensor)) internal_[tensor];
    }
  }
  return ok_status();
}

Status Partition::add(Context* context, const tflite_abi::Node& node, Bytes options) {
  Op& op = ops_.emplace_back();
  op.options = std::move(options);
  op.inputs = numbers(node.inputs);
  op.outputs = numbers(node.outputs);
  for (const int tensor : op.inputs) {
    REEF_REQUIRE(tensor == -1 || exists(context, tensor), "the op reads tensor {}, which is not there", tensor);
  }
  for (const int tensor : op.outputs) {
    REEF_REQUIRE(exists(context, tensor), "the op writes tensor {}, which is not there", tensor);
  }
  return ok_status();
}

Status Partition::prepare(Context* context) {
  for (Op& op : ops_) REEF_RETURN_IF_ERROR(prepare(context, op));
  for (auto& [tensor, memory] : internal_) memory.resize(context->tensors[tensor].bytes);
  return ok_status();
}

Status Partition::prepare(Context* context, Op& op) {
  std::vector<std::size_t> bytes;
  std::vector<runtime::CallTensor> inputs, outputs;
  for (const int tensor : op.inputs) {
    inputs.push_back(call_tensor(context, tensor));
    bytes.push_back(bytes_of(context, tensor));
  }
  for (const int tensor : op.outputs) {
    outputs.push_back(call_tensor(context, tensor));
    bytes.push_back(bytes_of(context, tensor));
  }
  if (op.call != nullptr && bytes == op.bytes) return ok_status();
  op.call.reset();
  REEF_ASSIGN_OR_RETURN(runtime::EdgeTpuCall call, runtime::EdgeTpuCall::create(device_, op.options, inputs, outputs));
  op.call = std::make_unique<runtime::EdgeTpuCall>(std::move(call));
  op.bytes = std::move(bytes);
  return ok_status();
}

Status Partition::invoke(Context* context) {
  for (const Op& op : ops_) REEF_RETURN_IF_ERROR(invoke(context, op));
  return ok_status();
}

Result<std::byte*> Partition::data_of(Context* context, int tensor, std::size_t bytes) {
  if (tensor < 0) return static_cast<std::byte*>(nullptr);
  if (const auto found = internal_.find(tensor); found != internal_.end()) return found->second.data();
  const Tensor& source = context->tensors[tensor];
  REEF_REQUIRE(source.bytes == bytes, "tensor '{}' has {} bytes now, but the program is for {}", source.name,
               source.bytes, bytes);
  REEF_REQUIRE(source.data != nullptr, "tensor '{}' has no memory; call AllocateTensors first", source.name);
  return static_cast<std::byte*>(source.data);
}

Status Partition::invoke(Context* context, const Op& op) {
  REEF_REQUIRE(op.call != nullptr, "the Edge TPU op was not prepared");
  std::vector<std::byte*> inputs, outputs;
  std::size_t position = 0;
  for (const int tensor : op.inputs) {
    REEF_ASSIGN_OR_RETURN(std::byte* const data, data_of(context, tensor, op.bytes[position++]));
    inputs.push_back(data);
  }
  for (const int tensor : op.outputs) {
    REEF_ASSIGN_OR_RETURN(std::byte* const data, data_of(context, tensor, op.bytes[position++]));
    outputs.push_back(data);
  }
  const Status status = op.call->run(inputs, outputs);
  for (const std::string& note : device_->take_notes()) {
    std::fprintf(stderr, "reef: %s: %s\n", runtime::describe(*device_).c_str(), printable_text(note).c_str());
  }
  return status;
}

}  // namespace reef::delegate
