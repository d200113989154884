// SPDX-License-Identifier: Apache-2.0
#include "evaluate/tensor_match.h"

#include <algorithm>
#include <map>

#include "ir/op.h"
#include "quantize/equalization.h"
#include "quantize/op_rules.h"

namespace reef::evaluate {
namespace {

class Matcher {
 public:
  Matcher(const ir::Model& float_model, const ir::Model& quantized, std::span<const NamePair> names)
      : float_model_(float_model), quantized_(quantized), from_(float_model.subgraphs[0]), to_(quantized.subgraphs[0]) {
    match_.float_of.assign(to_.tensors.size(), -1);
    match_.uses = ir::Uses(float_model);
    is_taken_.assign(from_.operators.size(), 0);
    for (std::size_t i = 0; i < from_.operators.size(); ++i) {
      for (const std::int32_t tensor : from_.operators[i].outputs) {
        if (tensor < 0) continue;
        by_name_[from_.tensors[at(tensor)].name] = tensor;
      }
    }
    equalized_ = quantize::stored_equalization(quantized);
    for (const NamePair& pair : names) {
      if (const auto found = by_name_.find(pair.float_name); found != by_name_.end())
        listed_[pair.quantized_name] = found->second;
    }
  }

  TensorMatch match() {
    for (std::size_t i = 0; i < to_.inputs.size(); ++i) match_.float_of[at(to_.inputs[i])] = from_.inputs[i];
    for (const ir::Operator& op : to_.operators) match_op(op);
    return std::move(match_);
  }

 private:
  const ir::Tensor& result(std::int32_t tensor) const { return to_.tensors[at(tensor)]; }

  // Than the float model does at that place: the quantizer says so with the name. Its own list knows the float model
  // that was changed likewise.
  bool holds_something_else(std::int32_t tensor) const {
    const std::string& name = result(tensor).name;
    return quantize::without_suffixes(name).size() < name.size() && factors(tensor) == nullptr;
  }

  // Of a tensor that only differs from the float model's by them; null: there are none.
  const std::vector<float>* factors(std::int32_t tensor) const {
    const ir::Tensor& mine = result(tensor);
    const auto found = equalized_.find(mine.name);
    if (found == equalized_.end() || listed_.contains(mine.name)) return nullptr;
    const bool is_scaled = mine.name.ends_with(quantize::kEqualizedSuffix) && mine.shape.rank() > 0 &&
                           static_cast<std::size_t>(mine.shape.last()) == found->second.size();
    const std::string_view before =
        std::string_view(mine.name).substr(0, mine.name.size() - quantize::kEqualizedSuffix.size());
    return is_scaled && before == quantize::without_suffixes(mine.name) ? &found->second : nullptr;
  }

  // The same number of elements, and numbers that can be compared with quantized ones.
  bool fits(std::int32_t from, std::int32_t to) const {
    const ir::Tensor& a = from_.tensors[at(from)];
    return a.type == ir::DataType::kFloat32 && a.shape.checked_elements() == result(to).shape.checked_elements();
  }

  void match_op(const ir::Operator& op) {
    if (op.outputs.empty() || op.outputs[0] < 0) return;
    if (is_conversion(op) && op.inputs.size() == 1 && op.inputs[0] >= 0) {
      match_.float_of[at(op.outputs[0])] = match_.float_of[at(op.inputs[0])];
      if (const auto scaled = match_.factors_of.find(op.inputs[0]); scaled != match_.factors_of.end())
        match_.factors_of[op.outputs[0]] = scaled->second;
      if (match_.float_of[at(op.outputs[0])] >= 0) return;
    }
    std::int32_t producer = by_list_or_name(op);
    if (producer < 0 && !holds_something_else(op.outputs[0])) {
      producer = by_structure(op);
      match_.by_structure += producer >= 0 ? 1 : 0;
    }
    if (producer < 0) {
      match_.unmatched.push_back(fmt::format("{} '{}'", op.type, result(op.outputs[0]).name));
      return;
    }
    is_taken_[at(producer)] = 1;
    const ir::Operator& original = from_.operators[at(producer)];
    for (std::size_t i = 0; i < std::min(op.outputs.size(), original.outputs.size()); ++i) {
      const bool is_listed = op.outputs[i] >= 0 && listed_.contains(result(op.outputs[i]).name);
      if (op.outputs[i] >= 0 && original.outputs[i] >= 0 && fits(original.outputs[i], op.outputs[i]) &&
          (is_listed || !holds_something_else(op.outputs[i])))
        match_.float_of[at(op.outputs[i])] = original.outputs[i];
      if (const std::vector<float>* scaled = op.outputs[i] < 0 ? nullptr : factors(op.outputs[i]); scaled != nullptr)
        match_.factors_of[op.outputs[i]] = *scaled;
    }
  }

  std::int32_t by_list_or_name(const ir::Operator& op) {
    const std::string& name = result(op.outputs[0]).name;
    if (const auto found = listed_.find(name); found != listed_.end() && fits(found->second, op.outputs[0])) {
      ++match_.by_list;
      return producer(found->second);
    }
    const bool is_scaled = factors(op.outputs[0]) != nullptr;
    const auto found = by_name_.find(is_scaled ? std::string(quantize::without_suffixes(name)) : name);
    if (found == by_name_.end() || !fits(found->second, op.outputs[0])) return -1;
    const std::int32_t original = producer(found->second);
    const ir::Operator& other = from_.operators[at(original)];
    if (other.type != op.type || other.outputs[0] != found->second || is_taken_[at(original)] != 0) return -1;
    ++match_.by_name;
    return original;
  }

  std::int32_t producer(std::int32_t tensor) const { return match_.uses.producer(tensor); }

  // Operands that are computed are matched, constants have the same shape.
  bool has_operands_of(const ir::Operator& op, const ir::Operator& original) const {
    if (op.inputs.size() != original.inputs.size()) return false;
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
      const std::int32_t a = op.inputs[i], b = original.inputs[i];
      if ((a < 0) != (b < 0)) return false;
      if (a < 0) continue;
      const ir::Tensor& mine = result(a);
      const ir::Tensor& theirs = from_.tensors[at(b)];
      if (ir::is_constant(quantized_, mine)) {
        if (!ir::is_constant(float_model_, theirs) || !(mine.shape == theirs.shape)) return false;
      } else if (match_.float_of[at(a)] != b) {
        return false;
      }
    }
    return true;
  }

  std::int32_t by_structure(const ir::Operator& op) const {
    for (std::size_t i = 0; i < from_.operators.size(); ++i) {
      const ir::Operator& original = from_.operators[i];
      if (is_taken_[i] == 0 && original.type == op.type && !original.outputs.empty() && original.outputs[0] >= 0 &&
          fits(original.outputs[0], op.outputs[0]) && has_operands_of(op, original))
        return static_cast<std::int32_t>(i);
    }
    return -1;
  }

  const ir::Model& float_model_;
  const ir::Model& quantized_;
  const ir::Subgraph& from_;
  const ir::Subgraph& to_;
  std::map<std::string, std::int32_t> by_name_, listed_;
  quantize::NamedFactors equalized_;
  std::vector<char> is_taken_;
  TensorMatch match_;
};

}  // namespace

bool is_conversion(const ir::Operator& op) { return op.type == Op::QUANTIZE || op.type == Op::DEQUANTIZE; }

Result<TensorMatch> match_tensors(const ir::Model& float_model, const ir::Model& quantized,
                                  std::span<const NamePair> names) {
  REEF_REQUIRE(!float_model.subgraphs.empty() && !quantized.subgraphs.empty(), "a model has no graph");
  const ir::Subgraph& from = float_model.subgraphs[0];
  const ir::Subgraph& to = quantized.subgraphs[0];
  REEF_REQUIRE(from.inputs.size() == to.inputs.size(), "the float model has {} inputs, the quantized one {}",
               from.inputs.size(), to.inputs.size());
  for (std::size_t i = 0; i < from.inputs.size(); ++i) {
    const ir::Tensor& a = from.tensors[at(from.inputs[i])];
    const ir::Tensor& b = to.tensors[at(to.inputs[i])];
    REEF_REQUIRE(a.shape == b.shape, "input {} is {} in the float model and {} in the quantized one", i,
                 a.shape.to_string(), b.shape.to_string());
  }
  return Matcher(float_model, quantized, names).match();
}

}  // namespace reef::evaluate
