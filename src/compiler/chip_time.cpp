// SPDX-License-Identifier: Apache-2.0
#include "compiler/chip_time.h"

#include <algorithm>
#include <memory>

#include "compiler/explain.h"
#include "compiler/float_subject.h"
#include "compiler/plan.h"
#include "compiler/trial_quantization.h"
#include "formats/tflite/writer.h"

namespace reef::compiler {

Result<ChipTime> estimate_time(const ir::Model& model, const chip::LinkProfile* link, const Budget& budget) {
  ir::Model quantized = model;
  if (!computes_in_bytes(model)) {
    REEF_ASSIGN_OR_RETURN(quantized, quantize_on_trial(model, budget));
  }
  PlanOptions options;
  options.costs.link = link;
  options.partition.explain = false;
  options.budget = budget;
  REEF_ASSIGN_OR_RETURN(const Plan plan, make_plan(std::make_shared<const ir::Model>(std::move(quantized)), options));
  ChipTime result;
  result.ms = plan.partition.predicted_us / 1000;
  for (const partition::Part& part : plan.partition.parts) {
    result.chip_ms += part.cost.total() / 1000;
    result.cached_bytes += part.cost.cached_bytes;
    result.streamed_bytes += part.cost.streamed_bytes;
  }
  return result;
}

Result<ChipTime> simulate_time(const CompileResult& compiled, const chip::LinkProfile* link) {
  ChipTime result;
  device::TimingOptions timing;
  timing.link = link;
  for (const CompileRun& run : compiled.runs) {
    for (const CompiledFile& file : run.files) {
      result.cached_bytes += file.cached_bytes;
      result.streamed_bytes += file.streamed_bytes;
      double estimated_parts = 0;
      for (const CompiledOp& op : file.ops) {
        estimated_parts += op.part.cost.total() / 1000;
        if (op.code == nullptr) continue;
        REEF_ASSIGN_OR_RETURN(const PartExplanation part, explain(*file.plan.model, *op.code, timing));
        result.chip_ms += part.ms;
      }
      result.ms += std::max(0.0, file.plan.partition.predicted_us / 1000 - estimated_parts);
    }
  }
  result.ms += result.chip_ms;
  return result;
}

Result<ChipTime> simulate_time(const ir::Model& quantized, const chip::LinkProfile* link, const Budget& budget) {
  constexpr const char* kName = "model.tflite";
  CompileOptions options;
  options.models = {kName};
  REEF_ASSIGN_OR_RETURN(options.in_memory[kName].file, tflite::write_bytes(quantized));
  options.write = false;
  options.verify = Verify::kNever;
  options.plan.costs.link = link;
  options.plan.partition.explain = false;
  options.plan.budget = options.budget = budget;
  const CompileResult compiled = compile(options);
  REEF_REQUIRE(compiled.ok(), "{}", compiled.refusals.front().explanation);
  return simulate_time(compiled, link);
}

}  // namespace reef::compiler
