// SPDX-License-Identifier: Apache-2.0
// Every tensor has a home form, in which it is computed: integer if an integer operator computes it, else float. Other
// forms are made from it when an operator first asks for them, by a QUANTIZE or DEQUANTIZE right before that operator.
#include "quantize/to_integer.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include <fmt/format.h>

#include "formats/tflite/operator_codes.h"
#include "ir/compact.h"
#include "ir/verify.h"
#include "quantize/clearing_steps.h"
#include "quantize/graph_constants.h"
#include "quantize/integer_lstm.h"
#include "quantize/scale_groups.h"
#include "quantize/scale_limits.h"
#include "quantize/weights.h"

namespace reef::quantize {
namespace {

using ir::DataType;

struct Form {
  DataType type = DataType::kFloat32;
  Affine affine;  // of integer types
  friend bool operator==(const Form&, const Form&) = default;
  auto key() const { return std::tuple(static_cast<int>(type), affine.scale, affine.zero_point); }
};

void set_affine(ir::Tensor& tensor, const Form& form) {
  tensor.type = form.type;
  tensor.quantization = {};
  tensor.has_quantization = form.type != DataType::kFloat32;
  if (!tensor.has_quantization) return;
  tensor.quantization.scale = {form.affine.scale};
  tensor.quantization.zero_point = {form.affine.zero_point};
}

class Writer {
 public:
  Writer(const ir::Model& source, const Plan& plan, const QuantizeOptions& options)
      : source_(source), plan_(plan), options_(options), from_(source.subgraphs[0]) {
    result_.model = source;
    scales_ = plan.scales ? *plan.scales : assign_scales(source, plan.decisions, plan.ranges, options.mode, plan.apart);
    integer_ = options.mode == Mode::kInt16x8 ? DataType::kInt16 : DataType::kInt8;
  }

  Result<IntegerModel> run() {
    home_.assign(from_.tensors.size(), Form{});
    for (std::size_t i = 0; i < plan_.decisions.size(); ++i) {
      if (plan_.decisions[i].treatment == Treatment::kInteger) set_homes(from_.operators[i]);
    }
    set_input_homes();
    for (std::size_t t = 0; t < home_.size(); ++t) {
      if (home_[t].type != DataType::kFloat32) set_affine(tensors()[t], home_[t]);
    }
    for (std::size_t i = 0; i < from_.operators.size(); ++i) {
      REEF_RETURN_IF_ERROR(add(static_cast<std::int32_t>(i)));
    }
    set_outputs();
    graph().operators = std::move(operators_);
    REEF_RETURN_IF_ERROR(put_back_clearing_steps(result_.model, plan_.cleared_lstms));
    result_.tensor_of.resize(home_.size());
    for (std::size_t t = 0; t < home_.size(); ++t) result_.tensor_of[t] = static_cast<std::int32_t>(t);
    const std::vector<std::int32_t> moved = ir::drop_unused_tensors(result_.model, 0);
    for (std::int32_t& t : result_.tensor_of) t = moved[at(t)];
    ir::drop_unused_buffers(result_.model);
    REEF_RETURN_IF_ERROR(ir::verify(result_.model).in("the quantized model (a defect in Reef)"));
    REEF_RETURN_IF_ERROR(check_scales(result_.model));
    return std::move(result_);
  }

 private:
  ir::Subgraph& graph() { return result_.model.subgraphs[0]; }
  std::vector<ir::Tensor>& tensors() { return graph().tensors; }
  bool is_float(std::int32_t t) const { return t >= 0 && from_.tensors[at(t)].type == DataType::kFloat32; }
  Form integer_form(std::int32_t t) const { return {integer_, *scales_.tensors[at(t)]}; }

  void set_homes(const ir::Operator& op) {
    for (const std::int32_t t : op.outputs) {
      if (is_float(t)) home_[at(t)] = integer_form(t);
    }
  }

  // The form in which the graph takes or gives a float tensor.
  Form border_form(std::int32_t t, IoType type) const {
    if (type == IoType::kFloat32 || plan_.float_border.contains(t)) return {};
    const auto& own = scales_.tensors[at(t)];
    const auto given = plan_.border.find(t);
    const bool is_unknown = plan_.scales && !own && given == plan_.border.end();
    if (is_unknown) return {};  // nobody said how; it stays float
    const Affine affine = given != plan_.border.end() ? given->second
                          : own                       ? *own
                                                      : affine_for(plan_.ranges[at(t)], options_.mode);
    if (type == IoType::kInt8 || options_.mode == Mode::kInt16x8) return {integer_, affine};
    return {DataType::kUInt8, {affine.scale, affine.zero_point + 128}};
  }
  void set_input_homes() {
    for (const std::int32_t t : from_.inputs) {
      if (is_float(t)) home_[at(t)] = border_form(t, options_.input_type);
    }
  }

  std::int32_t new_tensor(std::int32_t like, const Form& form, std::string_view suffix) {
    ir::Tensor tensor = from_.tensors[at(like)];
    tensor.name = fmt::format("{}{}", tensor.name, suffix);
    tensor.buffer = 0;
    set_affine(tensor, form);
    tensors().push_back(std::move(tensor));
    return static_cast<std::int32_t>(tensors().size() - 1);
  }

  // Tensor `t` of the float model in this form, converted if it is not at home there.
  std::int32_t in_form(std::int32_t t, const Form& form) {
    const Form& home = home_[at(t)];
    if (home == form) return t;
    const auto key = std::pair(t, form.key());
    if (const auto found = forms_.find(key); found != forms_.end()) return found->second;
    const bool to_float = form.type == DataType::kFloat32;
    const std::string suffix = to_float                          ? "_dequantized"
                               : home.type == DataType::kFloat32 ? "_quantized"
                                                                 : "_requantized";
    const std::int32_t made = new_tensor(t, form, suffix);
    convert(t, made, home.type, form.type);
    forms_[key] = made;
    return made;
  }
  // A float tensor whose scale the model carries, rounded and cut to what that holds, as the model says: a ReLU may be
  // in nothing but the cut.
  std::int32_t through_integers(std::int32_t t) {
    if (const auto found = rounded_.find(t); found != rounded_.end()) return found->second;
    const std::int32_t integers = in_form(t, integer_form(t));
    const std::int32_t made = new_tensor(t, {}, "_rounded");
    convert(integers, made, integer_, DataType::kFloat32);
    return rounded_[t] = made;
  }
  // The operator that makes tensor `to` of tensor `from`.
  void convert(std::int32_t from, std::int32_t to, DataType from_type, DataType to_type) {
    const bool to_float = to_type == DataType::kFloat32;
    ir::Operator op;
    op.type = name_of(to_float ? Op::DEQUANTIZE : Op::QUANTIZE);
    op.builtin_code = tflite::builtin_code(op.type);
    op.version = !to_float                       ? (to_type == DataType::kInt16 ? 2 : 1)
                 : from_type == DataType::kInt8  ? 2
                 : from_type == DataType::kInt16 ? 3
                                                 : 1;
    op.options_type = to_float ? "DequantizeOptions" : "QuantizeOptions";
    op.inputs = {from};
    op.outputs = {to};
    operators_.push_back(std::move(op));
    ++result_.quantize_ops;
  }

  Status add(std::int32_t number) {
    const Decision& decision = plan_.decisions[at(number)];
    ir::Operator op = from_.operators[at(number)];
    if (decision.treatment == Treatment::kFloat) {
      ++result_.float_ops;
      for (std::int32_t& t : op.inputs) {
        if (!is_float(t)) continue;
        if (home_[at(t)].type != DataType::kFloat32) {
          t = in_form(t, {});
        } else if (plan_.rounded.contains(t)) {
          t = through_integers(t);
        }
      }
    } else if (decision.treatment == Treatment::kInteger) {
      ++result_.integer_ops;
      REEF_RETURN_IF_ERROR(make_integer(number, *decision.rule, op));
    }
    operators_.push_back(std::move(op));
    return ok_status();
  }

  Status make_integer(std::int32_t number, const OpRule& rule, ir::Operator& op) {
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
      const std::int32_t t = op.inputs[i];
      if (!is_float(t)) continue;
      if (!rule.is_activation(static_cast<int>(i))) continue;
      const auto edge = scales_.edges.find({number, static_cast<int>(i)});
      if (is_float_constant(source_, from_.tensors[at(t)])) {
        op.inputs[i] = constant(t, {constant_type(op, static_cast<int>(i)), edge->second});
      } else {
        op.inputs[i] = in_form(t, edge != scales_.edges.end() ? Form{integer_, edge->second} : integer_form(t));
      }
    }
    if (op.type == Op::DIV) keep_from_zero(op, from_.operators[at(number)].inputs[1]);
    if (rule.kind == RuleKind::kWeighted) make_weights(number, rule, op);
    if (rule.kind == RuleKind::kRecurrent) {
      const Range& cells = plan_.ranges[at(op.inputs[kLstmCellState])];
      make_integer_lstm(result_.model, source_, op, cells, plan_.clip_weights);
    }
    const int version = options_.mode == Mode::kInt16x8 ? rule.version16 : rule.version8;
    op.version = std::max({op.version, version, special_version(op)});
    if (options_.mode == Mode::kInt16x8 && (op.type == Op::ADD || op.type == Op::SUB)) {
      op.attributes.set("pot_scale_int16", false);
    }
    return ok_status();
  }

  // A divisor that is never 0 may be so small that it rounds to 0, by which integers cannot be divided: it becomes one
  // step. Of a computed one by MAXIMUM or MINIMUM, after the sign it has. `divisor`: in the float model.
  void keep_from_zero(ir::Operator& op, std::int32_t divisor) {
    const std::int32_t t = op.inputs[1];
    const ir::Tensor tensor = tensors()[at(t)];
    const Affine affine{tensor.quantization.scale[0], static_cast<std::int32_t>(tensor.quantization.zero_point[0])};
    if (is_float_constant(source_, from_.tensors[at(divisor)])) {
      op.inputs[1] = constant(divisor, {tensor.type, affine}, Zero::kBecomesStep);
      return;
    }
    // By what was observed; of a scale that the model carries, by what it can hold.
    const Range& seen = plan_.ranges[at(divisor)];
    const bool is_negative = seen.min < 0 || (seen == Range{} && affine.zero_point == 127);
    const bool has_one_sign =
        seen == Range{} ? affine.zero_point == -128 || is_negative : seen.min == 0 || seen.max == 0;
    if (!has_one_sign) return;
    if (const auto known = not_zero_.find(t); known != not_zero_.end()) {
      op.inputs[1] = known->second;
      return;
    }
    const std::int32_t limit = new_tensor(divisor, {tensor.type, affine}, "_step");
    tensors().back().shape = ir::Shape{1};
    const auto step = static_cast<std::int8_t>(affine.zero_point + (is_negative ? -1 : 1));
    set_constant(result_.model, tensors().back(), std::vector<std::int8_t>{step});
    ir::Operator guard;
    guard.type = name_of(is_negative ? Op::MINIMUM : Op::MAXIMUM);
    guard.builtin_code = tflite::builtin_code(guard.type);
    guard.version = rule_of(guard.type)->version8;
    guard.options_type = "MaximumMinimumOptions";
    guard.inputs = {t, limit};
    guard.outputs = {new_tensor(divisor, {tensor.type, affine}, "_not_zero")};
    op.inputs[1] = not_zero_[t] = guard.outputs[0];
    operators_.push_back(std::move(guard));
    ++result_.integer_ops;
  }

  // With 16-bit activations, the constant matrix of a product is int8, as weights are.
  DataType constant_type(const ir::Operator& op, int position) const {
    return op.type == Op::BATCH_MATMUL && position == 1 ? DataType::kInt8 : integer_;
  }

  // Versions that depend on more than the type.
  int special_version(const ir::Operator& op) {
    if (op.type == Op::MUL) {
      const auto scale = [&](std::int32_t t) {
        const auto& s = tensors()[at(t)].quantization.scale;
        return s.empty() ? 0.0f : s[0];
      };
      return scale(op.inputs[0]) * scale(op.inputs[1]) >= scale(op.outputs[0]) ? 3 : 1;
    }
    if (op.type == Op::FULLY_CONNECTED) {
      const auto weights = static_cast<std::size_t>(op.inputs[1]);
      if (tensors()[weights].quantization.is_per_axis()) return 12;
      if (op.inputs.size() < 3 || op.inputs[2] < 0) return 6;
      return op.attributes.get_bool("keep_num_dims") ? 5 : 1;
    }
    if (op.type == Op::TRANSPOSE_CONV && op.inputs.size() > 3 && op.inputs[3] >= 0) return 3;
    return 1;
  }

  enum class Zero : std::uint8_t { kStaysZero, kBecomesStep };  // what becomes of numbers that round to zero

  std::int32_t constant(std::int32_t t, const Form& form, Zero zero = Zero::kStaysZero) {
    const auto key = std::pair(t, form.key());
    const bool may_share = zero == Zero::kStaysZero;
    if (const auto found = constants_.find(key); may_share && found != constants_.end()) return found->second;
    const std::vector<float> values = float_values(source_, from_.tensors[at(t)]);
    const int low = form.type == DataType::kInt16 ? -32768 : -128, high = form.type == DataType::kInt16 ? 32767 : 127;
    const auto round = [&](float v) {
      double steps = std::round(static_cast<double>(v) / form.affine.scale);
      // Where all others are positive, there is no number below zero for a negative one.
      if (zero == Zero::kBecomesStep && steps == 0) steps = v < 0 && form.affine.zero_point > low ? -1 : 1;
      const double q = steps + form.affine.zero_point;
      return static_cast<std::int16_t>(std::isnan(q) ? form.affine.zero_point : std::clamp<double>(q, low, high));
    };
    const std::int32_t made = new_tensor(t, form, "_quantized");
    ir::Tensor& tensor = tensors().back();
    if (form.type == DataType::kInt16) {
      std::vector<std::int16_t> q(values.size());
      std::transform(values.begin(), values.end(), q.begin(), round);
      set_constant(result_.model, tensor, q);
    } else {
      std::vector<std::int8_t> q(values.size());
      std::transform(values.begin(), values.end(), q.begin(),
                     [&](float v) { return static_cast<std::int8_t>(round(v)); });
      set_constant(result_.model, tensor, q);
    }
    if (may_share) constants_[key] = made;
    return made;
  }

  void make_weights(std::int32_t number, const OpRule& rule, ir::Operator& op) {
    const auto input = static_cast<std::size_t>(op.inputs[at(rule.input)]);
    const double input_scale = tensors()[input].quantization.scale[0];
    const std::int32_t weights = op.inputs[at(rule.weights)];
    const ir::Tensor& weight_tensor = from_.tensors[at(weights)];
    const bool has_bias = rule.bias < static_cast<int>(op.inputs.size()) && op.inputs[at(rule.bias)] >= 0;
    std::vector<float> bias;
    if (has_bias) {
      bias = float_values(source_, from_.tensors[at(op.inputs[at(rule.bias)])]);
    }
    const std::vector<float> values = float_values(source_, weight_tensor);
    const bool per_channel = is_per_channel(op, options_);
    WeightRequest request;
    request.layout = channel_layout(weight_tensor.shape, per_channel ? rule.channel_axis : -1);
    request.clip = plan_.clip_weights;
    if (options_.mode == Mode::kInt8) request.bias = bias;
    request.input_scale = input_scale;
    const auto given = plan_.given_weight_scales.find(weights);
    std::vector<float> scales =
        given != plan_.given_weight_scales.end() ? given->second : weight_scales(values, request);
    if (given != plan_.given_weight_scales.end()) {
      raise_to_limits(scales, input_scale);
      request.layout = channel_layout(weight_tensor.shape, scales.size() > 1 ? rule.channel_axis : -1);
    }
    // Rounding was chosen for the scales without the bias; where that raised one, it does not hold.
    const auto rounded = plan_.rounded_weights.find(number);
    request.bias = {};
    const bool holds = rounded != plan_.rounded_weights.end() && weight_scales(values, request) == scales;
    const std::vector<std::int8_t> q = holds ? rounded->second : round_weights(values, request.layout, scales);
    op.inputs[at(rule.weights)] = weight_constant(weights, q, scales, rule.channel_axis);
    if (has_bias) {
      std::int32_t& place = op.inputs[at(rule.bias)];
      place = bias_constant(place, bias, bias_scales(input_scale, scales));
    }
  }

  std::int32_t weight_constant(std::int32_t weights, const std::vector<std::int8_t>& q, std::vector<float> scales,
                               int axis) {
    const std::int32_t made = new_tensor(weights, {DataType::kInt8, {}}, "_quantized");
    ir::Tensor& tensor = tensors().back();
    tensor.quantization.zero_point.assign(scales.size(), 0);
    tensor.quantization.dimension = scales.size() > 1 ? axis : 0;
    tensor.quantization.scale = std::move(scales);
    set_constant(result_.model, tensor, q);
    return made;
  }

  std::int32_t bias_constant(std::int32_t bias, const std::vector<float>& values, std::vector<float> scales) {
    const bool is_wide = options_.mode == Mode::kInt16x8;
    const std::int32_t made = new_tensor(bias, {is_wide ? DataType::kInt64 : DataType::kInt32, {}}, "_quantized");
    ir::Tensor& tensor = tensors().back();
    if (is_wide) {
      set_constant(result_.model, tensor, round_bias<std::int64_t>(values, scales));
    } else {
      set_constant(result_.model, tensor, round_bias<std::int32_t>(values, scales));
    }
    tensor.quantization.zero_point.assign(scales.size(), 0);
    tensor.quantization.scale = std::move(scales);
    return made;
  }

  // The graph's outputs in the form asked for, under the names they had.
  void set_outputs() {
    std::map<std::int32_t, std::int32_t> replaced;
    for (std::int32_t& t : graph().outputs) {
      if (!is_float(t) || is_float_constant(source_, from_.tensors[at(t)])) continue;
      if (std::find(from_.inputs.begin(), from_.inputs.end(), t) != from_.inputs.end()) continue;
      const std::int32_t made = in_form(t, border_form(t, options_.output_type));
      if (made == t) continue;
      replaced[t] = made;
      std::swap(tensors()[at(t)].name, tensors()[at(made)].name);
      t = made;
    }
    for (ir::Signature& signature : result_.model.signatures) {
      if (signature.subgraph != 0) continue;
      for (ir::SignatureTensor& entry : signature.outputs) {
        if (const auto found = replaced.find(entry.tensor); found != replaced.end()) entry.tensor = found->second;
      }
    }
  }

  const ir::Model& source_;
  const Plan& plan_;
  const QuantizeOptions& options_;
  const ir::Subgraph& from_;
  DataType integer_ = DataType::kInt8;
  Scales scales_;
  std::vector<Form> home_;  // of every tensor of the float model
  std::map<std::pair<std::int32_t, std::tuple<int, float, std::int32_t>>, std::int32_t> forms_, constants_;
  std::map<std::int32_t, std::int32_t> rounded_;
  std::map<std::int32_t, std::int32_t> not_zero_;  // of a divisor: the same, kept from zero
  std::vector<ir::Operator> operators_;
  IntegerModel result_;
};

}  // namespace

Result<IntegerModel> to_integer(const ir::Model& model, const Plan& plan, const QuantizeOptions& options) {
  return Writer(model, plan, options).run();
}

}  // namespace reef::quantize
