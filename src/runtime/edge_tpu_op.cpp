// SPDX-License-Identifier: Apache-2.0
#include "runtime/edge_tpu_op.h"

#include <algorithm>

#include "formats/darwinn/reader.h"

namespace reef::runtime {
namespace {

// Layers and tensors belong together by name; libedgetpu does the same.
Result<std::vector<int>> tensors_of(const std::vector<darwinn::Layer>& layers, int tensors,
                                    const std::function<const ops::Tensor&(int)>& tensor, std::string_view role) {
  std::vector<int> order;
  for (const darwinn::Layer& layer : layers) {
    int found = -1;
    for (int i = 0; i < tensors; ++i) {
      if (tensor(i).name == layer.name) found = i;
    }
    REEF_REQUIRE(found >= 0, "the package has an {} '{}' that no tensor of the op is called", role, layer.name);
    const std::int64_t bytes = ir::byte_size(tensor(found).shape, tensor(found).type).value_or(-1);
    REEF_REQUIRE(bytes == device::tensor_bytes(layer), "{} '{}' has {} bytes, the package was compiled for {}", role,
                 layer.name, bytes, device::tensor_bytes(layer));
    order.push_back(found);
  }
  return order;
}

Status invoke(device::Device& device, const std::shared_ptr<const device::LoadedPackage>& package,
              const std::vector<int>& inputs, const std::vector<int>& outputs, ops::RunContext& run) {
  std::vector<std::span<const std::uint8_t>> tensors;
  for (const int i : inputs) {
    tensors.emplace_back(reinterpret_cast<const std::uint8_t*>(run.input(i).data), run.input(i).bytes);
  }
  REEF_ASSIGN_OR_RETURN(const auto results, device.run(package, tensors));
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    ops::Tensor& output = run.output(outputs[k]);
    std::copy(results[k].begin(), results[k].end(), reinterpret_cast<std::uint8_t*>(output.data));
  }
  return ok_status();
}

}  // namespace

cpu::ForeignOp edge_tpu_op(std::shared_ptr<device::Device> device) {
  return {darwinn::kCustomOpName, [device](ops::PrepareContext& context) -> Result<ops::Kernel> {
            REEF_ASSIGN_OR_RETURN(darwinn::CustomOptions options,
                                  darwinn::read_custom_options(context.op().custom_options));
            REEF_ASSIGN_OR_RETURN(const auto package, device::LoadedPackage::load(std::move(options.package)));
            const auto input = [&](int i) -> const ops::Tensor& { return context.input(i); };
            const auto output = [&](int i) -> const ops::Tensor& { return context.output(i); };
            REEF_ASSIGN_OR_RETURN(const std::vector<int> inputs,
                                  tensors_of(package->inputs(), context.input_count(), input, "input"));
            REEF_ASSIGN_OR_RETURN(const std::vector<int> outputs,
                                  tensors_of(package->outputs(), context.output_count(), output, "output"));
            REEF_REQUIRE(outputs.size() == static_cast<std::size_t>(context.output_count()),
                         "the op has {} outputs, the package {}", context.output_count(), outputs.size());
            return ops::Kernel([=](ops::RunContext& run) { return invoke(*device, package, inputs, outputs, run); });
          }};
}

}  // namespace reef::runtime
