// SPDX-License-Identifier: Apache-2.0
#include "hostile.h"

#include <memory>

#include "compiler/plan.h"
#include "emit/compiled_model.h"
#include "execute/cpu/interpreter.h"
#include "formats/tflite/exported_writer.h"
#include "formats/tflite/reader.h"
#include "formats/tflite/writer.h"
#include "ir/pseudo_random.h"
#include "ir/verify.h"
#include "partition/check.h"
#include "runtime/edge_tpu_op.h"

namespace reef::testing {
namespace {

// Partitions as the compiler does, and writes what it would write, with packages that hold nothing.
Status plan_and_emit(const ir::Model& model, bool rewrites) {
  compiler::PlanOptions options;
  options.rewrites.none = !rewrites;
  options.partition.several_parts = true;
  options.partition.explain = false;
  REEF_ASSIGN_OR_RETURN(const compiler::Plan plan,
                        compiler::make_plan(std::make_shared<const ir::Model>(model), options));
  std::vector<emit::CompiledPart> parts;
  for (const partition::Part& part : plan.partition.parts) {
    parts.push_back({part.ops, part.inputs, part.outputs, Bytes({0})});
  }
  REEF_ASSIGN_OR_RETURN(const ir::Model compiled, emit::compiled_model(*plan.model, parts));
  return tflite::write_exported_model(compiled).status();
}

}  // namespace

Status read_and_run(std::vector<std::uint8_t> file, const HostileLimits& limits) {
  REEF_ASSIGN_OR_RETURN(ir::Model model, tflite::read_model(Bytes(std::move(file))));
  REEF_RETURN_IF_ERROR(ir::verify(model));
  REEF_ASSIGN_OR_RETURN(const auto saved, tflite::write_model(model));
  for (const int runtime : {ops::kOldestRuntime, ops::kNewestRuntime}) partition::assess(model, {runtime});
  for (const bool rewrites : {false, true}) {
    if (model.subgraphs.empty()) break;
    // An error must not keep it from running, unless it is ours.
    const Status status = plan_and_emit(model, rewrites);
    if (status.code() == StatusCode::kInternal) return status;
  }
  cpu::InterpreterOptions options;
  options.threads = 2;
  options.max_memory_bytes = limits.memory_bytes;
  options.time_limit_seconds = limits.seconds;
  device::Options device_options;
  device_options.max_cycles = limits.device_steps;
  options.foreign_ops.push_back(runtime::edge_tpu_op(std::make_shared<device::Device>(device_options)));
  REEF_ASSIGN_OR_RETURN(auto interpreter,
                        cpu::Interpreter::create(std::make_shared<const ir::Model>(std::move(model)), options));
  REEF_RETURN_IF_ERROR(interpreter->prepare());
  for (int i = 0; i < interpreter->input_count(); ++i) {
    ir::fill_pseudo_random(interpreter->input(i).type, 1, interpreter->input_bytes(i));
  }
  return interpreter->invoke();
}

}  // namespace reef::testing
