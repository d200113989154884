// SPDX-License-Identifier: Apache-2.0
// int8: operators with a hybrid kernel take int8 weights as they are and quantize their input while running; every
// other large constant that is weights keeps float. float16: each large constant becomes float16, with a DEQUANTIZE in
// front of who reads it, which runtimes fold or run once.
#include "quantize/weights_only.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "execute/cpu/evaluate.h"
#include "formats/tflite/operator_codes.h"
#include "ir/compact.h"
#include "ir/describe.h"
#include "ir/verify.h"
#include "numeric/half.h"
#include "quantize/graph_constants.h"
#include "quantize/scale_limits.h"
#include "quantize/session.h"
#include "quantize/weights.h"

namespace reef::quantize {
namespace {

constexpr std::int64_t kSmall = 1024;  // elements; smaller constants are not worth it, as in TFLite's converter

// Operators with hybrid kernels: where their weights stand, and the version that knows them.
struct Hybrid {
  Op type;
  int first, last;   // inputs that are weights
  int channel_axis;  // -1: one scale
  int version;
};
constexpr Hybrid kHybrids[] = {
    {Op::CONV_2D, 1, 1, 0, 5},
    {Op::DEPTHWISE_CONV_2D, 1, 1, 3, 6},
    {Op::FULLY_CONNECTED, 1, 1, -1, 9},
    {Op::UNIDIRECTIONAL_SEQUENCE_LSTM, 1, 8, -1, 3},
    {Op::BIDIRECTIONAL_SEQUENCE_LSTM, 1, 8, -1, 3},
    {Op::UNIDIRECTIONAL_SEQUENCE_RNN, 1, 2, -1, 3},
    {Op::BATCH_MATMUL, 1, 1, -1, 4},
};

bool is_large(const ir::Model& model, const ir::Tensor& tensor) {
  return is_float_constant(model, tensor) && tensor.shape.elements() >= kSmall;
}

class Shrinker {
 public:
  explicit Shrinker(const ir::Model& model) : source_(model) { result_.model = model; }

  void int8_weights() {
    for (ir::Operator& op : graph().operators) {
      const auto* found =
          std::find_if(std::begin(kHybrids), std::end(kHybrids), [&](const Hybrid& h) { return h.type == op.type; });
      if (found == std::end(kHybrids)) continue;
      bool all = true, any = false;  // kernels want all weights of an operator in one type
      for_weights(*found, op, [&](std::int32_t t) {
        any = any || is_large(source_, tensor(t));
        all = all && is_float_constant(source_, tensor(t));
      });
      if (!any || !all) continue;
      for_weights(*found, op, [&](std::int32_t& t) { t = as_int8(t, found->channel_axis); });
      op.version = std::max(op.version, found->version);
      // Inputs are quantized with a zero point, which is finer than without.
      if (op.type != Op::CONV_2D && op.type != Op::DEPTHWISE_CONV_2D)
        op.attributes.set("asymmetric_quantize_inputs", true);
      ++result_.integer_ops;
    }
  }

  void float16_weights() {
    std::map<std::int32_t, std::int32_t> made;
    std::vector<ir::Operator> operators;
    for (ir::Operator op : graph().operators) {
      for (std::int32_t& t : op.inputs) {
        if (t < 0 || !is_large(source_, tensor(t))) continue;
        if (!made.contains(t)) made[t] = as_float16(t, operators);
        t = made[t];
      }
      operators.push_back(std::move(op));
    }
    graph().operators = std::move(operators);
  }

  QuantizeResult take() {
    ir::drop_unused_tensors(result_.model, 0);
    ir::drop_unused_buffers(result_.model);
    return std::move(result_);
  }

 private:
  ir::Subgraph& graph() { return result_.model.subgraphs[0]; }
  const ir::Tensor& tensor(std::int32_t t) { return graph().tensors[at(t)]; }
  template <typename Use>
  void for_weights(const Hybrid& hybrid, ir::Operator& op, const Use& use) {
    for (int i = hybrid.first; i <= hybrid.last && i < static_cast<int>(op.inputs.size()); ++i) {
      if (op.inputs[at(i)] >= 0) use(op.inputs[at(i)]);
    }
  }

  std::int32_t as_int8(std::int32_t t, int axis) {
    if (const auto found = made_.find(t); found != made_.end()) return found->second;
    ir::Tensor copy = tensor(t);
    const std::vector<float> values = float_values(source_, copy);
    WeightRequest request;
    request.layout = channel_layout(copy.shape, axis);
    const std::vector<float> scales = weight_scales(values, request);
    set_constant(result_.model, copy, round_weights(values, request.layout, scales));
    copy.type = ir::DataType::kInt8;
    copy.has_quantization = true;
    copy.quantization.scale = scales;
    copy.quantization.zero_point.assign(scales.size(), 0);
    copy.quantization.dimension = scales.size() > 1 ? axis : 0;
    graph().tensors.push_back(std::move(copy));
    return made_[t] = static_cast<std::int32_t>(graph().tensors.size() - 1);
  }

  std::int32_t as_float16(std::int32_t t, std::vector<ir::Operator>& operators) {
    ir::Tensor half = tensor(t), full = tensor(t);
    std::vector<std::uint16_t> bits;
    for (const float v : float_values(source_, half))
      bits.push_back(numeric::float_to_half(std::clamp(v, -65504.0f, 65504.0f)));
    set_constant(result_.model, half, bits);
    half.type = ir::DataType::kFloat16;
    half.name += "_float16";
    full.buffer = 0;
    const auto first = static_cast<std::int32_t>(graph().tensors.size());
    graph().tensors.push_back(std::move(half));
    graph().tensors.push_back(std::move(full));
    ir::Operator op;
    op.type = name_of(Op::DEQUANTIZE);
    op.builtin_code = tflite::builtin_code(op.type);
    op.version = 3;
    op.options_type = "DequantizeOptions";
    op.inputs = {first};
    op.outputs = {first + 1};
    operators.push_back(std::move(op));
    ++result_.conversions;
    return first + 1;
  }

  const ir::Model& source_;
  QuantizeResult result_;
  std::map<std::int32_t, std::int32_t> made_;
};

}  // namespace

Result<QuantizeResult> weights_only(const ir::Model& model, const data::SampleSource* source,
                                    const QuantizeOptions& options) {
  Shrinker shrinker(model);
  if (options.mode == Mode::kDynamic) {
    shrinker.int8_weights();
  } else {
    shrinker.float16_weights();
  }
  QuantizeResult result = shrinker.take();
  result.float_model = model;
  REEF_RETURN_IF_ERROR(ir::verify(result.model).in("the quantized model (a defect in Reef)"));
  REEF_RETURN_IF_ERROR(check_scales(result.model));
  const auto made = std::make_shared<const ir::Model>(result.model);
  if (source == nullptr) {
    REEF_ASSIGN_OR_RETURN(const auto interpreter, cpu::prepared(made));
    REEF_RETURN_IF_ERROR(interpreter->invoke());
    return result;
  }
  Session session(*source, options);
  REEF_RETURN_IF_ERROR(session.split_samples());
  const RunOptions run = session.run_options("measuring");
  REEF_ASSIGN_OR_RETURN(const Outputs before,
                        run_outputs(std::make_shared<const ir::Model>(model), *source, session.held_back(), run));
  REEF_ASSIGN_OR_RETURN(const Outputs after, run_outputs(made, *source, session.held_back(), run));
  result.held_back_samples = static_cast<std::int64_t>(session.held_back().size());
  result.error = compare_outputs(before, after, views_of(model, before));
  return result;
}

}  // namespace reef::quantize
