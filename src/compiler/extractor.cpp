// SPDX-License-Identifier: Apache-2.0
#include "compiler/extractor.h"

#include "compiler/compile.h"
#include "formats/tflite/reader.h"
#include "formats/tflite/writer.h"

namespace reef::compiler {

Result<ir::Model> compiled_extractor(const ir::Model& extractor, const std::string& name) {
  CompileOptions options;
  options.models = {name + ".tflite"};
  options.write = false;
  REEF_ASSIGN_OR_RETURN(options.in_memory[options.models[0]].file, tflite::write_bytes(extractor));
  const CompileResult compiled = compile(options);
  if (!compiled.ok()) {
    return invalid_input("the extractor of '{}' cannot be compiled: {}", name, compiled.refusals[0].explanation);
  }
  REEF_REQUIRE(
      compiled.runs.size() == 1 && compiled.runs[0].files.size() == 1 && !compiled.runs[0].files[0].ops.empty(),
      "nothing of the extractor of '{}' can run on the Edge TPU; `reef check` says why", name);
  return tflite::read_model(Bytes(*compiled.runs[0].files[0].content));
}

}  // namespace reef::compiler
