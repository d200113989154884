// SPDX-License-Identifier: Apache-2.0
#include "ops/subgraph_call.h"

#include <cstring>

namespace reef::ops {
namespace {
const ir::Quantization kNoQuantization;
}  // namespace

Result<std::vector<const Tensor*>> call_arguments(const OpContext& ctx, int first) {
  std::vector<const Tensor*> arguments;
  for (int i = first; i < ctx.input_count(); ++i) {
    REEF_REQUIRE(ctx.has_input(i), "input {} is left out, but a subgraph needs it", i);
    arguments.push_back(&ctx.input(i));
  }
  return arguments;
}

Result<std::int32_t> subgraph_attribute(const OpContext& ctx, std::string_view name) {
  if (ctx.environment() == nullptr) return unsupported("control flow can be resolved only inside an interpreter");
  const std::int64_t index = ctx.attributes().get_int(name, -1);
  REEF_REQUIRE(index > 0 && index < ctx.environment()->subgraph_count(),
               "{} is {}, but the model has subgraphs 0 to {}", name, index, ctx.environment()->subgraph_count() - 1);
  return static_cast<std::int32_t>(index);
}

Status store_results(RunContext& ctx, std::span<const OwnedTensor> results) {
  REEF_REQUIRE(static_cast<int>(results.size()) == ctx.output_count(), "the subgraph has {} results for {} outputs",
               results.size(), ctx.output_count());
  for (int i = 0; i < ctx.output_count(); ++i) {
    const OwnedTensor& result = results[at(i)];
    REEF_REQUIRE(result.type == ctx.output(i).type, "result {} of the subgraph is {}, but output '{}' is {}", i,
                 ir::type_name(result.type), ctx.output(i).name, ir::type_name(ctx.output(i).type));
    REEF_RETURN_IF_ERROR(ctx.resize_output(i, result.shape));
    REEF_REQUIRE(ctx.output(i).bytes == result.data.size(), "result {} of the subgraph has {} bytes, {} are expected",
                 i, result.data.size(), ctx.output(i).bytes);
    if (!result.data.empty()) std::memcpy(ctx.output(i).data, result.data.data(), result.data.size());
  }
  return ok_status();
}

std::vector<Tensor> as_views(std::span<OwnedTensor> owned) {
  std::vector<Tensor> views;
  for (OwnedTensor& tensor : owned) {
    Tensor view;
    view.name = "loop value";
    view.type = tensor.type;
    view.shape = tensor.shape;
    view.quantization = &kNoQuantization;
    view.data = tensor.data.data();
    view.bytes = tensor.data.size();
    views.push_back(std::move(view));
  }
  return views;
}

}  // namespace reef::ops
