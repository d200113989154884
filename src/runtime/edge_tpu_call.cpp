// SPDX-License-Identifier: Apache-2.0
#include "runtime/edge_tpu_call.h"

#include <algorithm>
#include <set>
#include <string>

#include "formats/darwinn/reader.h"

namespace reef::runtime {
namespace {

// What a package calls the new value of a variable tensor (seen in compiled models; libedgetpu writes it back).
constexpr std::string_view kVariableSuffix = "_variable_output";

Status check_size(const CallTensor& tensor, const darwinn::Layer& layer) {
  REEF_REQUIRE(tensor.bytes == device::tensor_bytes(layer), "tensor '{}' has {} bytes, the package was compiled for {}",
               layer.name, tensor.bytes, device::tensor_bytes(layer));
  return ok_status();
}

}  // namespace

Result<EdgeTpuCall::TensorRef> EdgeTpuCall::find_input(std::span<const CallTensor> inputs,
                                                       const darwinn::Layer& layer) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].is_present || inputs[i].name != layer.name) continue;
    REEF_RETURN_IF_ERROR(check_size(inputs[i], layer));
    return TensorRef{i, false};
  }
  return invalid_input("the package has an input '{}' that no tensor of the op is called", layer.name);
}

Result<EdgeTpuCall::TensorRef> EdgeTpuCall::find_output(std::span<const CallTensor> inputs,
                                                        std::span<const CallTensor> outputs,
                                                        const darwinn::Layer& layer) {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].name != layer.name) continue;
    REEF_RETURN_IF_ERROR(check_size(outputs[i], layer));
    return TensorRef{i, false};
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].is_present || !inputs[i].is_variable) continue;
    if (std::string(inputs[i].name) + std::string(kVariableSuffix) != layer.name) continue;
    REEF_RETURN_IF_ERROR(check_size(inputs[i], layer));
    return TensorRef{i, true};
  }
  return invalid_input("the package has an output '{}' that no tensor of the op is called", layer.name);
}

Result<EdgeTpuCall> EdgeTpuCall::create(const Bytes& custom_options, std::span<const CallTensor> inputs,
                                        std::span<const CallTensor> outputs) {
  EdgeTpuCall call;
  REEF_ASSIGN_OR_RETURN(darwinn::CustomOptions options, darwinn::read_custom_options(custom_options));
  REEF_ASSIGN_OR_RETURN(call.package_, device::LoadedPackage::load(std::move(options.package)));
  for (const darwinn::Layer& layer : call.package_->inputs()) {
    REEF_ASSIGN_OR_RETURN(const TensorRef input, find_input(inputs, layer));
    call.inputs_.push_back(input);
  }
  std::set<std::size_t> written;
  for (const darwinn::Layer& layer : call.package_->outputs()) {
    REEF_ASSIGN_OR_RETURN(const TensorRef output, find_output(inputs, outputs, layer));
    call.outputs_.push_back(output);
    if (!output.is_variable) written.insert(output.index);
  }
  REEF_REQUIRE(written.size() == outputs.size(), "the op has {} outputs, of which the package gives {}", outputs.size(),
               written.size());
  return call;
}

Status EdgeTpuCall::run(device::Device& device, std::span<std::byte* const> inputs,
                        std::span<std::byte* const> outputs) const {
  std::vector<std::span<const std::uint8_t>> tensors;
  for (std::size_t k = 0; k < inputs_.size(); ++k) {
    const auto bytes = static_cast<std::size_t>(device::tensor_bytes(package_->inputs()[k]));
    tensors.emplace_back(reinterpret_cast<const std::uint8_t*>(inputs[inputs_[k].index]), bytes);
  }
  REEF_ASSIGN_OR_RETURN(const auto results, device.run(package_, tensors));
  for (std::size_t k = 0; k < outputs_.size(); ++k) {
    const TensorRef& ref = outputs_[k];
    std::byte* const target = ref.is_variable ? inputs[ref.index] : outputs[ref.index];
    std::copy(results[k].begin(), results[k].end(), reinterpret_cast<std::uint8_t*>(target));
  }
  return ok_status();
}

}  // namespace reef::runtime
