// SPDX-License-Identifier: Apache-2.0
#include "compiler/convert_driver.h"
#include "ir/op.h"

#include <algorithm>

namespace reef::compiler {
namespace {

bool carries_scales(const FrontEndResult& loaded) {
  const std::vector<ir::Operator>& ops = loaded.model.subgraphs[0].operators;
  return loaded.format == ModelFormat::kOnnx &&
         std::any_of(ops.begin(), ops.end(), [](const ir::Operator& op) { return op.type == Op::QUANTIZE; });
}

Status make_integer(const ConvertRequest& request, FrontEndResult& result) {
  quantize::QuantizeOptions how;
  how.input_type = how.output_type = request.io;
  REEF_ASSIGN_OR_RETURN(quantize::QuantizeResult quantized, quantize::quantize(result.model, nullptr, how));
  result.model = std::move(quantized.model);
  result.notes.insert(result.notes.end(), quantized.notes.begin(), quantized.notes.end());
  for (const quantize::FloatOp& op : quantized.float_ops) {
    result.notes.push_back(fmt::format("{} stays float: {}", op.op, op.why));
  }
  if (!request.front_end.simplify) return ok_status();
  // Movement that QUANTIZE and DEQUANTIZE kept apart.
  return passes::simplify(result.model, {}, result.log).status();
}

}  // namespace

Result<FrontEndResult> convert_model(const ConvertRequest& request) {
  REEF_ASSIGN_OR_RETURN(FrontEndResult result, load_any_model(request.model, request.front_end));
  if (!request.keep_qdq && carries_scales(result)) {
    REEF_RETURN_IF_ERROR(make_integer(request, result).in(request.model));
  }
  return result;
}

}  // namespace reef::compiler
