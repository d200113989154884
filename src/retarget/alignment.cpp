// SPDX-License-Identifier: Apache-2.0
#include "retarget/alignment.h"

#include <algorithm>
#include <set>

#include "formats/darwinn/reader.h"
#include "ir/describe.h"
#include "ir/uses.h"
#include "retarget/network.h"

namespace reef::retarget {

namespace {

class Aligner {
 public:
  Aligner(const ir::Subgraph& compiled, const ir::Model& source)
      : compiled_(compiled), source_(source.subgraphs[0]), uses_(source) {}

  Result<Alignment> run() {
    REEF_RETURN_IF_ERROR(find_custom_op());
    REEF_RETURN_IF_ERROR(bind_interface());
    for (std::int32_t i = 0; i < result_.custom_op; ++i) REEF_RETURN_IF_ERROR(bind_before(i));
    for (auto i = static_cast<std::int32_t>(compiled_.operators.size()) - 1; i > result_.custom_op; --i) {
      REEF_RETURN_IF_ERROR(bind_after(i));
    }
    REEF_RETURN_IF_ERROR(find_border());
    find_chip_ops();
    return std::move(result_);
  }

 private:
  const ir::Operator& compiled_op(std::int32_t i) const { return compiled_.operators[reef::at(i)]; }
  const ir::Operator& source_op(std::int32_t i) const { return source_.operators[reef::at(i)]; }
  const ir::Tensor& compiled_tensor(std::int32_t i) const { return compiled_.tensors[reef::at(i)]; }
  const ir::Tensor& source_tensor(std::int32_t i) const { return source_.tensors[reef::at(i)]; }

  Status find_custom_op() {
    int found = 0;
    for (std::size_t i = 0; i < compiled_.operators.size(); ++i) {
      if (compiled_.operators[i].type != darwinn::kCustomOpName) continue;
      result_.custom_op = static_cast<std::int32_t>(i);
      ++found;
    }
    REEF_REQUIRE(found > 0, "the template is not compiled for the Edge TPU: it has no operator '{}'",
                 darwinn::kCustomOpName);
    if (found > 1) return unsupported("the template has {} compiled parts; only one can be retargeted", found);
    return ok_status();
  }

  // Tensors that belong together must have the same type and shape.
  Status bind(std::int32_t compiled, std::int32_t source, std::string_view role) {
    if ((compiled < 0) != (source < 0)) {
      return invalid_input("the architectures differ: {} is left out in one of the two files", role);
    }
    if (compiled < 0) return ok_status();
    const auto [at, is_new] = result_.tensors.emplace(compiled, source);
    const ir::Tensor &a = compiled_tensor(compiled), &b = source_tensor(source);
    if (!is_new && at->second != source) {
      return invalid_input("the architectures differ: {} is '{}' in the model, which has '{}' elsewhere in its place",
                           role, ir::describe_name(b.name), ir::describe_name(source_tensor(at->second).name));
    }
    if (a.type != b.type || a.shape != b.shape) {
      return invalid_input("the architectures differ: {} is {}{} ('{}') in the template and {}{} ('{}') in the model",
                           role, ir::type_name(a.type), a.shape.to_string(), ir::describe_name(a.name),
                           ir::type_name(b.type), b.shape.to_string(), ir::describe_name(b.name));
    }
    return ok_status();
  }

  Status bind_interface() {
    const struct {
      const char* role;
      const std::vector<std::int32_t>&compiled, &source;
    } kSides[] = {{"input", compiled_.inputs, source_.inputs}, {"output", compiled_.outputs, source_.outputs}};
    for (const auto& side : kSides) {
      REEF_REQUIRE(side.compiled.size() == side.source.size(),
                   "the architectures differ: the template has {} {}s, the model {}", side.compiled.size(), side.role,
                   side.source.size());
      for (std::size_t i = 0; i < side.compiled.size(); ++i) {
        REEF_RETURN_IF_ERROR(bind(side.compiled[i], side.source[i], fmt::format("{} {}", side.role, i)));
      }
    }
    return ok_status();
  }

  // A file may leave out what has its default: only what both say is compared.
  static bool same_attributes(const ir::Attributes& a, const ir::Attributes& b) {
    return std::all_of(a.begin(), a.end(), [&](const ir::Attribute& attribute) {
      const ir::AttributeValue* other = b.find(attribute.name);
      return other == nullptr || ir::same_value(attribute.value, *other);
    });
  }

  Status bind_op(std::int32_t compiled, std::int32_t source) {
    const ir::Operator &a = compiled_op(compiled), &b = source_op(source);
    const std::string what = ir::describe_op(source_, source);
    if (a.inputs.size() != b.inputs.size() || a.outputs.size() != b.outputs.size() ||
        !same_attributes(a.attributes, b.attributes) || a.custom_options != b.custom_options) {
      return invalid_input(
          "the architectures differ: {} has other operands or attributes than the template's operator {}, which runs "
          "on the CPU",
          what, compiled);
    }
    result_.cpu_ops[compiled] = source;
    taken_.insert(source);
    for (std::size_t k = 0; k < a.inputs.size(); ++k) {
      REEF_RETURN_IF_ERROR(bind(a.inputs[k], b.inputs[k], fmt::format("operand {} of {}", k, what)));
    }
    for (std::size_t k = 0; k < a.outputs.size(); ++k) {
      REEF_RETURN_IF_ERROR(bind(a.outputs[k], b.outputs[k], fmt::format("result {} of {}", k, what)));
    }
    return ok_status();
  }

  // Operators before the compiled part: found by what they read.
  Status bind_before(std::int32_t index) {
    const ir::Operator& op = compiled_op(index);
    for (std::size_t i = 0; i < source_.operators.size(); ++i) {
      const auto candidate = static_cast<std::int32_t>(i);
      const ir::Operator& other = source_op(candidate);
      if (other.type != op.type || taken_.count(candidate) > 0 || other.inputs.size() != op.inputs.size()) continue;
      bool agrees = true;
      for (std::size_t k = 0; k < op.inputs.size(); ++k) {
        const auto bound = result_.tensors.find(op.inputs[k]);
        if (bound != result_.tensors.end() && bound->second != other.inputs[k]) agrees = false;
      }
      if (agrees) return bind_op(index, candidate);
    }
    return invalid_input(
        "the architectures differ: the model has no counterpart of the template's operator {} {}, "
        "which runs on the CPU",
        index, op.type);
  }

  // Operators behind it: found by what they make.
  Status bind_after(std::int32_t index) {
    const ir::Operator& op = compiled_op(index);
    for (const std::int32_t output : op.outputs) {
      const auto bound = result_.tensors.find(output);
      if (bound == result_.tensors.end()) continue;
      const std::int32_t producer = uses_.producer(bound->second);
      REEF_REQUIRE(producer >= 0 && source_op(producer).type == op.type,
                   "the architectures differ: '{}' is made by {} on the CPU in the template, by {} in the model",
                   ir::describe_name(source_tensor(bound->second).name), op.type,
                   producer < 0 ? "nothing" : source_op(producer).type);
      return bind_op(index, producer);
    }
    return invalid_input("the template's operator {} {} makes nothing that is used", index, op.type);
  }

  // States of recurrent operators have no counterpart by position: they are operands of the operator that owns them.
  std::vector<std::int32_t> state_tensors() const {
    std::vector<std::int32_t> states;
    for (const ir::Operator& op : source_.operators) {
      for (const std::int32_t t : op.inputs) {
        if (t >= 0 && source_tensor(t).is_variable) states.push_back(t);
      }
    }
    return states;
  }

  Status find_border() {
    const ir::Operator& op = compiled_op(result_.custom_op);
    std::vector<std::int32_t> states = state_tensors();
    for (const std::int32_t t : op.inputs) {
      REEF_REQUIRE(t >= 0, "the template's compiled part leaves an input out");
      if (result_.tensors.count(t) == 0 && compiled_tensor(t).is_variable && !states.empty()) {
        REEF_RETURN_IF_ERROR(bind(t, states.front(), "a state"));
        states.erase(states.begin());
      }
      const auto bound = result_.tensors.find(t);
      REEF_REQUIRE(bound != result_.tensors.end(),
                   "the input '{}' of the template's compiled part has no counterpart in the model",
                   ir::describe_name(compiled_tensor(t).name));
      result_.inputs.push_back(bound->second);
    }
    for (const std::int32_t t : op.outputs) {
      const auto bound = result_.tensors.find(t);
      REEF_REQUIRE(bound != result_.tensors.end(),
                   "the output '{}' of the template's compiled part has no counterpart in the model",
                   ir::describe_name(compiled_tensor(t).name));
      result_.outputs.push_back(bound->second);
    }
    return ok_status();
  }

  void find_chip_ops() {
    std::vector<std::int32_t> wanted = result_.outputs;
    std::set<std::int32_t> chip;
    const std::set<std::int32_t> given(result_.inputs.begin(), result_.inputs.end());
    while (!wanted.empty()) {
      const std::int32_t t = wanted.back();
      wanted.pop_back();
      const std::int32_t producer = t < 0 ? -1 : uses_.producer(t);
      if (producer < 0 || given.count(t) > 0 || taken_.count(producer) > 0) continue;
      if (!chip.insert(producer).second) continue;
      for (const std::int32_t input : source_op(producer).inputs) {
        // Shapes that are computed, and the like, are no part of the network.
        if (input >= 0 && chip_tensor(source_tensor(input))) wanted.push_back(input);
      }
    }
    result_.chip_ops.assign(chip.begin(), chip.end());
  }

  const ir::Subgraph& compiled_;
  const ir::Subgraph& source_;
  ir::Uses uses_;  // of the source
  std::set<std::int32_t> taken_;
  Alignment result_;
};

}  // namespace

Result<Alignment> align(const ir::Model& compiled, const ir::Model& model) {
  REEF_REQUIRE(!compiled.subgraphs.empty() && !model.subgraphs.empty(), "a model has no graph");
  return Aligner(compiled.subgraphs[0], model).run();
}

}  // namespace reef::retarget
