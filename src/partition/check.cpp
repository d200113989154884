// SPDX-License-Identifier: Apache-2.0
// Each operator is held against the rules for all ops (model_rules.cpp) and then against its own (ops/<op>.cpp), all of
// them: what else is wrong matters to whoever mends the first thing. The order is that of Google's compiler, which
// names one reason only: data types come before everything else, what an op is before what it is given.
#include "partition/check.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "ir/uses.h"
#include "ops/checks.h"
#include "ops/chip_rules.h"
#include "ops/inferred_shapes.h"
#include "ops/own_code.h"
#include "ops/registry.h"
#include "ops/static_ops.h"
#include "ops/table_functions.h"
#include "partition/dynamic_shapes.h"
#include "partition/model_rules.h"

namespace reef::partition {
namespace {

using ir::DataType;
using ops::chip::shape_text;

bool is_float(DataType type) {
  return type == DataType::kFloat32 || type == DataType::kFloat16 || type == DataType::kFloat64 ||
         type == DataType::kBFloat16;
}

bool is_control_flow(std::string_view type) { return type == Op::IF || type == Op::WHILE || type == Op::CALL_ONCE; }

// Types that weights, biases, axes and sizes have.
bool is_parameter_type(DataType type) {
  return ir::is_integer_8(type) || type == DataType::kInt16 || type == DataType::kInt32 || type == DataType::kInt64;
}

// What is wrong with scales and zero points, a clause; empty: nothing.
std::string bad_quantization(const ops::Tensor& tensor, bool is_parameter) {
  const ir::Quantization& quantization = *tensor.quantization;
  if (quantization.scale.empty()) return "has no scale";
  if (quantization.scale.size() > 1 && !is_parameter) {
    return fmt::format("has {} scales; only weights may have more than one", quantization.scale.size());
  }
  for (const float scale : quantization.scale) {
    if (!std::isfinite(scale) || scale <= 0) return fmt::format("has a scale of {}", scale);
  }
  const ops::IntRange range = ops::type_range(tensor.type);
  for (const std::int64_t zero_point : quantization.zero_point) {
    if (zero_point < range.min || zero_point > range.max) {
      return fmt::format("has a zero point of {}, which {} cannot hold", zero_point, ir::type_name(tensor.type));
    }
  }
  return "";
}

class Checker {
 public:
  Checker(const ir::Model& model, const CheckOptions& options)
      : model_(model), ops_(model), uses_(model), dynamic_(model, ops_), options_(options) {}

  Assessment assess() {
    Assessment result;
    result.options = options_;
    result.ops.reserve(static_cast<std::size_t>(ops_.count()));
    for (std::int32_t i = 0; i < ops_.count(); ++i) {
      result.ops.push_back(judge(i));
      result.is_quantized = result.is_quantized || computes_on_8_bits(ops_.context(i));
    }
    result.float_tensors = float_tensors();
    result.dynamic_tensors = dynamic_.tensors();
    return result;
  }

 private:
  // One operator under judgement.
  struct Case {
    std::int32_t index;
    const ops::OpDef* definition;  // null: unknown
    ops::OpContext context;
    OpVerdict verdict;

    bool runs_on_chip() const { return definition != nullptr && ops::first_runtime(*definition, context.op()) > 0; }
    bool is_parameter(int input) const {
      return definition != nullptr && input < 32 && (definition->chip.parameters >> input & 1u) != 0;
    }
    bool takes_only_constants() const {
      for (int i = 0; i < context.input_count(); ++i) {
        if (context.has_input(i) && !context.input(i).is_constant) return false;
      }
      return true;
    }
    void add(ModelRule rule, std::string particulars, std::string_view suggestion = {}, std::string_view rewrite = {}) {
      const ops::ChipRule& broken = model_rule(rule);
      verdict.findings.push_back({&broken, std::move(particulars), suggestion.empty() ? broken.suggestion : suggestion,
                                  rewrite.empty() ? broken.rewrite : rewrite});
    }
  };

  OpVerdict judge(std::int32_t index) const {
    Case op{index, ops_.definition(index), ops_.context(index), {}};
    check_types(op);
    if (check_kind(op)) {
      check_version(op);
      check_constants(op);
      if (check_static(op)) {
        check_rank(op);
        check_quantization(op);
        check_own_rules(op);
        if (op.verdict.fits()) check_shapes(op);
      }
    }
    return std::move(op.verdict);
  }

  // Floats are quantized by the CPU, and Google's compiler has another status for that: the op's own rule.
  static bool quantizes_float(const Case& op) {
    return op.context.op().type == Op::QUANTIZE && op.context.has_input(0) && is_float(op.context.input(0).type) &&
           op.context.output_count() == 1 && ir::is_integer_8(op.context.output(0).type);
  }

  void check_types(Case& op) const {
    if (quantizes_float(op)) return;
    std::string wrong;
    const auto note = [&](std::string_view role, int i, const ops::Tensor& tensor) {
      if (!wrong.empty()) wrong += ", ";
      wrong += fmt::format("{} {} ('{}') is {}", role, i, tensor.name, ir::type_name(tensor.type));
    };
    for (int i = 0; i < op.context.input_count(); ++i) {
      if (!op.context.has_input(i)) continue;
      const ops::Tensor& tensor = op.context.input(i);
      // Of ops that the chip does not run nobody knows which inputs are parameters; constants may well be.
      const bool is_parameter = op.is_parameter(i) || (!op.runs_on_chip() && tensor.is_constant);
      if (is_parameter ? !is_parameter_type(tensor.type) && op.runs_on_chip()
                       : !ir::is_integer_8(tensor.type) && !(tensor.is_variable && tensor.type == DataType::kInt16)) {
        note("input", i, tensor);
      }
    }
    // TOPK_V2, whose second output is int32, is reported as not supported, ARG_MIN as working on the wrong type.
    const int outputs = op.runs_on_chip() ? op.context.output_count() : std::min(op.context.output_count(), 1);
    for (int i = 0; i < outputs; ++i) {
      if (!ir::is_integer_8(op.context.output(i).type)) note("output", i, op.context.output(i));
    }
    if (wrong.empty()) return;
    const bool has_advice = op.definition != nullptr && !op.definition->chip.instead.empty();
    if (has_advice) {
      op.add(ModelRule::kType, std::move(wrong), op.definition->chip.instead, op.definition->chip.rewrite);
    } else {
      op.add(ModelRule::kType, std::move(wrong));
    }
  }

  // Whether it is an op that the chip runs, so that there is more to be said.
  bool check_kind(Case& op) const {
    const ir::Operator& node = op.context.op();
    const ops::OpDef* known = ops::find_op(node);
    if (node.is_custom() && (known == nullptr || ops::first_runtime(*known, node) == 0)) {
      op.add(ModelRule::kCustomOp, fmt::format("'{}' is a custom op", node.type),
             known == nullptr ? std::string_view() : known->chip.instead);
      return false;
    }
    if (known == nullptr) {
      op.add(ModelRule::kKnownOp, fmt::format("op code {} ({}) is not known", node.builtin_code, node.type));
      return false;
    }
    if (is_control_flow(node.type)) {
      op.add(ModelRule::kControlFlow, fmt::format("{} runs another subgraph", node.type), known->chip.instead);
      return false;
    }
    const int first_runtime = ops::first_runtime(*known, node);
    if (first_runtime == 0) {
      op.add(ModelRule::kSupportedOp, fmt::format("{} runs on the CPU only", node.type), known->chip.instead,
             known->chip.rewrite);
      return false;
    }
    if (options_.runtime < first_runtime) {
      op.add(ModelRule::kRuntime,
             fmt::format("{} needs runtime {}, and {} is compiled for", node.type, first_runtime, options_.runtime));
    }
    return check_operands(op, *known);
  }

  bool check_operands(Case& op, const ops::OpDef& known) const {
    if (op.definition != nullptr) return true;
    op.add(ModelRule::kOperands, ops::check_arity(known, op.context.op()).message());
    return false;
  }

  static void check_version(Case& op) {
    const ops::ChipSupport& chip = op.definition->chip;
    const int newest = chip.newest_version;
    const std::int32_t version = op.context.op().version;
    if (newest == 0 || version <= newest) return;
    op.add(ModelRule::kVersion,
           fmt::format("it is version {} of the op; Google's compiler takes versions up to {}", version, newest),
           chip.if_newer, chip.newer_rewrite);
  }

  void check_constants(Case& op) const {
    for (int i = 0; i < op.context.input_count(); ++i) {
      if (!op.is_parameter(i) || !op.context.has_input(i) || op.context.input(i).is_constant) continue;
      const std::int32_t tensor = op.context.op().inputs[at(i)];
      const std::int32_t producer = uses_.producer(tensor);
      op.add(ModelRule::kConstant,
             fmt::format("input {} ('{}') is {}", i, op.context.input(i).name,
                         producer < 0 ? "an input of the model"
                                      : fmt::format("computed by op {} {}", producer, ops_.op(producer).type)));
      return;
    }
  }

  // Whether all shapes are known, so that other rules may look at them.
  bool check_static(Case& op) const {
    const auto check = [&](std::string_view role, int i, std::int32_t tensor) {
      if (tensor < 0) return true;
      const ops::Tensor& bound = ops_.tensor(tensor);
      if (dynamic_.is_dynamic(tensor)) {
        op.add(ModelRule::kStaticShape, fmt::format("{} {} ('{}') {}", role, i, bound.name, dynamic_.reason(tensor)),
               {}, dynamic_.is_computed(tensor) ? "fold-constants" : "");
        return false;
      }
      if (!bound.shape.is_usable() || bound.elements() == 0) {
        op.add(ModelRule::kStaticShape,
               fmt::format("{} {} ('{}') is {}, without elements", role, i, bound.name, shape_text(bound.shape)));
        return false;
      }
      return true;
    };
    const ir::Operator& node = op.context.op();
    for (int i = 0; i < op.context.input_count(); ++i) {
      if (!op.is_parameter(i) && !check("input", i, node.inputs[at(i)])) return false;
    }
    for (int i = 0; i < op.context.output_count(); ++i) {
      if (!check("output", i, node.outputs[at(i)])) return false;
    }
    return true;
  }

  // What runs on the chip gives the shapes that the model declares: all stages behind this index by those. Last: other
  // rules say better what is wrong with an operator that refuses its operands.
  void check_shapes(Case& op) const {
    const Status status = ops::check_declared_shapes(model_, 0, op.context.op());
    if (!status.ok()) op.add(ModelRule::kOperands, status.message());
  }

  static void check_rank(Case& op) {
    if (op.context.attributes().get_bool(ops::kOwnMovement)) return;
    // Weights that an op prepares are no batch, even if they have four dimensions.
    const bool is_folded = op.takes_only_constants();
    const auto check = [&](std::string_view role, int i, const ops::Tensor& tensor) {
      const ir::Shape& shape = tensor.shape;
      for (int d = 0; d + 3 < shape.rank(); ++d) {
        if (shape[d] == 1) continue;
        const ModelRule rule = shape.rank() == 4 && !is_folded ? ModelRule::kBatch : ModelRule::kRank;
        op.add(rule, fmt::format("{} {} is {}", role, i, shape_text(shape)), {}, is_folded ? "fold-constants" : "");
        return true;
      }
      return false;
    };
    for (int i = 0; i < op.context.input_count(); ++i) {
      if (!op.is_parameter(i) && op.context.has_input(i) && check("input", i, op.context.input(i))) return;
    }
    for (int i = 0; i < op.context.output_count(); ++i) {
      if (check("output", i, op.context.output(i))) return;
    }
  }

  static void check_quantization(Case& op) {
    const auto check = [&](std::string_view role, int i, const ops::Tensor& tensor, bool is_parameter) {
      if (!ir::is_integer_8(tensor.type)) return true;
      const std::string wrong = bad_quantization(tensor, is_parameter);
      if (!wrong.empty()) {
        op.add(ModelRule::kQuantization, fmt::format("{} {} ('{}') {}", role, i, tensor.name, wrong));
      }
      return wrong.empty();
    };
    for (int i = 0; i < op.context.input_count(); ++i) {
      if (op.context.has_input(i) && !check("input", i, op.context.input(i), op.is_parameter(i))) return;
    }
    for (int i = 0; i < op.context.output_count(); ++i) {
      if (!check("output", i, op.context.output(i), false)) return;
    }
  }

  void check_own_rules(Case& op) const {
    for (const ops::ChipRule& rule : op.definition->chip.rules) {
      if (!rule.runtimes.contains(options_.runtime)) continue;
      std::string particulars = rule.broken(op.context);
      if (!particulars.empty()) {
        op.verdict.findings.push_back({&rule, std::move(particulars), rule.suggestion, rule.rewrite});
      }
    }
  }

  // Whether it takes quantized values and gives them; what only converts from or to floats does not count.
  static bool computes_on_8_bits(const ops::OpContext& op) {
    const auto is_quantized = [](const ops::Tensor& tensor) {
      return ir::is_integer_8(tensor.type) && tensor.quantization->is_quantized();
    };
    bool takes = false, gives = false;
    for (int i = 0; i < op.input_count(); ++i) {
      takes = takes || (op.has_input(i) && !op.input(i).is_constant && is_quantized(op.input(i)));
    }
    for (int i = 0; i < op.output_count(); ++i) gives = gives || is_quantized(op.output(i));
    return takes && gives;
  }

  std::vector<std::int32_t> float_tensors() const {
    std::vector<bool> is_used(ops_.graph().tensors.size());
    const auto use = [&](const std::vector<std::int32_t>& tensors) {
      for (const std::int32_t tensor : tensors) {
        if (tensor >= 0) is_used[at(tensor)] = true;
      }
    };
    use(ops_.graph().inputs);
    use(ops_.graph().outputs);
    for (const ir::Operator& op : ops_.graph().operators) {
      use(op.inputs);
      use(op.outputs);
    }
    std::vector<std::int32_t> result;
    for (std::size_t i = 0; i < is_used.size(); ++i) {
      if (is_used[i] && is_float(ops_.graph().tensors[i].type)) result.push_back(static_cast<std::int32_t>(i));
    }
    return result;
  }

  const ir::Model& model_;
  const ops::StaticOps ops_;
  const ir::Uses uses_;
  const DynamicShapes dynamic_;
  const CheckOptions options_;
};

}  // namespace

namespace {

constexpr ops::ChipRule kHasCode = {
    .id = "machine-code",
    .says = "Reef generates machine code for it.",
    .suggestion = "Google's compiler may run it on the chip; docs/codegen.md lists what Reef has code for.",
    .broken = nullptr,
    .status = ops::GoogleStatus::kUnspecifiedLimitation,
    .source = ops::RuleSource::kAssumed,
    .evidence = "A limit of Reef's, not of the chip's.",
};

}  // namespace

void leave_without_code(Assessment& assessment, std::int32_t op, const std::string& reason) {
  assessment.ops[at(op)].findings.push_back(
      {.rule = &kHasCode, .particulars = reason, .suggestion = kHasCode.suggestion});
}

Assessment assess(const ir::Model& model, const CheckOptions& options) { return Checker(model, options).assess(); }

}  // namespace reef::partition
