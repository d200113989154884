// SPDX-License-Identifier: Apache-2.0
#include "compiler/refusal.h"

#include <algorithm>

#include "ir/describe.h"
#include "report/check_report.h"

namespace reef::compiler {

Refusal not_parsed(const std::string& path, const Status& status) {
  return {Refusal::Kind::kNotParsed, path, status.message(), {}};
}

namespace {

std::ptrdiff_t count_of_16_bits(const ir::Model& model) {
  const auto& all = model.subgraphs[0].tensors;
  return std::count_if(all.begin(), all.end(), [](const ir::Tensor& tensor) {
    return tensor.type == ir::DataType::kInt16 && !tensor.quantization.scale.empty();
  });
}

}  // namespace

// Of a model that has operators of 8 bits, tensors of 16 are cells of an LSTM.
bool must_be_quantized(const ir::Model& model, const partition::Assessment& assessment) {
  return assessment.is_float() || (!assessment.is_quantized && count_of_16_bits(model) > 0);
}

Refusal not_quantized(const std::string& path, const ir::Model& model, const partition::Assessment& assessment) {
  constexpr std::size_t kShown = 8;
  const auto& tensors = assessment.float_tensors;
  if (const auto wide = count_of_16_bits(model); wide > 0) {
    return {Refusal::Kind::kNotQuantized,
            path,
            fmt::format("{}: {} tensors have 16 bits (int16x8), and Reef has code for the Edge TPU only where "
                        "activations have 8; such a file is for CPUs\n"
                        "From the float model, with a few hundred typical inputs: `reef compile MODEL --data SAMPLES`",
                        path, wide),
            {}};
  }
  std::string text = fmt::format(
      "{}: no operator computes on 8-bit integers, which is all that the Edge TPU does; {} tensors are float", path,
      tensors.size());
  for (std::size_t i = 0; i < std::min(kShown, tensors.size()); ++i) {
    const ir::Tensor& tensor = model.subgraphs[0].tensors[at(tensors[i])];
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
