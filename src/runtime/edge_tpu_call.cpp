// SPDX-License-Identifier: Apache-2.0
#include "runtime/edge_tpu_call.h"

#include <algorithm>
#include <set>
#include <string>

#include "formats/darwinn/reader.h"
#include "host/programs.h"
#include "host/tensors.h"

namespace reef::runtime {
namespace {

// A package's suffix for the new value of a variable tensor (seen in compiled models; libedgetpu writes it back).
constexpr std::string_view kVariableSuffix = "_variable_output";

Status check_size(const CallTensor& tensor, const darwinn::Layer& layer) {
  REEF_REQUIRE(tensor.bytes == host::tensor_bytes(layer), "tensor '{}' has {} bytes, the package was compiled for {}",
               layer.name, tensor.bytes, host::tensor_bytes(layer));
  return ok_status();
}

// The size of a layer whose size has been checked.
std::size_t bytes_of(const darwinn::Layer& layer) { return static_cast<std::size_t>(host::tensor_bytes(layer)); }

}  // namespace

Result<EdgeTpuCall::TensorRef> EdgeTpuCall::find_input(std::span<const CallTensor> inputs,
                                                       const darwinn::Layer& layer) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].is_present || inputs[i].name != layer.name) continue;
    REEF_RETURN_IF_ERROR(check_size(inputs[i], layer));
    return TensorRef{i, false, bytes_of(layer)};
  }
  return invalid_input("the package has an input '{}' that no tensor of the op is called", layer.name);
}

Result<EdgeTpuCall::TensorRef> EdgeTpuCall::find_output(std::span<const CallTensor> inputs,
                                                        std::span<const CallTensor> outputs,
                                                        const darwinn::Layer& layer) {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].name != layer.name) continue;
    REEF_RETURN_IF_ERROR(check_size(outputs[i], layer));
    return TensorRef{i, false, bytes_of(layer)};
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].is_present || !inputs[i].is_variable) continue;
    if (std::string(inputs[i].name) + std::string(kVariableSuffix) != layer.name) continue;
    REEF_RETURN_IF_ERROR(check_size(inputs[i], layer));
    return TensorRef{i, true, bytes_of(layer)};
  }
  return invalid_input("the package has an output '{}' that no tensor of the op is called", layer.name);
}

Result<EdgeTpuCall> EdgeTpuCall::create(std::shared_ptr<EdgeTpu> device, const Bytes& custom_options,
                                        std::span<const CallTensor> inputs, std::span<const CallTensor> outputs) {
  EdgeTpuCall call;
  call.device_ = std::move(device);
  REEF_ASSIGN_OR_RETURN(const darwinn::CustomOptions options, darwinn::read_custom_options(custom_options));
  REEF_ASSIGN_OR_RETURN(call.package_, call.device_->load(options.package));
  REEF_ASSIGN_OR_RETURN(const host::Programs programs, host::find_programs(options.package));
  for (const darwinn::Layer& layer : programs.execution->input_layers) {
    REEF_ASSIGN_OR_RETURN(const TensorRef input, find_input(inputs, layer));
    call.inputs_.push_back(input);
  }
  std::set<std::size_t> written;
  for (const darwinn::Layer& layer : programs.execution->output_layers) {
    REEF_ASSIGN_OR_RETURN(const TensorRef output, find_output(inputs, outputs, layer));
    call.outputs_.push_back(output);
    if (!output.is_variable) written.insert(output.index);
  }
  REEF_REQUIRE(written.size() == outputs.size(), "the op has {} outputs, of which the package gives {}", outputs.size(),
               written.size());
  return call;
}

Status EdgeTpuCall::run(std::span<std::byte* const> inputs, std::span<std::byte* const> outputs) const {
  EdgeTpu::Inputs tensors;
  for (const TensorRef& ref : inputs_) {
    tensors.emplace_back(reinterpret_cast<const std::uint8_t*>(inputs[ref.index]), ref.bytes);
  }
  REEF_ASSIGN_OR_RETURN(const EdgeTpu::Tensors results, device_->run(package_, tensors));
  for (std::size_t k = 0; k < outputs_.size(); ++k) {
    const TensorRef& ref = outputs_[k];
    std::byte* const target = ref.is_variable ? inputs[ref.index] : outputs[ref.index];
    std::copy(results[k].begin(), results[k].end(), reinterpret_cast<std::uint8_t*>(target));
  }
  return ok_status();
}

}  // namespace reef::runtime
