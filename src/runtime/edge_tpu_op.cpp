// SPDX-License-Identifier: Apache-2.0
#include "runtime/edge_tpu_op.h"

#include <vector>

#include "formats/darwinn/reader.h"
#include "runtime/edge_tpu_call.h"

namespace reef::runtime {
namespace {

CallTensor call_tensor(const ops::Tensor& tensor) {
  return {tensor.name, ir::byte_size(tensor.shape, tensor.type).value_or(-1), tensor.is_variable, true};
}

Result<EdgeTpuCall> bind(const ops::PrepareContext& context) {
  std::vector<CallTensor> inputs, outputs;
  for (int i = 0; i < context.input_count(); ++i) {
    inputs.push_back(context.has_input(i) ? call_tensor(context.input(i)) : CallTensor{"", 0, false, false});
  }
  for (int i = 0; i < context.output_count(); ++i) outputs.push_back(call_tensor(context.output(i)));
  return EdgeTpuCall::create(context.op().custom_options, inputs, outputs);
}

template <typename Run>
Status invoke(ops::RunContext& run, const Run& call) {
  std::vector<std::byte*> inputs, outputs;
  for (int i = 0; i < run.input_count(); ++i) inputs.push_back(run.has_input(i) ? run.input(i).data : nullptr);
  for (int i = 0; i < run.output_count(); ++i) outputs.push_back(run.output(i).data);
  return call(inputs, outputs);
}

}  // namespace

cpu::ForeignOp edge_tpu_op(std::shared_ptr<device::Device> device) {
  return {darwinn::kCustomOpName, [device](ops::PrepareContext& context) -> Result<ops::Kernel> {
            REEF_ASSIGN_OR_RETURN(const EdgeTpuCall call, bind(context));
            return ops::Kernel([device, call](ops::RunContext& run) {
              return invoke(run, [&](const auto& in, const auto& out) { return call.run(*device, in, out); });
            });
          }};
}

cpu::ForeignOp edge_tpu_op(std::shared_ptr<VirtualDevice> device) {
  return {darwinn::kCustomOpName, [device](ops::PrepareContext& context) -> Result<ops::Kernel> {
            REEF_ASSIGN_OR_RETURN(const EdgeTpuCall call, bind(context));
            return ops::Kernel([device, call](ops::RunContext& run) {
              return invoke(run, [&](const auto& in, const auto& out) { return device->run(call, in, out); });
            });
          }};
}

}  // namespace reef::runtime
