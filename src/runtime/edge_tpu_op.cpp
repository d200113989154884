// SPDX-License-Identifier: Apache-2.0
#include "runtime/edge_tpu_op.h"

#include <algorithm>
#include <set>
#include <string>

#include "formats/darwinn/reader.h"

namespace reef::runtime {
namespace {

// A state of a recurrent network is a variable tensor that the op reads; the package returns its new value as an output
// of this name (seen in compiled models; libedgetpu writes it back).
constexpr std::string_view kVariableSuffix = "_variable_output";

struct TensorRef {
  int index = 0;
  bool is_variable = false;  // an input that the op changes; else an input or an output
};

Status check_size(const ops::Tensor& tensor, const darwinn::Layer& layer) {
  const std::int64_t bytes = ir::byte_size(tensor.shape, tensor.type).value_or(-1);
  REEF_REQUIRE(bytes == device::tensor_bytes(layer), "tensor '{}' has {} bytes, the package was compiled for {}",
               layer.name, bytes, device::tensor_bytes(layer));
  return ok_status();
}

// Layers and tensors belong together by name.
Result<TensorRef> find_input(const ops::PrepareContext& context, const darwinn::Layer& layer) {
  for (int i = 0; i < context.input_count(); ++i) {
    if (!context.has_input(i) || context.input(i).name != layer.name) continue;
    REEF_RETURN_IF_ERROR(check_size(context.input(i), layer));
    return TensorRef{i, false};
  }
  return invalid_input("the package has an input '{}' that no tensor of the op is called", layer.name);
}

Result<TensorRef> find_output(const ops::PrepareContext& context, const darwinn::Layer& layer) {
  for (int i = 0; i < context.output_count(); ++i) {
    if (context.output(i).name != layer.name) continue;
    REEF_RETURN_IF_ERROR(check_size(context.output(i), layer));
    return TensorRef{i, false};
  }
  for (int i = 0; i < context.input_count(); ++i) {
    if (!context.has_input(i) || !context.input(i).is_variable) continue;
    if (std::string(context.input(i).name) + std::string(kVariableSuffix) != layer.name) continue;
    REEF_RETURN_IF_ERROR(check_size(context.input(i), layer));
    return TensorRef{i, true};
  }
  return invalid_input("the package has an output '{}' that no tensor of the op is called", layer.name);
}

struct Binding {
  std::shared_ptr<const device::LoadedPackage> package;
  std::vector<TensorRef> inputs, outputs;  // by layer
};

Result<Binding> bind(const ops::PrepareContext& context) {
  Binding binding;
  REEF_ASSIGN_OR_RETURN(darwinn::CustomOptions options, darwinn::read_custom_options(context.op().custom_options));
  REEF_ASSIGN_OR_RETURN(binding.package, device::LoadedPackage::load(std::move(options.package)));
  for (const darwinn::Layer& layer : binding.package->inputs()) {
    REEF_ASSIGN_OR_RETURN(const TensorRef input, find_input(context, layer));
    binding.inputs.push_back(input);
  }
  std::set<int> written;
  for (const darwinn::Layer& layer : binding.package->outputs()) {
    REEF_ASSIGN_OR_RETURN(const TensorRef output, find_output(context, layer));
    binding.outputs.push_back(output);
    if (!output.is_variable) written.insert(output.index);
  }
  REEF_REQUIRE(written.size() == static_cast<std::size_t>(context.output_count()),
               "the op has {} outputs, of which the package gives {}", context.output_count(), written.size());
  return binding;
}

Status invoke(device::Device& device, const Binding& binding, ops::RunContext& run) {
  std::vector<std::span<const std::uint8_t>> tensors;
  for (const TensorRef& input : binding.inputs) {
    tensors.emplace_back(reinterpret_cast<const std::uint8_t*>(run.input(input.index).data),
                         run.input(input.index).bytes);
  }
  REEF_ASSIGN_OR_RETURN(const auto results, device.run(binding.package, tensors));
  for (std::size_t k = 0; k < binding.outputs.size(); ++k) {
    const TensorRef& ref = binding.outputs[k];
    ops::Tensor& tensor = ref.is_variable ? run.variable(ref.index) : run.output(ref.index);
    std::copy(results[k].begin(), results[k].end(), reinterpret_cast<std::uint8_t*>(tensor.data));
  }
  return ok_status();
}

}  // namespace

cpu::ForeignOp edge_tpu_op(std::shared_ptr<device::Device> device) {
  return {darwinn::kCustomOpName, [device](ops::PrepareContext& context) -> Result<ops::Kernel> {
            REEF_ASSIGN_OR_RETURN(const Binding binding, bind(context));
            return ops::Kernel([device, binding](ops::RunContext& run) { return invoke(*device, binding, run); });
          }};
}

}  // namespace reef::runtime
