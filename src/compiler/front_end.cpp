// SPDX-License-Identifier: Apache-2.0
#include "compiler/front_end.h"

#include "formats/tflite/reader.h"

namespace reef::compiler {

Result<FrontEndResult> load_any_model(const std::string& path, const FrontEndOptions& /*options*/) {
  FrontEndResult result;
  REEF_ASSIGN_OR_RETURN(result.model, tflite::load_model(path, &result.notes));
  return result;
}

}  // namespace reef::compiler
