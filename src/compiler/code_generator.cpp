// SPDX-License-Identifier: Apache-2.0
#include "compiler/code_generator.h"

#include "base/version.h"
#include "emit/package.h"
#include "lower/lower.h"
#include "schedule/schedule.h"

namespace reef::compiler {
namespace {

// Versions of the runtime whose programs look as ours do.
constexpr int kOldestRuntime = 13;

}  // namespace

Result<darwinn::Package> generate_code(const PartProgram& part) { return generate_code_with(part, {}); }

Result<darwinn::Package> generate_code_with(const PartProgram& part, const GenerationOptions& options) {
  REEF_ASSIGN_OR_RETURN(GeneratedCode code, generate_code_and_keep(part, options));
  return std::move(code.package);
}

Result<GeneratedCode> generate_code_and_keep(const PartProgram& part, const GenerationOptions& options) {
  if (part.min_runtime_version < kOldestRuntime) {
    return unsupported("code for runtimes before {} is not generated yet", kOldestRuntime);
  }
  if (part.shares_chip) {
    return unsupported("code for several parts that keep their parameters side by side is not generated yet");
  }
  REEF_ASSIGN_OR_RETURN(tiled::TiledProgram program, lower::lower(part.model, part.ops, part.inputs, part.outputs,
                                                                  {options.level.value_or(part.level), part.refused}));
  schedule::ScheduleOptions how;
  how.parameters = options.parameter_places;
  how.narrow_addresses = options.narrow_addresses;
  how.wide_lines = options.wide_lines;
  REEF_RETURN_IF_ERROR(schedule::schedule(program, how));
  REEF_ASSIGN_OR_RETURN(emit::EmittedPackage emitted,
                        emit::package(part.model, program,
                                      {part.min_runtime_version, part.caching_token,
                                       options.compiler_version.value_or(fmt::format("reef {}", reef_version()))}));
  return GeneratedCode{std::move(emitted.package), std::move(program), std::move(emitted.step_begins)};
}

}  // namespace reef::compiler
