// SPDX-License-Identifier: Apache-2.0
#include "compiler/refusal.h"

#include <algorithm>

#include "ir/describe.h"
#include "report/check_report.h"

namespace reef::compiler {

Refusal not_parsed(const std::string& path, const Status& status) {
  return {Refusal::Kind::kNotParsed, path, status.message(), {}};
}

Refusal not_quantized(const std::string& path, const ir::Model& model, const partition::Assessment& assessment) {
  constexpr std::size_t kShown = 8;
  const auto& tensors = assessment.float_tensors;
  std::string text = fmt::format(
      "{}: no operator computes on 8-bit integers, which is all that the Edge TPU does; {} tensors are float", path,
      tensors.size());
  for (std::size_t i = 0; i < std::min(kShown, tensors.size()); ++i) {
    const ir::Tensor& tensor = model.subgraphs[0].tensors[static_cast<std::size_t>(tensors[i])];
    text += fmt::format("{} {} '{}' {}{}", i == 0 ? ":" : ",", tensors[i], ir::describe_name(tensor.name),
                        ir::type_name(tensor.type), tensor.shape.to_string());
  }
  if (tensors.size() > kShown) text += fmt::format(" and {} more", tensors.size() - kShown);
  text += '\n';
  text += report::quantizing_advice();
  return {Refusal::Kind::kNotQuantized, path, text, {}};
}

Refusal already_compiled(const std::string& path) {
  return {Refusal::Kind::kAlreadyCompiled,
          path,
          fmt::format("{}: it is compiled already (it has an edgetpu-custom-op); give the model it was compiled from",
                      path),
          {}};
}

Refusal timed_out(const std::string& path, const Status& why) {
  return {Refusal::Kind::kTimeout, path, why.in(path).message(), {}};
}

}  // namespace reef::compiler
