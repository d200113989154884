// SPDX-License-Identifier: Apache-2.0
#include "formats/darwinn/without_code.h"

#include "ir/describe.h"

namespace reef::darwinn {

Package package_without_code(int min_runtime_version, std::string_view maker, std::string_view reason) {
  Package package;
  package.min_runtime_version = min_runtime_version;
  package.compiler_version = fmt::format("{}: no machine code", maker);
  package.model_identifier = reason;
  return package;
}

Status require_code(const Package& package) {
  if (!package.executables.empty()) return ok_status();
  const std::string maker = ir::describe_name(package.compiler_version);
  const std::string reason = ir::describe_name(package.model_identifier);
  return unsupported(
      "the package holds no machine code (its maker says '{}'{}); run the model it was compiled from on the CPU "
      "(reef run MODEL.tflite), or put its weights into a file that Google's compiler made of the same network (reef "
      "retarget)",
      maker, reason.empty() ? "" : fmt::format(", '{}'", reason));
}

}  // namespace reef::darwinn
