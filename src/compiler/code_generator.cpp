// SPDX-License-Identifier: Apache-2.0
#include "compiler/code_generator.h"

namespace reef::compiler {

Result<darwinn::Package> generate_code(const PartProgram&) {
  return unsupported("code generation is not part of this version yet");
}

}  // namespace reef::compiler
