// SPDX-License-Identifier: Apache-2.0
#include "runtime/edge_tpu_op.h"

#include <vector>

#include "formats/darwinn/reader.h"
#include "runtime/edge_tpu_call.h"
#include "runtime/virtual_devices.h"

namespace reef::runtime {
namespace {

CallTensor call_tensor(const ops::Tensor& tensor) {
  return {tensor.name, ir::byte_size(tensor.shape, tensor.type).value_or(-1), tensor.is_variable, true};
}

Result<EdgeTpuCall> make_call(const std::shared_ptr<EdgeTpu>& device, const ops::PrepareContext& context) {
  std::vector<CallTensor> inputs, outputs;
  for (int i = 0; i < context.input_count(); ++i) {
    inputs.push_back(context.has_input(i) ? call_tensor(context.input(i)) : CallTensor{"", 0, false, false});
  }
  for (int i = 0; i < context.output_count(); ++i) outputs.push_back(call_tensor(context.output(i)));
  return EdgeTpuCall::create(device, context.op().custom_options, inputs, outputs);
}

Status invoke(const EdgeTpuCall& call, ops::RunContext& run) {
  std::vector<std::byte*> inputs, outputs;
  for (int i = 0; i < run.input_count(); ++i) inputs.push_back(run.has_input(i) ? run.input(i).data : nullptr);
  for (int i = 0; i < run.output_count(); ++i) outputs.push_back(run.output(i).data);
  return call.run(inputs, outputs);
}

}  // namespace

cpu::ForeignOp edge_tpu_op(std::shared_ptr<EdgeTpu> device) {
  return {darwinn::kCustomOpName, [device](ops::PrepareContext& context) -> Result<ops::Kernel> {
            REEF_ASSIGN_OR_RETURN(const EdgeTpuCall call, make_call(device, context));
            return ops::Kernel([call](ops::RunContext& run) { return invoke(call, run); });
          }};
}

cpu::ForeignOp edge_tpu_op(std::shared_ptr<device::Device> chip) { return edge_tpu_op(as_edge_tpu(std::move(chip))); }

}  // namespace reef::runtime
