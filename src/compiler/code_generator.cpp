// SPDX-License-Identifier: Apache-2.0
#include "compiler/code_generator.h"

namespace reef::compiler {

Result<darwinn::Package> generate_code(const PartProgram&) {
  return unsupported("this version of Reef generates no machine code");
}

}  // namespace reef::compiler
